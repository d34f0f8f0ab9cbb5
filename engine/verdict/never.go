package verdict

import (
	"slices"

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
	sums   uint64 // changes whenever most, sum or shapes changes
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
		if !slices.Equal(was, x.most) {
			x.number++
			x.sums++
		} else if !slices.Equal(wasSum, x.sum) || !slices.EqualFunc(wasShapes, x.shapes, model.Resources.Equal) {
			x.sums++
		}
	}
	return x.number
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

// NodeSizes is a number that changes whenever the nodes allocate other amounts when they are empty, be it each or together.
func (v *Verdicts) NodeSizes() uint64 {
	v.sizes()
	return v.ofNodes.sums
}

// NeverStarts states why a job can never start on the nodes that the cluster has; "" of any other.
func (v *Verdicts) NeverStarts(j *model.Job) string {
	v.sizes()
	return report.NeverStarts(v.c, j, report.Sizes{Largest: v.ofNodes.most, Sum: v.ofNodes.sum, Shapes: v.ofNodes.shapes})
}
