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
// nothing changed for it. It ends when no claim is unmet, or nothing remains or changes. The
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
			next := old.Add(remaining.Scale(c.Weight / weights)).Cap(c.Ceiling).Min(c.Demand).Max(c.Floor)
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

// same compares amounts; a missing dimension is 0.
func same(a, b model.Resources) bool {
	for i := range max(len(a), len(b)) {
		if a.Get(i) != b.Get(i) {
			return false
		}
	}
	return true
}
