package objects

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestMinResourcesHasDevices checks that minResources contains devices that pods request with annotations. Their names are those of the
// scheduler, and no ResourceQuota uses these names.
func TestMinResourcesHasDevices(t *testing.T) {
	annotations := map[string]string{"celsius.dev/gpu-milli": "500", "celsius.dev/gpu-memory": "8Gi"}
	task := batchv1alpha1.TaskSpec{Name: "worker", Replicas: 3}
	task.Template.Annotations = annotations
	task.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	job := &batchv1alpha1.Job{}
	job.Spec.MinAvailable, job.Spec.Tasks = 3, []batchv1alpha1.TaskSpec{task}
	pod := &corev1.Pod{Spec: task.Template.Spec}
	pod.Name, pod.Namespace, pod.Annotations = "notebook", "team-a", annotations
	group, wrong := BareGroup(pod, "g", map[string]string{"scheduling.volcano.sh/group-min-member": "3"})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for of, list := range map[string]corev1.ResourceList{
		"a Job": MinResources(job, func(string) int32 { return 0 }), "a bare pod": *group.Spec.MinResources,
	} {
		devices, memory := list["nvidia.com/gpu"], list["celsius.dev/gpu-memory"]
		if devices.String() != "1500m" || memory.Value() != 3*8<<30 {
			t.Errorf("%s needs %s devices and %s of their memory, want 1500m and 24Gi", of, devices.String(), memory.String())
		}
		if quota, ok := list["requests.nvidia.com/gpu"]; ok {
			t.Errorf("%s counts for %s in a ResourceQuota", of, quota.String())
		}
	}
}
