package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celsius-scheduler/celsius/engine/live/events"
)

// mostEvents is how many events may wait to be written. Further events are lost, because events are useful but not necessary.
const mostEvents = 1000

// recorder writes events one after another in the background, so that callers do not wait. The manager runs it.
type recorder struct {
	scheme  *runtime.Scheme
	writer  *events.Writer
	waiting chan events.Event
	dropped func(why string)
	log     logr.Logger
}

func newRecorder(mgr manager.Manager, m *metrics) (*recorder, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("write events: %w", err)
	}
	r := &recorder{
		scheme: mgr.GetScheme(), writer: events.NewWriter(core.Events(""), fieldManager, m.dropped), dropped: m.dropped,
		waiting: make(chan events.Event, mostEvents), log: mgr.GetLogger(),
	}
	return r, mgr.Add(r)
}

// Eventf implements events.EventRecorder of client-go.
func (r *recorder) Eventf(on runtime.Object, _ runtime.Object, kind, reason, action, note string, args ...any) {
	ref, err := reference.GetReference(r.scheme, on)
	if err != nil {
		r.log.Error(err, "an event is lost", "reason", reason)
		return
	}
	select {
	case r.waiting <- events.Event{On: *ref, Type: kind, Reason: reason, Action: action, Message: fmt.Sprintf(note, args...), At: time.Now()}:
	default:
		r.dropped(events.Waiting)
		r.log.V(1).Info("an event is lost: too many wait", "reason", reason, "object", ref.Name)
	}
}

// Start implements manager.Runnable.
func (r *recorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.waiting:
			r.write(ctx, e)
		}
	}
}

func (r *recorder) write(ctx context.Context, e events.Event) {
	const within = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := r.writer.Write(ctx, e); err != nil {
		r.log.V(1).Info("an event is lost", "error", err.Error())
	}
}
