package reference

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/devices"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// choice is a node that was found for a task.
type choice struct {
	row   int32
	later bool // it fits only when what is being released is gone
	bind  model.Bind
}

// refusal is why a node does not take a task: a row, or what is built in.
type refusal struct {
	rule    *policy.Rule
	builtin model.NodeCount
}

// choose takes the node with the largest score among those that fit now, or, where there are none, among those that fit later; of
// equals the first in the order of nodes. Where there is none it says why.
func (x *cycle) choose(t *model.Task) (best choice, found bool, refused []model.NodeCount) {
	var now, later []int32
	reasons := map[refusal][]int32{}
	for _, row := range x.c.Nodes.ByOrder() {
		why, refuses := x.refuses(t, row)
		switch {
		case refuses:
			reasons[why] = append(reasons[why], row)
		case x.fitsNow(t, row):
			now = append(now, row)
		default:
			later = append(later, row)
		}
	}
	from := now
	if len(now) == 0 {
		from, best.later = later, true
	}
	if len(from) == 0 {
		return choice{}, false, x.histogram(t, reasons)
	}
	scores, totals := x.score(t, from)
	byScore := make([]int, len(from))
	for i := range from {
		byScore[i] = i
	}
	slices.SortStableFunc(byScore, func(a, b int) int { return cmp.Compare(totals[b], totals[a]) })
	name := func(i int) string { return x.c.Nodes.Rows[from[i]].Name }
	first := byScore[0]
	best.row = from[first]
	best.bind = model.Bind{Node: name(first), Score: totals[first], Feasible: len(from), Reason: report.OnlyNode(policy.Predicates)}
	if len(from) > 1 {
		next, b := byScore[1], &best.bind
		b.RunnerUp, b.RunnerUpScore, b.Scores = name(next), totals[next], scores[first]
		b.Reason = report.Preferred(policy.Scores, b, scores[next])
		b.Reason.Text = string(report.AppendPreferred(nil, b))
	}
	return best, true, nil
}

// refuses says why a node does not take a task, now or later: the first row of predicates that says no, or what is built in.
func (x *cycle) refuses(t *model.Task, row int32) (why refusal, refuses bool) {
	if !x.c.Nodes.Rows[row].Ready {
		return refusal{builtin: report.NotReady()}, true
	}
	f := x.Frame().OfTask(t).OnNode(row)
	for _, r := range x.p.Predicates() {
		if x.Opinion(r, f) == language.No {
			return refusal{rule: r}, true
		}
	}
	if !x.c.Nodes.FitsIdle(t.InitRequest, row) {
		for _, dim := range x.c.Nodes.Dims() {
			if t.InitRequest.Has(dim) && t.InitRequest[dim] > x.c.Nodes.FutureIdle(dim, row)+model.Slack {
				return refusal{builtin: report.Insufficient(x.c.Dims.Name(dim), x.neverFits(t, dim))}, true
			}
		}
	}
	if !x.fitsNow(t, row) && len(devices.Rooms(&x.c.Nodes, t, row, true)) < int(t.GPUCount) {
		return refusal{builtin: report.TooFewDevices()}, true
	}
	return refusal{}, false
}

// fitsNow says that a node has room for a task, devices included, before anything that is being released is gone.
func (x *cycle) fitsNow(t *model.Task, row int32) bool {
	return x.c.Nodes.FitsIdle(t.InitRequest, row) && len(devices.Rooms(&x.c.Nodes, t, row, false)) >= int(t.GPUCount)
}

// score asks all rows of scores about a task on the nodes that are chosen from: each row's part by node, and their sums. Rows without
// normalisation are added up first.
func (x *cycle) score(t *model.Task, group []int32) (parts [][]model.RowScore, totals []float64) {
	parts, totals = make([][]model.RowScore, len(group)), make([]float64, len(group))
	var normalised [][]float64
	x.World().Among(t, group, func() {
		for _, r := range x.p.Rules(policy.Scores) {
			if r.Weight == 0 {
				continue
			}
			values, span := make([]float64, len(group)), policy.Span{Min: math.Inf(1), Max: math.Inf(-1)}
			for i, row := range group {
				if values[i] = x.Number(r, x.Frame().OfTask(t).OnNode(row)); !math.IsNaN(values[i]) {
					span.Min, span.Max = min(span.Min, values[i]+0), max(span.Max, values[i]+0)
				}
			}
			for i, v := range values {
				values[i] = r.Weighted(r.Normalised(v, span))
				if !math.IsNaN(v) {
					parts[i] = append(parts[i], model.RowScore{Table: r.Table, Rule: r.Name, Score: values[i]})
				}
			}
			if r.Normalises() {
				normalised = append(normalised, values)
			} else {
				add(totals, values)
			}
		}
	})
	for _, values := range normalised {
		add(totals, values)
	}
	return parts, totals
}

func add(to, values []float64) {
	for i, v := range values {
		to[i] += v
	}
}

// histogram counts the nodes by what refused them, most nodes first; among equals rows come in their order, then what is built in.
func (x *cycle) histogram(t *model.Task, refused map[refusal][]int32) (out []model.NodeCount) {
	place := func(r refusal) int {
		if r.rule == nil {
			return math.MaxInt
		}
		return r.rule.Number
	}
	reasons := slices.SortedFunc(maps.Keys(refused), func(a, b refusal) int {
		return cmp.Or(len(refused[b])-len(refused[a]), cmp.Compare(place(a), place(b)), strings.Compare(a.builtin.Text, b.builtin.Text))
	})
	for _, why := range reasons {
		r, rows := why.rule, refused[why]
		if r == nil {
			why.builtin.Count = len(rows)
			out = append(out, why.builtin)
			continue
		}
		tells := r.Message != nil && r.Message.OfNode
		out = append(out, report.ByText(len(rows), slices.Values(rows), tells, &x.c.Nodes, func(row int32) model.NodeCount {
			return model.NodeCount{Table: r.Table, Rule: r.Name, Text: x.Text(r, x.Frame().OfTask(t).OnNode(row))}
		})...)
	}
	return out
}

// neverFits says of a task that asks for more of a dimension than any node has when it is empty that it does; "" of any other.
func (x *cycle) neverFits(t *model.Task, dim int) string {
	largest := 0.0
	for _, row := range x.c.Nodes.ByOrder() {
		largest = max(largest, x.c.Nodes.AllocatableOf(row).Get(dim))
	}
	return report.NeverFits(x.c.Dims, t, dim, largest)
}

// devices chooses the devices of a node by the sums of deviceScores.
func (x *cycle) devices(t *model.Task, on choice) []int {
	return devices.Choose(&x.c.Nodes, t, on.row, on.later, func(place int) (sum float64, asked bool) {
		for _, r := range x.p.Rules(policy.DeviceScores) {
			if v := x.Number(r, x.Frame().OfTask(t).OnNode(on.row).OnDevice(place)); !math.IsNaN(v) {
				sum, asked = sum+v*r.Weight, true
			}
		}
		return sum, asked
	})
}
