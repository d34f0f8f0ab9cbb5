package answers

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

// Choice is a node that was found for a task.
type Choice struct {
	Row   int32
	Later bool // it fits only after all releasing tasks are gone
	Bind  model.Bind
}

// refusal is the reason why a node rejects a task: a row, or a built-in reason.
type refusal struct {
	rule    *policy.Rule
	builtin model.NodeCount
}

// Choose returns the node with the largest score among the nodes that fit now. If there are none, it chooses among those that fit later. Of
// equal nodes, the first in the order of nodes wins. If no node fits, it returns the reasons.
func (x *Answers) Choose(t *model.Task) (best Choice, found bool, refused []model.NodeCount) {
	var now, later []int32
	reasons := map[refusal][]int32{}
	for _, row := range x.c.Nodes.ByOrder() {
		why, refuses := x.Refuses(t, row)
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
		from, best.Later = later, true
	}
	if len(from) == 0 {
		return Choice{}, false, x.histogram(t, reasons)
	}
	scores, totals := x.score(t, from)
	byScore := descending(totals)
	name := func(i int) string { return x.c.Nodes.Rows[from[i]].Name }
	first := byScore[0]
	best.Row = from[first]
	best.Bind = model.Bind{Node: name(first), Score: totals[first], Feasible: len(from), Reason: report.OnlyNode(policy.Predicates)}
	if len(from) > 1 {
		next, b := byScore[1], &best.Bind
		b.RunnerUp, b.RunnerUpScore, b.Scores = name(next), totals[next], scores[first]
		b.Reason = report.Preferred(policy.Scores, b, scores[next])
		b.Reason.Text = string(report.AppendPreferred(nil, b))
	}
	return best, true, nil
}

// Refuses states why a node rejects a task, now and later: the first row of predicates that rejects it, or a built-in reason.
func (x *Answers) Refuses(t *model.Task, row int32) (why refusal, refuses bool) {
	if !x.c.Nodes.Rows[row].Ready {
		return refusal{builtin: report.NotReady()}, true
	}
	f := x.Frame().OfTask(t).OnNode(row)
	for _, r := range x.p.Predicates() {
		if x.Opinion(r, f) == language.No {
			return refusal{rule: r}, true
		}
	}
	for _, dim := range x.c.Nodes.Dims() { // resources that are promised to others are not available, although they are still idle
		if t.Request.Has(dim) && t.Request[dim] > x.c.Nodes.FutureIdle(dim, row)+model.Slack {
			return refusal{builtin: report.Insufficient(x.c.Dims.Name(dim), x.NeverFits(t, dim))}, true
		}
	}
	if !x.fitsNow(t, row) && len(x.Rooms(t, row, true)) < int(t.GPUCount) {
		if rule, _ := x.RowOfDevices(t, row); rule != nil {
			return refusal{rule: rule}, true
		}
		return refusal{builtin: report.TooFewDevices()}, true
	}
	return refusal{}, false
}

// fitsNow reports whether a task fits the idle resources and free devices of a node, before any releasing task is gone.
func (x *Answers) fitsNow(t *model.Task, row int32) bool {
	return x.c.Nodes.FitsIdle(t.Request, row) && len(x.Rooms(t, row, false)) >= int(t.GPUCount)
}

// score evaluates all rows of scores for a task on the nodes to choose from. It returns the parts of each node by row, and their sums. Rows
// without normalisation are added first.
func (x *Answers) score(t *model.Task, group []int32) (parts [][]model.RowScore, totals []float64) {
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

// histogram counts the nodes by the reason of their rejection, most nodes first. Among equals, rows come in their order, and then the
// built-in reasons.
func (x *Answers) histogram(t *model.Task, refused map[refusal][]int32) (out []model.NodeCount) {
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
			f := x.Frame().OfTask(t).OnNode(row)
			if r.Site.Name == policy.DevicePredicates {
				_, f = x.RowOfDevices(t, row)
			}
			return model.NodeCount{Table: r.Table, Rule: r.Name, Text: x.Text(r, f), Everywhere: r.Everywhere()}
		})...)
	}
	return out
}

// NeverFits returns a text for a task that requests more of a dimension than any empty node has; "" for any other task.
func (x *Answers) NeverFits(t *model.Task, dim int) string {
	largest := 0.0
	for _, row := range x.c.Nodes.ByOrder() {
		largest = max(largest, x.c.Nodes.AllocatableOf(row).Get(dim))
	}
	return report.NeverFits(x.c.Dims, t, dim, largest)
}

// NeverStarts states why a job can never start on the nodes that the cluster has; "" for any other job.
func (x *Answers) NeverStarts(j *model.Job) string { return report.NeverStarts(x.c, j, x.sizes()) }

// GangNeverStarts reports whether the pods of a job that must start together can never start on the nodes that the cluster has.
func (x *Answers) GangNeverStarts(j *model.Job) bool {
	return report.GangNeverStarts(x.c, j, x.sizes())
}

func (x *Answers) sizes() report.Sizes {
	sizes := report.Sizes{Shapes: report.Shapes(&x.c.Nodes), Kinds: report.Kinds(&x.c.Nodes), Apart: report.ApartBy(x.p.Filters)}
	if permits := report.PermitsBy(x.p.Filters); permits.Any() {
		sizes.Permitted = func(t *model.Task) *report.Permitted { return permits.To(t, &x.c.Nodes) }
	}
	for dim := range x.c.Dims.Len() {
		largest, sum := 0.0, 0.0
		for _, row := range x.c.Nodes.ByOrder() {
			has := x.c.Nodes.AllocatableOf(row).Get(dim)
			largest, sum = max(largest, has), sum+max(has, 0)
		}
		sizes.Largest.Set(dim, largest)
		sizes.Sum.Set(dim, sum)
	}
	return sizes
}

// VolumePlaces states where the volumes of a pod are; "" if every node reaches them.
func (x *Answers) VolumePlaces(t *model.Task) string { return x.World().VolumePlaces(t) }

// VolumeDefect states which claim of a pod no node can use; "" if there is none.
func (x *Answers) VolumeDefect(t *model.Task) string { return x.World().VolumeDefect(t) }

// ReadsOpen reports whether the row that a reason names reads queue.open.
func (x *Answers) ReadsOpen(why model.Reason) bool { return x.p.Row(why).ReadsOpen() }

// Rooms returns the devices of a node that a task may have: they are free enough, and no row of devicePredicates rejects them.
func (x *Answers) Rooms(t *model.Task, row int32, later bool) []model.GPU {
	return slices.DeleteFunc(devices.Rooms(&x.c.Nodes, t, row, later), func(gpu model.GPU) bool {
		return slices.ContainsFunc(x.p.Rules(policy.DevicePredicates), func(r *policy.Rule) bool {
			return x.Opinion(r, x.Frame().OfTask(t).OnNode(row).OnDevice(&gpu, later)) == language.No
		})
	})
}

// RowOfDevices returns the row of devicePredicates that leaves a task too few devices of a node that will have enough. The frame is for the
// first device that the row rejects. nil: there is no such row.
func (x *Answers) RowOfDevices(t *model.Task, row int32) (*policy.Rule, *language.Frame) {
	rooms := devices.Rooms(&x.c.Nodes, t, row, true)
	for _, r := range x.p.Rules(policy.DevicePredicates) {
		if len(rooms) < int(t.GPUCount) {
			return nil, nil
		}
		var first *language.Frame
		rooms = slices.DeleteFunc(rooms, func(gpu model.GPU) bool {
			f := x.Frame().OfTask(t).OnNode(row).OnDevice(&gpu, true)
			no := x.Opinion(r, f) == language.No
			if no && first == nil {
				first = f
			}
			return no
		})
		if len(rooms) < int(t.GPUCount) {
			return r, first
		}
	}
	return nil, nil
}

// Devices chooses the devices of a node by the sums of deviceScores.
func (x *Answers) Devices(t *model.Task, on Choice) []int {
	if t.GPUCount == 0 {
		return nil
	}
	return devices.Choose(t, x.Rooms(t, on.Row, on.Later), func(gpu *model.GPU) (sum float64, asked bool) {
		for _, r := range x.p.Rules(policy.DeviceScores) {
			if v := x.Number(r, x.Frame().OfTask(t).OnNode(on.Row).OnDevice(gpu, on.Later)); !math.IsNaN(v) {
				sum, asked = sum+v*r.Weight, true
			}
		}
		return sum, asked
	})
}

// Curable reports whether a node could accept a task after evictions: it is ready, and only rows of predicates that an eviction may change
// reject it.
func (x *Answers) Curable(t *model.Task, row int32) bool {
	if !x.c.Nodes.Rows[row].Ready {
		return false
	}
	return !slices.ContainsFunc(x.p.Predicates(), func(r *policy.Rule) bool {
		return x.Opinion(r, x.Frame().OfTask(t).OnNode(row)) == language.No && !r.Curable
	})
}

// RowRefuses reports whether a row of predicates rejects a node.
func (x *Answers) RowRefuses(t *model.Task, row int32) bool {
	return slices.ContainsFunc(x.p.Predicates(), func(r *policy.Rule) bool {
		return x.Opinion(r, x.Frame().OfTask(t).OnNode(row)) == language.No
	})
}

// RefusesLater states why a node rejects a task even after all releasing tasks are gone and all promised tasks are placed.
func (x *Answers) RefusesLater(t *model.Task, row int32) (why model.Reason, refuses bool) {
	f := x.Frame().OfTask(t).OnNode(row)
	for _, r := range x.p.Predicates() {
		if x.Opinion(r, f) == language.No {
			return policy.Answer{Rule: r, Text: x.Text(r, f)}.Reason(), true
		}
	}
	for _, dim := range x.c.Nodes.Dims() {
		if t.Request.Has(dim) && t.Request[dim] > x.c.Nodes.FutureIdle(dim, row)+model.Slack {
			return report.Refused(report.Insufficient(x.c.Dims.Name(dim), x.NeverFits(t, dim))), true
		}
	}
	if len(x.Rooms(t, row, true)) < int(t.GPUCount) {
		if r, f := x.RowOfDevices(t, row); r != nil {
			return policy.Answer{Rule: r, Text: x.Text(r, f)}.Reason(), true
		}
		return report.Refused(report.TooFewDevices()), true
	}
	return model.Reason{}, false
}

// ByScore sorts nodes by a task's scores, the best first. Equal nodes stay in the order of nodes.
func (x *Answers) ByScore(t *model.Task, nodes []int32) []int32 {
	_, totals := x.score(t, nodes)
	out := make([]int32, len(nodes))
	for i, place := range descending(totals) {
		out[i] = nodes[place]
	}
	return out
}

// descending returns the indexes of some numbers, the largest number first. Equal numbers keep their order.
func descending(numbers []float64) []int {
	places := make([]int, len(numbers))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(numbers[b], numbers[a]) })
	return places
}
