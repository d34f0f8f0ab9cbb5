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
	eventRoomMade         = "RoomMade"         // of pods for which other pods are evicted
	eventEvictRefused     = "EvictRefused"     // of pods for which an eviction was refused
	eventEvictInDoubt     = "EvictInDoubt"     // of victims or preemptors, if a check of the eviction finds a mistake
	eventPodGroupError    = "PodGroupError"    // of pods with fields that their PodGroup cannot have
	eventInvalid          = "Invalid"          // of objects that cannot be read
	eventNoControllers    = "NoControllers"    // of Jobs and pods that wait for controllers
	eventLeftOut          = "LeftOut"          // of objects at which the scheduler panicked
	eventNotYetHonoured   = "NotYetHonoured"   // of PodGroups with fields that are not honored yet
)

// recorder records events through the outbox, with the lowest priority. It is a record.EventRecorder. Any goroutine may use it.
type recorder struct {
	scheme *runtime.Scheme
	writer *events.Writer
	outbox *outbox.Outbox
	log    logr.Logger
	// dropped is called with the reason why an event is not written.
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

// record puts an event into the outbox. The message is computed when the event is written.
func (r *recorder) record(ref *corev1.ObjectReference, annotations map[string]string, kind, reason string, message func() string) {
	at := time.Now()
	taken := r.outbox.Put(outbox.Event, fmt.Sprint("event/", r.number.Add(1)), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := r.writer.Write(ctx, events.Event{On: *ref, Annotations: annotations, Type: kind, Reason: reason, Message: message(), At: at})
		if err != nil {
			// Losing an event is harmless, because statuses contain the same information.
			r.log.V(1).Info("an event is lost", "error", err.Error())
		}
	})
	if !taken {
		r.dropped(events.Waiting)
	}
}
