package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/qos"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/numa"
)

// Pinned describes the exclusive CPUs that a task requests or has.
type Pinned struct {
	Pins []int    // number of exclusive CPUs of each container that requests some
	CPUs numa.Set // CPUs that were chosen for it
}

// readPins reads the request for exclusive CPUs. Only pods of the QoS class Guaranteed get exclusive CPUs.
func (t *Task) readPins() {
	o := t.Object
	if pins := numa.Wishes(&o.Spec); pins != nil && qos.GetPodQOS(o) == corev1.PodQOSGuaranteed {
		t.Pins = pins
	}
}

// readNuma reads a Numatopology. Parts with a mistake count as empty.
func readNuma(o *nodeinfov1alpha1.Numatopology, m *mistakes) *numa.Node {
	n, wrong := numa.Read(o)
	for _, x := range wrong {
		m.add(x.Field, "%s", x.Text)
	}
	return n
}

// setNuma stores the Numatopology of a node, even if the node does not exist; nil removes it.
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

// forgetTold removes what an object stated about a node.
func forgetTold(c *Cluster, object any) {
	switch o := object.(type) {
	case *metricsv1beta1.NodeMetrics:
		c.setMeasure(o.Name, nil)
	case *nodeinfov1alpha1.Numatopology:
		setNuma(c, o.Name, nil)
	}
}

// FreeCPUs returns the CPUs of a node that no task on it has exclusively. Releasing tasks still have theirs. Tasks that are promised the
// resources of others already have theirs.
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

// CPUsFor returns the CPUs that a task would get on a node that it is not on.
func CPUsFor(n *Nodes, t *Task, row int32) numa.Choice {
	if node := n.Rows[row].Numa; len(t.Pins) > 0 && node.Pins() {
		return node.Choose(FreeCPUs(n, row), t.Pins)
	}
	return numa.Choice{Admitted: true}
}

// decision returns the annotation of a binding that gives a pod these CPUs; "" if it gives none.
func decision(n *Nodes, row int32, cpus string) string {
	node := n.Rows[row].Numa
	set, err := numa.Parse(cpus)
	if node == nil || err != nil || set.Empty() {
		return ""
	}
	return node.Decision(set)
}
