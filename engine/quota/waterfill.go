// Package quota computes how much each party may use. It knows amounts and weights, but neither queues nor rules.
//
//	claims (weight, floor, ceiling, demand) + total --WaterFill--> what each deserves
package quota

import (
	"cmp"
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Claim is one party's input when a total is shared.
type Claim struct {
	Weight  float64         // above 0
	Floor   model.Resources // the minimum
	Ceiling model.Resources // the maximum; a missing dimension is no limit
	Demand  model.Resources // no more than this; a missing dimension is 0
	Rank    float64         // if remainders are equal, the claim with the larger rank is rounded up first
}

// WaterFill shares total by weight, in rounds. Each unmet claim gets its weighted part of what remains, limited by ceiling and demand, and
// at least floor. A claim is met when its demand is met, or when nothing changed for it. A result within model.Slack of the maximum of a
// claim becomes that maximum. The reason is that amounts are whole, and an exact comparison with a request must not fail because of
// rounding. WaterFill ends when no claim is unmet, or nothing remains or changes. The result has one Resources per claim, in order. The
// order affects only the last bit. (docs/volcano.md, Proportion.)
func WaterFill(total model.Resources, claims []Claim) []model.Resources {
	return WholeFill(total, claims, nil)
}

// WholeFill does what WaterFill does, with parts that are whole numbers of units, in the dimensions that have a unit above 0.
func WholeFill(total model.Resources, claims []Claim, units []float64) []model.Resources {
	var w Water
	w.Fill(total, claims)
	w.Round(units)
	deserved := make([]model.Resources, len(claims))
	for i := range claims {
		deserved[i] = w.Of(i).Clone()
	}
	return deserved
}

// Water is a WaterFill whose memory is used again for the next one. The zero value is ready.
//
// A round costs a step for each unmet claim and dimension. Each round meets a claim, or leaves less than before, until nothing remains. All
// rounds run again after each change of any claim, because every part depends on the sum of all weights and on the other claims. Adding in
// another order would give other last bits.
type Water struct {
	dims int
	// Rows of dims amounts, one row per claim; NaN is absent.
	floor, most, demand, deserved []float64
	weight, rank                  []float64
	unmet                         []int // in order
	// Amounts of one round.
	remaining, rise, fall []float64
}

// Of returns what the last Fill gave to a claim, by its index. It is valid until the next Fill. Do not change it.
func (w *Water) Of(claim int) model.Resources {
	row := w.row(w.deserved, claim)
	for len(row) > 0 && absent(row[len(row)-1]) {
		row = row[:len(row)-1]
	}
	return row
}

func (w *Water) row(of []float64, claim int) []float64 {
	end := (claim + 1) * w.dims
	return of[claim*w.dims : end : end]
}

// mostError is the largest rounding error of a part, as a fraction of it.
const mostError = 1e-12

// Fill shares a total among claims. It does not keep its arguments.
func (w *Water) Fill(total model.Resources, claims []Claim) {
	w.take(total, claims)
	defer w.settle()
	for len(w.unmet) > 0 {
		weights := 0.0
		for _, i := range w.unmet {
			weights += w.weight[i]
		}
		if weights <= 0 {
			return
		}
		w.round(weights)
		if w.drain() {
			return
		}
	}
}

// settle removes the rounding errors of the rounds. A part that differs from a whole number by less than errors can explain becomes that
// number: requests are whole, and a request that is compared exactly must not fail by an error in the last digits.
func (w *Water) settle() {
	for i, part := range w.deserved {
		if whole := math.Round(part); math.Abs(part-whole) <= mostError*max(1, math.Abs(whole)) {
			w.deserved[i] = whole
		}
	}
}

// take copies the arguments into rows.
func (w *Water) take(total model.Resources, claims []Claim) {
	w.dims = len(total)
	for i := range claims {
		w.dims = max(w.dims, len(claims[i].Floor), len(claims[i].Demand))
	}
	size := len(claims) * w.dims
	for _, rows := range []*[]float64{&w.floor, &w.most, &w.demand, &w.deserved} {
		*rows = sized(*rows, size)
	}
	for _, row := range []*[]float64{&w.remaining, &w.rise, &w.fall} {
		*row = sized(*row, w.dims)
	}
	copy(w.remaining, total)
	w.weight, w.rank, w.unmet = w.weight[:0], w.rank[:0], w.unmet[:0]
	for i := range claims {
		c := &claims[i]
		w.weight, w.rank, w.unmet = append(w.weight, c.Weight), append(w.rank, c.Rank), append(w.unmet, i)
		copy(w.row(w.floor, i), c.Floor)
		copy(w.row(w.demand, i), c.Demand)
		most := w.row(w.most, i)
		for k, v := range c.Demand {
			if most[k] = v; !absent(v) && c.Ceiling.Has(k) {
				most[k] = min(v, c.Ceiling[k])
			}
		}
	}
}

// sized returns a slice of n absent amounts. It uses the memory of another slice if that suffices.
func sized(of []float64, n int) []float64 {
	if cap(of) < n {
		of = make([]float64, n)
	}
	of = of[:n]
	for i := range of {
		of[i] = model.Absent()
	}
	return of
}

func absent(v float64) bool { return v != v }

// get returns an amount; 0 if absent.
func get(v float64) float64 {
	if absent(v) {
		return 0
	}
	return v
}

// either reports whether one of two amounts is present.
func either(a, b float64) bool { return !absent(a) || !absent(b) }

// round raises each unmet claim once, and sums the changes.
func (w *Water) round(weights float64) {
	w.rise, w.fall = sized(w.rise, w.dims), sized(w.fall, w.dims)
	unmet := w.unmet[:0]
	for _, i := range w.unmet {
		if !w.raise(i, w.weight[i]/weights) {
			unmet = append(unmet, i)
		}
	}
	w.unmet = unmet
}

// raise gives a claim its part of what remains, and reports whether it is met.
func (w *Water) raise(claim int, part float64) (met bool) {
	deserved, floor, most, demand := w.row(w.deserved, claim), w.row(w.floor, claim), w.row(w.most, claim), w.row(w.demand, claim)
	fits, same := true, true
	for k, old := range deserved {
		next := old
		if more := float64(w.remaining[k] * part); either(old, more) { // float64 prevents a fused multiply-add
			next = get(old) + get(more)
		}
		if either(next, most[k]) {
			next = min(get(next), get(most[k]))
		}
		if either(next, floor[k]) {
			next = max(get(next), get(floor[k]))
		}
		if next < get(most[k]) && next+model.Slack >= get(most[k]) {
			next = most[k]
		}
		deserved[k] = next
		fits = fits && (absent(demand[k]) || demand[k] <= get(next)+model.Slack)
		same = same && get(old) == get(next)
		if over := max(next-get(old), 0); !absent(over) {
			w.rise[k] = get(w.rise[k]) + over
		}
		if over := max(old-get(next), 0); !absent(over) {
			w.fall[k] = get(w.fall[k]) + over
		}
	}
	return fits || same
}

// drain subtracts what a round gave from what remains. It reports whether that is the end: nothing remains except pods, or as much as
// before.
func (w *Water) drain() (done bool) {
	empty, same := true, true
	for k, before := range w.remaining {
		after := before
		if either(before, w.fall[k]) {
			after = max(get(before)+get(w.fall[k])-get(w.rise[k]), 0)
		}
		w.remaining[k] = after
		empty = empty && (k == model.Pods || get(after) < model.Slack)
		same = same && get(before) == get(after)
	}
	return empty || same
}

// Round rounds the parts of the last Fill to whole numbers of units. It does this in the dimensions that have a unit above 0 and in which
// all demands are whole. The reason is that queues cannot share a device, so a fraction of a device is of no use to any queue. Round rounds
// each part down. Then it gives the remaining units, one by one, to the claims with the largest remainders. If remainders are equal, the
// claim with the largest rank comes first. If ranks are equal too, the claim with the lowest index comes first. A claim that has all that
// it can get keeps it.
func (w *Water) Round(units []float64) {
	for k := range min(w.dims, len(units)) {
		if units[k] > 0 {
			w.roundTo(k, units[k])
		}
	}
}

// remainder is the fraction that rounding removes from a claim.
type remainder struct {
	claim int
	rest  float64
}

func (w *Water) roundTo(k int, unit float64) {
	var of []remainder
	left := 0.0
	for i := range w.weight {
		if math.Mod(get(w.row(w.demand, i)[k]), unit) != 0 {
			return
		}
		part, most := w.row(w.deserved, i)[k], get(w.row(w.most, i)[k])
		if get(part) >= most || absent(part) {
			continue
		}
		down := max(math.Floor((part+model.Slack)/unit)*unit, get(w.row(w.floor, i)[k]))
		rest := part - down
		w.row(w.deserved, i)[k] = down
		if rest > model.Slack {
			of, left = append(of, remainder{i, rest}), left+rest
		}
	}
	slices.SortStableFunc(of, func(a, b remainder) int {
		if math.Abs(a.rest-b.rest) <= model.Slack { // rounding errors of the rounds must not decide
			return cmp.Or(cmp.Compare(w.rank[b.claim], w.rank[a.claim]), cmp.Compare(a.claim, b.claim))
		}
		return cmp.Compare(b.rest, a.rest)
	})
	for _, r := range of {
		part := &w.row(w.deserved, r.claim)[k]
		if up := *part + unit; left+model.Slack >= unit && up <= get(w.row(w.most, r.claim)[k])+model.Slack {
			*part, left = up, left-unit
		}
	}
}
