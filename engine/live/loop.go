package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/live/asks"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/shadow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

const (
	// quietShare is the part of a window (1/4) without a change after which the loop expects no more related changes. Related changes, such as
	// the pods of a gang, arrive in quick succession. A single change need not wait for the whole window.
	quietShare = 4
	// lazyWindows is the number of windows that a change waits if no decision depends on it. While bindings wait for a worker, it waits a
	// whole period, because the writes of such a cycle would wait behind the bindings anyway.
	lazyWindows = 10
	// restShare is the rest of the loop after a cycle, as a multiple of the cycle's duration. So cycles over a large backlog leave the
	// processor to the bindings. lazyShare is the same multiple while no change came that can affect a decision.
	restShare = 3
	lazyShare = 10
)

// loop runs the cycles. The goroutine of run owns all of it except the feed and the outbox.
type loop struct {
	period, window, gangTimeout time.Duration

	policy  func() *policy.Policy
	observe func(by *policy.Policy, plan *model.Plan, at time.Time) // called after each cycle; may be nil
	cluster *model.Cluster
	decider engine.Decider
	parts

	cycle  uint64
	stamp  string // identifies the policy: NAME@GENERATION
	broken map[string]*group
	evicts evictor
	deltas []model.Delta
	told
	recoveries
	cycled atomic.Bool // at least one cycle has run
	progress
	volumes model.VolumeLibrary // kept for a model that is rebuilt
}

// parts contains the components that a loop uses.
type parts struct {
	feed     *feed
	outbox   *outbox.Outbox
	intake   *intake
	statuses *statuses
	binder   *binder
	asks     *asks.Asker
	events   *recorder
	verifier *verifier
	metrics  *metrics
	record   *recording.Recorder // nil: nothing is recorded
	shadow   *shadow.Player      // nil: no shadow policy decides
	log      logr.Logger
	looking
}

// told stores what was already logged and measured.
type told struct {
	faults   map[string]time.Time // when an error of a row was last logged
	warnings map[string]bool
	gauged   time.Time
}

// run runs cycles until ctx ends.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var started, ended, backoff time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-l.looks:
			l.look(q)
			continue
		case <-l.feed.wake:
		case <-timer.C:
		}
		now := time.Now()
		if due := l.due(started, ended, backoff); now.Before(due) {
			timer.Reset(due.Sub(now))
			continue
		}
		started = now
		l.begin(now)
		backoff = l.once(now)
		ended = time.Now()
		l.end(ended)
		timer.Reset(max(l.due(started, ended, backoff).Sub(ended), 0))
	}
}

// due returns when the next cycle starts. Its inputs are the start and the end of the last cycle, and the end of the next back-off.
func (l *loop) due(started, ended, backoff time.Time) time.Time {
	due := started.Add(l.period)
	came := l.feed.since()
	earlier := func(t time.Time) {
		if t.Before(due) {
			due = t
		}
	}
	if !came.urgent.IsZero() {
		earlier(came.urgent.Add(l.window))
		earlier(came.newest.Add(l.window / quietShare))
	}
	if !came.whole.IsZero() {
		earlier(came.whole) // a bare pod needs no other change
	}
	if l.outbox.Depths()[outbox.Binding] == 0 {
		if !came.lazy.IsZero() {
			earlier(came.lazy.Add(lazyWindows * l.window))
		}
		if at := l.statuses.due(started); !at.IsZero() {
			earlier(at)
		}
	}
	if !backoff.IsZero() {
		earlier(backoff)
	}
	share := time.Duration(restShare)
	if came.urgent.IsZero() {
		share = lazyShare
	}
	if rested := ended.Add(min(share*ended.Sub(started), l.period)); due.Before(rested) {
		due = rested
	}
	return due
}

// once runs one cycle: it takes in changes, decides, and sends the decisions. It returns when the next back-off or reservation ends; zero:
// none.
func (l *loop) once(now time.Time) (backoff time.Time) {
	l.cycle++
	l.takeIn(now)
	l.guard(recovery.Intake, func() {
		l.deltas, backoff = l.intake.due(l.deltas[:0], now)
		l.apply()
	})
	p, at := l.policy(), now.Round(0) // Round(0) drops the process-local clock, so that a recording can repeat the decision
	if last := l.decider.Session(); paused(p) && (last == nil || !paused(last.Policy())) {
		l.pause()
	}
	plan, noted := l.decide(p, at)
	if plan == nil {
		return now.Add(l.period)
	}
	whole := l.carryOut(plan, noted, now)
	l.cycled.Store(true)
	if !whole {
		return now.Add(l.window) // decisions that were not sent are made again
	}
	if l.observe != nil {
		l.observe(p, plan, time.Now())
	}
	if until := plan.KeptUntil; !until.IsZero() && (backoff.IsZero() || until.Before(backoff)) {
		return until
	}
	return backoff
}

// decide computes the plan of one cycle. It leaves out an object at which this panics, and begins again. It returns nil after too many
// panics, or if the model could not be rebuilt.
func (l *loop) decide(p *policy.Policy, at time.Time) (plan *model.Plan, noted *proof.Cycle) {
	l.unnamed = 0
	if l.half {
		l.rebuild()
	}
	for range mostRecoveries {
		if l.half || l.unnamed > mostUnnamed {
			break
		}
		ended := l.guard(recovery.Cycle, func() {
			if !l.shadow.Before(l.cluster, p, at) {
				l.metrics.panics.WithLabelValues(string(recovery.Cycle)).Inc()
				l.rebuild()
			}
		})
		ended = ended && l.guard(recovery.Verifier, func() { noted = l.verifier.begin(l.cluster, p, at) })
		ended = ended && l.guard(recovery.Cycle, func() {
			start := time.Now()
			last := start
			plan = l.decider.Observe(l.cluster, p, at, func(action string) {
				l.metrics.actionDuration.WithLabelValues(action).Observe(time.Since(last).Seconds())
				last = time.Now()
			})
			l.metrics.cycle(time.Since(start), plan)
			l.record.Decided(l.cycle, l.cluster, p, plan)
			l.stamp = fmt.Sprintf("%s@%d", plan.Policy, plan.Generation)
		})
		if ended {
			return plan, noted
		}
	}
	return nil, nil
}

// carryOut sends and reports the decisions of a plan. It returns false if it panicked; then the rest of the plan was not sent.
func (l *loop) carryOut(plan *model.Plan, noted *proof.Cycle, now time.Time) bool {
	return l.guard(recovery.Status, func() { l.sendBinds(plan, now) }) &&
		l.guard(recovery.Cycle, func() { l.shadow.After(l.cluster, plan) }) &&
		l.guard(recovery.Verifier, func() {
			l.verifier.check(noted, l.cluster, plan, l.stamp)
		}) &&
		l.guard(recovery.Status, func() {
			l.sendEvicts(plan)
			l.asks.Ask(l.cluster, plan.Asks, now)
			l.gangs(now)
			l.tell(plan, now)
			l.report(plan, now)
			l.noted(plan)
		})
}

func paused(p *policy.Policy) bool { return p.Mode == string(policyv1alpha1.ModePaused) }

// pause undoes the bindings and evictions that were decided and not sent. Requests that may be under way continue.
func (l *loop) pause() {
	l.deltas = l.deltas[:0]
	l.recall(func(*eviction) bool { return true })
	for _, t := range l.cluster.Tasks {
		if t.Status == model.Binding && !t.Foreign && l.outbox.Cancel(orderKey(t.Key, t.UID)) {
			delete(l.sent, t.Key)
			l.deltas = append(l.deltas, model.Delta{Op: model.Forget, Object: t.Object})
		}
	}
	l.apply()
}

// takeIn applies the changes of the feed to the model, in their order.
func (l *loop) takeIn(now time.Time) {
	l.deltas = l.deltas[:0]
	for _, c := range l.feed.drain() {
		l.guard(recovery.Intake, func() { l.takeInOne(c, now) })
	}
	l.guard(recovery.Intake, l.apply)
}

// takeInOne takes in one change: an object, or the outcome of a write.
func (l *loop) takeInOne(c change, now time.Time) {
	switch o := c.object.(type) {
	case *bindOutcome:
		l.apply() // earlier changes to the task must be in the model first
		l.bindEnded(o, now)
	case *evictOutcome:
		l.apply() // earlier changes to the task must be in the model first
		l.evictEnded(o, now)
	case *groupOutcome:
		l.statuses.groupWritten(l.intake.groups[o.key], o, now)
	case *queueOutcome:
		l.statuses.queueNotWritten(o)
	case *podOutcome:
		l.statuses.podNotWritten(o)
	case *workerPanic:
		l.workerFailed(o)
	default:
		for _, c := range l.sees(c) {
			l.takeInObject(c, now)
		}
	}
}

// takeInObject takes in the current version of one object.
func (l *loop) takeInObject(c change, now time.Time) {
	l.cluster.Handle(c.object)
	switch o := c.object.(type) {
	case *v1beta1.PodGroup:
		l.statuses.look(model.Key(o.Namespace, o.Name)) // another client may have written its status
	case *v1beta1.Queue:
		l.statuses.seeQueue(c.op, o)
	}
	l.gathered(&c, now)
	l.deltas = l.intake.object(l.deltas, c, now)
}

// gathered records how long a new pod waited for this cycle to begin.
func (l *loop) gathered(c *change, now time.Time) {
	if pod, ok := c.object.(*corev1.Pod); ok && c.urgent && c.op == model.Upsert && canBePlaced(l.intake.names, pod) {
		l.metrics.stages.gathered.Observe(max(now.Sub(c.seen).Seconds(), 0))
	}
}

// apply applies the deltas to the model. It reports objects that cannot be read to their users.
func (l *loop) apply() {
	if len(l.deltas) == 0 {
		return
	}
	for _, err := range l.cluster.Apply(l.deltas...) {
		l.log.Info("an object cannot be read", "error", err.Error())
		l.metrics.unreadable.Inc()
		var wrong *model.ObjectError
		if !errors.As(err, &wrong) {
			continue
		}
		if o, ok := wrong.Object.(runtime.Object); ok {
			l.events.Event(o, corev1.EventTypeWarning, eventInvalid, err.Error())
		}
	}
	l.record.Applied(l.deltas)
	if l.looks != nil {
		l.objects.Take(l.deltas)
	}
	l.deltas = l.deltas[:0]
}

// bindEnded handles the outcome of an order. After a success, the events of the pod update the model.
func (l *loop) bindEnded(o *bindOutcome, now time.Time) {
	if o.result != bound && l.sent[o.order.Task] == o.order {
		delete(l.sent, o.order.Task)
	}
	if o.result != refused {
		return
	}
	t := l.cluster.Tasks[o.order.Task]
	if t == nil || t.UID != o.order.UID || t.Status != model.Binding || t.NodeName != o.order.Node {
		return // the task changed after the binding was decided
	}
	l.events.Eventf(t.Object, corev1.EventTypeWarning, eventBindRefused, "binding to node %s was refused: %v", o.order.Node, o.err)
	delta, h := l.intake.refuse(t, o.order, o.err, now)
	l.deltas = append(l.deltas, delta)
	l.apply()
	if g := l.intake.groups[t.Job.Key]; g != nil && g.object != nil {
		g.refused(t, h, now)
		l.broken[t.Job.Key] = g
		l.statuses.look(t.Job.Key)
	}
}

// sendBinds puts the bindings into the outbox, in the order in which they were decided.
func (l *loop) sendBinds(plan *model.Plan, began time.Time) {
	decided := time.Now()
	took := decided.Sub(began).Seconds()
	for i := range plan.Binds {
		b := &plan.Binds[i]
		if l.statuses.waits[b.Task] != nil {
			l.outbox.Cancel(podKey(b.Task))
			delete(l.statuses.waits, b.Task)
		}
		l.metrics.stages.decided.Observe(took)
		o := &order{Bind: *b, policy: l.stamp, decided: decided}
		if t := l.cluster.Tasks[b.Task]; t != nil {
			l.cluster.Handle(t)
			o.pod = t.Object
			o.created, o.record, o.devices = t.CreatedAt, t.Record(), model.BindAnnotations(&l.cluster.Nodes, t, b, decided)
		}
		if m := l.intake.member[b.Task]; m.assumed {
			_, o.group, _ = strings.Cut(m.group, "/")
		}
		l.sent[b.Task] = o
		l.binder.send(o)
	}
}

// phaseIn returns a function that returns the phase of a group in a cluster, or "" if the cluster does not contain the group.
func phaseIn(c *model.Cluster) func(group string) string {
	return func(group string) string {
		if j := c.Jobs[group]; j != nil {
			return j.Phase
		}
		return ""
	}
}

// tell writes what users and controllers read of a plan. It writes admissions at once, because the controllers wait for them. It compares
// the rest with the written statuses only from time to time, if something changed or the time for it has come.
func (l *loop) tell(plan *model.Plan, now time.Time) {
	s := l.statuses
	s.stale = s.stale || !plan.Same
	if at := s.due(now); at.IsZero() || now.Before(at) {
		for i := range plan.Admits {
			if at, ok := slices.BinarySearchFunc(plan.Jobs, plan.Admits[i].Job, byJob); ok {
				l.tellGroup(plan.Jobs[at], now)
			}
		}
		return
	}
	s.stale, s.again, s.compared = false, time.Time{}, now
	l.tellGroups(plan, now)
	for i := range plan.Queues {
		st := &plan.Queues[i]
		if q := l.cluster.Queues[st.Queue]; q != nil {
			s.queue(q, st, now)
		}
	}
	l.waitsOf(plan, now)
}

// tellGroups compares the statuses of the groups that changed since its last call: the plan has a new status for them, or they are open.
func (l *loop) tellGroups(plan *model.Plan, now time.Time) {
	s := l.statuses
	before, open := s.told, slices.Sorted(maps.Keys(s.open))
	s.told = plan.Jobs
	clear(s.open)
	for _, st := range plan.Jobs {
		if len(before) > 0 && before[0] != st {
			before = before[countBefore(before, st.Job):]
		}
		for len(open) > 0 && open[0] < st.Job {
			open = open[1:]
		}
		told := len(before) > 0 && before[0] == st
		if told {
			before = before[1:]
		}
		if !told || len(open) > 0 && open[0] == st.Job {
			l.tellGroup(st, now)
		}
	}
}

// countBefore returns how many statuses at the beginning of a plan's list come before a job.
func countBefore(statuses []*model.JobStatus, job string) int {
	for i, st := range statuses {
		if st.Job >= job {
			return i
		}
	}
	return len(statuses)
}

// byJob compares in the order of a plan's jobs.
func byJob(st *model.JobStatus, job string) int { return strings.Compare(st.Job, job) }

// tellGroup compares the status that a PodGroup should have with its current status.
func (l *loop) tellGroup(st *model.JobStatus, now time.Time) {
	g, j := l.intake.groups[st.Job], l.cluster.Jobs[st.Job]
	if g == nil || j == nil || g.object == nil && g.assumed.object == nil {
		return
	}
	if l.isOut(g.object) {
		l.statuses.open[st.Job] = true // stays set until the object changes
		return
	}
	l.cluster.Handle(j)
	if g.object != nil {
		l.statuses.tellUnheeded(g)
	}
	if g.broken != nil {
		st = g.explained(st)
		l.statuses.open[st.Job] = true // the plan does not contain the refusals
	}
	if st.Phase == model.PhaseRunning && !g.wasWhole {
		g.wasWhole = true
		l.metrics.gangWait.Observe(max(now.Sub(j.CreatedAt).Seconds(), 0))
	}
	l.statuses.group(g, j, st, cycleName{l.stamp, l.cycle}, now)
}

// faultEvery is the minimum time between two log lines about the same row.
const faultEvery = time.Minute

// report logs what an operator must see, and updates the gauges.
func (l *loop) report(plan *model.Plan, now time.Time) {
	for i := range plan.Errors {
		e := &plan.Errors[i]
		key := e.Site + "/" + e.Table + "/" + e.Rule
		if last, ok := l.faults[key]; !ok || now.Sub(last) >= faultEvery {
			l.faults[key] = now
			l.log.Info("a rule of the policy errs", "policy", l.stamp, "site", e.Site, "table", e.Table, "rule", e.Rule, "count", e.Count,
				"object", e.Object, "error", e.Text)
		}
	}
	if len(plan.Warnings) > 0 {
		warnings := make(map[string]bool, len(plan.Warnings))
		for _, w := range plan.Warnings {
			warnings[w] = true
			if !l.warnings[w] {
				l.log.V(1).Info("warning", "text", w)
			}
		}
		l.warnings = warnings
	}
	l.metrics.waiting.stale = l.metrics.waiting.stale || !plan.Same
	if now.Sub(l.gauged) >= time.Second {
		l.gauged = now
		l.metrics.gauges(l)
		l.metrics.waiting.waits(l.cluster, plan)
	}
	if l.log.V(3).Enabled() {
		l.log.V(3).Info("cycle", "number", l.cycle, "policy", l.stamp, "admits", len(plan.Admits), "binds", len(plan.Binds),
			"waits", len(plan.Waits))
	}
}
