package policy

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// ReadsTime says whether anything in the policy reads the time, be it a row, what it computes, or an action's filter:
// then another decision may come of nothing but waiting.
func (p *Policy) ReadsTime() bool {
	return slices.ContainsFunc(p.expressions(), func(e *eval.Expr) bool { return e.Timely() || movesUnseen(e.Reads) })
}

// expressions are all of the policy's.
func (p *Policy) expressions() []*eval.Expr {
	var out []*eval.Expr
	add := func(list ...*eval.Expr) {
		out = append(out, slices.DeleteFunc(list, func(e *eval.Expr) bool { return e == nil })...)
	}
	for _, r := range p.all {
		add(r.asked()...)
	}
	for _, x := range p.attributes {
		add(x.When, x.Expr)
	}
	for _, v := range p.variables {
		add(v.Expr)
	}
	for _, a := range p.Actions {
		for _, step := range a.Steps {
			add(step.conditions()...)
		}
	}
	return append(out, p.arguments()...)
}

// arguments are the expressions that functions of attributes ask of their members.
func (p *Policy) arguments() []*eval.Expr {
	var out []*eval.Expr
	for _, x := range p.accounts {
		out = append(out, values(x.Args)...)
	}
	return out
}

func readsNow(reads *rules.Reads) bool { return slices.ContainsFunc(reads.All, ofClock) }

// movesUnseen says that the time is read in another way than by its name, which is not followed.
func movesUnseen(reads *rules.Reads) bool {
	return slices.ContainsFunc(reads.All, func(read rules.Read) bool { return read.Root != "now" && ofClock(read) })
}

// rest is what tells whether a cycle can find anything other than the last one did.
type rest struct {
	parts    []*eval.Expr // of all expressions: those that read the time only
	restless bool         // some expression may change with each moment, in a way that is not followed

	begun  uint64 // the content when the last cycle began
	now    time.Time
	values string      // of parts
	text   []byte      // scratch for such
	plan   *model.Plan // of the last cycle, nil where it changed the cluster's content
	// ordered says that the order of jobs reads the time, asking that a moment is being asked for.
	ordered, asking bool
	// until is the first moment at which something that was evaluated may say something else; zero: none.
	until time.Time
}

func (s *Session) initRest() {
	for _, e := range s.p.expressions() {
		s.rest.restless = s.rest.restless || movesUnseen(e.Reads)
		for _, part := range e.NowParts {
			if part.Part != "now" {
				s.rest.parts = append(s.rest.parts, part)
			}
		}
	}
	moves := func(e *eval.Expr) bool { return e != nil && e.Moves() }
	s.rest.ordered = slices.ContainsFunc(s.p.rules[JobOrder], func(r *Rule) bool { return readsNow(r.Reads) })
	// These are not followed: columns are as wide as the cluster, sums ask each member, and queues along a tree are asked in parts.
	s.rest.restless = s.rest.restless || slices.ContainsFunc(s.p.arguments(), moves)
	for _, site := range []string{Predicates, Scores, DeviceScores, QueueOrder} {
		for _, r := range s.p.rules[site] {
			s.rest.restless = s.rest.restless || moves(r.When) || moves(r.Expression)
		}
	}
}

// watch notes when an expression that was just evaluated may say something else though nothing but time moves.
func (s *Session) watch(e *eval.Expr, f *language.Frame) {
	if !e.Timely() {
		return
	}
	if next, ok := e.Next(f, s.Now.Time); ok {
		s.Until(next)
	}
}

// until computes keys, and the moment until which they hold.
func (s *Session) until(keys func() []Key) ([]Key, time.Time) {
	r := &s.rest
	if !r.ordered {
		return keys(), time.Time{}
	}
	others, asking := r.until, r.asking
	r.until, r.asking = time.Time{}, true
	out, until := keys(), r.until
	r.until, r.asking = others, asking
	return out, until
}

// Until notes that something that the plan rests on may be another from that moment on; the zero time is none.
func (s *Session) Until(moment time.Time) {
	if r := &s.rest; !moment.IsZero() && (r.until.IsZero() || moment.Before(r.until)) {
		r.until = moment
	}
}

// timeParts is a text of what the parts that read the time only say now.
// It is good until it is asked for again.
func (s *Session) timeParts() []byte {
	b := s.rest.text[:0]
	f := s.frame()
	defer s.done()
	for _, e := range s.rest.parts {
		b = encode(b, e.Eval(f))
	}
	s.rest.text = b
	return b
}

// Still gives the plan of a cycle that would find everything as the last one left it, and nil where that is not known.
// It is the last plan: what there was to do, that cycle did.
func (s *Session) Still(now time.Time) *model.Plan {
	r := &s.rest
	if r.plan == nil || r.restless || s.c.Content() != r.begun || now.Before(r.now) || !r.until.IsZero() && !now.Before(r.until) {
		return nil
	}
	was := s.Now.Time
	s.SetTime(now)
	if string(s.timeParts()) != r.values {
		s.SetTime(was)
		return nil
	}
	plan := *r.plan
	plan.Now, plan.Errors, plan.Same = now, nil, true
	return &plan
}

// Tick moves to the moment that Still was asked about: what is evaluated from here on is of then.
func (s *Session) Tick() {
	s.Cycle++
	s.noFaults()
}

// End closes a cycle, and keeps its plan for as long as it holds.
func (s *Session) End(plan *model.Plan) {
	s.rest.plan = nil
	if s.c.Content() == s.rest.begun {
		s.rest.plan = plan
	}
}
