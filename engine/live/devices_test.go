package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// A binding names the devices of its pod in the format of Volcano's device plugins, and the next leader counts them.
func TestABindingNamesItsCards(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		n := testNode("n1", "8")
		const told = ",4,8192,NVIDIA-A10,true,hami-core:"
		n.Annotations = map[string]string{cards.RegisterAnnotation: "GPU-a" + told + "GPU-b" + told}
		n.Status.Capacity = n.Status.Allocatable
		n.Status.Allocatable[cards.ShareNumber], n.Status.Allocatable[cards.ShareMemory] = resource.MustParse("8"), resource.MustParse("16384")
		f.put(n, testQueue("default"), testGroup("g", 1))
		p := testPod("p", "g", "1")
		list := corev1.ResourceList{cards.ShareNumber: resource.MustParse("2"), cards.ShareMemory: resource.MustParse("1024")}
		p.Spec.Containers[0].Resources.Limits = list
		f.put(p)
		r.settle(3)
		const ids = "GPU-a,NVIDIA,1024,0:GPU-b,NVIDIA,1024,0:"
		want := map[string]string{
			model.GPUsAnnotation: "0,1", "volcano.sh/vgpu-node": "n1", "volcano.sh/bind-phase": "allocating", "volcano.sh/vgpu-ids-new": ids,
			"volcano.sh/devices-to-allocate": ids,
		}
		got := map[string]string{}
		for key := range want {
			got[key] = f.pods["default/p"].Annotations[key]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		for i, g := range r.cluster.Nodes.GPUs[0] {
			if g.MemoryFree != 7168*cards.Unit || g.TaskCount != 1 {
				t.Errorf("card %d: %+v", i, g)
			}
		}
	})
}
