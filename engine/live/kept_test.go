package live

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWakesWhenAKeptPlaceIsFree keeps a place for 1 min for a job whose pods are being created. A job of another namespace gets the place
// 30 s after its own admission. The loop decides again at that moment, however long its period is.
func TestWakesWhenAKeptPlaceIsFree(t *testing.T) {
	r := newRigOf(newFakeServer(t), policyFrom(t, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [enqueue, patiently]
  actions: [{name: patiently, steps: [{verb: place, jobs: job.phase != 'Pending', commit: job, awaitPods: 1m}]}]
  tiers: [{name: first, tables: [{name: gang}, {name: predicates}]}]
`))
	now := time.Now()
	first := testGroup("a-first", 2)
	first.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) // it comes first in the order
	first.Namespace, first.Spec.MinResources = "hoard", &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	r.server.put(testNode("n1", "4"), testQueue("default"), first, testGroup("solver", 1), testPod("solver-0", "solver", "2"))
	r.server.deliver(-1)
	const patience = 30 * time.Second
	if got := r.once(now); got.Sub(now).Round(time.Second) != patience {
		t.Errorf("the next cycle is after %s, want %s", got.Sub(now), patience)
	}
	if task := r.cluster.Tasks["default/solver-0"]; task == nil || task.NodeName != "" {
		t.Fatalf("the pod has a node already")
	}
	r.once(now.Add(patience))
	if task := r.cluster.Tasks["default/solver-0"]; task == nil || task.NodeName != "n1" {
		t.Errorf("the pod waits after %s", patience)
	}
}
