package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// sharesOverParent is the reason of the event on a queue whose shares do not fit.
const sharesOverParent = "SharesOverParent"

// shares looks at what queues below one are guaranteed and deserve together. Admission looks at each queue by itself: of two that are made
// or changed at once both may pass, and together be too much. Of those the later is told of, by creation and then by name, so that it is
// the same one whoever looks, and in whatever order they come.
type shares struct {
	*parts

	mu sync.Mutex
	// told is what was last told of each queue.
	told map[types.UID]string
}

func addShares(mgr manager.Manager, p *parts) error {
	s := newShares(p)
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("queue-shares").
		For(&schedulingv1beta1.Queue{}, changed).
		Watches(&schedulingv1beta1.Queue{}, handler.EnqueueRequestsFromMapFunc(s.concerned), changed).
		WithOptions(p.controllerOptions()).
		Complete(s)
}

func newShares(p *parts) *shares { return &shares{parts: p, told: map[types.UID]string{}} }

// below lists the queues right below one.
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

// concerned lists the queues of which something else may be true now that one has changed: those right below it, and those beside it that
// come later.
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

// isRoot says whether below a queue of that name there is no bound: what is right below root may add up to anything.
func isRoot(name string) bool { return name == "" || name == "root" }

func hasShares(q *schedulingv1beta1.Queue) bool {
	return len(q.Spec.Guarantee.Resource)+len(q.Spec.Deserved) > 0
}

// Reconcile tells of one queue, where what it is guaranteed or deserves is too much.
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
	if s.isNews(queue.UID, text) {
		s.event(queue, corev1.EventTypeWarning, sharesOverParent, "CheckShares", "%s", text)
	}
	return reconcile.Result{}, nil
}

// isNews says whether that is to be told, and remembers it.
func (s *shares) isNews(of types.UID, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" {
		delete(s.told, of)
		return false
	}
	news := s.told[of] != text
	s.told[of] = text
	return news
}

// tooMuch says what of a queue does not fit under its parent after those that came earlier; "": nothing.
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
				found = append(found, fmt.Sprintf("%s.%s: with the queues beside it that came earlier makes %s, and queue %s above them %s %s",
					share.field, name, sum.String(), parent.Name, share.bound, limit.String()))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, "; ") + "; write less, or raise that of " + parent.Name
}
