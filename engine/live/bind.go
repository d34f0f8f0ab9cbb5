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

// PolicyAnnotation is on a bound pod and says which policy put it where it is: NAME@GENERATION.
const PolicyAnnotation = "celsius.dev/policy"

// WhyAnnotation is on a bound pod and says why it is where it is, in words.
const WhyAnnotation = "celsius.dev/why"

// longestWhy bounds these words, in bytes.
const longestWhy = 512

const (
	// writeTimeout bounds one request to the API server.
	writeTimeout = 15 * time.Second
	// The time between two tries of a binding whose outcome is unknown: at first, and at most.
	unknownFirst = 100 * time.Millisecond
	unknownMost  = 5 * time.Second
	// answeredTries is how often the API server may answer with an error of its own, while the
	// pod stays unbound, before that counts as a refusal.
	answeredTries = 4
	// unknownTries is how often the outcome of a binding may be unknown, while the pod can be read and is unbound, before it counts
	// as a refusal: by then every request has reached its time limit at the API server.
	unknownTries = 12
)

// order is one binding that was decided.
type order struct {
	model.Bind
	policy    string            // NAME@GENERATION
	pod       *corev1.Pod       // as it was when this was decided
	record    model.Record      // for who leads next
	devices   map[string]string // for who runs the pod
	group     string            // the name of its PodGroup, where the pod does not say it yet; "": it does
	created   time.Time         // of the pod; zero: not known
	decided   time.Time
	sent      time.Time // for the first time
	known     int       // the node's standing when it was decided, as nodeBook had it
	tries     int       // of which the outcome is unknown
	answered  int       // of them those that the API server answered
	namespace string
	name      string
	volumes   volumeWork
}

// result is how a write ended, in words that metrics use too.
type result string

const (
	bound   result = "bound"
	refused result = "refused" // the pod is not bound, and will not be by this order
	gone    result = "gone"    // the pod is not there any more, or is bound elsewhere: its events tell
	unknown result = "unknown" // not an end: the order is tried again
	unsent  result = "unsent"  // nor is this: the lease has lapsed, and may be renewed yet
)

// bindOutcome is what became of an order.
type bindOutcome struct {
	order  *order
	result result
	err    error
}

// nodeBook says which nodes take no new pods any more, for workers that are about to bind.
type nodeBook struct{ changes sync.Map } // node name -> *nodeNews

type nodeNews struct {
	number int
	why    string // "": it takes pods
}

// put notes a node's standing. It is called by the loop only.
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

// binder carries out orders and evictions. Its methods are for any goroutine.
type binder struct {
	pods    pods
	nodes   *nodeBook
	outbox  *outbox.Outbox
	feed    *feed
	metrics *metrics
	log     logr.Logger
	// storage is where volumes are bound before pods are, and volumeTimeout how long that may take.
	storage       storage
	volumeTimeout time.Duration
	// scheduled is told of each pod that was bound, sentAway of each that was evicted.
	scheduled func(*order)
	sentAway  func(*eviction)
}

// orderKey is the key under which an order stands in line for the first time; tried again it has another,
// because the API server may have done what it asks for.
func orderKey(task, uid string) string { return "bind/" + task + "/" + uid }

// send has an order carried out by a worker.
func (b *binder) send(o *order) {
	o.namespace, o.name, _ = strings.Cut(o.Task, "/")
	o.known = b.nodes.get(o.Node).number
	b.outbox.Put(outbox.Binding, orderKey(o.Task, o.UID), func(ctx context.Context) { b.try(ctx, o) })
}

// try is one attempt at a binding. An order ends bound, refused or gone; until then it is tried again.
func (b *binder) try(ctx context.Context, o *order) {
	guarded(b.feed, o.pod, func(ctx context.Context) { b.tryOnce(ctx, o) }, func() {
		// Where it is not known what became of the order, the pod counts on the node until it changes.
		if result, _ := b.readBack(ctx, o, errInternal, refused); result != unknown {
			b.feed.add(change{object: &bindOutcome{o, result, errInternal}}, true)
		}
	})(ctx)
}

// errInternal is why a write has not succeeded during which the scheduler panicked.
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
			return // the end: who leads next reads back what became of it
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
	case evicted, recalled: // no ends of bindings
	}
	// What was bound, or is gone, is told by the pod's own events; only metrics need to hear of it.
	b.feed.add(change{object: &bindOutcome{o, result, err}}, false)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errNodeChanged is why an order is not even sent.
type errNodeChanged struct{ node, why string }

func (e errNodeChanged) Error() string {
	return fmt.Sprintf("node %s %s since it was chosen", e.node, e.why)
}

func (b *binder) attempt(ctx context.Context, o *order) (result, error) {
	// Once a request was sent that may still arrive, only the node that it names will do.
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

// readBack asks the API server what became of a pod; otherwise is the answer where it is not bound.
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

// binding is the object that is sent. The API server copies its annotations to the pod.
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
