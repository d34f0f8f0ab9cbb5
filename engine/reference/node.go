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
	f := x.world().Frame().OfTask(t).OnNode(row)
	for _, r := range x.p.Predicates() {
		if x.opinion(r, f) == language.No {
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
	if !x.fitsNow(t, row) && len(x.rooms(t, row, true)) < int(t.GPUCount) {
		return refusal{builtin: report.TooFewDevices()}, true
	}
	return refusal{}, false
}

// fitsNow says that a node has room for a task, devices included, before anything that is being released is gone.
func (x *cycle) fitsNow(t *model.Task, row int32) bool {
	return x.c.Nodes.FitsIdle(t.InitRequest, row) && len(x.rooms(t, row, false)) >= int(t.GPUCount)
}

// score asks all rows of scores about a task on the nodes that are chosen from: each row's part by node, and their sums. Rows without
// normalisation are added up first.
func (x *cycle) score(t *model.Task, group []int32) (parts [][]model.RowScore, totals []float64) {
	parts, totals = make([][]model.RowScore, len(group)), make([]float64, len(group))
	var normalised [][]float64
	x.world().Among(t, group, func() {
		for _, r := range x.p.Rules(policy.Scores) {
			if r.Weight == 0 {
				continue
			}
			values, span := make([]float64, len(group)), policy.Span{Min: math.Inf(1), Max: math.Inf(-1)}
			for i, row := range group {
				if values[i] = x.number(r, x.world().Frame().OfTask(t).OnNode(row)); !math.IsNaN(values[i]) {
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
			return model.NodeCount{Table: r.Table, Rule: r.Name, Text: x.text(r, x.world().Frame().OfTask(t).OnNode(row))}
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

// room is a device of a node, by its place there, that has enough free for a task.
type room struct {
	place int
	milli int64 // free
}

// rooms are the devices that have enough free: now, or when all that is being released is gone and what is promised is taken.
func (x *cycle) rooms(t *model.Task, row int32, later bool) []room {
	var out []room
	for i, gpu := range x.c.Nodes.GPUs[row] {
		milli, memory := gpu.Free, gpu.MemoryFree
		for _, o := range x.c.Nodes.Tasks[row] {
			if !later || !slices.Contains(o.GPUs, i) {
				continue
			}
			if o.Status == model.Releasing {
				milli, memory = milli+o.GPUMilli, memory+o.GPUMemory
			}
			if o.Status == model.Pipelined {
				milli, memory = milli-o.GPUMilli, memory-o.GPUMemory
			}
		}
		if milli >= t.GPUMilli && memory >= t.GPUMemory {
			out = append(out, room{i, milli})
		}
	}
	return out
}

// devices chooses the devices of a node: those with the largest sums of deviceScores, of equals the first. Where no row has an opinion,
// a part of a device comes from the fullest that has it.
func (x *cycle) devices(t *model.Task, on choice) []int {
	if t.GPUCount == 0 {
		return nil
	}
	rooms := x.rooms(t, on.row, on.later)
	scores := map[int]float64{}
	for _, r := range rooms {
		f := x.world().Frame().OfTask(t).OnNode(on.row).OnDevice(r.place)
		asked := false
		for _, rule := range x.p.Rules(policy.DeviceScores) {
			if v := x.number(rule, f); !math.IsNaN(v) {
				scores[r.place] += v * rule.Weight
				asked = true
			}
		}
		if !asked && t.GPUMilli < model.WholeGPU {
			scores[r.place] = -float64(r.milli)
		}
	}
	slices.SortStableFunc(rooms, func(a, b room) int { return cmp.Compare(scores[b.place], scores[a.place]) })
	var out []int
	for _, r := range rooms[:min(len(rooms), int(t.GPUCount))] {
		out = append(out, x.c.Nodes.GPUs[on.row][r.place].Index)
	}
	slices.Sort(out)
	return out
}
