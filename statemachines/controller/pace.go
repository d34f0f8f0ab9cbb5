package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The status of one object is written at most writesAtOnce times in a row, and then writesASecond times per second. These are at most 50
// writes in any 10 s, whatever the machine of the object does.
const (
	writesASecond = 4
	writesAtOnce  = 10
)

// tooSoon is the error of a deferred status write. The reconcile ends, and starts again after the wait. It then writes the state of that
// time. This merges the writes in between, and the last state is always written.
type tooSoon struct{ wait time.Duration }

// Error implements error.
func (e *tooSoon) Error() string {
	return fmt.Sprintf("its status was written too often; the next write is in %s", e.wait)
}

func isTooSoon(err error) bool { return errors.As(err, new(*tooSoon)) }

// pace limits how often the status of each object is written.
type pace struct {
	now      func() time.Time
	deferred *prometheus.CounterVec

	mu sync.Mutex
	// limiters are the limiters of recently written objects. When their number reaches forgetAt, idle ones are removed.
	limiters map[paced]*rate.Limiter
	forgetAt int
}

// paced identifies an object.
type paced struct {
	kind schema.GroupKind
	name types.NamespacedName
}

func newPace(now func() time.Time, m *metrics) *pace {
	return &pace{now: now, deferred: m.deferred, limiters: map[paced]*rate.Limiter{}, forgetAt: 1000}
}

// allow returns nil if the status of an object may be written now, else a *tooSoon.
func (p *pace) allow(of paced) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	l := p.limiters[of]
	if l == nil {
		if len(p.limiters) >= p.forgetAt {
			p.forget(now)
		}
		l = rate.NewLimiter(writesASecond, writesAtOnce)
		p.limiters[of] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	p.deferred.WithLabelValues(of.kind.Kind).Inc()
	return &tooSoon{wait}
}

// forget removes the limiters that allow writesAtOnce writes, because a new limiter does the same.
func (p *pace) forget(now time.Time) {
	for of, l := range p.limiters {
		if l.TokensAt(now) >= writesAtOnce {
			delete(p.limiters, of)
		}
	}
	p.forgetAt = max(1000, 2*len(p.limiters))
}

// pacedClient is a client that limits the rate of status writes.
type pacedClient struct {
	client.Client
	pace *pace
}

// Status implements client.Client.
func (c pacedClient) Status() client.SubResourceWriter {
	return pacedStatus{c.Client.Status(), c}
}

// pacedStatus is the writer of statuses of a pacedClient.
type pacedStatus struct {
	client.SubResourceWriter
	of pacedClient
}

func (s pacedStatus) allow(obj client.Object) error {
	kind, err := s.of.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	return s.of.pace.allow(paced{kind.GroupKind(), client.ObjectKeyFromObject(obj)})
}

// Update implements client.SubResourceWriter.
func (s pacedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := s.allow(obj); err != nil {
		return err
	}
	return s.SubResourceWriter.Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceWriter.
func (s pacedStatus) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := s.allow(obj); err != nil {
		return err
	}
	return s.SubResourceWriter.Patch(ctx, obj, p, opts...)
}

// Apply implements client.SubResourceWriter.
func (s pacedStatus) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if named, ok := obj.(interface {
		GetNamespace() string
		GetName() string
		GroupVersionKind() schema.GroupVersionKind
	}); ok {
		of := paced{named.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: named.GetNamespace(), Name: named.GetName()}}
		if err := s.of.pace.allow(of); err != nil {
			return err
		}
	}
	return s.SubResourceWriter.Apply(ctx, obj, opts...)
}

// patient is a reconciler that retries when a deferred status write is allowed. It ignores a write that fails because its namespace is
// being deleted, because the object will be deleted, too.
type patient struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (p patient) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, req)
	if later := (*tooSoon)(nil); errors.As(err, &later) {
		return reconcile.Result{RequeueAfter: later.wait}, nil
	}
	if isTerminating(err) {
		logOf(ctx).V(1).Info("the namespace is being deleted", "refused", err.Error())
		return reconcile.Result{RequeueAfter: untilGone}, nil
	}
	return result, err
}

// untilGone is how long the controllers wait before they reconcile an object again whose namespace is being deleted.
const untilGone = 30 * time.Second

// isTerminating reports whether an error, and each of those that it joins, is the refusal to create something in a namespace that is being
// deleted.
func isTerminating(err error) bool {
	switch x := err.(type) { //nolint:errorlint // it goes through the tree
	case apierrors.APIStatus:
		return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	case interface{ Unwrap() []error }:
		return len(x.Unwrap()) > 0 && !slices.ContainsFunc(x.Unwrap(), func(e error) bool { return !isTerminating(e) })
	case interface{ Unwrap() error }:
		return isTerminating(x.Unwrap())
	}
	return false
}
