package live

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scheduledEvents returns a function that observes how long each bound pod waited. It also writes an event for each pod if events of pods
// are enabled.
func scheduledEvents(said *recorder, m *metrics, of string) func(*order) {
	return func(o *order) {
		if !o.created.IsZero() {
			m.bindWait.Observe(time.Since(o.created).Seconds())
		}
		if of != BindingsOfPods {
			return
		}
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.namespace, Name: o.name, UID: types.UID(o.UID)}
		said.record(ref, nil, corev1.EventTypeNormal, eventScheduled, func() string {
			return fmt.Sprintf("Successfully assigned %s to %s by policy %s: %s", o.Task, o.Node, o.policy, o.Why())
		})
	}
}
