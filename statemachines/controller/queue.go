package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// queueMachine is the name of the state machine of Queues. Its effects are to count and to write the next state. Admission and the
// scheduler ensure that a closed queue accepts no work.
const queueMachine = "queue"

// queues runs the state machine of Queues.
type queues struct {
	*parts
	machine *statemachines.Machine
	groups  *tally
}

func addQueues(mgr manager.Manager, p *parts, asked wake) error {
	groups := newTally()
	q := &queues{p, p.options.StateMachines[queueMachine], groups}
	return ctrl.NewControllerManagedBy(mgr).Named("queue").
		For(&schedulingv1beta1.Queue{}).
		Watches(&schedulingv1beta1.PodGroup{}, groups.handler()).
		Watches(&schedulingv1beta1.Queue{}, handler.EnqueueRequestsFromMapFunc(q.children),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: stateChanged})).
		WatchesRawSource(source.Channel(asked, &handler.EnqueueRequestForObject{})).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&schedulingv1beta1.Queue{}, q))
}

// children lists the direct children of a queue, because they follow its state.
func (q *queues) children(ctx context.Context, queue client.Object) []reconcile.Request {
	list := &schedulingv1beta1.QueueList{}
	if err := q.client.List(ctx, list, client.MatchingFields{byParent: queue.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		logOf(ctx).Error(err, "list the queues below a queue", "queue", queue.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: queueKey(list.Items[i].Name)})
	}
	return out
}

// tally counts the PodGroups of each queue by phase, change by change. Thus a queue with many thousands of PodGroups is never listed.
type tally struct {
	mu     sync.Mutex
	groups map[types.NamespacedName]counted
	queues map[string]map[schedulingv1beta1.PodGroupPhase]int32
}

// counted is the queue and phase under which a PodGroup is counted. A PodGroup without a phase counts as pending.
type counted struct {
	queue string
	phase schedulingv1beta1.PodGroupPhase
}

func newTally() *tally {
	return &tally{groups: map[types.NamespacedName]counted{}, queues: map[string]map[schedulingv1beta1.PodGroupPhase]int32{}}
}

// see records the present state of a PodGroup, and returns the queues whose counts changed.
func (t *tally) see(group *schedulingv1beta1.PodGroup) []string {
	is := counted{objects.QueueName(group.Spec.Queue), cmp.Or(group.Status.Phase, schedulingv1beta1.PodGroupPending)}
	return t.change(client.ObjectKeyFromObject(group), &is)
}

// forget removes a deleted PodGroup.
func (t *tally) forget(group *schedulingv1beta1.PodGroup) []string {
	return t.change(client.ObjectKeyFromObject(group), nil)
}

func (t *tally) change(key types.NamespacedName, is *counted) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.groups[key]
	if known && is != nil && was == *is {
		return nil
	}
	if known {
		counts := t.queues[was.queue]
		if counts[was.phase]--; counts[was.phase] == 0 {
			delete(counts, was.phase)
		}
		if len(counts) == 0 {
			delete(t.queues, was.queue)
		}
		changed = append(changed, was.queue)
		delete(t.groups, key)
	}
	if is == nil {
		return changed
	}
	if t.queues[is.queue] == nil {
		t.queues[is.queue] = map[schedulingv1beta1.PodGroupPhase]int32{}
	}
	t.groups[key] = *is
	t.queues[is.queue][is.phase]++
	if !known || was.queue != is.queue {
		changed = append(changed, is.queue)
	}
	return changed
}

// of returns a function that returns how many PodGroups of a queue have a phase.
func (t *tally) of(queue string) func(schedulingv1beta1.PodGroupPhase) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := maps.Clone(t.queues[queue])
	return func(phase schedulingv1beta1.PodGroupPhase) int32 { return counts[phase] }
}

// handler requests reconciles of the previous and the present queue of a changed PodGroup.
func (t *tally) handler() handler.Funcs {
	type line = workqueue.TypedRateLimitingInterface[reconcile.Request]
	later := func(l line, o client.Object, take func(*schedulingv1beta1.PodGroup) []string) {
		group, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok {
			return
		}
		for _, queue := range take(group) {
			l.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: queue}}, countsEvery)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, l line) { later(l, e.Object, t.see) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, l line) { later(l, e.ObjectNew, t.see) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, l line) { later(l, e.Object, t.forget) },
	}
}

// Reconcile runs the state machine for one queue.
func (q *queues) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	queue := &schedulingv1beta1.Queue{}
	err := q.client.Get(ctx, req.NamespacedName, queue)
	if apierrors.IsNotFound(err) {
		q.memory.forget(queueKey(req.Name))
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read queue %s: %w", req.Name, err)
	}
	if queue.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	rec := q.memory.of(queueKey(req.Name), queue.UID)
	if rec.behind(queue.ResourceVersion) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	wait, err := q.reconcile(ctx, queue, rec)
	if errors.Is(err, errGone) {
		return reconcile.Result{}, nil
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	return reconcile.Result{RequeueAfter: sooner(wait, rec.more())}, err
}

// queueKey returns the key of a queue in the memory. Queues have no namespace, so the key differs from the keys of jobs.
func queueKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// reconcile runs one step of a queue. It returns after which time to reconcile again without a further change.
func (q *queues) reconcile(ctx context.Context, queue *schedulingv1beta1.Queue, rec *recall) (time.Duration, error) {
	facts, err := q.facts(ctx, queue)
	if err != nil {
		return 0, err
	}
	c := cause{action: q.machine.Otherwise()}
	if asked, ok := rec.asked(); ok {
		c = cause{action: asked.action, message: asked.message, asked: true}
	}
	out, err := q.follow(queue, c, facts)
	if err != nil {
		rec.answered(c)
		q.event(queue, corev1.EventTypeWarning, "StateMachineError", c.action, "%s", err)
		return 0, reconcile.TerminalError(err)
	}
	var wait time.Duration
	err = q.set(ctx, queue, out.Set, rec)
	if err == nil {
		wait, err = q.write(ctx, queue, facts.Queue, out.Phase, rec)
	}
	if err != nil {
		if c.asked && !apierrors.IsConflict(err) && !isTooSoon(err) && !errors.Is(err, errGone) {
			q.event(queue, corev1.EventTypeWarning, c.action, c.action, "%s failed, and is tried again: %s", c.action, err)
		}
		return 0, err
	}
	rec.answered(c)
	switch {
	case c.asked && out.Message != "":
		q.event(queue, corev1.EventTypeWarning, c.action, c.action, "%s has no effect, the queue stays %s: %s (%s)", c.action, out.Phase,
			out.Message, c.message)
	case c.asked:
		q.event(queue, corev1.EventTypeNormal, c.action, c.action, "%s succeeded: the queue is %s (%s)", c.action, out.Phase, c.message)
	}
	return wait, nil
}

// follow asks the machine for the outcome of an action on a queue.
func (q *queues) follow(queue *schedulingv1beta1.Queue, c cause, facts statemachines.Facts) (statemachines.Outcome, error) {
	step, err := q.machine.Step(string(queue.Status.State), c.action, facts)
	if err != nil {
		return statemachines.Outcome{}, err
	}
	out, err := q.machine.Next(step, facts)
	out.Phase = cmp.Or(out.Phase, q.machine.Initial)
	return out, err
}

// markTrue is the value of the annotation of a queue that its parent closed.
const markTrue = "true"

// set writes the fields that a row sets into a queue if they differ. It runs before the state is written. If the controller crashes in
// between, the queue still follows its parent.
func (q *queues) set(ctx context.Context, queue *schedulingv1beta1.Queue, fields map[string]string, rec *recall) error {
	old := queue.DeepCopy()
	if parent, ok := fields[statemachines.SetParent]; ok {
		queue.Spec.Parent = parent
	}
	if mark, ok := fields[statemachines.SetClosedByParent]; ok && (mark == markTrue) != closedByParent(queue) {
		metav1.SetMetaDataAnnotation(&queue.ObjectMeta, schedulingv1beta1.ClosedByParentAnnotationKey, mark)
	}
	if queue.Spec.Parent == old.Spec.Parent && closedByParent(queue) == closedByParent(old) {
		return nil
	}
	patch := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	if err := q.client.Patch(ctx, queue, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write queue %s: %w", queue.Name, ofGone(err))
	}
	rec.version = queue.ResourceVersion
	return nil
}

func closedByParent(queue *schedulingv1beta1.Queue) bool {
	return queue.Annotations[schedulingv1beta1.ClosedByParentAnnotationKey] == markTrue
}

// facts returns what the machine's guards can read of a queue.
func (q *queues) facts(ctx context.Context, queue *schedulingv1beta1.Queue) (statemachines.Facts, error) {
	f := statemachines.Facts{Now: q.now(), Queue: q.factsOf(queue)}
	name := queue.Spec.Parent
	if name == "" || name == queue.Name {
		return f, nil
	}
	parent := &schedulingv1beta1.Queue{}
	switch err := q.client.Get(ctx, queueKey(name), parent); {
	case err == nil:
		f.Parent = q.factsOf(parent)
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("read queue %s: %w", name, err)
	}
	return f, nil
}

func (q *queues) factsOf(queue *schedulingv1beta1.Queue) *statemachines.Queue {
	count := q.groups.of(queue.Name)
	return &statemachines.Queue{
		Name: queue.Name, Parent: queue.Spec.Parent, State: string(queue.Status.State), ClosedByParent: closedByParent(queue),
		Labels: queue.Labels, Annotations: queue.Annotations,
		Pending: count(schedulingv1beta1.PodGroupPending), Inqueue: count(schedulingv1beta1.PodGroupInqueue),
		Running: count(schedulingv1beta1.PodGroupRunning),
		Unknown: count(schedulingv1beta1.PodGroupUnknown), Completed: count(schedulingv1beta1.PodGroupCompleted),
	}
}

// write stores a queue's state and counts if they changed. The scheduler owns the rest of the status. It writes counts of 0, because
// another manager may have left other numbers. If only counts changed and a status was written a moment ago, it returns how long to wait.
func (q *queues) write(ctx context.Context, queue *schedulingv1beta1.Queue, f *statemachines.Queue, state string, rec *recall) (
	time.Duration, error,
) {
	s := queue.Status
	is := []int32{s.Pending, s.Inqueue, s.Running, s.Unknown, s.Completed}
	want := []int32{f.Pending, f.Inqueue, f.Running, f.Unknown, f.Completed}
	if string(s.State) == state && slices.Equal(is, want) {
		return 0, nil
	}
	now := q.now()
	if early := countsEvery - now.Sub(rec.written); early > 0 && string(s.State) == state {
		return early, nil
	}
	status := map[string]any{
		"pending": int64(f.Pending), "inqueue": int64(f.Inqueue), "running": int64(f.Running),
		"unknown": int64(f.Unknown), "completed": int64(f.Completed),
	}
	var version string
	var err error
	if string(s.State) == state {
		version, err = q.count(ctx, queue, status)
	} else {
		status["state"] = state
		version, err = q.applyStatus(ctx, queue, fieldManager, status)
	}
	if err != nil {
		return 0, err
	}
	rec.version, rec.written = version, now
	return 0, nil
}

// count writes only a queue's counts, with a merge patch. The scheduler writes the allocated resources, and the state must stay: an apply
// without the state would remove it. count returns the new resource version of the queue.
func (q *queues) count(ctx context.Context, queue *schedulingv1beta1.Queue, counts map[string]any) (string, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": queue.UID}, "status": counts})
	if err != nil {
		return "", fmt.Errorf("write the counts of queue %s: %w", queue.Name, err)
	}
	is := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: queue.Name}}
	err = q.client.Status().Patch(ctx, is, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	if err != nil {
		return "", fmt.Errorf("write the counts of queue %s: %w", queue.Name, ofGone(err))
	}
	return is.ResourceVersion, nil
}
