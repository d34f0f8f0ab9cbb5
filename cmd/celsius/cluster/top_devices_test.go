package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTopNodesCountsDevices checks that the table counts devices that pods and nodes state in annotations. The numbers are those of the
// scheduler.
func TestTopNodesCountsDevices(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-node-1", Annotations: map[string]string{"celsius.dev/gpus-count": "4"}}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32")}
	pod := func(name, scheduler, record string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", UID: "u", Annotations: map[string]string{
			"celsius.dev/gpu-milli": "900", "celsius.dev/bound": record,
		}}}
		p.Spec.NodeName, p.Spec.SchedulerName = node.Name, scheduler
		return p
	}
	pods := []corev1.Pod{
		pod("bound", "celsius", `{"uid":"u","node":"gpu-node-1","gpuCount":1,"gpuMilli":500}`), pod("claims", corev1.DefaultSchedulerName, ""),
	}
	row := nodeRows([]corev1.Node{node}, pods, false)[0]
	if !slices.Contains(row, "500m/4 (12%)") {
		t.Errorf("the row is %q", row)
	}
}
