package quota_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// byTheRounds is WaterFill as its documentation describes it, one operation of Resources after the other. Water must equal it to the last
// bit.
func byTheRounds(total model.Resources, claims []quota.Claim) []model.Resources {
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

// reach raises an amount to most if it is within Slack of it.
func reach(r, most model.Resources) {
	for i := range r {
		if r.Has(i) && r[i] < most.Get(i) && r[i]+model.Slack >= most.Get(i) {
			r[i] = most[i]
		}
	}
}

// settle replaces amounts that differ from a whole number by a rounding error.
func settle(r model.Resources) {
	for i, v := range r {
		if whole := math.Round(v); math.Abs(v-whole) <= 1e-12*max(1, math.Abs(whole)) {
			r[i] = whole
		}
	}
}

// same reports whether amounts are equal; a missing dimension counts as 0.
func same(a, b model.Resources) bool {
	for i := range max(len(a), len(b)) {
		if a.Get(i) != b.Get(i) {
			return false
		}
	}
	return true
}

// bits returns the dimensions that are present, each with all bits of its amount.
func bits(r model.Resources) []uint64 {
	out := []uint64{}
	for i, v := range r {
		if r.Has(i) {
			out = append(out, uint64(i), math.Float64bits(v))
		}
	}
	return out
}

// TestWaterIsTheRounds checks that Water shares out exactly what the rounds give, to the last bit. It reuses the same memory for more
// claims and for fewer.
func TestWaterIsTheRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w quota.Water
		f := drawFilling(t, 50)
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			w.Fill(f.total, f.claims)
			for i, want := range byTheRounds(f.total, f.claims) {
				settle(want)
				if got := w.Of(i); !slices.Equal(bits(got), bits(want)) {
					t.Fatalf("claim %d: got %v, want %v", i, got, want)
				}
			}
			switch next := drawFilling(t, 50); rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				f = next
			case 1:
				f.total = next.total
			default:
				f.claims[rapid.IntRange(0, len(f.claims)-1).Draw(t, "which")] = next.claims[0]
			}
			if rapid.IntRange(0, 5).Draw(t, "limitless") == 0 {
				f.claims[0].Ceiling = model.Resources{math.Inf(1), math.Inf(1)}
				f.claims[0].Demand = model.Resources{math.Inf(1), 7}
			}
		}
	})
}
