// Package quota computes who may use how much. It knows amounts and weights, not queues or rules.
//
//	claims (weight, floor, ceiling, demand) + total --WaterFill--> what each deserves
package quota

import (
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Claim is what one party brings to the sharing out of a total.
type Claim struct {
	Weight  float64         // above 0
	Floor   model.Resources // at least this
	Ceiling model.Resources // at most this; a missing dimension is no limit
	Demand  model.Resources // no more than this; a missing dimension is 0
}

// WaterFill shares total out by weight, in rounds: each unmet claim gets its weighted part of what
// remains, is cut to ceiling and demand and raised to floor, and is met when its demand is, or
// nothing changed for it. What lies within model.Slack of all that a claim can get is all of it: amounts are whole,
// and a request that is compared exactly must not fail by a rounding error. It ends when no claim is unmet, or nothing remains or changes. The
// result has one Resources a claim, in order; the order matters in the last bit only.
// (Volcano's proportion; behaviour section 9.)
func WaterFill(total model.Resources, claims []Claim) []model.Resources {
	deserved := make([]model.Resources, len(claims))
	met := make([]bool, len(claims))
	remaining := total.Clone()
	for {
		weights := 0.0
		for i, c := range claims {
			if !met[i] {
				weights += c.Weight
			}
		}
		if weights <= 0 {
			return deserved
		}
		var rise, fall model.Resources
		for i, c := range claims {
			if met[i] {
				continue
			}
			old := deserved[i]
			most := c.Demand.Cap(c.Ceiling)
			next := old.Add(remaining.Scale(c.Weight / weights)).Min(most).Max(c.Floor)
			reach(next, most)
			deserved[i] = next
			met[i] = c.Demand.Fits(next) || same(old, next)
			rise.AddIn(next.Over(old), 1)
			fall.AddIn(old.Over(next), 1)
		}
		before := remaining
		remaining = remaining.Add(fall).Over(rise)
		if remaining.IsEmpty() || same(before, remaining) {
			return deserved
		}
	}
}

// reach raises what is within Slack of most to it.
func reach(r, most model.Resources) {
	for i := range r {
		if r.Has(i) && r[i] < most.Get(i) && r[i]+model.Slack >= most.Get(i) {
			r[i] = most[i]
		}
	}
}

// same compares amounts; a missing dimension is 0.
func same(a, b model.Resources) bool {
	for i := range max(len(a), len(b)) {
		if a.Get(i) != b.Get(i) {
			return false
		}
	}
	return true
}
