package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// The type and reasons of the condition of a queue and of its event.
const (
	sharesOverParent = schedulingv1beta1.QueueSharesOverParent
	sharesFit        = "SharesFit"
	sharesManager    = fieldManager + "-shares" // separate from the manager of state and counts, because each applies all its fields
)

// mostTold is the maximum number of excessive amounts that a condition lists for one queue.
const mostTold = 20

// shares checks the sums of guarantee and deserved of the children of a queue. Admission checks each queue by itself. Two queues that are
// created or changed at the same time may both be admitted, and together exceed their parent. shares then marks the later one, by creation
// and then by name. This order is the same in every process, whatever the order of events.
type shares struct{ *parts }

func addShares(mgr manager.Manager, p *parts) error {
	s := &shares{p}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("queue-shares").
		For(&schedulingv1beta1.Queue{}, changed).
		Watches(&schedulingv1beta1.Queue{}, handler.EnqueueRequestsFromMapFunc(s.concerned), changed).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&schedulingv1beta1.Queue{}, s))
}

// below lists the direct children of a queue.
func (s *shares) below(ctx context.Context, name string) ([]*schedulingv1beta1.Queue, error) {
	list := &schedulingv1beta1.QueueList{}
	if err := s.client.List(ctx, list, client.MatchingFields{byParent: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the queues below %s: %w", name, err)
	}
	var out []*schedulingv1beta1.Queue
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// later orders queues by creation, then by name.
func later(a, b *schedulingv1beta1.Queue) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// concerned lists the queues whose marks may change because of a changed queue: its children, and its later siblings.
func (s *shares) concerned(ctx context.Context, changed client.Object) (out []reconcile.Request) {
	queue, ok := changed.(*schedulingv1beta1.Queue)
	if !ok {
		return nil
	}
	for _, parent := range []string{queue.Name, queue.Spec.Parent} {
		if isRoot(parent) {
			continue
		}
		list, err := s.below(ctx, parent)
		if err != nil {
			logOf(ctx).Error(err, "find the queues that a queue concerns", "queue", queue.Name)
			continue
		}
		for _, other := range list {
			if hasShares(other) && (parent == queue.Name || later(queue, other) < 0) {
				out = append(out, reconcile.Request{NamespacedName: queueKey(other.Name)})
			}
		}
	}
	return out
}

// isRoot reports whether the children of a queue of that name have no bound.
func isRoot(name string) bool { return name == "" || name == "root" }

func hasShares(q *schedulingv1beta1.Queue) bool {
	return len(q.Spec.Guarantee.Resource)+len(q.Spec.Deserved) > 0
}

// Reconcile marks one queue if its guarantee or deserved does not fit.
func (s *shares) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	queue, parent := &schedulingv1beta1.Queue{}, &schedulingv1beta1.Queue{}
	err := s.client.Get(ctx, req.NamespacedName, queue)
	if err == nil && !isRoot(queue.Spec.Parent) && hasShares(queue) {
		err = s.client.Get(ctx, queueKey(queue.Spec.Parent), parent)
	}
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read queue %s and the one above it: %w", req.Name, err)
	}
	text := ""
	if parent.Name != "" && queue.DeletionTimestamp == nil {
		siblings, err := s.below(ctx, parent.Name)
		if err != nil {
			return reconcile.Result{}, err
		}
		text = tooMuch(queue, parent, siblings)
	}
	if err := s.mark(ctx, queue, text); !errors.Is(err, errGone) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

// mark writes into the queue's status which shares do not fit, or that they fit again, and writes an event about a change.
func (s *shares) mark(ctx context.Context, queue *schedulingv1beta1.Queue, text string) error {
	conditions := slices.Clone(queue.Status.Conditions)
	is := metav1.Condition{
		Type: sharesOverParent, Status: metav1.ConditionTrue, Reason: sharesOverParent, Message: text,
		LastTransitionTime: metav1.NewTime(s.now()),
	}
	if text == "" {
		is.Status, is.Reason, is.Message = metav1.ConditionFalse, sharesFit, "what the queue is guaranteed and deserves fits again"
	}
	if text == "" && meta.FindStatusCondition(conditions, sharesOverParent) == nil || !meta.SetStatusCondition(&conditions, is) {
		return nil
	}
	if text != "" {
		s.event(queue, corev1.EventTypeWarning, sharesOverParent, "CheckShares", "%s", text)
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&schedulingv1beta1.QueueStatus{Conditions: conditions})
	if err != nil {
		return fmt.Errorf("write the conditions of queue %s: %w", queue.Name, err)
	}
	was := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: queue.Name, UID: queue.UID}} // ignore changes of other fields
	_, err = s.applyStatus(ctx, was, sharesManager, map[string]any{"conditions": status["conditions"]})
	return err
}

// tooMuch returns which shares of a queue do not fit under its parent after the shares of earlier siblings, or "".
func tooMuch(queue, parent *schedulingv1beta1.Queue, siblings []*schedulingv1beta1.Queue) string {
	var found []string
	for _, share := range []struct {
		field, bound string
		of           func(*schedulingv1beta1.Queue) corev1.ResourceList
	}{
		{"spec.guarantee.resource", "is guaranteed", func(q *schedulingv1beta1.Queue) corev1.ResourceList { return q.Spec.Guarantee.Resource }},
		{"spec.deserved", "deserves", func(q *schedulingv1beta1.Queue) corev1.ResourceList { return q.Spec.Deserved }},
	} {
		own, most := share.of(queue), share.of(parent)
		for _, name := range slices.Sorted(maps.Keys(own)) {
			sum := resource.Quantity{}
			for _, other := range siblings {
				if later(other, queue) <= 0 {
					sum.Add(share.of(other)[name])
				}
			}
			amount, limit := own[name], most[name]
			if amount.Sign() > 0 && sum.Cmp(limit) > 0 {
				found = append(found, fmt.Sprintf("%s.%s: with its sibling queues that came earlier makes %s, and queue %s above them "+
					"%s %s", share.field, name, sum.String(), parent.Name, share.bound, limit.String()))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	if more := len(found) - mostTold; more > 0 {
		found = append(found[:mostTold], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(found, "; ") + "; write less, or raise that of " + parent.Name
}
