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
	Later    bool // it fits only when what is releasing is gone
	Score    float64
	Feasible int // nodes in the group chosen from
	RunnerUp int32
	RunScore float64

	by    *chooser
	Ranks []ranking
}

// chooser finds the best node for a class.
type chooser struct {
	c          *Class
	Rankings   []ranking // reused
	tournament tournament
}

// ranking is a normalised score row with the range of its column over the group that is chosen from.
type ranking struct {
	column int
	rule   *policy.Rule
	span   policy.Span
	// same says that the whole column has one value; part is what it adds to every score.
	same bool
	part float64
}

// Choose takes the node with the largest score among those that fit now, or, where there are none,
// among those that fit later; ties go to the lowest rank. false: no node.
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

// onceOnly says that what the class knows now is not what it knows at its next choice.
func (x *chooser) onceOnly() bool {
	v := x.c.v
	return v.Plan.own || v.Plan.single || v.Plan.volatile || x.c.oneTask
}

// Scan finds the best two of a group by looking at all rows.
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
		switch { // the first of the nodes' order wins a tie
		case best == model.NoNode || score > bestScore:
			next, nextScore = best, bestScore
			best, bestScore = rows[i], score
		case next == model.NoNode || score > nextScore:
			next, nextScore = rows[i], score
		}
	}
	return best, next
}

// group lists the nodes that are chosen from, in the nodes' order.
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

// scoreOwn asks the rows that tell every task from every other, on the nodes that are chosen from.
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

// scoreOwnColumn asks one row of all nodes at once. Where that gives no score it is asked again, node by node, for what went wrong.
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

// ranks lists the normalised columns; the ranges of those that have several values are still to be found.
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

// Total is the score of a node: the rows without normalisation, then the others in their order.
func (x *chooser) Total(row int, ranks []ranking) float64 {
	sum, raw := x.c.Cells[row].base, x.c.Rows.Raw
	if plan := x.c.v.Plan; plan.own {
		sum = 0 // anew, as the order of adding is that of the rows
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

// totals is total of many rows, row of the policy by row, as the order of adding is the same. It holds until the next call.
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

// adds is what the column adds to a node's score. One that is the same for all nodes is not looked at.
func (rank *ranking) adds(raw []float64, row int) float64 {
	if rank.same {
		return rank.part
	}
	return rank.rule.Weighted(rank.rule.Normalised(raw[row], rank.span))
}

// Scores appends each row's part of a node's score, over the group that was chosen from.
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
