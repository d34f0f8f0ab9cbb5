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
	// mostTime is the time limit of a shadow's cycle.
	mostTime = 500 * time.Millisecond
	// restShare is the rest of a shadow after a cycle, as a multiple of the cycle's duration.
	restShare = 19
	// firstRest is the rest after a cycle that exceeded mostTime. It doubles each time, up to mostRest.
	firstRest = 10 * time.Second
	mostRest  = 10 * time.Minute
	// mostRows is the maximum number of failed rows in a report.
	mostRows = 50
	// tellEvery is the minimum time between two reports.
	tellEvery = 10 * time.Second
)

// Player runs the shadows of a loop. The owner of the cluster owns it.
type Player struct {
	// Policies returns the shadows. A changed shadow is a new policy.
	Policies func() []*policy.Policy
	// Tell is called with the results of one shadow from time to time.
	Tell  func(p *policy.Policy, found *v1alpha1.ShadowStatus)
	Meter *Meter
	Log   logr.Logger
	// Clock returns the time.
	Clock func() time.Time

	runs []*run
	past map[string]time.Time // when rows and steps with a rest time last ran in the serving policy, before this cycle
}

// run contains the state and the results of one shadow alongside one serving policy.
type run struct {
	of      *policy.Policy
	beside  string
	decider engine.Decider
	plan    *model.Plan // the plan of this cycle; nil: the shadow does not take part
	rests   time.Time
	rest    time.Duration // the rest after the next exceeded time limit
	failed  bool          // it panicked and no longer takes part
	took    time.Duration // total time
	told    time.Time
	news    bool
	// fired contains when the shadow's rows and steps with a rest time last ran.
	fired map[string]time.Time
	book
}

// Before runs the cycles of all shadows that do not rest, before the real cycle. It leaves the cluster unchanged, unless a shadow panicked:
// then it returns false, and the cluster may be half changed.
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
			continue // every decision of a shadow would be a difference
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

// follow updates the runs to the current shadows.
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

// play runs one shadow's cycle in a trial.
func (x *Player) play(r *run, c *model.Cluster, now, began time.Time) {
	trial := model.Try(c)
	if r.fired == nil { // it starts with the state of the serving policy
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

// After compares the real plan with those of the shadows, and reports the results if the time for it has come.
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

// missed updates rest times from the serving policy in a cycle without the shadow. Otherwise the shadow would evict later for that reason
// alone.
func (r *run) missed(past, fired map[string]time.Time) {
	for name, at := range fired {
		if r.fired != nil && r.fired[name].Equal(past[name]) {
			r.fired[name] = at
		}
	}
}

// erring records the failed rows.
func (r *run) erring(plan *model.Plan, now time.Time) {
	r.found.RuleErrors = serving.AddErrors(r.found.RuleErrors, plan, now)
	r.found.RuleErrors = r.found.RuleErrors[:min(len(r.found.RuleErrors), mostRows)]
}

// status returns the results to report.
func (r *run) status() *v1alpha1.ShadowStatus {
	out := r.found.DeepCopy()
	x := &out.Cycles
	if decided := x.Decided + x.BrokenOff; decided > 0 {
		x.Mean.Duration = (r.took / time.Duration(decided)).Round(time.Microsecond)
	}
	x.Longest.Duration = x.Longest.Round(time.Microsecond)
	return out
}
