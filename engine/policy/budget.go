package policy

import (
	"maps"

	"github.com/celsius-scheduler/celsius/rules"
)

// meters count what the expressions use that run within a budget: those of one row, or one attribute, together.
type meters struct{ of map[*rules.Expr]*rules.Meter }

// metersOf makes those of the rows. The others are made when they are asked for first.
func metersOf(p *Policy) meters {
	m := meters{of: map[*rules.Expr]*rules.Meter{}}
	for _, r := range p.all {
		var one *rules.Meter
		for _, e := range r.expressions() {
			if e == nil || !e.Metered {
				continue
			}
			if one == nil {
				one = rules.NewMeter(rules.EvaluationBudget(), rules.RoundSteps)
			}
			m.of[e] = one
		}
	}
	return m
}

// expressions are those that a row has, some of them nil.
func (r *Rule) expressions() []*rules.Expr {
	out := []*rules.Expr{r.When, r.Expression}
	if r.Message != nil {
		for _, p := range r.Message.parts {
			out = append(out, p.expr)
		}
	}
	return out
}

func (m *meters) begin() {
	for _, one := range m.of {
		one.Begin()
	}
}

// Meter implements rules.Purse.
func (f *Frame) Meter(e *rules.Expr) *rules.Meter {
	if f.s == nil {
		return nil // at compile time
	}
	one := f.s.meters.of[e]
	if one == nil {
		one = rules.NewMeter(rules.EvaluationBudget(), rules.RoundSteps)
		f.s.meters.of[e] = one
	}
	return one
}

// Spent says that some row had no budget left for all that it was asked in the last cycle: what it said of the others is not what it
// would say in another cycle, and must not be remembered.
func (s *Session) Spent() bool {
	for _, one := range s.meters.of {
		if one.Dry() {
			return true
		}
	}
	return false
}

// Renewed is a session that remembers nothing of this one but the values that settle at a start.
func (s *Session) Renewed() *Session {
	out := NewSession(s.c, s.p)
	out.NoCache, out.Split, out.kept = s.NoCache, s.Split, s.kept
	out.starts = maps.Clone(s.starts)
	return out
}

// costAnew is what it costs to read a variable or an attribute that is computed each time that it is asked until when something holds.
func costAnew(byTime bool, e *rules.Expr) uint64 {
	if !byTime || e == nil {
		return 0
	}
	return e.Cost.Max
}
