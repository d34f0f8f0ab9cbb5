package session

import (
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// evaluator evaluates all expressions of a policy, and counts errors and the evaluations of each row.
type evaluator struct {
	w *language.World
	// Split determines when several processors evaluate one row. The answers are the same.
	Split Split

	actions    uint64 // number of actions that began
	frames     []*language.Frame
	depth      int
	faults     map[any]*model.RuleError
	faultOrder []*model.RuleError
	erring     uint64   // number of errors so far
	evaluated  []uint64 // by the number of the rule
	work       language.Workspace
	batch      eval.Batch
	pool       pool
	// until is the first moment at which something that was evaluated may change; zero: none. asking is true while a caller computes such a
	// moment.
	until  time.Time
	asking bool
}

func newEvaluator(w *language.World, p *policy.Policy) *evaluator {
	return &evaluator{
		w: w, faults: map[any]*model.RuleError{}, evaluated: make([]uint64, len(p.All)+1),
		work: language.Workspace{Variables: make([]language.HeldValue, len(p.Variables))},
	}
}

// StampOf returns the present moment of the cycle, for a value that reads the action or does not.
func (s *evaluator) StampOf(byAction bool) language.Stamp {
	at := language.Stamp{Cycle: s.w.Cycle}
	if byAction {
		at.Action = s.actions
	}
	return at
}

// Faults returns the errors of rows in this cycle, in the order of their first occurrence.
func (s *evaluator) Faults() []model.RuleError {
	var out []model.RuleError
	for _, e := range s.faultOrder {
		out = append(out, *e)
	}
	return out
}

func (s *evaluator) noFaults() {
	clear(s.faults)
	s.faultOrder = nil
}

// Fault counts an error of a row.
func (s *evaluator) Fault(r *policy.Rule, f *language.Frame, err ref.Val) {
	s.count(r, model.RuleError{Site: r.Site.Name, Table: r.Table, Rule: r.Name}, f, err)
}

// FaultOf counts an error of an attribute.
func (s *evaluator) FaultOf(x *policy.Attribute, f *language.Frame, err ref.Val) {
	s.count(x, model.RuleError{Site: "attributes", Table: x.Table, Rule: x.Name}, f, err)
}

func (s *evaluator) count(of any, first model.RuleError, f *language.Frame, err ref.Val) {
	s.erring++
	e, ok := s.faults[of]
	if !ok {
		first.Object, first.Text = f.Subject(), fmt.Sprint(err)
		e = &first
		s.faults[of] = e
		s.faultOrder = append(s.faultOrder, e)
	}
	e.Count++
	if rules.Exceeded(err) {
		e.OverBudget++
	}
	if rules.Panicked(err) {
		e.Panicked++
	}
}

// Frame lends an empty frame. Return it with Done.
func (s *evaluator) Frame() *language.Frame {
	if s.depth == len(s.frames) {
		s.frames = append(s.frames, &language.Frame{})
	}
	f := s.frames[s.depth]
	*f = language.Frame{World: s.w, Workspace: &s.work}
	s.depth++
	return f
}

func (s *evaluator) Done() { s.depth-- }

// Guard reports whether a row has an opinion. An error of its guard is an error of the row.
func (s *evaluator) Guard(r *policy.Rule, f *language.Frame) (has bool, err ref.Val) {
	if r.When == nil {
		return true, nil
	}
	has, err = r.When.Holds(f)
	s.Watch(r.When, f)
	return has, err
}

// Opinion evaluates a row of a yes-or-no site.
func (s *evaluator) Opinion(r *policy.Rule, f *language.Frame) language.Opinion {
	switch has, err := s.Guard(r, f); {
	case err != nil:
		s.evaluated[r.Number]++
		return s.erred(r, f, err)
	case !has:
		s.evaluated[r.Number]++
		return language.Abstain
	}
	return s.Says(r, f)
}

// Says evaluates a row whose guard is true.
func (s *evaluator) Says(r *policy.Rule, f *language.Frame) language.Opinion {
	s.evaluated[r.Number]++
	holds, err := r.Expression.Holds(f)
	s.Watch(r.Expression, f)
	switch {
	case err != nil:
		return s.erred(r, f, err)
	case holds:
		return language.Yes
	}
	return language.No
}

// erred counts an error of a row, and returns the opinion that the row has in that case.
func (s *evaluator) erred(r *policy.Rule, f *language.Frame, err ref.Val) language.Opinion {
	s.Fault(r, f, err)
	switch r.OnError {
	case "deny":
		return policy.Denial(r.Site)
	case "allow":
		if r.Site.DenyIs {
			return language.No
		}
		return language.Yes
	}
	return language.Abstain
}

// Text returns why a row rejects its subject: its message, its expression, or its error.
func (s *evaluator) Text(r *policy.Rule, f *language.Frame) string {
	if _, err := s.Guard(r, f); err != nil {
		return fmt.Sprintf("erred: %v", err)
	}
	if v := r.Expression.Eval(f); types.IsError(v) {
		return fmt.Sprintf("erred: %v", v)
	}
	if r.Message == nil {
		return r.Expression.Text.Value + " does not hold"
	}
	return s.Words(r.Message, f)
}

// Words formats a message for the subject of a frame.
func (s *evaluator) Words(m *policy.Message, f *language.Frame) string {
	return m.Words(func(e *eval.Expr) ref.Val {
		defer s.Watch(e, f)
		return e.Eval(f)
	})
}

// Score evaluates a row of scores. NaN: the row has no opinion, or failed.
func (s *evaluator) Score(r *policy.Rule, f *language.Frame) float64 {
	switch has, err := s.Guard(r, f); {
	case err != nil:
		s.evaluated[r.Number]++
		s.Fault(r, f, err)
		return math.NaN()
	case !has:
		s.evaluated[r.Number]++
		return math.NaN()
	}
	return s.Value(r, f)
}

// Value evaluates a row of scores whose guard is true. NaN: it failed.
func (s *evaluator) Value(r *policy.Rule, f *language.Frame) float64 {
	s.evaluated[r.Number]++
	x, err := r.Expression.Number(f)
	if err == nil {
		x, err = policy.Score(x)
	}
	if err == nil {
		return x
	}
	s.Fault(r, f, err)
	return math.NaN()
}

// AskedTogether counts that a row was evaluated for several nodes at once.
func (s *evaluator) AskedTogether(r *policy.Rule, nodes int) { s.evaluated[r.Number] += uint64(nodes) }

// Errors returns the number of errors so far.
func (s *evaluator) Errors() uint64 { return s.erring }

// Watch records when an expression that was just evaluated may change although only time passes.
func (s *evaluator) Watch(e *eval.Expr, f *language.Frame) {
	if !e.Timely() {
		return
	}
	if next, ok := e.Next(f, s.w.Now.Time); ok {
		s.Until(next)
	}
}

// Until records that something that the plan depends on may change at that moment. The zero time has no effect.
func (s *evaluator) Until(moment time.Time) {
	if !moment.IsZero() && (s.until.IsZero() || moment.Before(s.until)) {
		s.until = moment
	}
}
