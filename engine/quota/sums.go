package quota

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Sums adds up amounts from the leaves of a tree to its root, so that each party has its own and those of all below it.
// It is kept by delta: a change costs one addition for each party above. The sums depend on what was set last for each party alone, not on
// the way there.
type Sums struct {
	above []int
	below [][]int // of those that have any
	own   []model.Resources
	sum   []amount
	// broken says that some value had a fraction: what is taken out again would leave its last bits behind, so that
	// sums are made anew from what is below, in one order.
	broken bool
}

// amount is a sum with how many of its terms have each dimension: without one, the sum has none either.
type amount struct {
	of     model.Resources
	rest   model.Resources // what of lacks of the exact sum
	having []int
}

// NewSums adds up along these places. Nobody has anything yet.
func NewSums(places []Place) *Sums {
	s := &Sums{
		above: make([]int, len(places)), below: make([][]int, len(places)), own: make([]model.Resources, len(places)),
		sum: make([]amount, len(places)),
	}
	for i, p := range places {
		s.above[i] = p.Above
		if p.Above >= 0 {
			s.below[p.Above] = append(s.below[p.Above], i)
		}
	}
	return s
}

// Of is what a party and all below it have. It is shared: not to be changed, and valid until the next Set.
func (s *Sums) Of(i int) model.Resources { return s.sum[i].of }

// Set puts a party's own amounts in place of its old ones, and says whether they differ.
func (s *Sums) Set(i int, v model.Resources) bool {
	old := s.own[i]
	if v.Equal(old) {
		return false
	}
	s.own[i] = v.Clone()
	if !s.broken && !whole(v) {
		s.broken = true
		s.rebuild()
		return true
	}
	for at := i; at >= 0; at = s.above[at] {
		if s.broken {
			s.makeAnew(at)
			continue
		}
		s.sum[at].add(old, -1)
		s.sum[at].add(v, 1)
	}
	return true
}

// rebuild makes all sums anew, those below first.
func (s *Sums) rebuild() {
	var order []int
	for i, above := range s.above {
		if above < 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		order = append(order, s.below[order[k]]...)
	}
	for _, i := range slices.Backward(order) {
		s.makeAnew(i)
	}
}

func (s *Sums) makeAnew(i int) {
	s.sum[i] = amount{}
	s.sum[i].add(s.own[i], 1)
	for _, child := range s.below[i] {
		s.sum[i].add(s.sum[child].of, 1)
		for dim, lacks := range s.sum[child].rest {
			if lacks == lacks {
				s.sum[i].of.AddExactly(&s.sum[i].rest, dim, lacks)
			}
		}
	}
}

func whole(r model.Resources) bool {
	return !slices.ContainsFunc(r, func(x float64) bool { return x == x && x != math.Trunc(x) })
}

func (a *amount) add(r model.Resources, sign int) {
	for len(a.having) < len(r) {
		a.having = append(a.having, 0)
	}
	for i := range r {
		if !r.Has(i) {
			continue
		}
		a.having[i] += sign
		a.of.AddExactly(&a.rest, i, float64(sign)*r[i])
		if a.having[i] == 0 {
			a.of[i] = model.Absent()
		}
	}
}
