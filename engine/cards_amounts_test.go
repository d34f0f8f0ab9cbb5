package engine_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// countingPolicies returns policies whose tables compare requests of jobs with amounts of a cluster, a queue or a namespace.
func countingPolicies(t *testing.T) []compiled {
	t.Helper()
	const pipeline = "pipeline: [enqueue, allocate, backfill]"
	around := []string{"name: gang", "name: predicates", "name: deviceshare"}
	with := func(name string, tables ...string) compiled {
		return compile(t, name, policyOf(pipeline, append(tables, around...)...))
	}
	return []compiled{
		with("default", "name: priority", "name: conformance", "name: overcommit", "name: drf", "name: proportion", "name: nodeorder"),
		with("overcommit", "name: overcommit"), with("proportion", "name: proportion"), with("capacity", "name: capacity"),
		with("tree", "name: capacity\nparams: {hierarchy: true}"), with("resourcequota", "name: resourcequota"),
	}
}

// TestCardsAreCountedAsAmounts checks requests for cards. They are compared only where queues and the cluster have an amount. A percentage
// of the memory of any card is not an amount. A job that fits runs. Where requests are amounts, a second job exceeds the queue.
func TestCardsAreCountedAsAmounts(t *testing.T) { //nolint:gocyclo // one case a table
	t.Parallel()
	for _, c := range []struct {
		resource, requests, capability string
		node                           string // what the node offers
		shared                         bool
		limits                         bool // two jobs exceed the capability
	}{
		{
			cards.MemoryResource, "cpu=1 volcano.sh/gpu-memory=12000", "volcano.sh/gpu-memory=16000",
			"volcano.sh/gpu-memory=32768 volcano.sh/gpu-number=2", false, true,
		},
		{
			cards.NumberResource, "cpu=1 volcano.sh/gpu-number=1", "volcano.sh/gpu-number=1",
			"volcano.sh/gpu-memory=32768 volcano.sh/gpu-number=2", false, true,
		},
		{cards.ShareNumber, "cpu=1 volcano.sh/vgpu-number=1", "volcano.sh/vgpu-number=1", "", true, true},
		{cards.ShareMemory, "cpu=1 volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=8192", "volcano.sh/vgpu-memory=10240", "", true, true},
		{cards.ShareCores, "cpu=1 volcano.sh/vgpu-number=1 volcano.sh/vgpu-cores=50", "volcano.sh/vgpu-cores=75", "", true, true},
		{cards.SharePercent, "cpu=1 volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=50", "volcano.sh/vgpu-number=10", "", true, false},
		{"all of a card", "cpu=1 volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory-percentage=100", "volcano.sh/vgpu-number=2", "", true, true},
	} {
		for _, p := range countingPolicies(t) {
			t.Run(c.resource+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				w := model.NewCluster(model.Options{Volumes: volume.New})
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}
				offers := "cpu=64 memory=256Gi pods=110 " + c.node
				if c.shared {
					offers += "volcano.sh/vgpu-number=20 volcano.sh/vgpu-memory=49052 volcano.sh/vgpu-cores=200"
					node.Annotations = map[string]string{cards.RegisterAnnotation: "GPU-a,10,24576,NVIDIA-L4,true,hami-core:" +
						"GPU-b,10,24476,NVIDIA-L4,true,hami-core:"}
				}
				node.Status.Allocatable, node.Status.Capacity = list(offers), list(offers)
				queues := map[string]string{"research": c.capability}
				if p.name == "tree" {
					queues["root"] = ""
				}
				for name, capability := range queues {
					q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
					q.Spec.Weight, q.Spec.Capability, q.Status.State = 1, list(capability), v1beta1.QueueStateOpen
					w.Apply(model.Delta{Object: q})
				}
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "cards", Namespace: "vision"}}
				quota.Status.Hard = corev1.ResourceList{}
				for name, amount := range list(c.capability) {
					quota.Status.Hard["requests."+name] = amount
				}
				w.Apply(model.Delta{Object: quota})
				w.Apply(model.Delta{Object: node})
				for _, name := range []string{"inference-a", "inference-b"} {
					requests := list(c.requests)
					g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "vision"}}
					least := requests.DeepCopy()
					for name, amount := range requests { // as the controllers derive it
						least["requests."+name] = amount
					}
					g.Spec.Queue, g.Spec.MinMember, g.Spec.MinResources = "research", 1, &least
					w.Apply(model.Delta{Object: g})
					w.Apply(model.Delta{Object: &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{
							Name: name + "-0", Namespace: "vision", UID: types.UID(name), Annotations: map[string]string{model.GroupAnnotation: name},
						},
						Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
							Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
						}}},
					}})
				}
				d := engine.NewDecider(session.New(w, p.policies[0]), nil)
				var bound, waits []string
				for i := range 2 {
					plan := d.Cycle(time.Unix(int64(1000+i), 0))
					for i := range plan.Binds {
						bound = append(bound, plan.Binds[i].Task)
					}
					quota = quota.DeepCopy()
					quota.Status.Used = corev1.ResourceList{}
					for name, amount := range list(c.requests) { // the API server counts the pods of admitted jobs like this
						if _, limited := quota.Status.Hard["requests."+name]; limited && len(bound) > 0 {
							quota.Status.Used["requests."+name] = amount
						}
					}
					w.Apply(model.Delta{Object: quota})
					waits = nil
					for i := range plan.Waits {
						waits = append(waits, plan.Waits[i].Why())
					}
				}
				want := 2
				if c.limits && p.name != "overcommit" || c.resource == "all of a card" {
					want = 1
				}
				if len(bound) != want {
					t.Errorf("bound %v, want %d; waits %q", bound, want, waits)
				}
			})
		}
	}
}
