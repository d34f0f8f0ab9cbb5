package live

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"

	"github.com/celsius-scheduler/celsius/engine/live/events"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
)

// Reasons of events.
const (
	eventScheduled        = "Scheduled"        // of pods and PodGroups
	eventFailedScheduling = "FailedScheduling" // of pods
	eventUnschedulable    = "Unschedulable"    // of PodGroups
	eventBindRefused      = "BindRefused"      // of pods
	eventGangReleased     = "GangReleased"     // of PodGroups
	eventEvict            = "Evict"            // of pods and PodGroups
	eventRoomMade         = "RoomMade"         // of pods for which others are evicted
	eventEvictRefused     = "EvictRefused"     // of pods for which another was to be evicted
	eventEvictInDoubt     = "EvictInDoubt"     // of pods that go, or for which others do, where a check of that finds something wrong
	eventPodGroupError    = "PodGroupError"    // of pods that say what their PodGroup cannot
	eventInvalid          = "Invalid"          // of whatever cannot be read
	eventNoControllers    = "NoControllers"    // of Jobs and pods that wait for controllers
	eventLeftOut          = "LeftOut"          // of whatever the scheduler failed at
	eventNotYetHonoured   = "NotYetHonoured"   // of PodGroups that ask for what is not heeded
)

// recorder records events through the outbox, where they are the last in line. It is a record.EventRecorder, for any goroutine.
type recorder struct {
	scheme *runtime.Scheme
	writer *events.Writer
	outbox *outbox.Outbox
	log    logr.Logger
	// dropped is told why an event is not written.
	dropped func(why string)
	number  atomic.Uint64
}

func newRecorder(scheme *runtime.Scheme, server events.Server, out *outbox.Outbox, m *metrics, log logr.Logger) *recorder {
	return &recorder{scheme: scheme, writer: events.NewWriter(server, FieldManager, m.dropped), outbox: out, log: log, dropped: m.dropped}
}

// Event implements record.EventRecorder.
func (r *recorder) Event(object runtime.Object, kind, reason, message string) {
	r.AnnotatedEventf(object, nil, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.AnnotatedEventf(object, nil, kind, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	ref, err := reference.GetReference(r.scheme, object)
	if err != nil {
		r.log.Error(err, "an event is lost", "reason", reason)
		return
	}
	r.record(ref, annotations, kind, reason, func() string { return fmt.Sprintf(format, args...) })
}

// record has the message made when the event's turn has come.
func (r *recorder) record(ref *corev1.ObjectReference, annotations map[string]string, kind, reason string, message func() string) {
	at := time.Now()
	taken := r.outbox.Put(outbox.Event, fmt.Sprint("event/", r.number.Add(1)), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := r.writer.Write(ctx, events.Event{On: *ref, Annotations: annotations, Type: kind, Reason: reason, Message: message(), At: at})
		if err != nil {
			// An event is of use, not of need: what it tells is in the statuses too.
			r.log.V(1).Info("an event is lost", "error", err.Error())
		}
	})
	if !taken {
		r.dropped(events.Waiting)
	}
}
