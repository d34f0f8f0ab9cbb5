package beside

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Options configures a comparison. Only Policy is required.
type Options struct {
	// Of is the spec.schedulerName of the other scheduler's pods. "": volcano.
	Of string
	// Policy is the policy that decides.
	Policy *policy.Policy
	// Cycles is the number of cycles after which Run returns. 0: no limit.
	Cycles int
	// Period is the longest time between two cycles. 0: 1 s.
	Period time.Duration
	// Grace is how long the other scheduler may take for a decision that the policy makes at once. It is also the maximum age of the state on
	// which the other scheduler made a decision that is seen now. 0: 3 s.
	Grace time.Duration
	// NodeSelector is a label selector in kubectl's syntax for the nodes that the other scheduler sees. "": all nodes.
	NodeSelector string
	// Tell is called for each difference when it is found; may be nil.
	Tell func(*Difference)
	// Cycled is called after each cycle; may be nil.
	Cycled func(*Shadow)
}

// WithDefaults returns the options with defaults for missing values.
func (o Options) WithDefaults() Options {
	o.Of = cmp.Or(o.Of, "volcano")
	o.Period = cmp.Or(o.Period, time.Second)
	o.Grace = cmp.Or(o.Grace, 3*time.Second)
	return o
}

// Change is an object that exists or is gone.
type Change struct {
	Op     model.Op
	Object any
	Seen   time.Time
	Urgent bool // it can affect a decision
}

// mostAnew limits how often a new cycle is decided between decisions of the other scheduler that are seen together. It is limited because
// each takes as long as any other cycle. mostAnew is also the maximum number of checks of the other scheduler's nodes per cycle.
const mostAnew = 50

// Shadow decides alongside another scheduler. One goroutine owns it and its cluster.
type Shadow struct {
	o       Options
	cluster *model.Cluster
	feed    Feed
	decider engine.Decider
	look    *session.Session // the session for examining the cluster between cycles; nil: none yet

	cycles
	waiting waiting // waits of the last plan
	stale   bool    // a change that can affect a decision came since the last cycle
	strayed bool    // the other scheduler has acted differently since the last cycle

	witness *witness
	wishes  map[about]*wish
	ledger  ledger
}

// cycles contains data about the cycles so far.
type cycles struct {
	cycle       int // the number of cycles
	first, last time.Time
	plan        *model.Plan // the plan of the last cycle
	unasked     bool        // some plan needed answers of extenders
	asked       int         // number of checks of the other scheduler's nodes in this cycle
}

// Feed is the source of changes.
type Feed struct {
	// Wake contains a token when there are new changes. Urgent returns when the first change came that can affect a decision and was not taken
	// yet; zero: none.
	Wake   <-chan struct{}
	Urgent func() time.Time
	// Take returns and removes all changes.
	Take func() []Change
	// Deltas converts a change to deltas of the cluster.
	Deltas func(c *Change, now time.Time) []model.Delta
}

// New returns a shadow on an empty cluster.
func New(o Options, cluster *model.Cluster, feed Feed) *Shadow {
	o = o.WithDefaults()
	return &Shadow{o: o, cluster: cluster, feed: feed, witness: newWitness(o.Of), wishes: map[about]*wish{}, ledger: newLedger(o.Tell)}
}

const (
	// window is how long changes are collected before a cycle.
	window = 20 * time.Millisecond
	// restShare is the rest after a cycle as a multiple of its duration, because the shadow should not disturb other work on its machine.
	restShare = 3
)

// Run runs cycles until the configured number is reached or ctx ends. It logs objects that cannot be read.
func (x *Shadow) Run(ctx context.Context, log logr.Logger) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var started, rested time.Time
	for !x.done() {
		select {
		case <-ctx.Done():
			x.cycleNow(log) // compare what was already seen
			return
		case <-x.feed.Wake:
		case <-timer.C:
		}
		now, due := time.Now(), started.Add(x.o.Period)
		if urgent := x.feed.Urgent(); !urgent.IsZero() && urgent.Add(window).Before(due) {
			due = urgent.Add(window)
		}
		if due.Before(rested) {
			due = rested
		}
		if now.Before(due) {
			timer.Reset(due.Sub(now))
			continue
		}
		started = now
		x.cycleNow(log)
		ended := time.Now()
		rested = ended.Add(min(restShare*ended.Sub(now), x.o.Period))
		timer.Reset(x.o.Period)
	}
}

func (x *Shadow) cycleNow(log logr.Logger) {
	for _, err := range x.Cycle(time.Now().Round(0)) {
		log.Info("an object cannot be read", "error", err.Error())
	}
}

// done reports whether the configured number of cycles is reached.
func (x *Shadow) done() bool { return x.o.Cycles > 0 && x.cycle >= x.o.Cycles }

// Cycle takes in changes and decides. It compares the other scheduler's decisions with those that the policy made before they were seen. It
// returns the errors of objects that cannot be read and were left out.
func (x *Shadow) Cycle(now time.Time) (wrong []error) {
	var deltas []model.Delta
	apply := func() {
		wrong = append(wrong, x.cluster.Apply(deltas...)...)
		deltas = deltas[:0]
	}
	began := x.cycle
	x.asked = 0
	for _, c := range inOrder(x.feed.Take()) {
		if did := x.witness.see(&c); did != nil {
			apply()
			if x.stale && x.cycle-began < mostAnew {
				x.decide(now)
			}
			x.compare(did, c.Seen.Round(0))
		} else {
			x.stale = x.stale || c.Urgent
		}
		deltas = append(deltas, x.feed.Deltas(&c, now)...)
	}
	apply()
	x.decide(now)
	x.witness.began = true
	if x.o.Cycled != nil {
		x.o.Cycled(x)
	}
	return wrong
}

// inOrder puts changes of other objects before changes of pods. Objects of different types arrive in no order, so a bound pod may be seen
// before the PodGroup that its scheduler knew.
func inOrder(changes []Change) []Change {
	rank := func(c Change) int {
		if _, pod := c.Object.(*corev1.Pod); pod {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return rank(a) - rank(b) })
	return changes
}

// decide runs a cycle and undoes it.
func (x *Shadow) decide(now time.Time) {
	if x.cycle++; x.cycle == 1 {
		x.first = now
	}
	x.last = now
	x.plan = x.tried(now)
	if x.cluster.Past.Fired == nil {
		x.cluster.Past.Fired = map[string]time.Time{}
	}
	maps.Copy(x.cluster.Past.Fired, x.plan.Fired) // the cycle is undone later, but rows and steps keep their rest times
	x.waiting, x.unasked = waiting{}, x.unasked || len(x.plan.Asks) > 0
	x.stale = false
	x.wish(now)
	x.ledger.close(func(job string) bool { return x.cluster.Jobs[job] != nil }, now, x.o.Grace)
}

func (x *Shadow) tried(now time.Time) *model.Plan {
	trial := model.Try(x.cluster)
	defer trial.End()
	return x.decider.Decide(x.cluster, x.o.Policy, now)
}
