package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/events"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// PolicyAnnotation is an annotation of a bound pod. It contains the policy that chose the node: NAME@GENERATION.
const PolicyAnnotation = "celsius.dev/policy"

// WhyAnnotation is an annotation of a bound pod. It contains the reason why the pod is on its node, as text.
const WhyAnnotation = "celsius.dev/why"

// longestWhy is the maximum length of this text, in bytes.
const longestWhy = 512

const (
	// writeTimeout bounds one request to the API server.
	writeTimeout = 15 * time.Second
	// unknownFirst and unknownMost are the first and the longest wait before a binding with an unknown outcome is tried again.
	unknownFirst = 100 * time.Millisecond
	unknownMost  = 5 * time.Second
	// answeredTries is the number of error responses of the API server after which a binding counts as refused, if the pod is still unbound.
	answeredTries = 4
	// unknownTries is the number of tries with an unknown outcome after which a binding counts as refused, if the pod is readable and unbound.
	// By then every request has reached its time limit at the API server.
	unknownTries = 12
)

// order is one decided binding.
type order struct {
	model.Bind
	policy    string            // NAME@GENERATION
	pod       *corev1.Pod       // the pod when the binding was decided
	record    model.Record      // read by the next leader
	devices   map[string]string // read by the kubelet
	group     string            // the name of its PodGroup if the pod does not name it yet; "" otherwise
	created   time.Time         // creation time of the pod; zero: not known
	decided   time.Time
	sent      time.Time // the time of the first try
	known     int       // the number of the node's state in nodeBook when the binding was decided
	tries     int       // tries with an unknown outcome
	answered  int       // those of the tries that the API server answered
	namespace string
	name      string
	volumes   volumeWork
}

// result is the outcome of a write. Metrics use the same words.
type result string

const (
	bound   result = "bound"
	refused result = "refused" // the pod is not bound, and this order will not bind it
	gone    result = "gone"    // the pod no longer exists or is bound elsewhere; its events report it
	unknown result = "unknown" // not final: the order is tried again
	unsent  result = "unsent"  // not final: the lease has lapsed and may still be renewed
)

// bindOutcome is the outcome of an order.
type bindOutcome struct {
	order  *order
	result result
	err    error
}

// nodeBook stores which nodes take no new pods. Workers read it before they bind.
type nodeBook struct{ changes sync.Map } // node name -> *nodeNews

type nodeNews struct {
	number int
	why    string // "": the node takes pods
}

// put records why a node takes no new pods. Only the loop calls it.
func (b *nodeBook) put(node, why string) {
	old := b.get(node)
	if old.why != why {
		b.changes.Store(node, &nodeNews{old.number + 1, why})
	}
}

func (b *nodeBook) get(node string) *nodeNews {
	if v, ok := b.changes.Load(node); ok {
		return v.(*nodeNews)
	}
	return &nodeNews{}
}

// binder executes orders and evictions. Any goroutine may call its methods.
type binder struct {
	pods    pods
	nodes   *nodeBook
	outbox  *outbox.Outbox
	feed    *feed
	metrics *metrics
	log     logr.Logger
	// storage binds volumes before their pods are bound. volumeTimeout limits the time that this may take.
	storage       storage
	volumeTimeout time.Duration
	// scheduled is called for each bound pod, sentAway for each evicted pod.
	scheduled func(*order)
	sentAway  func(*eviction)
}

// orderKey returns the key of an order's first try in the outbox. Later tries have another key, because the API server may already have
// executed the first one.
func orderKey(task, uid string) string { return "bind/" + task + "/" + uid }

// send passes an order to a worker.
func (b *binder) send(o *order) {
	o.namespace, o.name, _ = strings.Cut(o.Task, "/")
	o.known = b.nodes.get(o.Node).number
	b.outbox.Put(outbox.Binding, orderKey(o.Task, o.UID), func(ctx context.Context) { b.try(ctx, o) })
}

// try runs one attempt at a binding. An order ends as bound, refused or gone; until then it is tried again.
func (b *binder) try(ctx context.Context, o *order) {
	guarded(b.feed, o.pod, func(ctx context.Context) { b.tryOnce(ctx, o) }, func() {
		// If the outcome of the order is unknown, the pod counts on the node until the pod changes.
		if result, _ := b.readBack(ctx, o, errInternal, refused); result != unknown {
			b.feed.add(change{object: &bindOutcome{o, result, errInternal}}, true)
		}
	})(ctx)
}

// errInternal is the error of a write during which the scheduler panicked.
var errInternal = errors.New("the scheduler panicked at this object; its event LeftOut names the place")

func (b *binder) tryOnce(ctx context.Context, o *order) {
	if !b.prepare(ctx, o) {
		return
	}
	start := time.Now()
	if o.sent.IsZero() {
		o.sent = start
		b.metrics.stages.queued.Observe(start.Sub(o.decided).Seconds())
	}
	result, err := b.attempt(ctx, o)
	b.metrics.bind(result, time.Since(start))
	switch result {
	case unknown, unsent:
		if ctx.Err() != nil {
			return // shutdown: the next leader reads the outcome back
		}
		wait := min(unknownFirst<<min(o.tries, 10), unknownMost)
		if result == unknown {
			o.tries++
			b.outbox.Unanswered(start)
		}
		b.log.V(1).Info("it is not known that a pod is bound; it is tried again", "pod", o.Task, "node", o.Node, "result", result, "after", wait,
			"error", err.Error())
		b.outbox.Later(wait, outbox.Binding, "re"+orderKey(o.Task, o.UID), func(ctx context.Context) { b.try(ctx, o) })
		return
	case bound:
		b.outbox.Answered(start)
		b.metrics.stages.bound.Observe(time.Since(o.sent).Seconds())
		b.log.V(2).Info("bound", "pod", o.Task, "node", o.Node, "policy", o.policy)
		b.scheduled(o)
	case refused, gone:
		b.log.V(1).Info("not bound", "pod", o.Task, "node", o.Node, "result", result, "error", errText(err))
	case evicted, recalled: // no outcomes of bindings
	}
	// Events of the pod report that it was bound or is gone; only metrics need this outcome.
	b.feed.add(change{object: &bindOutcome{o, result, err}}, false)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errNodeChanged is the reason why an order is not sent.
type errNodeChanged struct{ node, why string }

func (e errNodeChanged) Error() string {
	return fmt.Sprintf("node %s %s since it was chosen", e.node, e.why)
}

func (b *binder) attempt(ctx context.Context, o *order) (result, error) {
	// A request that was sent may still arrive. After it, only the node that it names is possible.
	if news := b.nodes.get(o.Node); o.tries == 0 && news.number != o.known && news.why != "" {
		return refused, errNodeChanged{o.Node, news.why}
	}
	err := b.pods.Bind(ctx, o.binding())
	var status apierrors.APIStatus
	answered := errors.As(err, &status)
	switch {
	case err == nil:
		return bound, nil
	case errors.Is(err, lease.ErrLapsed):
		return unsent, err
	case apierrors.IsNotFound(err):
		return gone, err
	case apierrors.IsConflict(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err):
		return b.readBack(ctx, o, err, refused)
	case answered && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err):
		o.answered++
		if o.answered >= answeredTries {
			return b.readBack(ctx, o, err, refused)
		}
	}
	return b.readBack(ctx, o, err, unknown)
}

// readBack asks the API server for the state of a pod. It returns otherwise if the pod is not bound.
func (b *binder) readBack(ctx context.Context, o *order, cause error, otherwise result) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pod, err := b.pods.Get(ctx, o.namespace, o.name)
	switch {
	case apierrors.IsNotFound(err):
		return gone, cause
	case err != nil:
		return unknown, cause
	case string(pod.UID) != o.UID || pod.DeletionTimestamp != nil:
		return gone, cause
	case pod.Spec.NodeName == o.Node:
		return bound, nil
	case pod.Spec.NodeName != "":
		return gone, cause
	case o.tries >= unknownTries:
		return refused, cause
	}
	return otherwise, cause
}

// binding returns the object to send. The API server copies its annotations to the pod.
func (o *order) binding() *corev1.Binding {
	annotations := map[string]string{
		PolicyAnnotation: o.policy, WhyAnnotation: events.Short(o.Why(), longestWhy), model.RecordAnnotation: o.record.String(),
	}
	maps.Copy(annotations, o.devices)
	if o.group != "" {
		annotations[v1beta1.KubeGroupNameAnnotationKey] = o.group
	}
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, UID: types.UID(o.UID), Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: o.Node},
	}
}
