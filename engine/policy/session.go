package policy

import (
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Session is a Policy beside a Cluster: it answers every site's question, and remembers what stays true.
// It has one owner, like the cluster.
type Session struct {
	language.World
	p *Policy
	c *model.Cluster
	// Split says when several processors evaluate one row. The answers are the same.
	Split Split

	actions    uint64 // how many SetAction has told of
	frames     []*language.Frame
	depth      int
	accounts   []account // by Account.slot
	rebuilt    uint64    // how often one of them was made anew
	starts     map[started]ref.Val
	faults     map[any]*model.RuleError
	faultOrder []*model.RuleError
	erring     uint64 // errors so far
	columns    columns
	evaluated  []uint64 // by the rule's number
	rest       rest
	keyText    []byte // scratch
	keyRoom    model.Slab[Key]
	verdicts   verdicts
	devices    deviceScratch
	epochText  text
	ofNodes    sizes
	work       language.Workspace
	pool       pool
	meters     meters

	startsSwept model.Swept
}

// text is one that is made again and again, with the room that it is written into.
type text struct {
	text string
	room []byte
}

// NewSession begins with nothing remembered.
func NewSession(c *model.Cluster, p *Policy) *Session {
	s := &Session{
		p: p, c: c,
		accounts: make([]account, len(p.accounts)),
		starts:   map[started]ref.Val{}, faults: map[any]*model.RuleError{},
	}
	s.Init(c, p.layout, s)
	s.work.Variables = make([]language.HeldValue, len(p.variables))
	s.evaluated = make([]uint64, len(p.all)+1)
	s.meters = metersOf(p)
	s.Meter = func(e *eval.Expr) *eval.Meter { return s.meters.of[e] }
	s.columns.init(s)
	s.verdicts.init(s)
	s.initRest()
	return s
}

// Policy that the session answers by.
func (s *Session) Policy() *Policy { return s.p }

// Evaluated is how often a rule of the session's policy was evaluated since the session began. Keys of
// orders are not counted.
func (s *Session) Evaluated(r *Rule) uint64 { return s.evaluated[r.Number] }

// Begin starts a cycle: what settles once a cycle is computed from the state as it is now.
func (s *Session) Begin(now time.Time) {
	s.Cycle++
	s.SetTime(now)
	s.rest.begun, s.rest.now, s.rest.until = s.c.Content(), now, time.Time{}
	s.rest.values = string(s.timeParts())
	s.UsedAtStart = s.c.Used.Clone()
	s.noFaults()
	s.meters.begin()
	s.Action = types.String("")
	s.verdicts.begin(s.Cycle)
	s.forget()
	s.LimitDictionaries()
	for _, x := range s.p.attributes {
		if x.Settle == "cycle" || x.Settle == "start" {
			s.settle(x)
		}
	}
}

// settle computes an attribute that does not move within a cycle for everything that has it.
func (s *Session) settle(x *Attribute) {
	if x.account != nil && x.account.function.AllAtOnce && x.When == nil {
		s.accountOf(x.account).update()
		return
	}
	for _, view := range s.Owners(x.On) {
		readAttribute(x, view)
	}
}

// SetAction says which action runs, for rows that ask.
func (s *Session) SetAction(name string) {
	if s.Action != types.String(name) {
		s.Action = types.String(name)
	}
	s.actions++
}

// stampOf is the present moment of the cycle for a value that reads the action, or does not.
func (s *Session) stampOf(byAction bool) language.Stamp {
	at := language.Stamp{Cycle: s.Cycle}
	if byAction {
		at.Action = s.actions
	}
	return at
}

// Faults are the errors of rows in this cycle, in the order in which they came first.
func (s *Session) Faults() []model.RuleError {
	var out []model.RuleError
	for _, e := range s.faultOrder {
		out = append(out, *e)
	}
	return out
}

func (s *Session) noFaults() {
	clear(s.faults)
	s.faultOrder = nil
}

// fault counts an error of a row.
func (s *Session) fault(r *Rule, f *language.Frame, err ref.Val) {
	s.count(r, model.RuleError{Site: r.Site.Name, Table: r.Table, Rule: r.Name}, f, err)
}

// faultOf counts an error of an attribute.
func (s *Session) faultOf(x *Attribute, f *language.Frame, err ref.Val) {
	s.count(x, model.RuleError{Site: "attributes", Table: x.Table, Rule: x.Name}, f, err)
}

func (s *Session) count(of any, first model.RuleError, f *language.Frame, err ref.Val) {
	s.erring++
	e, ok := s.faults[of]
	if !ok {
		first.Object, first.Text = f.Subject(), fmt.Sprint(err)
		e = &first
		s.faults[of] = e
		s.faultOrder = append(s.faultOrder, e)
	}
	e.Count++
	if rules.Exceeded(err) {
		e.OverBudget++
	}
}

// frame lends a clean frame; give it back with done.
func (s *Session) frame() *language.Frame {
	if s.depth == len(s.frames) {
		s.frames = append(s.frames, &language.Frame{})
	}
	f := s.frames[s.depth]
	*f = language.Frame{World: &s.World, Workspace: &s.work}
	s.depth++
	return f
}

func (s *Session) done() { s.depth-- }

// Variable implements Values: a variable is computed once for what it is on, until something changes.
func (s *Session) Variable(v *Variable, f *language.Frame) ref.Val {
	held := &f.Workspace.Variables[v.slot]
	at := s.stampOf(v.byAction)
	on := f.Owner(v.On)
	if v.Expr.Reads.Changes() > rules.ByCycle || on != nil {
		at.Clock = s.c.Clock
	}
	if held.Value != nil && (!v.byTime || !s.rest.asking) && held.Stamp == at && held.On == on {
		return held.Value
	}
	value := v.Expr.Eval(f)
	s.watch(v.Expr, f)
	*held = language.HeldValue{Memo: language.Memo{Stamp: at, Value: value}, On: on}
	return value
}

// Attribute implements Values: it answers a computed field from its memo, or computes it.
func (s *Session) Attribute(x *Attribute, owner ref.Val) ref.Val {
	m, version := s.memoOf(x, owner)
	if x.Settle == "start" {
		return s.atStart(x, owner, m)
	}
	at := s.stampOf(x.byAction)
	switch {
	case x.Settle == "cycle":
		at.Action = 0
	case x.changes <= rules.ByCycle:
	case x.reach == within:
		at.Clock = version + 1
	case x.reach == alongTree:
		at.Clock = version + s.treeVersion(x.trees, owner) + 1
	default:
		at.Clock = s.c.Clock + 1
	}
	if m.Value != nil && m.Stamp == at && (!x.byTime || !s.rest.asking) {
		return m.Value
	}
	m.Value = s.compute(x, owner)
	m.Stamp = at
	return m.Value
}

// memoOf is where a computed field of an object is kept, and the object's version.
func (s *Session) memoOf(x *Attribute, owner ref.Val) (m *language.Memo, version uint64) {
	switch v := owner.(type) {
	case *language.QueueView:
		return &v.Memos[x.slot], v.Of.Version
	case *language.JobView:
		return &v.Memos[x.slot], v.Of.Version
	case *language.TaskView:
		return &v.Memos[x.slot], v.Of.Job.Version
	case *language.NodeView:
		return &v.Memos[x.slot], s.c.Nodes.Version[v.Of.Row]
	case *language.NamespaceView:
		return &v.Memos[x.slot], s.c.Clock
	}
	return &s.ClusterView.Memos[x.slot], s.c.Clock
}

// started is what an attribute of settle start was computed for.
type started struct {
	of    *Attribute
	owner string
}

// atStart is the value of the run's first cycle, or of the first in which its owner was there. What is over its budget holds for the cycle,
// and is computed again in the next.
func (s *Session) atStart(x *Attribute, owner ref.Val, m *language.Memo) ref.Val {
	key := started{x, language.OwnerName(owner)}
	if v, ok := s.starts[key]; ok {
		return v
	}
	at := s.stampOf(false)
	if m.Value != nil && m.Stamp == at {
		return m.Value
	}
	v := s.compute(x, owner)
	if rules.Exceeded(v) {
		*m = language.Memo{Stamp: at, Value: v}
		return v
	}
	s.starts[key] = v
	return v
}

func (s *Session) compute(x *Attribute, owner ref.Val) ref.Val {
	f := s.frame()
	defer s.done()
	f.About(owner)
	if x.When != nil {
		held := x.When.Eval(f)
		s.watch(x.When, f)
		if held != types.True {
			if types.IsError(held) {
				return held
			}
			return types.NewErr("%s has no value here: its guard is false", x.Name)
		}
	}
	if x.account != nil {
		return s.accountOf(x.account).value(x, owner)
	}
	v := x.Expr.Eval(f)
	s.watch(x.Expr, f)
	return language.Held(v)
}
