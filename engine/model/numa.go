package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/qos"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/numa"
)

// Pinned is what a task wants of CPUs of its own, or has.
type Pinned struct {
	Pins []int    // how many its containers want, each that wants some
	CPUs numa.Set // that were chosen for it
}

// readPins fills in what the task wants: only pods of the class Guaranteed get CPUs of their own.
func (t *Task) readPins() {
	o := t.Object
	if pins := numa.Wishes(&o.Spec); pins != nil && qos.GetPodQOS(o) == corev1.PodQOSGuaranteed {
		t.Pins = pins
	}
}

// readNuma is what a Numatopology says. What is wrong in it counts as empty.
func readNuma(o *nodeinfov1alpha1.Numatopology, m *mistakes) *numa.Node {
	n, wrong := numa.Read(o)
	for _, x := range wrong {
		m.add(x.Field, "%s", x.Text)
	}
	return n
}

// setNuma keeps what a Numatopology says of a node, whether the node is there or not; nil: nothing is known any more.
func setNuma(c *Cluster, node string, x *numa.Node) {
	was := c.Numas[node]
	if x == nil {
		delete(c.Numas, node)
	} else {
		c.Numas[node] = x
	}
	row, ok := c.Nodes.Index[node]
	if !ok || was.Equal(x) {
		return
	}
	c.Nodes.Rows[row].Numa = x
	c.Nodes.Object[row]++
	c.touchNode(row)
}

// forgetTold forgets what an object told of a node.
func forgetTold(c *Cluster, object any) {
	switch o := object.(type) {
	case *metricsv1beta1.NodeMetrics:
		c.setMeasure(o.Name, nil)
	case *nodeinfov1alpha1.Numatopology:
		setNuma(c, o.Name, nil)
	}
}

// FreeCPUs are the CPUs of a node that no task on it has for itself: those on their way out have theirs still, and those that are
// promised what others leave have them already.
func FreeCPUs(n *Nodes, row int32) numa.Set {
	node := n.Rows[row].Numa
	if !node.Pins() {
		return numa.Set{}
	}
	return node.Free(func(yield func(numa.Holder) bool) {
		for _, t := range n.Tasks[row] {
			if !yield(numa.Holder{UID: t.UID, Key: t.Key, Chosen: t.CPUs}) {
				return
			}
		}
	})
}

// CPUsFor is what a task that is not on a node would have of its CPUs.
func CPUsFor(n *Nodes, t *Task, row int32) numa.Choice {
	if node := n.Rows[row].Numa; len(t.Pins) > 0 && node.Pins() {
		return node.Choose(FreeCPUs(n, row), t.Pins)
	}
	return numa.Choice{Admitted: true}
}

// decision is what a binding writes of the CPUs that it gives a pod; "" where it gives none.
func decision(n *Nodes, row int32, cpus string) string {
	node := n.Rows[row].Numa
	set, err := numa.Parse(cpus)
	if node == nil || err != nil || set.Empty() {
		return ""
	}
	return node.Decision(set)
}
