package live

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
)

// Reasons of events.
const (
	eventScheduled        = "Scheduled"        // of pods and PodGroups
	eventFailedScheduling = "FailedScheduling" // of pods
	eventUnschedulable    = "Unschedulable"    // of PodGroups
	eventBindRefused      = "BindRefused"      // of pods
	eventGangReleased     = "GangReleased"     // of PodGroups
	eventEvict            = "Evict"            // of pods
	eventInvalid          = "Invalid"          // of whatever cannot be read
)

// eventServer is the part of the core client that takes events.
type eventServer interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, data []byte) (*corev1.Event, error)
}

// events records events through the outbox, where they are the last in line. Events that repeat are counted into one,
// and an object that has too many is passed over, by the rules of client-go. It is a record.EventRecorder, for any goroutine.
type events struct {
	scheme     *runtime.Scheme
	server     eventServer
	correlator *record.EventCorrelator
	outbox     *outbox
	log        logr.Logger
	component  string
	number     atomic.Uint64
}

func newEvents(scheme *runtime.Scheme, server eventServer, out *outbox, log logr.Logger) *events {
	return &events{
		scheme: scheme, server: server, outbox: out, log: log, component: FieldManager,
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}
}

// Event implements record.EventRecorder.
func (e *events) Event(object runtime.Object, kind, reason, message string) {
	e.AnnotatedEventf(object, nil, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (e *events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.AnnotatedEventf(object, nil, kind, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (e *events) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	ref, err := reference.GetReference(e.scheme, object)
	if err != nil {
		e.log.Error(err, "an event is lost", "reason", reason)
		return
	}
	e.record(ref, annotations, kind, reason, func() string { return fmt.Sprintf(format, args...) })
}

// record has the message made when the event's turn has come.
func (e *events) record(ref *corev1.ObjectReference, annotations map[string]string, kind, reason string, message func() string) {
	at := metav1.Now()
	number := e.number.Add(1)
	e.outbox.put(toEvent, fmt.Sprint("event/", number), func(ctx context.Context) {
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ref.Namespace, Annotations: annotations,
				Name: fmt.Sprintf("%s.%x%04x", ref.Name, at.UnixNano(), number&0xffff),
			},
			InvolvedObject: *ref, Reason: reason, Message: message(), Type: kind,
			FirstTimestamp: at, LastTimestamp: at, Count: 1,
			Source: corev1.EventSource{Component: e.component}, ReportingController: e.component,
		}
		if event.Namespace == "" {
			event.Namespace = metav1.NamespaceDefault // where events of what has no namespace are
		}
		e.write(ctx, event)
	})
}

func (e *events) write(ctx context.Context, event *corev1.Event) {
	result, err := e.correlator.EventCorrelate(event)
	if err != nil || result.Skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var written *corev1.Event
	if result.Event.Count > 1 {
		written, err = e.server.PatchWithEventNamespaceWithContext(ctx, result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || errors.IsNotFound(err) {
		result.Event.ResourceVersion = ""
		written, err = e.server.CreateWithEventNamespaceWithContext(ctx, result.Event)
	}
	if err != nil {
		// An event is of use, not of need: what it tells is in the statuses too.
		e.log.V(1).Info("an event is lost", "reason", event.Reason, "object", event.InvolvedObject.Name, "error", err.Error())
		return
	}
	e.correlator.UpdateState(written)
}
