package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// sizes are the most that any node has of each dimension when it is empty, as of a clock of the objects, plus 1.
type sizes struct {
	at     uint64
	most   model.Resources
	sum    model.Resources // of all nodes
	shapes []model.Resources
	number uint64 // changes whenever most changes
	sums   uint64 // changes whenever most, sum, shapes, kinds or permits changes

	kinds   []report.NodeKind
	kindsAt uint64 // the sum of Nodes.Object that kinds are of, plus 1
	permits
}

// mostPermitted limits how many kinds of pods are remembered. A tenant could otherwise fill the memory with requirements that differ.
const mostPermitted = 1024

// permits are the amounts of the nodes that are permitted to pods.
type permits struct {
	seen      language.SeenNodes
	permitted map[string]*report.Permitted // by NodeRequirements
}

// read brings the nodes up to date, and reports whether they changed.
func (x *permits) read(n *model.Nodes) (changed bool) {
	if changed = x.seen.Update(n); changed {
		x.permitted = map[string]*report.Permitted{}
	}
	return changed
}

// largest is the most that any node has of a dimension.
func (v *Verdicts) largest(dim int) float64 {
	v.sizes()
	return v.ofNodes.most.Get(dim)
}

// sizes is a number that stands for the most that any node has of each dimension.
func (v *Verdicts) sizes() uint64 {
	n, x := &v.c.Nodes, &v.ofNodes
	if at := v.c.ObjectClock + 1; x.at != at {
		was, wasSum, wasShapes := x.most, x.sum, x.shapes
		x.at, x.most, x.sum = at, nil, nil
		for dim, column := range n.Allocatable {
			most, sum := 0.0, 0.0
			for row, has := range column {
				if has > 0 && n.Rows[row] != nil {
					most = max(most, has)
					sum += has
				}
			}
			x.most.Set(dim, most)
			x.sum.Set(dim, sum)
		}
		x.shapes = report.Shapes(n)
		otherNodes := x.sortNodes(n)
		if !slices.Equal(was, x.most) {
			x.number++
			x.sums++
		} else if !slices.Equal(wasSum, x.sum) || !slices.EqualFunc(wasShapes, x.shapes, model.Resources.Equal) || otherNodes {
			x.sums++
		}
	}
	return x.number
}

// sortNodes brings the kinds of nodes up to date, and what permits reads of them. It reports whether they changed. Other objects than nodes
// change most often, and the nodes are not read again for these.
func (x *sizes) sortNodes(n *model.Nodes) (changed bool) {
	at := uint64(1)
	for _, version := range n.Object {
		at += version // no version ever falls
	}
	if x.kindsAt == at {
		return false
	}
	was := x.kinds
	x.kindsAt, x.kinds = at, report.Kinds(n)
	otherPermits := x.read(n)
	return otherPermits || !slices.EqualFunc(was, x.kinds, report.NodeKind.Equal)
}

// NeverFits says of a task that asks for more than any node has when it is empty that it does; "" of any other.
func (v *Verdicts) NeverFits(t *model.Task) string {
	if len(v.c.Nodes.Index) == 0 {
		return ""
	}
	for _, dim := range v.c.Nodes.Dims() {
		if never := v.misfit(t, dim); never != "" {
			return never
		}
	}
	return ""
}

// misfit says the same of one dimension.
func (v *Verdicts) misfit(t *model.Task, dim int) string {
	return report.NeverFits(v.c.Dims, t, dim, v.largest(dim))
}

// NodeSizes is a number that changes whenever the nodes have other labels or taints, or allocate other amounts when they are empty, be
// it each or together.
func (v *Verdicts) NodeSizes() uint64 {
	v.sizes()
	return v.ofNodes.sums
}

// NeverStarts states why a job can never start on the nodes that the cluster has; "" of any other.
func (v *Verdicts) NeverStarts(j *model.Job) string {
	return report.NeverStarts(v.c, j, v.reportSizes())
}

// GangNeverStarts reports whether the pods of a job that must start together can never start on the nodes that the cluster has.
func (v *Verdicts) GangNeverStarts(j *model.Job) bool {
	return report.GangNeverStarts(v.c, j, v.reportSizes())
}

// KeptBackBy returns the roles of the pods that keep a job from starting because they fit no node that the cluster has.
func (v *Verdicts) KeptBackBy(j *model.Job) []string {
	return report.KeptBackBy(v.c, j, v.reportSizes())
}

func (v *Verdicts) reportSizes() report.Sizes {
	v.sizes()
	x := &v.ofNodes
	sizes := report.Sizes{Largest: x.most, Sum: x.sum, Shapes: x.shapes, Kinds: x.kinds, Apart: v.Plan.sizes.apart}
	if v.Plan.sizes.permits.Any() {
		sizes.Permitted = v.permitted
	}
	return sizes
}

// permitted remembers the amounts of the nodes that are permitted to a task until a node changes.
func (v *Verdicts) permitted(t *model.Task) *report.Permitted {
	key := t.NodeRequirements()
	out := v.ofNodes.permitted[key]
	if out == nil {
		if len(v.ofNodes.permitted) >= mostPermitted {
			clear(v.ofNodes.permitted)
		}
		out = v.Plan.sizes.permits.To(t, &v.c.Nodes)
		v.ofNodes.permitted[key] = out
	}
	return out
}
