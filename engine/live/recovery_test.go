package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// A pod without an owner, which the model cannot read and whose PodGroup cannot be read either, gets events and does not end the process.
func TestUnreadablePodOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		pod := testPod("trainer-7f9c", "", "1")
		pod.Annotations[model.GPUCountAnnotation] = "x"
		pod.Annotations[v1beta1.VolcanoGroupMinMemberAnnotationKey] = "x"
		f.put(testNode("n1", "4"), testQueue("default"), pod, testGroup("g", 1), testPod("a", "g", "1"))
		r.settle(5)
		if !slices.Contains(f.bindings, "default/a n1") {
			t.Errorf("bindings are %v", f.bindings)
		}
		for _, event := range []string{"Pod default/trainer-7f9c " + eventInvalid, "Pod default/trainer-7f9c " + eventPodGroupError} {
			if !slices.Contains(f.events, event) {
				t.Errorf("no event %q in %v", event, f.events)
			}
		}
		if n := len(slices.DeleteFunc(slices.Clone(f.messages), func(m string) bool {
			return !strings.Contains(m, v1beta1.VolcanoGroupMinMemberAnnotationKey)
		})); n != 1 {
			t.Errorf("%d events name the annotation: %v", n, f.messages)
		}
	})
}
