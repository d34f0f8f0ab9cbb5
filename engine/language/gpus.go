package language

import (
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// GPUViews contains a node's devices as values. They read the current amounts at each access, so they are valid until the node has other
// devices.
type GPUViews struct {
	of    []model.GPU
	Views []ref.Val
	list  ref.Val
}

// DeviceView returns a device of the node as a value. If later, released resources count as free, and promised ones as used.
func (n *NodeView) DeviceView(g *model.GPU, later bool) ref.Val {
	return &GPUView{View[model.GPU]{Of: g, World: n.World, typ: n.World.typ.gpu}, n.Of.Row, later}
}

// tasks returns the tasks that use the device, by name.
func (g *GPUView) tasks() ref.Val {
	leaves := model.Pipelined
	if g.later {
		leaves = model.Releasing
	}
	var on []*model.Task
	for _, t := range g.World.TasksOn(g.row) {
		if t.Status != leaves && slices.Contains(t.GPUs, g.Of.Index) {
			on = append(on, t)
		}
	}
	return listOf(on, func(t *model.Task) ref.Val { return g.World.TaskView(t) })
}

// DevicesNow returns the node's devices as values.
func (n *NodeView) DevicesNow() *GPUViews {
	gpus, v := n.World.c.Nodes.GPUs[n.Of.Row], &n.gpus
	if v.list != nil && len(v.of) == len(gpus) && (len(gpus) == 0 || &v.of[0] == &gpus[0]) {
		return v
	}
	v.of, v.Views = gpus, make([]ref.Val, len(gpus))
	for i := range gpus {
		v.Views[i] = n.DeviceView(&gpus[i], false)
	}
	v.list = List(v.Views)
	return v
}
