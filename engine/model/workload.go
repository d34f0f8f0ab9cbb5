package model

// Shape describes equal tasks by their requests to a node and its devices, and counts them.
type Shape struct {
	CPU       float64  // in inner units: thousandths of a core
	GPUCount  int64    // devices
	GPUMilli  int64    // thousandths of each device
	GPUModels []string // allowed models, in the order in which the tasks list them; empty: any
	Tasks     int64
}

// Shapes returns the cluster's Workload. If it has none, it returns a Shape for each task that it knows, in any status and in no order. It
// leaves out tasks of other schedulers.
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
