package quota

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Sums adds amounts from the leaves of a tree to its root. So each party has the sum of its own amounts and those of all parties below it.
// A change costs one addition for each party above. The sums depend only on the last amounts of each party, not on the order of changes.
type Sums struct {
	above []int
	below [][]int // the parties below each party
	own   []model.Resources
	sum   []amount
	// broken states that some value had a fraction. Subtracting it could leave a rounding error. So sums are computed from scratch, in a fixed
	// order.
	broken bool
}

// amount is a sum, and for each dimension the number of its terms. Without a term, the sum does not have the dimension.
type amount struct {
	of     model.Resources
	rest   model.Resources // the exact sum minus of
	having []int
}

// NewSums returns Sums for these places. All amounts are empty.
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

// Of returns the sum of a party and all parties below it. It is shared: do not change it. It is valid until the next Set.
func (s *Sums) Of(i int) model.Resources { return s.sum[i].of }

// Set replaces a party's own amounts, and reports whether they differ.
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

// rebuild computes all sums from scratch, the lowest first.
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
