package verdict

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// Curable returns the nodes that could accept the class's task after evictions, in the order of nodes. These nodes are ready, and only
// predicates that an eviction may change reject them.
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

// RowRefuses reports whether a row of predicates rejects the node.
func (c *Class) RowRefuses(row int32) bool { return c.Cells[row].Verdict > 0 }

// TakesLater reports whether a node accepts the class's task after all releasing tasks are gone and all promised tasks are placed.
func (c *Class) TakesLater(row int32) bool {
	return c.Cells[row].Verdict == 0 && c.misfitLater(row) < 0 && (c.Task.GPUCount == 0 || c.v.devicesFit(c.Task, row, true))
}

// misfitLater returns the first dimension in which a node will then have too little; below 0: none.
func (c *Class) misfitLater(row int32) int {
	for _, dim := range c.v.nodes.Dims() {
		if want := c.Task.Request; want.Has(dim) && want[dim] > c.v.nodes.FutureIdle(dim, row)+model.Slack {
			return dim
		}
	}
	return -1
}

// RefusedLater returns why a node does not accept the class's task then.
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

// Roomy returns the nodes that no row of predicates rejects and that then have the requested amounts, in the order of nodes.
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

// ByScore sorts some of the nodes by the score of the class's task among all nodes, the best first. Nodes with
// equal scores keep their order.
func (c *Class) ByScore(nodes, some []int32) []int32 {
	totals, values := make([]float64, len(some)), make([]float64, len(nodes))
	v := c.v
	f := v.ask.Frame().OfTask(c.Task)
	defer v.ask.Done()
	v.Sizes = v.TopologyOf(c.Task).SizesAmong(nodes)
	defer func() { v.Sizes = nil }()
	for _, last := range []bool{false, true} { // normalised rows are added last
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

// addNormalised adds the normalised values of a row among nodes to the totals of some of them.
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
