package policy

import (
	"math"
	"slices"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// score evaluates a row of scores: NaN where it has no opinion, or erred.
func (s *Session) score(r *Rule, f *Frame) float64 {
	switch has, err := s.guard(r, f); {
	case err != nil:
		s.evaluated[r.Number]++
		s.fault(r, f, err)
		return math.NaN()
	case !has:
		s.evaluated[r.Number]++
		return math.NaN()
	}
	return s.value(r, f)
}

// value evaluates a row of scores whose guard holds: NaN where it erred.
func (s *Session) value(r *Rule, f *Frame) float64 {
	s.evaluated[r.Number]++
	x, err := r.Expression.Number(f)
	if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
		err = types.NewErr("the score is %v", x)
	}
	if err == nil {
		return x
	}
	s.fault(r, f, err)
	return math.NaN()
}

// Weighted rounds and weighs a value that is normalised already.
func (r *Rule) Weighted(v float64) float64 {
	if v != v {
		return 0
	}
	switch r.RoundMode {
	case "trunc":
		v = math.Trunc(v/r.RoundStep) * r.RoundStep
	case "floor":
		v = math.Floor(v/r.RoundStep) * r.RoundStep
	case "ceil":
		v = math.Ceil(v/r.RoundStep) * r.RoundStep
	case "nearest":
		v = math.Round(v/r.RoundStep) * r.RoundStep
	}
	return min(max(v*r.Weight, -mostScore), mostScore)
}

// mostScore bounds what one row adds to a score, so that their sum is a number that a Plan can be written with.
const mostScore = 1e300

// Span is the range of a column over the group that is chosen from.
type Span struct{ Min, Max float64 }

// Normalised maps a raw value to 0..100 (docs/rule-language.md, Scores).
func (r *Rule) Normalised(v float64, g Span) float64 {
	if v != v {
		return v
	}
	switch r.Normalize {
	case "max":
		if g.Max == 0 {
			return 0
		}
		return 100 * v / g.Max
	case "inverseMax":
		if g.Max == 0 {
			return 100
		}
		return 100 - 100*v/g.Max
	case "minMax":
		if g.Max == g.Min {
			return 0
		}
		return 100 * ((v - g.Min) / (g.Max - g.Min)) // in the order of kube-scheduler, for what is truncated afterwards
	case "inverseSum":
		if g.Max == 0 {
			return 100
		}
		return 100 * (g.Max + g.Min - v) / g.Max
	}
	return v
}

// Choice is the node chosen for a task.
type Choice struct {
	Row      int32
	Later    bool // it fits only when what is releasing is gone
	Score    float64
	Feasible int // nodes in the group chosen from
	RunnerUp int32
	RunScore float64

	class *Class
	ranks []ranking
}

// ranking is a normalised score row with the range of its column over the group that is chosen from.
type ranking struct {
	column int
	rule   *Rule
	span   Span
	// same says that the whole column has one value; part is what it adds to every score.
	same bool
	part float64
}

// Choose takes the node with the largest score among those that fit now, or, where there are none,
// among those that fit later; ties go to the lowest rank. false: no node.
func (c *Class) Choose() (Choice, bool) {
	want, count := fitsNow, c.now
	if count == 0 {
		want, count = fitsLater, c.later
	}
	if count == 0 {
		return Choice{}, false
	}
	best := Choice{RunnerUp: model.NoNode, Later: want == fitsLater, Feasible: count, class: c}
	if c.onceOnly() {
		best.Row, best.RunnerUp = c.scan(want)
	} else {
		best.Row, best.RunnerUp = c.play(want)
	}
	best.ranks = c.rankings
	best.Score = c.total(int(best.Row), best.ranks)
	if best.RunnerUp != model.NoNode {
		best.RunScore = c.total(int(best.RunnerUp), best.ranks)
	}
	return best, true
}

// onceOnly says that what the class knows now is not what it knows at its next choice.
func (c *Class) onceOnly() bool {
	cs := &c.s.columns
	return cs.own || cs.single || cs.volatile || c.s.NoCache || c == &cs.ofTask
}

// scan finds the best two of a group by looking at all rows.
func (c *Class) scan(want fit) (best, next int32) {
	rows := c.group(want)
	if c.s.columns.own {
		c.scoreOwn(rows)
	}
	c.ranks()
	for i := range c.rankings {
		if rank := &c.rankings[i]; !rank.same {
			rank.span = c.span(rank.column, want)
		}
	}
	best, next = model.NoNode, model.NoNode
	bestScore, nextScore := math.Inf(-1), math.Inf(-1)
	for i, score := range c.totals(rows) {
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
func (c *Class) group(want fit) []int32 {
	rows := c.touched[:0]
	for _, row := range c.s.c.Nodes.ByOrder() {
		if c.at[row].verdict == 0 && c.at[row].fits == want {
			rows = append(rows, row)
		}
	}
	c.touched = rows
	return rows
}

// scoreOwn asks the rows that tell every task from every other, on the nodes that are chosen from.
func (c *Class) scoreOwn(rows []int32) {
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	for k, r := range c.s.columns.scores {
		if !r.own {
			continue
		}
		c.uniform[k] = false
		if r.When == nil && !c.s.NoCache {
			c.scoreOwnColumn(k, r, f, rows)
			continue
		}
		for _, row := range rows {
			f.Point(row)
			c.raw[k][row] = c.s.score(r.Rule, f)
		}
	}
}

// scoreOwnColumn asks one row of all nodes at once. Where that gives no score it is asked again, node by node, for what went wrong.
func (c *Class) scoreOwnColumn(k int, r *rowPlan, f *Frame, rows []int32) {
	w, column := &c.s.sweep, c.raw[k]
	w.numbers = model.Resized(w.numbers, len(rows))
	failed := c.s.numberEach(&r.expression, f, rows, w.numbers)
	for i, row := range rows {
		column[row] = w.numbers[i]
	}
	for _, row := range failed {
		column[row] = math.NaN()
	}
	told := uint64(0)
	for _, row := range rows {
		if x := column[row]; x-x == 0 { // neither NaN nor infinite
			told++
			continue
		}
		f.Point(row)
		column[row] = c.s.score(r.Rule, f)
	}
	c.s.evaluated[r.Number] += told
}

// ranks lists the normalised columns; the ranges of those that have several values are still to be found.
func (c *Class) ranks() {
	out := c.rankings[:0]
	for k, r := range c.s.columns.scores {
		if !r.Normalises() {
			continue
		}
		rank := ranking{column: k, rule: r.Rule, same: c.uniform[k]}
		if rank.same {
			rank.span = Span{c.first[k], c.first[k]}
			rank.part = r.Weighted(r.Normalised(c.first[k], rank.span))
		}
		out = append(out, rank)
	}
	c.rankings = out
}

func (c *Class) span(column int, want fit) Span {
	g := noSpan()
	for row, v := range c.raw[column] {
		if c.at[row].verdict == 0 && c.at[row].fits == want && v == v {
			g.Min, g.Max = min(g.Min, v+0), max(g.Max, v+0)
		}
	}
	return g
}

// total is the score of a node: the rows without normalisation, then the others in their order.
func (c *Class) total(row int, ranks []ranking) float64 {
	sum := c.at[row].base
	if c.s.columns.own {
		sum = 0 // anew, as the order of adding is that of the rows
		for k, r := range c.s.columns.scores {
			if !r.Normalises() {
				sum += r.Weighted(c.raw[k][row])
			}
		}
	}
	for i := range ranks {
		sum += ranks[i].adds(c.raw[ranks[i].column], row)
	}
	return sum
}

// totals is total of many rows, row of the policy by row, as the order of adding is the same. It holds until the next call.
func (c *Class) totals(rows []int32) []float64 {
	out := model.Resized(c.s.sweep.totals, len(rows))
	c.s.sweep.totals = out
	if !c.s.columns.own {
		for i, row := range rows {
			out[i] = c.at[row].base
		}
	}
	for k, r := range c.s.columns.scores {
		if c.s.columns.own && !r.Normalises() {
			for i, row := range rows {
				out[i] += r.Weighted(c.raw[k][row])
			}
		}
	}
	for j := range c.rankings {
		rank := &c.rankings[j]
		for i, row := range rows {
			out[i] += rank.adds(c.raw[rank.column], int(row))
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

// Normalises says whether the row's value depends on the group that is chosen from.
func (r *Rule) Normalises() bool { return r.Normalize != "" && r.Normalize != "none" }

// Scores appends each row's part of a node's score, over the group that was chosen from.
func (ch *Choice) Scores(out []model.RowScore, node int32) []model.RowScore {
	c := ch.class
	out = slices.Grow(out, len(c.s.columns.scores))
	for k, r := range c.s.columns.scores {
		v := c.raw[k][node]
		if v != v {
			continue
		}
		for i := range ch.ranks {
			if ch.ranks[i].column == k {
				v = r.Normalised(v, ch.ranks[i].span)
			}
		}
		out = append(out, model.RowScore{Table: r.Table, Rule: r.Name, Score: r.Weighted(v)})
	}
	return out
}

// Rejections counts, over all nodes, which row said no, most nodes first.
func (c *Class) Rejections() []model.NodeCount {
	if at := c.s.c.Nodes.Log.Next() + 1; c.rejectedAt != at || c.s.NoCache || c.s.columns.single || c.s.columns.telling {
		c.rejected, c.rejectedAt = c.reject(), at
	}
	return c.rejected
}
