// Package events tells people of what happened to an object, so that clients of both of Kubernetes' APIs of events find all
// that they look for.
//
//	Event --correlate--> repeats are counted into one, too many are passed over --> the API server
//
// They go out as core/v1, with the fields of events.k8s.io/v1 (eventTime, action, who reports) beside the older ones (first
// and last timestamp, count, source): by the newer API the server takes none of the older ones. What is remembered in order
// to correlate is bounded, by the rules of client-go.
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

// Server is the part of the core client that takes events.
type Server interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, data []byte) (*corev1.Event, error)
}

// Event is something that happened to an object.
type Event struct {
	On          corev1.ObjectReference
	Annotations map[string]string
	// Type is Normal or Warning; Reason is one word. Action is what was done, or tried; where it is "", it is the reason.
	Type, Reason, Action string
	Message              string
	At                   time.Time
}

// Writer writes the events of one component. It may be used from any goroutine.
type Writer struct {
	server              Server
	correlator          *record.EventCorrelator
	component, instance string
	dropped             func(why string)
	written             atomic.Uint64
}

// Why an event is dropped, as metrics have it.
const (
	Waiting = "waiting" // too many wait to be written
	TooMany = "tooMany" // there were too many of its object
	Failed  = "failed"  // the API server did not take it
)

// Dropped is the name of the metric that counts those events by why, and DroppedHelp what it says.
const (
	Dropped     = "celsius_events_dropped_total"
	DroppedHelp = "Events that were not written, by why: too many waited, too many were of their object, or the API server refused them."
)

// NewWriter makes the writer of a component's events. dropped is told why each is dropped that is.
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

// Write counts an event into one that it repeats, or makes a new one. One of an object that has too many is passed over.
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

// longestMessage is what the API server takes of a message, in bytes, less what is put before one that stands for several.
const longestMessage = 1024 - len("(combined from similar events): ")

// Short is a text of so many bytes at most; what is cut off is told by dots.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// event is an Event as the older API has it.
func (w *Writer) event(e Event) *corev1.Event {
	at := metav1.NewTime(e.At)
	suffix := fmt.Sprintf(".%x%04x", at.UnixNano(), w.written.Add(1)&0xffff)
	of := e.On.Name[:min(len(e.On.Name), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   cmp.Or(e.On.Namespace, metav1.NamespaceDefault), // where events of what has no namespace are
			Name:        strings.TrimRight(of, "-.") + suffix,            // a name may not be cut behind these
			Annotations: e.Annotations,
		},
		InvolvedObject: e.On, Reason: e.Reason, Type: e.Type, Action: cmp.Or(e.Action, e.Reason),
		Message:        Short(source.Line(e.Message), longestMessage),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: w.component}, ReportingController: w.component,
	}
}

// complete writes what only the newer API has into an event that is to be made, which may stand for several that were alike.
func (w *Writer) complete(event, of *corev1.Event) {
	event.EventTime = metav1.NewMicroTime(event.FirstTimestamp.Time)
	event.Action, event.ReportingController, event.ReportingInstance = of.Action, w.component, w.instance
}
