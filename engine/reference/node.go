package reference

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// choice is a node that was found for a task.
type choice struct {
	row   int32
	later bool // it fits only when what is being released is gone
	bind  model.Bind
}

// refusal is why a node does not take a task: a row, or what is built in.
type refusal struct {
	rule       *policy.Rule
	name, text string // of what is built in
	dim        int    // in which it does not fit, plus 1
}

// choose takes the node with the largest score among those that fit now, or, where there are none, among those that fit later; of
// equals the first in the order of nodes. Where there is none it says why.
func (x *cycle) choose(t *model.Task) (best choice, why *model.Reason, nodes []model.NodeCount) {
	var now, later []int32
	refused := map[refusal][]int32{}
	for _, row := range x.c.Nodes.ByOrder() {
		r := x.refuses(t, row)
		switch {
		case r != nil:
			refused[*r] = append(refused[*r], row)
		case x.fitsNow(t, row):
			now = append(now, row)
		default:
			later = append(later, row)
		}
	}
	group := now
	if len(now) == 0 {
		group, best.later = later, true
	}
	if len(group) == 0 {
		nodes := x.histogram(t, refused)
		why := noNode(nodes)
		return choice{}, &why, nodes
	}
	scores, totals := x.score(t, group)
	byScore := make([]int, len(group))
	for i := range group {
		byScore[i] = i
	}
	slices.SortStableFunc(byScore, func(a, b int) int { return cmp.Compare(totals[b], totals[a]) })
	first := byScore[0]
	best.row = group[first]
	best.bind = model.Bind{Node: x.c.Nodes.Rows[best.row].Name, Score: totals[first], Feasible: len(group), Reason: model.Reason{Site: policy.Predicates, Text: "the only node that fits"}}
	if len(group) > 1 {
		next := byScore[1]
		best.bind.RunnerUp, best.bind.RunnerUpScore, best.bind.Scores = x.c.Nodes.Rows[group[next]].Name, totals[next], scores[first]
		best.bind.Reason = ahead(&best.bind, scores[next])
	}
	return best, nil, nil
}

// refuses says why a node does not take a task, now or later: the first row of predicates that says no, or what is built in.
func (x *cycle) refuses(t *model.Task, row int32) *refusal {
	if !x.c.Nodes.Rows[row].Ready {
		return &refusal{name: "ready-node", text: "node(s) were not ready"}
	}
	f := x.world().Frame().OfTask(t).OnNode(row)
	for _, r := range x.p.Predicates() {
		if x.opinion(r, f) == language.No {
			return &refusal{rule: r}
		}
	}
	if !x.c.Nodes.FitsIdle(t.InitRequest, row) {
		for _, dim := range x.c.Nodes.Dims() {
			if t.InitRequest.Has(dim) && t.InitRequest[dim] > x.c.Nodes.FutureIdle(dim, row)+model.Slack {
				return &refusal{name: "fit", text: "Insufficient " + x.c.Dims.Name(dim), dim: dim + 1}
			}
		}
	}
	if !x.fitsNow(t, row) && len(x.rooms(t, row, true)) < int(t.GPUCount) {
		return &refusal{name: "devices", text: "node(s) had too few free devices"}
	}
	return nil
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

// ahead names the row that put a node ahead of the runner-up most; none, where the two are equal.
func ahead(b *model.Bind, other []model.RowScore) model.Reason {
	digits := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	if b.Score == b.RunnerUpScore {
		return model.Reason{Site: policy.Scores, Text: "score " + digits(b.Score) + ", as " + b.RunnerUp + " has; first in the order of nodes"}
	}
	why := model.Reason{Site: policy.Scores, Text: "score " + digits(b.Score) + ", next " + b.RunnerUp + " with " + digits(b.RunnerUpScore)}
	most := 0.0
	for _, s := range b.Scores {
		lead := s.Score
		for _, o := range other {
			if o.Table == s.Table && o.Rule == s.Rule {
				lead -= o.Score
			}
		}
		if lead > most {
			most, why.Table, why.Rule = lead, s.Table, s.Rule
		}
	}
	return why
}

// The texts of a row that tells of the node: so many different ones are told, of so many nodes at most.
const (
	mostTexts = 3
	mostNodes = 128
)

// histogram counts the nodes by what refused them, most nodes first; among equals rows come in their order, then what is built in.
func (x *cycle) histogram(t *model.Task, refused map[refusal][]int32) []model.NodeCount {
	place := func(r refusal) int {
		if r.rule == nil {
			return math.MaxInt
		}
		return r.rule.Number
	}
	reasons := slices.SortedFunc(maps.Keys(refused), func(a, b refusal) int {
		return cmp.Or(len(refused[b])-len(refused[a]), cmp.Compare(place(a), place(b)), strings.Compare(a.text, b.text))
	})
	var out []model.NodeCount
	for _, r := range reasons {
		if r.rule != nil {
			out = append(out, x.byText(t, r.rule, refused[r])...)
			continue
		}
		text := r.text
		if dim := r.dim - 1; dim >= 0 && t.InitRequest[dim] > x.largest(dim)+model.Slack {
			text += " (" + x.never(t, dim) + ")"
		}
		out = append(out, model.NodeCount{Table: "builtin", Rule: r.name, Text: text, Count: len(refused[r])})
	}
	return out
}

// byText is what a row says of the nodes that it refuses. Where its message tells of the node, each text has its count; where these are
// many, or each text names its node, the first stands for all, as an example.
func (x *cycle) byText(t *model.Task, r *policy.Rule, rows []int32) []model.NodeCount {
	say := func(row int32) model.NodeCount {
		return model.NodeCount{Table: r.Table, Rule: r.Name, Text: x.text(r, x.world().Frame().OfTask(t).OnNode(row))}
	}
	named := func(n model.NodeCount, row int32) bool { return strings.Contains(n.Text, x.c.Nodes.Rows[row].Name) }
	tells := r.Message != nil && r.Message.OfNode
	first := say(rows[0])
	first.Count, first.Example = len(rows), tells && named(first, rows[0])
	if len(rows) == 1 || !tells {
		return []model.NodeCount{first}
	}
	var out []model.NodeCount
	allNamed := true
	for _, row := range rows[:min(len(rows), mostNodes)] {
		told := say(row)
		allNamed = allNamed && named(told, row)
		i := slices.IndexFunc(out, func(n model.NodeCount) bool { return n.Text == told.Text })
		if i < 0 {
			i = len(out)
			out = append(out, told)
		}
		out[i].Count++
	}
	if many := len(out) > mostTexts || len(rows) > mostNodes; many || allNamed {
		first.Example = first.Example || many
		return []model.NodeCount{first}
	}
	slices.SortStableFunc(out, func(a, b model.NodeCount) int { return b.Count - a.Count })
	return out
}

// noNode words a histogram, under the row that rejected most.
func noNode(nodes []model.NodeCount) model.Reason {
	why := model.Reason{Site: policy.Predicates, Reason: "Unschedulable"}
	if len(nodes) == 0 {
		why.Table, why.Rule, why.Text = "builtin", "ready-node", "there are no nodes"
		return why
	}
	total := 0
	var parts []string
	for _, n := range nodes {
		total += n.Count
		parts = append(parts, n.String())
	}
	why.Table, why.Rule = nodes[0].Table, nodes[0].Rule
	why.Text = fmt.Sprintf("0/%d nodes are available: %s", total, strings.Join(parts, ", "))
	return why
}

// largest is the most that any node has of a dimension when it is empty.
func (x *cycle) largest(dim int) float64 {
	most := 0.0
	for _, row := range x.c.Nodes.ByOrder() {
		most = max(most, x.c.Nodes.AllocatableOf(row).Get(dim))
	}
	return most
}

// neverFits says of which dimension a task asks for more than any node has when it is empty.
func (x *cycle) neverFits(t *model.Task) (dim int, never bool) {
	for _, dim := range x.c.Nodes.Dims() {
		if len(x.c.Nodes.ByOrder()) > 0 && t.InitRequest.Has(dim) && t.InitRequest[dim] > x.largest(dim)+model.Slack {
			return dim, true
		}
	}
	return 0, false
}

func (x *cycle) never(t *model.Task, dim int) string {
	text := "it asks for " + x.c.Dims.Name(dim) + " " + x.c.Dims.AmountText(dim, t.InitRequest[dim]) + " and can never fit: "
	if most := x.largest(dim); most > 0 {
		return text + "the largest node has " + x.c.Dims.AmountText(dim, most)
	}
	return text + "no node has any"
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
