package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Measure is the measured load of a node.
type Measure struct {
	At  time.Time
	Use [Memory + 1]float64 // by dimension: CPU and Memory
}

// readMeasure reads a NodeMetrics object; nil: it contains no usable value.
func readMeasure(d *Dims, o *metricsv1beta1.NodeMetrics, m *mistakes) *Measure {
	x := &Measure{At: o.Timestamp.Time}
	for dim := range x.Use {
		name := d.Name(dim)
		q, ok := o.Usage[corev1.ResourceName(name)]
		switch x.Use[dim] = d.Amount(dim, q); {
		case !ok:
			m.add("usage["+name+"]", "is missing")
		case x.Use[dim] < 0:
			m.add("usage["+name+"]", "%s is below 0", q.String())
		}
	}
	if o.Timestamp.IsZero() {
		m.add("timestamp", "is missing: load that was measured at no time is of no use")
	}
	if len(m.errs) > 0 {
		return nil
	}
	return x
}

// setMeasure stores the measured load of a node, even if the node does not exist; nil removes it.
func (c *Cluster) setMeasure(node string, x *Measure) {
	was := c.Measures[node]
	if x == nil {
		delete(c.Measures, node)
	} else {
		c.Measures[node] = x
	}
	row, ok := c.Nodes.Index[node]
	if !ok || was == x || was != nil && x != nil && *was == *x {
		return
	}
	c.Nodes.Rows[row].Measure = x
	c.Nodes.Object[row]++
	c.touchNode(row)
}
