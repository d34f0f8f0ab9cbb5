package policy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func imageFields() []*rules.Member {
	type v = *taskView
	return []*rules.Member{
		boolField("hasImages", fromSpec|fromImages, rules.ByObject, "some node has an image of one of its containers", func(t v) bool {
			return t.w.topologyOf(t.of).HasImages()
		}),
		hidden("images", fromSpec|fromImages, rules.ByObject, "known images", func(t v) ref.Val { return types.String(t.w.topologyOf(t.of).Images()) }),
	}
}

func imageFunctions() []*rules.Function {
	return []*rules.Function{
		natively(method("imageLocality", "How much of the pod's images the node has, 0 to 100: the sizes of those that it has, each scaled by the part of all nodes that have it, "+
			"between 23 MiB (0) and 1000 MiB a container (100): kube-scheduler's score ImageLocality.",
			[]*cel.Type{nodeType(), taskType()}, cel.DoubleType, func(args ...ref.Val) ref.Val {
				n, okN := args[0].(*nodeView)
				t, okT := args[1].(*taskView)
				if !okN || !okT {
					return wrongArgument(args[0])
				}
				return types.Double(imageLocality(n.of, t))
			}, "{1}.images", "{0}.imageNodes"), always(&rules.Native{Doubles: imageColumn})),
	}
}

// The bounds of the sum of sizes, in bytes, as kube-scheduler has them.
const (
	imagesFrom = 23 << 20
	imagesTo   = 1000 << 20 // a container
)

func imageLocality(n *model.Node, t *taskView) float64 {
	counts, sum := t.w.counts(), int64(0)
	for _, name := range t.of.Images {
		size, has := n.Images[name]
		if !has {
			continue
		}
		with, all := counts.ImageNodes(name)
		sum += int64(float64(size) * (float64(with) / float64(all)))
	}
	most := int64(imagesTo) * int64(max(t.of.Containers, 1))
	sum = min(max(sum, imagesFrom), most)
	return float64(100 * (sum - imagesFrom) / (most - imagesFrom))
}

func imageColumn(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	t, ok := args[1].Value.(*taskView)
	if !ok || !args[0].Row {
		return false
	}
	n := &worldOf(r).c.Nodes
	for i, row := range rows {
		out[i] = imageLocality(n.Rows[row], t)
	}
	return true
}
