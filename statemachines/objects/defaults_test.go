package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corek8s "k8s.io/kubernetes/pkg/apis/core/v1"
	"pgregory.net/rapid"
)

// TestPodDefaultsAreKubernetes compares the requests and limits of completed pods, for containers and for the whole pod, with those that
// the API server writes.
func TestPodDefaultsAreKubernetes(t *testing.T) {
	t.Parallel()
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		names := rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu"})
		out := corev1.ResourceList{}
		for name, n := range rapid.MapOfN(names, rapid.Int64Range(1, 64), 0, 4).Draw(t, "amounts") {
			out[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		if len(out) == 0 {
			return nil
		}
		return out
	})
	container := rapid.Custom(func(t *rapid.T) corev1.Container {
		c := corev1.Container{Name: "main"}
		c.Resources = corev1.ResourceRequirements{Requests: list.Draw(t, "requests"), Limits: list.Draw(t, "limits")}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		ours := &corev1.Pod{}
		ours.Spec.Containers = rapid.SliceOfN(container, 1, 3).Draw(t, "containers")
		ours.Spec.InitContainers = rapid.SliceOfN(container, 0, 2).Draw(t, "init")
		if rapid.Bool().Draw(t, "pod level") {
			ours.Spec.Resources = &corev1.ResourceRequirements{
				Requests: list.Draw(t, "requests of the pod"), Limits: list.Draw(t, "limits of the pod"),
			}
		}
		theirs := ours.DeepCopy()
		PodDefaults(ours)
		corek8s.SetObjectDefaults_Pod(theirs)
		of := func(p *corev1.Pod) []corev1.ResourceRequirements {
			var out []corev1.ResourceRequirements
			for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
				out = append(out, c.Resources)
			}
			if p.Spec.Resources != nil {
				out = append(out, *p.Spec.Resources)
			}
			return out
		}
		if diff := cmp.Diff(of(theirs), of(ours)); diff != "" {
			t.Fatalf("(-Kubernetes +here)\n%s", diff)
		}
	})
}
