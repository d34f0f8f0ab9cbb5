package values

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Values computes the values of expressions in one cycle.
type Values struct {
	c       *model.Cluster
	p       *policy.Policy
	world   *language.World
	seen    uint64 // the clock of the cluster for which world was created
	starves func(*model.Job) bool
	ready   func(*model.Job) bool
	starts  Settled // values that settle at the start of the run
	settled Settled // values that settle once per cycle
	filled  map[*policy.Attribute]map[*model.Queue]ref.Val
	faults  map[fault]*model.RuleError
}

// Settled contains values of computed fields that have settled.
type Settled map[field]ref.Val

// field is a computed field of one object, by the object's name.
type field struct {
	of    *policy.Attribute
	owner string
}

// New begins a cycle. starts holds the values that settled when the run began; it is empty in the first cycle. starving and ready return
// the outcomes of jobStarving and jobReady.
func New(c *model.Cluster, p *policy.Policy, now time.Time, starts Settled, starving, ready func(*model.Job) bool) *Values {
	x := &Values{
		c: c, p: p, seen: c.Clock, starves: starving, ready: ready, starts: starts, settled: Settled{},
		filled: map[*policy.Attribute]map[*model.Queue]ref.Val{}, faults: map[fault]*model.RuleError{},
	}
	x.world = policy.NewWorld(c, p, x)
	x.world.BeginAt(now)
	return x
}

// World returns the cluster as rows see it. It creates a new one after each change of the cluster.
func (x *Values) World() *language.World {
	if x.seen != x.c.Clock {
		x.world, x.seen = x.world.Anew(), x.c.Clock
	}
	return x.world
}

// Frame returns an empty frame for the evaluation of an expression.
func (x *Values) Frame() *language.Frame { return x.World().Frame() }

// Starving implements policy.Values.
func (x *Values) Starving(j *model.Job) bool { return x.starves(j) }

// IsReady implements policy.Values.
func (x *Values) IsReady(j *model.Job) bool { return x.ready(j) }

// Settle computes the values that settle once per cycle, or at the start of the run, for all their owners.
func (x *Values) Settle() {
	for _, a := range x.p.Attributes() {
		if a.Settle == "cycle" || a.Settle == "start" {
			for _, view := range x.World().Owners(a.On) {
				x.Attribute(a, view)
			}
		}
	}
}

// Attribute implements policy.Values.
func (x *Values) Attribute(a *policy.Attribute, of ref.Val) ref.Val {
	values := map[string]Settled{"cycle": x.settled, "start": x.starts}[a.Settle]
	key := field{a, language.OwnerName(of)}
	if v, ok := values[key]; ok {
		return v
	}
	v := language.Held(x.compute(a, of))
	if values != nil {
		values[key] = v
	}
	return v
}

// Variable implements policy.Values.
func (x *Values) Variable(v *policy.Variable, f *language.Frame) ref.Val { return Eval(v.Expr, f) }

func (x *Values) compute(a *policy.Attribute, of ref.Val) ref.Val {
	f := x.World().FrameOf(of)
	if a.When != nil {
		switch held := Eval(a.When, f); {
		case types.IsError(held):
			return held
		case held != types.True:
			return types.NewErr("%s has no value here: its guard is false", a.Name)
		}
	}
	if function := accounting()[a.Function]; function != nil {
		return function(x, a, of)
	}
	return Eval(a.Expr, f)
}
