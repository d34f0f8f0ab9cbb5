package model

// Shape is what tasks ask for that are alike to a node and its devices, and how many such tasks there are.
type Shape struct {
	CPU       float64  // in inner units: thousandths of a core
	GPUCount  int64    // devices
	GPUMilli  int64    // thousandths of each device
	GPUModels []string // allowed models, in the order in which the tasks list them; empty: any
	Tasks     int64
}

// Shapes is the cluster's Workload or, where it has none, a Shape for each task that it knows, whatever became of it,
// in no order; tasks of other schedulers are left out.
func (c *Cluster) Shapes() []Shape {
	if c.Workload != nil {
		return c.Workload
	}
	out := make([]Shape, 0, len(c.Tasks))
	for _, t := range c.Tasks {
		if !t.Foreign {
			out = append(out, Shape{CPU: t.Request.Get(CPU), GPUCount: t.GPUCount, GPUMilli: t.GPUMilli, GPUModels: t.GPUModels, Tasks: 1})
		}
	}
	return out
}
