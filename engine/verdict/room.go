package verdict

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// Curable says whether a node could take the class's task if others left it: it is ready, and no row of predicates refuses it but those
// that an eviction may cure.
func (c *Class) Curable(row int32) bool {
	code := c.Cells[row].Verdict
	if code <= 0 {
		return code != notOffered
	}
	if !c.v.policy.All[code-1].Curable {
		return false
	}
	f := c.v.ask.Frame().OfTask(c.Task)
	defer c.v.ask.Done()
	f.Point(row)
	return !slices.ContainsFunc(c.v.Plan.predicates, func(r *Row) bool {
		return !r.Curable && c.v.ask.Opinion(r.Rule, f) == language.No
	})
}

// RowRefuses says whether a row of predicates refuses the node.
func (c *Class) RowRefuses(row int32) bool { return c.Cells[row].Verdict > 0 }

// TakesLater says whether a node takes the class's task when all that is being released is gone and what is promised is taken.
func (c *Class) TakesLater(row int32) bool {
	return c.Cells[row].Verdict == 0 && c.misfitLater(row) < 0 && (c.Task.GPUCount == 0 || c.v.devicesFit(c.Task, row, true))
}

// misfitLater is the first dimension in which a node will have too little; below 0: none.
func (c *Class) misfitLater(row int32) int {
	for _, dim := range c.v.nodes.Dims() {
		if want := c.Task.InitRequest; want.Has(dim) && want[dim] > c.v.nodes.FutureIdle(dim, row)+model.Slack {
			return dim
		}
	}
	return -1
}

// RefusedLater is why a node does not take the class's task then.
func (c *Class) RefusedLater(row int32) model.Reason {
	code := int(c.Cells[row].Verdict)
	dim := c.misfitLater(row)
	switch {
	case code > 0:
		r, f := c.v.policy.All[code-1], c.v.ask.Frame().OfTask(c.Task)
		defer c.v.ask.Done()
		f.Point(row)
		return policy.Answer{Rule: r, Text: c.v.ask.Text(r, f)}.Reason()
	case dim >= 0:
		code = misfitCode(dim)
	default:
		f := c.v.ask.Frame().OfTask(c.Task)
		defer c.v.ask.Done()
		if r := c.v.rowOfDevices(c.Task, row, f); r != nil {
			return policy.Answer{Rule: r, Text: c.v.ask.Text(r, f)}.Reason()
		}
		code = noDevices
	}
	return report.Refused(c.rejections.builtin(code))
}

// ByScore puts nodes in the order of the scores of the class's task, the best first; of equals the first as they come.
func (c *Class) ByScore(nodes []int32) []int32 {
	totals, values := make([]float64, len(nodes)), make([]float64, len(nodes))
	v, t := c.v, c.Task
	f := v.ask.Frame().OfTask(t)
	defer v.ask.Done()
	v.Sizes = v.TopologyOf(t).SizesAmong(nodes)
	defer func() { v.Sizes = nil }()
	for _, last := range []bool{false, true} { // those that are normalised are added last
		for k, r := range v.Plan.Scores {
			if r.Normalises() != last {
				continue
			}
			span := noSpan()
			c.Rows.valuesLater(f, k, nodes, values)
			if last {
				for _, x := range values {
					if x == x {
						span.Min, span.Max = min(span.Min, x+0), max(span.Max, x+0)
					}
				}
			}
			for i, x := range values {
				totals[i] += r.Weighted(r.Normalised(x, span))
			}
		}
	}
	places := make([]int, len(nodes))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(totals[b], totals[a]) })
	out := make([]int32, len(nodes))
	for i, place := range places {
		out[i] = nodes[place]
	}
	return out
}
