package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
)

// queueMachine is the machine of Queues. Its effects are to count and to write the state that follows:
// that a closed queue takes no work is seen to where work is let in.
const queueMachine = "queue"

// queues obeys the queue machine.
type queues struct {
	*parts
	machine *statemachines.Machine
}

func addQueues(mgr manager.Manager, p *parts, asked wake) error {
	return ctrl.NewControllerManagedBy(mgr).Named("queue").
		For(&schedulingv1beta1.Queue{}).
		Watches(&schedulingv1beta1.PodGroup{}, countLater(), builder.WithPredicates(predicate.Funcs{UpdateFunc: countedElsewhere})).
		WatchesRawSource(source.Channel(asked, &handler.EnqueueRequestForObject{})).
		WithOptions(p.controllerOptions()).
		Complete(&queues{p, p.options.StateMachines[queueMachine]})
}

// countAfter is for how long changes of PodGroups are gathered before their queue counts them: a count reads all of them.
const countAfter = 500 * time.Millisecond

// countLater has the queues of a PodGroup that changed count, the one that it was in and the one that it is in.
func countLater() handler.Funcs {
	type line = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(l line, objects ...client.Object) {
		for _, o := range objects {
			if group, ok := o.(*schedulingv1beta1.PodGroup); ok {
				l.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: queueName(group.Spec.Queue)}}, countAfter)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, l line) { add(l, e.Object) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, l line) { add(l, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, l line) { add(l, e.Object) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, l line) { add(l, e.Object) },
	}
}

// countedElsewhere keeps out the updates of a PodGroup that a queue does not count.
func countedElsewhere(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*schedulingv1beta1.PodGroup)
	is, ok2 := e.ObjectNew.(*schedulingv1beta1.PodGroup)
	return !ok || !ok2 || was.Status.Phase != is.Status.Phase || was.Spec.Queue != is.Spec.Queue
}

// Reconcile does what the machine says about one queue.
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
	err = q.reconcile(ctx, queue, rec)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	return reconcile.Result{RequeueAfter: rec.more()}, err
}

// queueKey keeps queues apart from jobs in the memory: they have no namespace.
func queueKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func (q *queues) reconcile(ctx context.Context, queue *schedulingv1beta1.Queue, rec *recall) error {
	facts, err := q.facts(ctx, queue)
	if err != nil {
		return err
	}
	c := cause{action: q.machine.Otherwise()}
	if asked, ok := rec.asked(); ok {
		c = cause{action: asked.action, message: asked.message, asked: true}
	}
	step, err := q.machine.Step(string(queue.Status.State), c.action, facts)
	if err != nil {
		rec.answered(c)
		q.event(queue, corev1.EventTypeWarning, "StateMachineError", c.action, "%s", err)
		return reconcile.TerminalError(err)
	}
	out, err := q.machine.Next(step, facts)
	if err != nil {
		rec.answered(c)
		q.event(queue, corev1.EventTypeWarning, "StateMachineError", c.action, "%s", err)
		return reconcile.TerminalError(err)
	}
	if out.Phase == "" {
		out.Phase = q.machine.Initial
	}
	if err := q.write(ctx, queue, facts.Queue, out.Phase, rec); err != nil {
		if c.asked && !apierrors.IsConflict(err) {
			q.event(queue, corev1.EventTypeWarning, c.action, c.action, "%s failed, and is tried again: %s", c.action, err)
		}
		return err
	}
	rec.answered(c)
	if c.asked {
		q.event(queue, corev1.EventTypeNormal, c.action, c.action, "%s succeeded: the queue is %s (%s)", c.action, out.Phase, c.message)
	}
	return nil
}

// facts counts a queue's PodGroups. One that has no phase yet is pending.
func (q *queues) facts(ctx context.Context, queue *schedulingv1beta1.Queue) (statemachines.Facts, error) {
	list := &schedulingv1beta1.PodGroupList{}
	if err := q.client.List(ctx, list, client.MatchingFields{byQueue: queue.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return statemachines.Facts{}, fmt.Errorf("list the PodGroups of queue %s: %w", queue.Name, err)
	}
	f := &statemachines.Queue{Name: queue.Name, Parent: queue.Spec.Parent, Labels: queue.Labels, Annotations: queue.Annotations}
	for i := range list.Items {
		switch list.Items[i].Status.Phase {
		case schedulingv1beta1.PodGroupInqueue:
			f.Inqueue++
		case schedulingv1beta1.PodGroupRunning:
			f.Running++
		case schedulingv1beta1.PodGroupUnknown:
			f.Unknown++
		case schedulingv1beta1.PodGroupCompleted:
			f.Completed++
		case schedulingv1beta1.PodGroupPending, "":
			f.Pending++
		}
	}
	return statemachines.Facts{Queue: f, Now: q.now()}, nil
}

// write stores a queue's state and counts, if they are new, and nothing else: the rest of the status is
// the scheduler's. Counts of 0 are written as such, because another manager may have left others.
func (q *queues) write(ctx context.Context, queue *schedulingv1beta1.Queue, f *statemachines.Queue, state string, rec *recall) error {
	s := queue.Status
	is := []int32{s.Pending, s.Inqueue, s.Running, s.Unknown, s.Completed}
	want := []int32{f.Pending, f.Inqueue, f.Running, f.Unknown, f.Completed}
	if string(s.State) == state && slices.Equal(is, want) {
		return nil
	}
	apply := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": queue.Name, "uid": string(queue.UID), "resourceVersion": queue.ResourceVersion},
		"status": map[string]any{
			"state":   state,
			"pending": int64(f.Pending), "inqueue": int64(f.Inqueue), "running": int64(f.Running),
			"unknown": int64(f.Unknown), "completed": int64(f.Completed),
		},
	}}
	apply.SetGroupVersionKind(schedulingv1beta1.GroupVersion.WithKind("Queue"))
	err := q.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the status of queue %s: %w", queue.Name, err)
	}
	rec.version = apply.GetResourceVersion()
	return nil
}
