package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestDeservedOfSpec checks that lists show the deserved share of the spec, and that the help states where the computed share is shown.
func TestDeservedOfSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "entitled"}}
	q.Spec.Deserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("37")}
	if err := w.client.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"celsius queue list -o wide": "37", "celsius top queues": "37",
		"celsius top queues --help": "celsius explain queue", "celsius queue list --help": "celsius explain queue",
	} {
		if got := w.run(line); !strings.Contains(got, want) {
			t.Errorf("%s does not print %q:\n%s", line, want, got)
		}
	}
}
