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
	number uint64 // another wherever most is
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
		was := x.most
		x.at, x.most = at, nil
		for dim, column := range n.Allocatable {
			most := 0.0
			for row, has := range column {
				if has > most && n.Rows[row] != nil {
					most = has
				}
			}
			x.most.Set(dim, most)
		}
		if !slices.Equal(was, x.most) {
			x.number++
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
