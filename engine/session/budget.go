package session

import (
	"maps"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// meters counts the work of expressions that have a budget. All expressions of one row, attribute, variable or step condition share a
// meter, and so do their parts that read only the time.
type meters struct{ of map[*eval.Expr]*eval.Meter }

func metersOf(p *policy.Policy) meters {
	m := meters{of: map[*eval.Expr]*eval.Meter{}}
	for _, r := range p.All {
		m.share(r.Asked()...)
	}
	for _, x := range p.Attributes() {
		m.share(append(policy.ArgumentsOf(x.Args), x.When, x.Expr)...)
	}
	for _, x := range p.Accounts {
		if len(x.Fields) > 1 { // all of them share it
			m.share(policy.ArgumentsOf(x.Args)...)
		}
	}
	for _, e := range p.Expressions() {
		if m.of[e] == nil {
			m.share(e)
		}
	}
	return m
}

// share gives one meter to all metered expressions of the list.
func (m *meters) share(list ...*eval.Expr) {
	var one *eval.Meter
	for _, e := range list {
		if e == nil || !e.Metered {
			continue
		}
		if one == nil {
			one = eval.NewMeter(eval.EvaluationBudget(), eval.RoundSteps)
		}
		m.of[e] = one
		for _, part := range e.NowParts {
			m.of[part] = one
		}
	}
}

func (m *meters) begin() {
	for _, one := range m.of {
		one.Begin()
	}
}

// Spent reports whether a row used up its budget in the last cycle. The outcomes of such a row may differ in another cycle, so callers must
// not cache them.
func (s *Session) Spent() bool {
	for _, one := range s.meters.of {
		if one.Dry() {
			return true
		}
	}
	return false
}

// Renewed returns a session that remembers nothing of s except the values of attributes that settle at a start.
func (s *Session) Renewed() *Session {
	out := New(s.c, s.p)
	out.ask.Split, out.Keep = s.ask.Split, s.Keep
	out.starts = maps.Clone(s.starts)
	return out
}
