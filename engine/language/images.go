package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func imageFields() []*rules.Member {
	type v = *TaskView
	return []*rules.Member{
		boolField("hasImages", FromSpec|FromImages, rules.ByObject, "some node has an image of one of its containers", func(t v) bool {
			return t.World.TopologyOf(t.Of).HasImages()
		}),
		hidden("images", FromSpec|FromImages, rules.ByObject, "known images",
			func(t v) ref.Val { return types.String(t.World.TopologyOf(t.Of).Images()) }),
	}
}

func imageFunctions() []*rules.Function {
	return []*rules.Function{
		natively(Method("imageLocality", "How much of the pod's images the node has, 0 to 100: the sizes of those that it has, each scaled by "+
			"the part of all nodes that have it, "+
			"between 23 MiB (0) and 1000 MiB a container (100): kube-scheduler's score ImageLocality.",
			[]*cel.Type{NodeType(), TaskType()}, cel.DoubleType, func(args ...ref.Val) ref.Val {
				n, okN := args[0].(*NodeView)
				t, okT := args[1].(*TaskView)
				if !okN || !okT {
					return wrongArgument(args[0])
				}
				return types.Double(imageLocality(n.Of, t))
			}, "{1}.images", "{0}.imageNodes"), always(&rules.Native{Doubles: imageColumn})),
	}
}

// Limits of the sum of sizes, in bytes, as in kube-scheduler.
const (
	imagesFrom = 23 << 20
	imagesTo   = 1000 << 20 // multiplied by the number of containers
)

func imageLocality(n *model.Node, t *TaskView) float64 {
	counts, sum := t.World.Counts(), int64(0)
	for _, name := range t.Of.Images {
		size, has := n.Images[name]
		if !has {
			continue
		}
		with, all := counts.ImageNodes(name)
		sum += int64(float64(size) * (float64(with) / float64(all)))
	}
	most := int64(imagesTo) * int64(max(t.Of.Containers, 1))
	sum = min(max(sum, imagesFrom), most)
	return float64(100 * (sum - imagesFrom) / (most - imagesFrom))
}

func imageColumn(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	t, ok := args[1].Value.(*TaskView)
	if !ok || !args[0].Row {
		return false
	}
	n := &worldOf(r).c.Nodes
	for i, row := range rows {
		out[i] = imageLocality(n.Rows[row], t)
	}
	return true
}
