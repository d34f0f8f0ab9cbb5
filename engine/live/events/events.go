// Package events writes Events about objects. The Events are complete for clients of both event APIs of Kubernetes.
//
//	Event --correlate--> repeats are counted into one, too many are dropped --> the API server
//
// Events are written as core/v1, with the fields of events.k8s.io/v1 (eventTime, action, reporter) in addition to the older ones (first and
// last timestamp, count, source). With the newer API, the server would not accept the older fields. The memory for correlation is bounded
// by the rules of client-go.
package events

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/record"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Server is the part of the core client that writes events.
type Server interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, data []byte) (*corev1.Event, error)
}

// Event reports that something happened to an object.
type Event struct {
	On          corev1.ObjectReference
	Annotations map[string]string
	// Type is Normal or Warning, and Reason is one word. Action is what was done or tried; "": the same as Reason.
	Type, Reason, Action string
	Message              string
	At                   time.Time
}

// Writer writes the events of one component. Any goroutine may use it.
type Writer struct {
	server              Server
	correlator          *record.EventCorrelator
	component, instance string
	dropped             func(why string)
	written             atomic.Uint64
}

// Reasons for dropped events, as values of a metric label.
const (
	Waiting = "waiting" // too many wait to be written
	TooMany = "tooMany" // the object has too many events
	Failed  = "failed"  // the API server refused it
)

// Dropped is the name of the metric that counts dropped events by reason. DroppedHelp is its help text.
const (
	Dropped     = "celsius_events_dropped_total"
	DroppedHelp = "Events that were not written, by why: too many waited, too many were of their object, or the API server refused them."
)

// NewWriter returns a writer for a component's events. dropped is called with the reason for each dropped event.
func NewWriter(server Server, component string, dropped func(why string)) *Writer {
	const longest = 128 // the API server's limit
	instance := component
	if host, err := os.Hostname(); err == nil {
		instance += "-" + host
	}
	return &Writer{
		server: server, component: component, instance: instance[:min(len(instance), longest)], dropped: dropped,
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{}),
	}
}

// Write creates an event, or increases the count of an event that it repeats. It drops an event if the object has too many.
func (w *Writer) Write(ctx context.Context, e Event) error {
	event := w.event(e)
	result, err := w.correlator.EventCorrelate(event)
	if err != nil {
		return fmt.Errorf("count the event %s of %s %s: %w", e.Reason, e.On.Kind, e.On.Name, err)
	}
	if result.Skip {
		w.dropped(TooMany)
		return nil
	}
	var written *corev1.Event
	if result.Event.Count > 1 {
		written, err = w.server.PatchWithEventNamespaceWithContext(ctx, result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || errors.IsNotFound(err) {
		result.Event.ResourceVersion = ""
		w.complete(result.Event, event)
		written, err = w.server.CreateWithEventNamespaceWithContext(ctx, result.Event)
	}
	if err != nil {
		w.dropped(Failed)
		return fmt.Errorf("write the event %s of %s %s: %w", e.Reason, e.On.Kind, e.On.Name, err)
	}
	w.correlator.UpdateState(written)
	return nil
}

// longestMessage is the API server's limit for a message, in bytes, minus the prefix of an event that combines several.
const longestMessage = 1024 - len("(combined from similar events): ")

// Short cuts a text to a number of bytes. A text that was cut ends with dots.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// event converts an Event to the older API.
func (w *Writer) event(e Event) *corev1.Event {
	at := metav1.NewTime(e.At)
	suffix := fmt.Sprintf(".%x%04x", at.UnixNano(), w.written.Add(1)&0xffff)
	of := e.On.Name[:min(len(e.On.Name), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   cmp.Or(e.On.Namespace, metav1.NamespaceDefault), // namespace for events about cluster-scoped objects
			Name:        strings.TrimRight(of, "-.") + suffix,            // a name must not end with these before the suffix
			Annotations: e.Annotations,
		},
		InvolvedObject: e.On, Reason: e.Reason, Type: e.Type, Action: cmp.Or(e.Action, e.Reason),
		Message:        Short(source.Line(e.Message), longestMessage),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: w.component}, ReportingController: w.component,
	}
}

// complete sets the fields of the newer API in a new event, which may combine several similar ones.
func (w *Writer) complete(event, of *corev1.Event) {
	event.EventTime = metav1.NewMicroTime(event.FirstTimestamp.Time)
	event.Action, event.ReportingController, event.ReportingInstance = of.Action, w.component, w.instance
}
