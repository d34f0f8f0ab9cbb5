package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

const (
	// eventLeftOut is the reason of the event on an object at which its reconciler panicked. The scheduler's event has the same reason.
	eventLeftOut = "LeftOut"
	// leftOutFor is how long an unchanged object is left out. The cause of the panic may be another object, such as a pod of a Job.
	leftOutFor = time.Minute
)

// recovers is a reconciler that survives panics. It skips the object of a panic until the object changes, for at most leftOutFor.
type recovers struct {
	reconcile.Reconciler
	*parts
	of client.Object // an object of the reconciled kind

	mu  sync.Mutex
	out map[types.NamespacedName]leftOut
}

// leftOut is an object at which its reconciler panicked.
type leftOut struct {
	print string
	until time.Time
}

// recovering returns a reconciler that survives panics and waits until deferred status writes are allowed.
func (p *parts) recovering(of client.Object, r reconcile.Reconciler) reconcile.Reconciler {
	return &recovers{Reconciler: patient{r}, parts: p, of: of, out: map[types.NamespacedName]leftOut{}}
}

// Reconcile implements reconcile.Reconciler.
func (r *recovers) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	r.mu.Lock()
	was, known := r.out[req.NamespacedName]
	r.mu.Unlock()
	if wait := was.until.Sub(r.now()); known && wait > 0 {
		if _, print := r.object(ctx, req); print == was.print {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	p := recovery.Catch(recovery.Reconciler, func() { result, err = r.Reconciler.Reconcile(ctx, req) })
	if p == nil {
		if known {
			r.mu.Lock()
			delete(r.out, req.NamespacedName)
			r.mu.Unlock()
		}
		return result, err
	}
	return r.leave(ctx, req, p, was.print), nil
}

// leave counts and reports a panic. The object gets one event for as long as it does not change.
func (r *recovers) leave(ctx context.Context, req reconcile.Request, p *recovery.Panic, before string) reconcile.Result {
	r.metrics.panics.WithLabelValues(string(recovery.Reconciler)).Inc()
	object, print := r.object(ctx, req)
	p.Object = recovery.Object{Kind: r.kind(), Namespace: req.Namespace, Name: req.Name}
	logOf(ctx).Error(nil, "a panic was recovered", "place", p.Place, "object", p.Object.String(), "cause", p.Cause, "stack", p.Stack)
	if object != nil && print != before {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, eventLeftOut, "Reconcile",
			"the controllers failed at this %s and leave it out until it changes, or for %s: %s", p.Object.Kind, leftOutFor, p.Cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out[req.NamespacedName] = leftOut{print, r.now().Add(leftOutFor)}
	return reconcile.Result{RequeueAfter: leftOutFor}
}

func (r *recovers) kind() string {
	if gvk, err := r.client.GroupVersionKindFor(r.of); err == nil {
		return gvk.Kind
	}
	return fmt.Sprintf("%T", r.of)
}

// object reads an object, and the part of it that its owner writes; nil and "" if it does not exist.
func (r *recovers) object(ctx context.Context, req reconcile.Request) (o client.Object, print string) {
	o = r.of.DeepCopyObject().(client.Object)
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return nil, ""
	}
	return o, fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp(), o.GetLabels(), o.GetAnnotations())
}
