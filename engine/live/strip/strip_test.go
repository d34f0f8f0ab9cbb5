package strip

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The number of cached specs is limited, and specs that are used again stay.
func TestSpecsAreForgotten(t *testing.T) {
	s := New(Own{})
	pod := func(image string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
		if _, err := s.Strip(p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := pod("again")
	for i := range 2*maxTemplates + 5 {
		pod(fmt.Sprint(i))
		if i%100 == 0 && &pod("again").Spec.Containers[0] != &first.Spec.Containers[0] {
			t.Fatalf("after %d others a pod that came again has a spec of its own", i)
		}
	}
	if n := len(s.templates) + len(s.older); n > maxTemplates {
		t.Errorf("%d specs are remembered", n)
	}
}
