package verdict

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Choice is the node chosen for a task.
type Choice struct {
	Row      int32
	Later    bool // it fits only after all releasing tasks are gone
	Score    float64
	Feasible int // number of nodes in the group to choose from
	RunnerUp int32
	RunScore float64

	by    *chooser
	Ranks []ranking
}

// chooser finds the best node for a class.
type chooser struct {
	c          *Class
	Rankings   []ranking // reused memory
	tournament tournament
}

// ranking is a normalised row of scores, with the range of its column over the group to choose from.
type ranking struct {
	column int
	rule   *policy.Rule
	span   policy.Span
	// same states that the whole column has one value. part is what the column then adds to every score.
	same bool
	part float64
}

// Choose returns the node with the largest score among the nodes that fit now. If there are none, it chooses among those that fit later. A
// tie goes to the lowest rank. false: no node fits.
func (c *Class) Choose() (Choice, bool) { return c.Chooser.choose() }

func (x *chooser) choose() (Choice, bool) {
	c := x.c
	want := c.Want()
	count := c.fitting[want]
	if count == 0 {
		return Choice{}, false
	}
	best := Choice{RunnerUp: model.NoNode, Later: want == fitsLater, Feasible: count, by: x}
	if x.onceOnly() {
		best.Row, best.RunnerUp = x.Scan(want)
	} else {
		best.Row, best.RunnerUp = x.play(want)
	}
	best.Ranks = x.Rankings
	best.Score = x.Total(int(best.Row), best.Ranks)
	if best.RunnerUp != model.NoNode {
		best.RunScore = x.Total(int(best.RunnerUp), best.Ranks)
	}
	return best, true
}

// onceOnly reports whether the results of the class are not valid for its next choice.
func (x *chooser) onceOnly() bool {
	v := x.c.v
	return v.Plan.own || v.Plan.single || v.Plan.volatile || x.c.oneTask
}

// Scan finds the two best nodes of a group by reading all rows.
func (x *chooser) Scan(want fit) (best, next int32) {
	rows := x.group(want)
	if x.c.v.Plan.own {
		x.scoreOwn(rows)
	}
	x.ranks()
	for i := range x.Rankings {
		if rank := &x.Rankings[i]; !rank.same {
			rank.span = x.span(rank.column, want)
		}
	}
	best, next = model.NoNode, model.NoNode
	bestScore, nextScore := math.Inf(-1), math.Inf(-1)
	for i, score := range x.totals(rows) {
		switch { // the first in the nodes' order wins a tie
		case best == model.NoNode || score > bestScore:
			next, nextScore = best, bestScore
			best, bestScore = rows[i], score
		case next == model.NoNode || score > nextScore:
			next, nextScore = rows[i], score
		}
	}
	return best, next
}

// group lists the nodes to choose from, in the nodes' order.
func (x *chooser) group(want fit) []int32 {
	c := x.c
	rows := c.touched[:0]
	for _, row := range c.v.nodes.ByOrder() {
		if c.Cells[row].in(want) {
			rows = append(rows, row)
		}
	}
	c.touched = rows
	return rows
}

// scoreOwn evaluates the rows that distinguish all tasks, for the nodes to choose from.
func (x *chooser) scoreOwn(rows []int32) {
	v, state := x.c.v, &x.c.Rows
	f := v.ask.Frame().OfTask(x.c.Task)
	defer v.ask.Done()
	for k, r := range v.Plan.Scores {
		if !r.own {
			continue
		}
		state.ranges[k].same = false
		if r.When == nil {
			x.scoreOwnColumn(r, f, rows, state.Raw[k])
			continue
		}
		for _, row := range rows {
			f.Point(row)
			state.Raw[k][row] = v.ask.Score(r.Rule, f)
		}
	}
}

// scoreOwnColumn evaluates one row for all nodes at once. If that gives no score, it evaluates the row for each node separately, for the
// error.
func (x *chooser) scoreOwnColumn(r *Row, f *language.Frame, rows []int32, column []float64) {
	p, ask := &x.c.v.Pipeline, x.c.v.ask
	p.numbers = slab.Resized(p.numbers, len(rows))
	failed := ask.NumberEach(&r.Query, f, rows, p.numbers)
	for i, row := range rows {
		column[row] = p.numbers[i]
	}
	for _, row := range failed {
		column[row] = math.NaN()
	}
	told := 0
	for _, row := range rows {
		if value := column[row]; policy.IsScore(value) {
			told++
			continue
		}
		f.Point(row)
		column[row] = ask.Score(r.Rule, f)
	}
	ask.AskedTogether(r.Rule, told)
}

// ranks lists the normalised columns. It does not compute the ranges of columns with several values.
func (x *chooser) ranks() {
	out := x.Rankings[:0]
	for k, r := range x.c.v.Plan.Scores {
		if !r.Normalises() {
			continue
		}
		one := &x.c.Rows.ranges[k]
		rank := ranking{column: k, rule: r.Rule, same: one.same}
		if rank.same {
			rank.span = policy.Span{Min: one.first, Max: one.first}
			rank.part = r.Weighted(r.Normalised(one.first, rank.span))
		}
		out = append(out, rank)
	}
	x.Rankings = out
}

func (x *chooser) span(column int, want fit) policy.Span {
	g := noSpan()
	for row, v := range x.c.Rows.Raw[column] {
		if x.c.Cells[row].in(want) && v == v {
			g.Min, g.Max = min(g.Min, v+0), max(g.Max, v+0)
		}
	}
	return g
}

// Total returns the score of a node. It adds the rows without normalisation, and then the others in their order.
func (x *chooser) Total(row int, ranks []ranking) float64 {
	sum, raw := x.c.Cells[row].base, x.c.Rows.Raw
	if plan := x.c.v.Plan; plan.own {
		sum = 0 // add from the start, because the order of adding is the order of the rows
		for k, r := range plan.Scores {
			if !r.Normalises() {
				sum += r.Weighted(raw[k][row])
			}
		}
	}
	for i := range ranks {
		sum += ranks[i].adds(raw[ranks[i].column], row)
	}
	return sum
}

// totals does what Total does, for many rows, one row of the policy after the other, because the order of adding is the same. The result is
// valid until the next call.
func (x *chooser) totals(rows []int32) []float64 {
	v, raw := x.c.v, x.c.Rows.Raw
	out := slab.Resized(v.totals, len(rows))
	v.totals = out
	if !v.Plan.own {
		for i, row := range rows {
			out[i] = x.c.Cells[row].base
		}
	}
	for k, r := range v.Plan.Scores {
		if v.Plan.own && !r.Normalises() {
			for i, row := range rows {
				out[i] += r.Weighted(raw[k][row])
			}
		}
	}
	for j := range x.Rankings {
		rank := &x.Rankings[j]
		for i, row := range rows {
			out[i] += rank.adds(raw[rank.column], int(row))
		}
	}
	return out
}

// adds returns what the column adds to a node's score. It does not read a column that is the same for all nodes.
func (rank *ranking) adds(raw []float64, row int) float64 {
	if rank.same {
		return rank.part
	}
	return rank.rule.Weighted(rank.rule.Normalised(raw[row], rank.span))
}

// Scores appends the part of each row in a node's score, over the group to choose from.
func (ch *Choice) Scores(out []model.RowScore, node int32) []model.RowScore {
	c := ch.by.c
	out = slices.Grow(out, len(c.v.Plan.Scores))
	for k, r := range c.v.Plan.Scores {
		v := c.Rows.Raw[k][node]
		if v != v {
			continue
		}
		for i := range ch.Ranks {
			if ch.Ranks[i].column == k {
				v = r.Normalised(v, ch.Ranks[i].span)
			}
		}
		out = append(out, model.RowScore{Table: r.Table, Rule: r.Name, Score: r.Weighted(v)})
	}
	return out
}
