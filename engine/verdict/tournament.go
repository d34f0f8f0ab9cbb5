package verdict

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// tournament finds the best of the nodes that a class chooses from, in groups of eight. Level 0 contains the nodes' scores in the order of
// ties. Each higher level contains the best score of every group of the level below, so the first of equal nodes wins. After a change of a
// node, only the groups above it are computed again, as far up as their best score changes. The tournament is created at the first choice
// of the class.
type tournament struct {
	made   bool
	want   fit
	ranked uint64        // Nodes.Ranked for which the places were computed
	moved  []int32       // rows that may have changed since the last choice
	levels [][]float64   // -Inf: not in the group to choose from; all levels except the last are filled up to whole groups
	ranges []columnRange // one for each ranking
}

// groupBits is the logarithm of the number of places in a group: eight scores fill a cache line of a processor.
const groupBits = 3

// columnRange is the range of a normalised column, and the values from which it was computed.
type columnRange struct {
	policy.Span
	atMin, atMax int       // rows that have the extremes
	held         []float64 // by row, as used for the range; NaN: not in the group to choose from, or no opinion
}

// manyMoved limits the number of moved rows, as a part of all rows: above it, computing the whole tree is less expensive than the paths.
const manyMoved = 8

// moved records that a row's verdict, fit or scores changed.
func (x *chooser) moved(row int32) {
	switch t := &x.tournament; {
	case !t.made:
	case len(t.moved) > len(t.levels[0])/manyMoved:
		t.made = false
	default:
		t.moved = append(t.moved, row)
	}
}

// play updates the tournament and returns the two best nodes; the second is NoNode if there is only one. The group to choose from must not
// be empty.
func (x *chooser) play(want fit) (best, next int32) {
	t, n := &x.tournament, x.c.v.nodes
	switch {
	case !t.made || t.want != want || t.ranked != n.Ranked || x.otherwiseRanked():
		t.want, t.ranked = want, n.Ranked
		x.ranks()
		x.measure()
		x.replay()
	case x.remeasure():
		x.replay()
	default:
		for _, row := range t.moved {
			if n.Rows[row] != nil {
				t.set(n.Order[row], x.scoreIn(want, row))
			}
		}
	}
	t.made, t.moved = true, t.moved[:0]
	first, second := t.best()
	order := n.ByOrder()
	if second < 0 {
		return order[first], model.NoNode
	}
	return order[first], order[second]
}

// scoreIn returns the score of a row if it is in the group to choose from, otherwise -Inf.
func (x *chooser) scoreIn(want fit, row int32) float64 {
	if !x.c.Cells[row].in(want) {
		return math.Inf(-1)
	}
	return x.Total(int(row), x.Rankings)
}

// otherwiseRanked reports whether a column that had one value now has several, or another.
func (x *chooser) otherwiseRanked() bool {
	return slices.ContainsFunc(x.Rankings, func(r ranking) bool {
		one := &x.c.Rows.ranges[r.column]
		return r.same && (!one.same || math.Float64bits(r.span.Min) != math.Float64bits(one.first))
	})
}

// measure computes the ranges of the columns that have several values, over the group to choose from.
func (x *chooser) measure() {
	t := &x.tournament
	t.ranges = slices.Grow(t.ranges[:0], len(x.Rankings))[:len(x.Rankings)]
	for i := range t.ranges {
		rank, r := &x.Rankings[i], &t.ranges[i]
		if rank.same {
			r.held = r.held[:0]
			continue
		}
		r.held = slab.Resized(r.held, len(x.c.Cells))
		for row := range r.held {
			r.held[row] = x.ranked(rank.column, int32(row))
		}
		r.find()
		rank.span = r.Span
	}
}

// remeasure updates the ranges for the moved rows, and reports whether one changed.
func (x *chooser) remeasure() bool {
	other := false
	for i := range x.Rankings {
		rank, r := &x.Rankings[i], &x.tournament.ranges[i]
		if rank.same {
			continue
		}
		for _, row := range x.tournament.moved {
			r.replace(row, x.ranked(rank.column, row))
		}
		if (r.atMin == 0 || r.atMax == 0) && r.Span != noSpan() {
			r.find()
		}
		other = other || rank.span != r.Span
		rank.span = r.Span
	}
	return other
}

// ranked returns a row's value in a column, NaN if the row is not in the group to choose from.
func (x *chooser) ranked(column int, row int32) float64 {
	if !x.c.Cells[row].in(x.tournament.want) {
		return math.NaN()
	}
	return x.c.Rows.Raw[column][row] + 0 // adding 0 turns -0 into 0
}

// noSpan returns the range of an empty set.
func noSpan() policy.Span { return policy.Span{Min: math.Inf(1), Max: math.Inf(-1)} }

// find computes the range from all rows.
func (r *columnRange) find() {
	r.Span, r.atMin, r.atMax = noSpan(), 0, 0
	for _, v := range r.held {
		r.enter(v)
	}
}

// replace sets the value of a row. If no row has an extreme afterwards, find must compute the range again.
func (r *columnRange) replace(row int32, v float64) {
	old := r.held[row]
	r.held[row] = v
	r.enter(v) // first, so that the range always contains a row
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

// replay computes all scores, and the best score of all groups.
func (x *chooser) replay() {
	t, order := &x.tournament, x.c.v.nodes.ByOrder()
	scores := t.level(0, len(order))
	for place, row := range order {
		scores[place] = x.scoreIn(t.want, row)
	}
	depth := 1
	for ; len(scores) > 1; depth++ {
		n := len(scores) >> groupBits
		groups := t.level(depth, n)
		for i := range n {
			groups[i] = bestOf(scores, i)
		}
		scores = groups
	}
	t.levels = t.levels[:depth]
}

// level returns memory for this many places of a level. It fills up whole groups with -Inf, unless there is only one place.
func (x *tournament) level(depth, places int) []float64 {
	if depth == len(x.levels) {
		x.levels = append(x.levels, nil)
	}
	room := places
	if places > 1 || depth == 0 {
		room = (places + 1<<groupBits - 1) >> groupBits << groupBits
	}
	out := language.RoomFor(x.levels[depth], room)
	for i := places; i < room; i++ {
		out[i] = math.Inf(-1)
	}
	x.levels[depth] = out
	return out
}

// bestOf returns the best score of a group.
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

// set sets the score of a place.
func (x *tournament) set(place int32, score float64) {
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

// best returns the places of the best score and of the second best, -1 if there is no second.
func (x *tournament) best() (first, second int) {
	bestScore, next, nextAt, nextDepth := x.levels[len(x.levels)-1][0], math.Inf(-1), -1, 0
	for depth := len(x.levels) - 2; depth >= 0; depth-- {
		from := first << groupBits
		first = x.winner(depth, from, bestScore)
		for i, score := range x.levels[depth][from : from+1<<groupBits] {
			// The groups next to the winner, at any depth, have no place in common. Of equal groups, the one that begins first wins.
			at := from + i
			if at == first || score == math.Inf(-1) {
				continue
			}
			if score > next || score == next && at<<(groupBits*depth) < nextAt<<(groupBits*nextDepth) {
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

// winner returns the first place of a group that has the group's best score.
func (x *tournament) winner(depth, from int, score float64) int {
	last := from | (1<<groupBits - 1)
	for from < last && x.levels[depth][from] != score {
		from++
	}
	return from
}
