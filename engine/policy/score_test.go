package policy

import (
	"math"
	"testing"

	"github.com/celsius-scheduler/celsius/rules"
)

// TestScoresDoNotOverflow normalises, rounds and weights scores at all their bounds, over all ranges at their bounds. Every result is a
// number, and so is the sum of as many rows as a policy can have.
func TestScoresDoNotOverflow(t *testing.T) {
	const rows = 128 * 1000 // more than 128 tables have
	sizes := []float64{
		0, leastScore, math.Nextafter(leastScore, 1), 1e-17, 1, 1.5, 3, 1e17, mostScore / 3, math.Nextafter(mostScore, 0), mostScore,
	}
	var scores []float64
	for _, size := range sizes {
		scores = append(scores, size, -size)
	}
	var tried []*Rule
	for _, n := range rules.Normalizations() {
		for _, mode := range append(rules.Roundings(), rules.Key{}) {
			for _, step := range []float64{leastStep, 1, mostStep} {
				for _, weight := range []float64{-mostWeight, 1, mostWeight} {
					tried = append(tried, &Rule{Scaling: Scaling{Weight: weight, Normalize: n.Name, RoundMode: mode.Name, RoundStep: step}})
				}
			}
		}
	}
	for _, low := range scores {
		for _, high := range scores {
			for _, v := range scores {
				if low > v || v > high {
					continue
				}
				for _, r := range tried {
					n := r.Normalised(v, Span{Min: low, Max: high})
					if w := r.Weighted(n); math.IsNaN(n) || math.IsNaN(w) || math.IsInf(rows*w, 0) {
						t.Fatalf("score %g of %g to %g: normalised %g, weighted %g: %+v", v, low, high, n, w, r.Scaling)
					}
				}
			}
		}
	}
}

func TestScore(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1.7e308, math.Nextafter(mostScore, math.Inf(1))} {
		if got, err := Score(x); err == nil || !math.IsNaN(got) || IsScore(x) {
			t.Errorf("%g is the score %g, error %v", x, got, err)
		}
	}
	for x, want := range map[float64]float64{
		0: 0, -1: -1, mostScore: mostScore, -leastScore: -leastScore, leastScore / 2: 0, -5e-324: 0, 93.75: 93.75,
	} {
		if got, err := Score(x); err != nil || got != want || IsScore(x) != (got == x) {
			t.Errorf("%g is the score %g, error %v", x, got, err)
		}
	}
}
