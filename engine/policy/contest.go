package policy

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// contest is a tournament of the nodes that a class chooses from: each inner place of the tree holds the better one of
// the two below it. Where a node changed only the places above it are played again, and the runner-up is the best of
// those whom the winner met. It is made when the class chooses for the first time.
type contest struct {
	made   bool
	want   fit
	moved  []int32   // rows that may have changed since the last choice
	scores []float64 // by row; -Inf: not chosen from
	tree   []int32   // the winner of 2i and 2i+1 in place i; place n+row stands for the row itself
	order  []int32
	ranges []columnRange // of the rankings, one each
}

// columnRange is the range of a normalised column, with what it was made of.
type columnRange struct {
	span
	atMin, atMax int       // rows that have the extremes
	held         []float64 // by row, as the range knows it; NaN: not chosen from, or no opinion
}

// most moved rows for which the paths above them are cheaper than all of the tree, as a part of all rows.
const manyMoved = 8

// move notes that a row's verdict, fit or scores changed.
func (x *contest) move(row int32) {
	switch {
	case !x.made:
	case len(x.moved) > len(x.scores)/manyMoved:
		x.made = false
	default:
		x.moved = append(x.moved, row)
	}
}

// play brings the tournament up to date and gives the best two nodes; the second is NoNode where there is but one.
// Some node is to be chosen from.
func (c *Class) play(want fit) (best, next int32) {
	x := &c.contest
	x.order = c.s.c.Nodes.Order
	switch {
	case !x.made || x.want != want || c.otherwiseRanked():
		x.want = want
		c.ranks()
		c.measure()
		c.replay()
	case c.remeasure():
		c.replay()
	default:
		for _, row := range x.moved {
			x.scores[row] = c.scoreIn(want, row)
			x.rise(row)
		}
	}
	x.made, x.moved = true, x.moved[:0]
	return x.best()
}

// scoreIn is the score of a row where it is in the group that is chosen from, else less than any score.
func (c *Class) scoreIn(want fit, row int32) float64 {
	if c.verdict[row] != 0 || c.fits[row] != want {
		return math.Inf(-1)
	}
	return c.total(int(row), c.rankings)
}

// otherwiseRanked says that a column which had one value has several now, or has another.
func (c *Class) otherwiseRanked() bool {
	return slices.ContainsFunc(c.rankings, func(r ranking) bool {
		return r.same && (!c.uniform[r.column] || math.Float64bits(r.span.min) != math.Float64bits(c.first[r.column]))
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
		r.held = resized(r.held, len(c.verdict))
		for row := range r.held {
			r.held[row] = c.ranked(rank.column, int32(row))
		}
		r.find()
		rank.span = r.span
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
		if (r.atMin == 0 || r.atMax == 0) && r.span != noSpan() {
			r.find()
		}
		other = other || rank.span != r.span
		rank.span = r.span
	}
	return other
}

// ranked is a row's value in a column, NaN where the row is not chosen from.
func (c *Class) ranked(column int, row int32) float64 {
	if c.verdict[row] != 0 || c.fits[row] != c.contest.want {
		return math.NaN()
	}
	return c.raw[column][row] + 0 // there is one zero in a range
}

// noSpan is the range of nothing.
func noSpan() span { return span{math.Inf(1), math.Inf(-1)} }

// find computes the range from all rows.
func (r *columnRange) find() {
	r.span, r.atMin, r.atMax = noSpan(), 0, 0
	for _, v := range r.held {
		r.enter(v)
	}
}

// replace gives a row another value. It may leave nobody at an extreme: then the range has to be found anew.
func (r *columnRange) replace(row int32, v float64) {
	old := r.held[row]
	r.held[row] = v
	r.enter(v) // first, so that a range that moves on has somebody in it
	if old == r.min {
		r.atMin--
	}
	if old == r.max {
		r.atMax--
	}
}

func (r *columnRange) enter(v float64) {
	switch {
	case v < r.min:
		r.min, r.atMin = v, 1
	case v == r.min:
		r.atMin++
	}
	switch {
	case v > r.max:
		r.max, r.atMax = v, 1
	case v == r.max:
		r.atMax++
	}
}

// replay computes all scores and plays all games.
func (c *Class) replay() {
	x, n := &c.contest, len(c.verdict)
	x.scores, x.tree = sized(x.scores, n), sized(x.tree, n)
	for row := range x.scores {
		x.scores[row] = c.scoreIn(x.want, int32(row))
	}
	for i := n - 1; i > 0; i-- {
		x.tree[i] = x.game(i)
	}
}

// sized is a slice of that length, the old one where it is large enough, whatever is in it.
func sized[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:n]
	}
	return make([]T, n)
}

// at is the row that won the place i of the tree.
func (x *contest) at(i int) int32 {
	if n := len(x.tree); i >= n {
		return int32(i - n)
	}
	return x.tree[i]
}

// game plays the place i.
func (x *contest) game(i int) int32 {
	a, b := x.at(2*i), x.at(2*i+1)
	if x.beats(a, b) {
		return a
	}
	return b
}

// beats says that a row has more than another, or as much and the lower rank.
func (x *contest) beats(a, b int32) bool {
	return x.scores[a] > x.scores[b] || x.scores[a] == x.scores[b] && x.order[a] < x.order[b]
}

// rise plays the games above a row, as far up as they tell anything new.
func (x *contest) rise(row int32) {
	for i := (len(x.tree) + int(row)) / 2; i > 0; i /= 2 {
		won := x.game(i)
		if won == x.tree[i] && won != row {
			return
		}
		x.tree[i] = won
	}
}

// best gives the winner, and the best of those that it met; NoNode where none of them is chosen from.
func (x *contest) best() (best, next int32) {
	best, next = x.at(1), model.NoNode
	for i := len(x.tree) + int(best); i > 1; i /= 2 {
		if other := x.at(i ^ 1); next == model.NoNode || x.beats(other, next) {
			next = other
		}
	}
	if next != model.NoNode && math.IsInf(x.scores[next], -1) {
		next = model.NoNode
	}
	return best, next
}
