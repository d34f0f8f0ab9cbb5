package policy

import "math"

// Weighted rounds and weighs a value that is normalised already.
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
	return min(max(v*r.Weight, -mostScore), mostScore)
}

// mostScore bounds what one row adds to a score, so that their sum is a number that a Plan can be written with.
const mostScore = 1e300

// Span is the range of a column over the group that is chosen from.
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
		return 100 * ((v - g.Min) / (g.Max - g.Min)) // in the order of kube-scheduler, for what is truncated afterwards
	case "inverseSum":
		if g.Max == 0 {
			return 100
		}
		return 100 * (g.Max + g.Min - v) / g.Max
	}
	return v
}

// Normalises says whether the row's value depends on the group that is chosen from.
func (r *Rule) Normalises() bool { return r.Normalize != "" && r.Normalize != "none" }
