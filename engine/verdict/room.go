package verdict

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// Curable returns the nodes that could take the class's task after evictions, in the order of nodes. These nodes are ready, and the only
// predicates that refuse them are those that an eviction may change.
func (c *Class) Curable() (nodes []int32) {
	for _, row := range c.v.nodes.ByOrder() {
		if c.curable(row) {
			nodes = append(nodes, row)
		}
	}
	return nodes
}

func (c *Class) curable(row int32) bool {
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
		if want := c.Task.Request; want.Has(dim) && want[dim] > c.v.nodes.FutureIdle(dim, row)+model.Slack {
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

// Roomy are the nodes that no row of predicates refuses and that have the amounts for the class's task then, in the order of nodes.
func (c *Class) Roomy() (nodes []int32) {
	if c.fitting[fitsNow]+c.fitting[fitsLater] == 0 {
		return nil
	}
	for _, row := range c.v.nodes.ByOrder() {
		if x := &c.Cells[row]; x.Verdict == 0 && x.Fits != noFit {
			nodes = append(nodes, row)
		}
	}
	return nodes
}

// ByScore puts some of the nodes in the order of the scores of the class's task among all of them, the best first; of equals the first as
// they come, which is that of all.
func (c *Class) ByScore(nodes, some []int32) []int32 {
	totals, values := make([]float64, len(some)), make([]float64, len(nodes))
	v := c.v
	f := v.ask.Frame().OfTask(c.Task)
	defer v.ask.Done()
	v.Sizes = v.TopologyOf(c.Task).SizesAmong(nodes)
	defer func() { v.Sizes = nil }()
	for _, last := range []bool{false, true} { // those that are normalised are added last
		for k, r := range v.Plan.Scores {
			switch {
			case r.Normalises() != last || c.Rows.scoreGuard(k, r, f) == stays:
			case last:
				c.Rows.valuesLater(f, k, nodes, values)
				addNormalised(r, nodes, values, some, totals)
			default:
				c.Rows.valuesLater(f, k, some, values)
				for i := range some {
					totals[i] += r.Weighted(values[i])
				}
			}
		}
	}
	places := make([]int, len(some))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(totals[b], totals[a]) })
	out := make([]int32, len(some))
	for i, place := range places {
		out[i] = some[place]
	}
	return out
}

// addNormalised adds the values of a row among nodes to the totals of some of them.
func addNormalised(r *Row, nodes []int32, values []float64, some []int32, totals []float64) {
	span, i := noSpan(), 0
	for _, x := range values {
		if x == x {
			span.Min, span.Max = min(span.Min, x+0), max(span.Max, x+0)
		}
	}
	for at, row := range nodes {
		if i < len(some) && some[i] == row {
			totals[i] += r.Weighted(r.Normalised(values[at], span))
			i++
		}
	}
}
