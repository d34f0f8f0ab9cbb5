package model

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestTrialReplaces replaces a Node and a Queue for the time of a trial. Afterwards both are as they were, even though the Node of the
// cluster has a mistake of its own.
func TestTrialReplaces(t *testing.T) {
	c := shared()
	q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Spec: v1beta1.QueueSpec{Weight: 1, Capability: list("cpu=64")}}
	c.Apply(upserts(q)...)
	faulty := node("gpu-a", "cpu=8 memory=64Gi pods=110",
		func(n *corev1.Node) { n.Status.Allocatable["memory"] = list("memory=-1")["memory"] })
	if errs := c.Apply(upserts(faulty, pod("worker-0", "cpu=3", on("gpu-a")))...); len(errs) == 0 {
		t.Fatal("a node with a negative amount is no mistake")
	}
	row := c.Nodes.Index["gpu-a"]
	before := c.Nodes.AllocatableOf(row).Get(CPU)
	trial := Try(c)
	larger := q.DeepCopy()
	larger.Spec.Capability = list("cpu=640")
	if errs := trial.Add(node("gpu-a", "cpu=128 memory=640Gi pods=110"), larger); len(errs) > 0 {
		t.Fatal(errs)
	}
	limit := c.Queues["research"].Capability.Get(CPU)
	if c.Nodes.AllocatableOf(row).Get(CPU) != 128_000 || limit != 640_000 || c.Nodes.Used[CPU][row] != 3000 {
		t.Error("the trial does not have the larger node and queue, with the pod")
	}
	trial.End()
	if c.Nodes.AllocatableOf(row).Get(CPU) != before || c.Queues["research"].Object != any(q) || c.Nodes.Used[CPU][row] != 3000 {
		t.Error("the node and the queue are not as they were")
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
