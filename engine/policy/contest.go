package policy

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// contest is a tournament of the nodes that a class chooses from, in groups of eight: level 0 has the nodes' scores by their places in
// the order of ties, each further level the best of every group of the one below it. So the first of equals is the one that wins, and
// where a node changed only the groups above it are looked at again, as far up as their best is another. It is made when the class
// chooses for the first time.
type contest struct {
	made   bool
	want   fit
	ranked uint64        // Nodes.Ranked that the places are of
	moved  []int32       // rows that may have changed since the last choice
	levels [][]float64   // -Inf: not chosen from; all but the last are filled up to whole groups
	ranges []columnRange // of the rankings, one each
}

// groupBits is the logarithm of how many places a group has: eight scores are a line of a processor's cache.
const groupBits = 3

// columnRange is the range of a normalised column, with what it was made of.
type columnRange struct {
	Span
	atMin, atMax int       // rows that have the extremes
	held         []float64 // by row, as the range knows it; NaN: not chosen from, or no opinion
}

// most moved rows for which the paths above them are cheaper than all of the tree, as a part of all rows.
const manyMoved = 8

// move notes that a row's verdict, fit or scores changed.
func (x *contest) move(row int32) {
	switch {
	case !x.made:
	case len(x.moved) > len(x.levels[0])/manyMoved:
		x.made = false
	default:
		x.moved = append(x.moved, row)
	}
}

// play brings the tournament up to date and gives the best two nodes; the second is NoNode where there is but one.
// Some node is to be chosen from.
func (c *Class) play(want fit) (best, next int32) {
	x, n := &c.contest, &c.s.c.Nodes
	switch {
	case !x.made || x.want != want || x.ranked != n.Ranked || c.otherwiseRanked():
		x.want, x.ranked = want, n.Ranked
		c.ranks()
		c.measure()
		c.replay()
	case c.remeasure():
		c.replay()
	default:
		for _, row := range x.moved {
			if n.Rows[row] != nil {
				x.set(n.Order[row], c.scoreIn(want, row))
			}
		}
	}
	x.made, x.moved = true, x.moved[:0]
	first, second := x.best()
	order := n.ByOrder()
	if second < 0 {
		return order[first], model.NoNode
	}
	return order[first], order[second]
}

// scoreIn is the score of a row where it is in the group that is chosen from, else less than any score.
func (c *Class) scoreIn(want fit, row int32) float64 {
	if c.at[row].verdict != 0 || c.at[row].fits != want {
		return math.Inf(-1)
	}
	return c.total(int(row), c.rankings)
}

// otherwiseRanked says that a column which had one value has several now, or has another.
func (c *Class) otherwiseRanked() bool {
	return slices.ContainsFunc(c.rankings, func(r ranking) bool {
		return r.same && (!c.uniform[r.column] || math.Float64bits(r.span.Min) != math.Float64bits(c.first[r.column]))
	})
}

// measure finds the ranges of the columns that have several values, among the rows that are chosen from.
func (c *Class) measure() {
	x := &c.contest
	x.ranges = slices.Grow(x.ranges[:0], len(c.rankings))[:len(c.rankings)]
	for i := range x.ranges {
		rank, r := &c.rankings[i], &x.ranges[i]
		if rank.same {
			r.held = r.held[:0]
			continue
		}
		r.held = model.Resized(r.held, len(c.at))
		for row := range r.held {
			r.held[row] = c.ranked(rank.column, int32(row))
		}
		r.find()
		rank.span = r.Span
	}
}

// remeasure moves the ranges with the rows that moved, and says whether one is another now.
func (c *Class) remeasure() bool {
	other := false
	for i := range c.rankings {
		rank, r := &c.rankings[i], &c.contest.ranges[i]
		if rank.same {
			continue
		}
		for _, row := range c.contest.moved {
			r.replace(row, c.ranked(rank.column, row))
		}
		if (r.atMin == 0 || r.atMax == 0) && r.Span != noSpan() {
			r.find()
		}
		other = other || rank.span != r.Span
		rank.span = r.Span
	}
	return other
}

// ranked is a row's value in a column, NaN where the row is not chosen from.
func (c *Class) ranked(column int, row int32) float64 {
	if c.at[row].verdict != 0 || c.at[row].fits != c.contest.want {
		return math.NaN()
	}
	return c.raw[column][row] + 0 // there is one zero in a range
}

// noSpan is the range of nothing.
func noSpan() Span { return Span{math.Inf(1), math.Inf(-1)} }

// find computes the range from all rows.
func (r *columnRange) find() {
	r.Span, r.atMin, r.atMax = noSpan(), 0, 0
	for _, v := range r.held {
		r.enter(v)
	}
}

// replace gives a row another value. It may leave nobody at an extreme: then the range has to be found anew.
func (r *columnRange) replace(row int32, v float64) {
	old := r.held[row]
	r.held[row] = v
	r.enter(v) // first, so that a range that moves on has somebody in it
	if old == r.Min {
		r.atMin--
	}
	if old == r.Max {
		r.atMax--
	}
}

func (r *columnRange) enter(v float64) {
	switch {
	case v < r.Min:
		r.Min, r.atMin = v, 1
	case v == r.Min:
		r.atMin++
	}
	switch {
	case v > r.Max:
		r.Max, r.atMax = v, 1
	case v == r.Max:
		r.atMax++
	}
}

// replay computes all scores, and the best of all groups.
func (c *Class) replay() {
	x, order := &c.contest, c.s.c.Nodes.ByOrder()
	scores := x.level(0, len(order))
	for place, row := range order {
		scores[place] = c.scoreIn(x.want, row)
	}
	depth := 1
	for ; len(scores) > 1; depth++ {
		n := len(scores) >> groupBits
		groups := x.level(depth, n)
		for i := range n {
			groups[i] = bestOf(scores, i)
		}
		scores = groups
	}
	x.levels = x.levels[:depth]
}

// level is room for so many places of a level, filled up to whole groups with such as nobody chooses, unless there is but one.
func (x *contest) level(depth, places int) []float64 {
	if depth == len(x.levels) {
		x.levels = append(x.levels, nil)
	}
	room := places
	if places > 1 || depth == 0 {
		room = (places + 1<<groupBits - 1) >> groupBits << groupBits
	}
	out := sized(x.levels[depth], room)
	for i := places; i < room; i++ {
		out[i] = math.Inf(-1)
	}
	x.levels[depth] = out
	return out
}

// sized is a slice of that length, the old one where it is large enough, whatever is in it.
func sized[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:n]
	}
	return make([]T, n)
}

// bestOf is the best score of a group.
func bestOf(scores []float64, group int) float64 {
	places := (*[1 << groupBits]float64)(scores[group<<groupBits:])
	best := places[0]
	for _, score := range places[1:] {
		if score > best {
			best = score
		}
	}
	return best
}

// set gives a place another score.
func (x *contest) set(place int32, score float64) {
	i := int(place)
	for depth, scores := range x.levels {
		if scores[i] == score {
			return
		}
		scores[i] = score
		if depth+1 < len(x.levels) {
			i >>= groupBits
			score = bestOf(scores, i)
		}
	}
}

// best gives the places of the best score and of the second best, -1 where nobody else is chosen from.
func (x *contest) best() (first, second int) {
	bestScore, next, nextAt, nextDepth := x.levels[len(x.levels)-1][0], math.Inf(-1), -1, 0
	for depth := len(x.levels) - 2; depth >= 0; depth-- {
		from := first << groupBits
		first = x.winner(depth, from, bestScore)
		for i, score := range x.levels[depth][from : from+1<<groupBits] {
			// What stands beside the winner, at any depth, are groups that have no place in common: of equals the one that begins first.
			if at := from + i; at != first && score > math.Inf(-1) && (score > next || score == next && at<<(groupBits*depth) < nextAt<<(groupBits*nextDepth)) {
				next, nextAt, nextDepth = score, at, depth
			}
		}
	}
	if nextAt < 0 {
		return first, -1
	}
	for nextDepth > 0 {
		nextDepth--
		nextAt = x.winner(nextDepth, nextAt<<groupBits, next)
	}
	return first, nextAt
}

// winner is the first place of a group that has the group's best score.
func (x *contest) winner(depth, from int, score float64) int {
	last := from | (1<<groupBits - 1)
	for from < last && x.levels[depth][from] != score {
		from++
	}
	return from
}
