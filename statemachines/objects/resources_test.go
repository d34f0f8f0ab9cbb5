package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
)

// TestQuotaUsage compares what a pod counts for with Kubernetes' own quotas.
func TestQuotaUsage(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]corev1.ResourceName{
		"cpu", "memory", "ephemeral-storage", "storage", "pods", "hugepages-2Mi", "hugepages-1Gi", "nvidia.com/gpu", "example.com/card",
		"kubernetes.io/own", "node.kubernetes.io/own", "requests.example.com/card", "deviceclass.resource.kubernetes.io/gpu", "plain", "a b/c",
		"", "example.com/",
	})
	amounts := rapid.MapOf(names, rapid.Int64Range(0, 5000))
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, milli := range amounts.Draw(t, "amounts") {
			out[name] = *resource.NewMilliQuantity(milli*1000, resource.DecimalSI)
		}
		return out
	})
	resources := rapid.Custom(func(t *rapid.T) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: list.Draw(t, "requests"), Limits: list.Draw(t, "limits")}
	})
	container := rapid.Custom(func(t *rapid.T) corev1.Container {
		return corev1.Container{Resources: resources.Draw(t, "resources")}
	})
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{}
		pod.Spec.Containers = rapid.SliceOfN(container, 1, 3).Draw(t, "containers")
		pod.Spec.InitContainers = rapid.SliceOfN(container, 0, 2).Draw(t, "init")
		if len(pod.Spec.InitContainers) > 0 && rapid.Bool().Draw(t, "sidecar") {
			pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		if rapid.Bool().Draw(t, "pod level") {
			pod.Spec.Resources = new(resources.Draw(t, "of the pod"))
		}
		if rapid.Bool().Draw(t, "overhead") {
			pod.Spec.Overhead = list.Draw(t, "overhead of the pod")
		}
		want, err := core.PodUsageFunc(pod, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, quotaUsage(pod)); diff != "" {
			t.Errorf("(-Kubernetes +here)\n%s", diff)
		}
	})
}
