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

// Options say what is compared. The zero value lacks a policy only.
type Options struct {
	// Of is the spec.schedulerName of the other scheduler's pods. "": volcano.
	Of string
	// Policy decides.
	Policy *policy.Policy
	// Cycles is after how many cycles there is enough. 0: never.
	Cycles int
	// Period is the longest time between two cycles. 0: 1 s.
	Period time.Duration
	// Grace is how long the other may take for what the policy decides at once, and how old the state may be on which it decided what is
	// seen of it now. 0: 3 s.
	Grace time.Duration
	// NodeSelector, a label selector in kubectl's syntax, says which nodes the other sees. "": all.
	NodeSelector string
	// Tell is told of each difference when it is found; may be nil.
	Tell func(*Difference)
	// Cycled is called after each cycle; may be nil.
	Cycled func(*Shadow)
}

// WithDefaults fills in what was left out.
func (o Options) WithDefaults() Options {
	o.Of = cmp.Or(o.Of, "volcano")
	o.Period = cmp.Or(o.Period, time.Second)
	o.Grace = cmp.Or(o.Grace, 3*time.Second)
	return o
}

// Change is an object that is there, or is gone.
type Change struct {
	Op     model.Op
	Object any
	Seen   time.Time
	Urgent bool // it can make another decision possible
}

// mostAnew is how often it is decided anew, at most, between the deeds that are seen at once: each time it takes as long as a cycle. Of as
// many of them it is asked what the policy says to the other's node.
const mostAnew = 50

// Shadow decides beside another scheduler. One goroutine owns it, and its cluster.
type Shadow struct {
	o       Options
	cluster *model.Cluster
	feed    Feed
	decider engine.Decider
	look    *session.Session // in which the cluster is looked at between cycles; nil: not yet

	cycles
	waiting waiting // of the last plan
	stale   bool    // something came since that can make another decision possible
	strayed bool    // the other did something else since

	witness *witness
	wishes  map[about]*wish
	ledger  ledger
}

// cycles are those that were made.
type cycles struct {
	cycle       int // how many
	first, last time.Time
	plan        *model.Plan // of the last
	unasked     bool        // some plan had servers asked
	asked       int         // how often, of what is seen now, it was asked what the policy says to another node
}

// Feed is where changes come from.
type Feed struct {
	// Wake has a token when there is something new; Urgent is when the first change came that can make another decision possible, of those
	// that were not taken. Zero: there is none.
	Wake   <-chan struct{}
	Urgent func() time.Time
	// Take takes all of them.
	Take func() []Change
	// Deltas turns one into what the cluster is told.
	Deltas func(c *Change, now time.Time) []model.Delta
}

// New is a shadow on a cluster that has nothing yet.
func New(o Options, cluster *model.Cluster, feed Feed) *Shadow {
	o = o.WithDefaults()
	return &Shadow{o: o, cluster: cluster, feed: feed, witness: newWitness(o.Of), wishes: map[about]*wish{}, ledger: newLedger(o.Tell)}
}

const (
	// window is for how long changes are gathered before a cycle.
	window = 20 * time.Millisecond
	// restShare is how many times as long as the last cycle it rests: it is a guest on its machine.
	restShare = 3
)

// Run makes cycles until there were enough, or ctx ends. It logs objects that cannot be read.
func (x *Shadow) Run(ctx context.Context, log logr.Logger) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var started, rested time.Time
	for !x.done() {
		select {
		case <-ctx.Done():
			x.cycleNow(log) // what was seen is compared
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

// done says whether there were enough cycles.
func (x *Shadow) done() bool { return x.o.Cycles > 0 && x.cycle >= x.o.Cycles }

// Cycle takes in what changed, and decides. What the other did is compared with what was decided before it was seen. The errors are of
// objects that cannot be read, and were left out.
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

// inOrder puts first what is not about pods: objects of several kinds come in no order, and a pod may be seen bound before what its
// scheduler knew of its PodGroup.
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

// decide makes a cycle, and undoes it.
func (x *Shadow) decide(now time.Time) {
	if x.cycle++; x.cycle == 1 {
		x.first = now
	}
	x.last = now
	x.plan = x.tried(now)
	if x.cluster.Past.Fired == nil {
		x.cluster.Past.Fired = map[string]time.Time{}
	}
	maps.Copy(x.cluster.Past.Fired, x.plan.Fired) // what rests between its turns rests though they are undone
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
