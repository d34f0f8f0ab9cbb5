package policy

import (
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// gpuViews is a node's devices as values. They read the devices' figures anew each time, so they hold until the node has others.
type gpuViews struct {
	of    []model.GPU
	views []ref.Val
	list  ref.Val
}

func (n *nodeView) devicesNow() *gpuViews {
	gpus, v := n.w.c.Nodes.GPUs[n.of.Row], &n.gpus
	if v.list != nil && len(v.of) == len(gpus) && (len(gpus) == 0 || &v.of[0] == &gpus[0]) {
		return v
	}
	v.of, v.views = gpus, make([]ref.Val, len(gpus))
	for i := range gpus {
		v.views[i] = &gpuView{view[model.GPU]{of: &gpus[i], w: n.w, typ: n.w.typ.gpu}}
	}
	v.list = list(v.views)
	return v
}
