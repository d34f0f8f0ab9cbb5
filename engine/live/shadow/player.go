package shadow

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/live/serving"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

const (
	// mostTime is how long a cycle of a shadow may take until it is broken off.
	mostTime = 500 * time.Millisecond
	// restShare is how many times as long as a cycle of it took a shadow rests.
	restShare = 19
	// firstRest and mostRest are how long it rests after it was broken off: twice as long each time.
	firstRest = 10 * time.Second
	mostRest  = 10 * time.Minute
	// mostRows is how many rows are told of that erred.
	mostRows = 50
	// tellEvery is the least time between two tellings.
	tellEvery = 10 * time.Second
)

// Player has shadows decide beside a loop. It has one owner, that of the cluster.
type Player struct {
	// Policies are the shadows; each is another policy once it changes.
	Policies func() []*policy.Policy
	// Tell is told of one, now and then.
	Tell  func(p *policy.Policy, found *v1alpha1.ShadowStatus)
	Meter *Meter
	Log   logr.Logger
	// Clock is time.Now.
	Clock func() time.Time

	runs []*run
	past map[string]time.Time // when what rests was asked last by what is served, before the cycle at hand
}

// run is how one shadow fares beside one policy.
type run struct {
	of      *policy.Policy
	beside  string
	decider engine.Decider
	plan    *model.Plan // of the cycle at hand; nil: it does not take part
	rests   time.Time
	rest    time.Duration // after it is broken off next
	failed  bool          // it panicked: it takes no part any more
	took    time.Duration // in all
	told    time.Time
	news    bool
	// fired is when rows and steps of it were asked last that rest in between.
	fired map[string]time.Time
	book
}

// Before has the shadows decide that are not resting, before the cycle that counts. The cluster is afterwards as it was, unless a shadow
// panicked: then Before returns false, and the cluster may be half changed.
func (x *Player) Before(c *model.Cluster, p *policy.Policy, now time.Time) (whole bool) {
	if x == nil {
		return true
	}
	whole = true
	if x.follow(p, now); len(x.runs) > 0 {
		x.past = maps.Clone(c.Past.Fired)
	}
	for _, r := range x.runs {
		if r.plan = nil; p.Mode == string(v1alpha1.ModePaused) {
			continue // all that it would decide were a difference
		}
		switch began := x.Clock(); {
		case r.failed:
		case began.Before(r.rests):
			r.found.Cycles.Skipped++
			x.Meter.skipped(r.of.Name)
		default:
			x.play(r, c, now, began)
			whole = whole && !r.failed
		}
	}
	return whole
}

// follow has the runs be those of the shadows.
func (x *Player) follow(p *policy.Policy, now time.Time) {
	shadows := x.Policies()
	if len(shadows)+len(x.runs) == 0 {
		return
	}
	beside := p.Generations()
	x.runs = slices.DeleteFunc(x.runs, func(r *run) bool {
		gone := r.beside != beside || !slices.Contains(shadows, r.of)
		if gone && !slices.ContainsFunc(shadows, func(p *policy.Policy) bool { return p.Name == r.of.Name }) {
			x.Meter.forget(r.of.Name)
		}
		return gone
	})
	for _, of := range shadows {
		if !slices.ContainsFunc(x.runs, func(r *run) bool { return r.of == of }) {
			x.runs = append(x.runs, &run{of: of, beside: beside, rest: firstRest, book: book{found: v1alpha1.ShadowStatus{
				Generation: of.Generation, Beside: beside, Since: metav1.NewTime(now).Rfc3339Copy(),
			}}})
		}
	}
}

// play has one decide, in a trial.
func (x *Player) play(r *run, c *model.Cluster, now, began time.Time) {
	trial := model.Try(c)
	if r.fired == nil { // it begins where the served one stands
		r.fired = map[string]time.Time{}
		maps.Copy(r.fired, c.Past.Fired)
	}
	c.Past.Fired = maps.Clone(r.fired)
	whole := false
	defer func() {
		failure := recover()
		trial.End()
		took := x.Clock().Sub(began)
		x.Meter.took(r.of.Name, took)
		r.took += took
		r.rests = began.Add(took + restShare*took)
		r.found.Cycles.Longest.Duration = max(r.found.Cycles.Longest.Duration, took)
		switch {
		case failure != nil:
			r.failed, r.plan, r.decider = true, nil, engine.Decider{}
			x.Log.Error(nil, "a shadow cannot decide, and is left alone until it changes", "policy", r.of.Name, "failure", fmt.Sprint(failure))
		case !whole:
			r.found.Cycles.BrokenOff++
			r.news = true
			r.rests, r.rest = began.Add(took+r.rest), min(2*r.rest, mostRest)
			x.Meter.brokenOff(r.of.Name)
		default:
			r.rest = firstRest
		}
	}()
	until := began.Add(mostTime)
	r.plan, whole = r.decider.Within(c, r.of, now, func() bool { return !x.Clock().Before(until) })
	if r.plan != nil {
		maps.Copy(r.fired, r.plan.Fired)
	}
}

// After compares what was decided with what the shadows would have, and tells of it where it is time.
func (x *Player) After(c *model.Cluster, plan *model.Plan) {
	if x == nil {
		return
	}
	now := x.Clock()
	for _, r := range x.runs {
		if r.plan != nil {
			before := r.found
			r.compare(c, plan, r.plan)
			r.erring(r.plan, now)
			r.plan = nil
			r.news = true
			x.Meter.counted(r.of.Name, &before, &r.found)
		} else {
			r.missed(x.past, plan.Fired)
		}
		if r.news && !now.Before(r.told.Add(tellEvery)) {
			r.told, r.news = now, false
			x.Tell(r.of, r.status())
		}
	}
}

// missed has what rests keep step with what is served in a cycle in which the shadow takes no part: it would evict later for that alone.
func (r *run) missed(past, fired map[string]time.Time) {
	for name, at := range fired {
		if r.fired != nil && r.fired[name].Equal(past[name]) {
			r.fired[name] = at
		}
	}
}

// erring takes in the rows that erred.
func (r *run) erring(plan *model.Plan, now time.Time) {
	r.found.RuleErrors = serving.AddErrors(r.found.RuleErrors, plan, now)
	r.found.RuleErrors = r.found.RuleErrors[:min(len(r.found.RuleErrors), mostRows)]
}

// status is what there is to tell.
func (r *run) status() *v1alpha1.ShadowStatus {
	out := r.found.DeepCopy()
	x := &out.Cycles
	if decided := x.Decided + x.BrokenOff; decided > 0 {
		x.Mean.Duration = (r.took / time.Duration(decided)).Round(time.Microsecond)
	}
	x.Longest.Duration = x.Longest.Round(time.Microsecond)
	return out
}
