package policy

import (
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A score is 0, or a number whose size is from leastScore to mostScore. Weights and rounding steps have bounds too. Within all of these
// bounds, no normalised score, no weighted score and no sum of scores overflows. TestScoresDoNotOverflow checks this at every bound.
const (
	mostScore   = 1e100
	leastScore  = 1e-100
	mostWeight  = 1e50
	leastStep   = 1e-50
	mostStep    = 1e50
	scoreBounds = "a score must be a number from -1e+100 to 1e+100"
)

// Score returns the score of a row whose expression has the value x: 0 if x is too small to make a difference. An error means that x is
// not a score, because it is NaN, infinite or beyond the bounds.
func Score(x float64) (float64, ref.Val) {
	if IsScore(x) {
		return x, nil
	}
	if math.Abs(x) < leastScore {
		return 0, nil
	}
	return math.NaN(), types.NewErr("the score is %v, but %s", x, scoreBounds)
}

// IsScore reports whether Score returns x itself.
func IsScore(x float64) bool {
	size := math.Abs(x)
	return size >= leastScore && size <= mostScore || x == 0
}

// Weighted rounds and weights a normalised value.
func (r *Rule) Weighted(v float64) float64 {
	if v != v {
		return 0
	}
	switch r.RoundMode {
	case "trunc":
		v = math.Trunc(v/r.RoundStep) * r.RoundStep
	case "floor":
		v = math.Floor(v/r.RoundStep) * r.RoundStep
	case "ceil":
		v = math.Ceil(v/r.RoundStep) * r.RoundStep
	case "nearest":
		v = math.Round(v/r.RoundStep) * r.RoundStep
	}
	return v * r.Weight
}

// Span is the range of a column over the candidate nodes.
type Span struct{ Min, Max float64 }

// Normalised maps a raw value to 0..100 (docs/rule-language.md, Scores).
func (r *Rule) Normalised(v float64, g Span) float64 {
	if v != v {
		return v
	}
	switch r.Normalize {
	case "max":
		if g.Max == 0 {
			return 0
		}
		return 100 * v / g.Max
	case "inverseMax":
		if g.Max == 0 {
			return 100
		}
		return 100 - 100*v/g.Max
	case "minMax":
		if g.Max == g.Min {
			return 0
		}
		return 100 * ((v - g.Min) / (g.Max - g.Min)) // in the order of kube-scheduler, because of later truncation
	case "inverseSum":
		if g.Max == 0 {
			return 100
		}
		return 100 * (g.Max + g.Min - v) / g.Max
	}
	return v
}

// Normalises reports whether the row's value depends on all candidate nodes.
func (r *Rule) Normalises() bool { return r.Normalize != "" && r.Normalize != "none" }
