package language

import (
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// GPUViews is a node's devices as values. They read the devices' figures anew each time, so they hold until the node has others.
type GPUViews struct {
	of    []model.GPU
	Views []ref.Val
	list  ref.Val
}

// DevicesNow are the node's devices as values.
func (n *NodeView) DevicesNow() *GPUViews {
	gpus, v := n.World.c.Nodes.GPUs[n.Of.Row], &n.gpus
	if v.list != nil && len(v.of) == len(gpus) && (len(gpus) == 0 || &v.of[0] == &gpus[0]) {
		return v
	}
	v.of, v.Views = gpus, make([]ref.Val, len(gpus))
	for i := range gpus {
		v.Views[i] = &GPUView{View[model.GPU]{Of: &gpus[i], World: n.World, typ: n.World.typ.gpu}}
	}
	v.list = List(v.Views)
	return v
}
