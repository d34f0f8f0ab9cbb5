package session

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// rest contains what determines whether a cycle can have a different result than the previous cycle.
type rest struct {
	parts    []*eval.Expr // the parts of all expressions that read only the time
	restless bool         // some expression may change at any moment, in a way that is not followed

	begun  uint64 // the content when the last cycle began
	now    time.Time
	values string      // values of parts
	passed uint64      // number of times that time changed an account
	text   []byte      // scratch for the text of values
	plan   *model.Plan // of the last cycle; nil if it changed the cluster's content
}

func (s *Session) initRest() {
	for _, e := range s.p.Expressions() {
		s.rest.restless = s.rest.restless || policy.MovesUnseen(e.Reads)
		for _, part := range e.NowParts {
			if part.Part != "now" {
				s.rest.parts = append(s.rest.parts, part)
			}
		}
	}
	moves := func(e *eval.Expr) bool { return e != nil && e.Moves() }
	s.byTime = slices.ContainsFunc(s.p.Rules(policy.JobOrder), func(r *policy.Rule) bool { return policy.ReadsNow(r.Reads) })
	// Changes of these accounts by time are not followed. A column has a value for each node. A sum that is not Timed would evaluate each
	// member. A quota tree is evaluated in parts.
	for _, x := range s.p.Accounts {
		s.rest.restless = s.rest.restless || !x.Timed && slices.ContainsFunc(policy.ArgumentsOf(x.Args), moves)
	}
	for _, site := range []string{policy.Predicates, policy.Scores, policy.DevicePredicates, policy.DeviceScores, policy.QueueOrder} {
		for _, r := range s.p.Rules(site) {
			s.rest.restless = s.rest.restless || moves(r.When) || moves(r.Expression)
		}
	}
}

// timeParts returns a text of the present values of the parts that read only the time. It is valid until the next call.
func (s *Session) timeParts() []byte {
	b := s.rest.text[:0]
	f := s.ask.Frame()
	defer s.ask.Done()
	for _, e := range s.rest.parts {
		b = language.Encode(b, e.Eval(f))
	}
	s.rest.text = b
	return b
}

// Still returns the plan of a cycle that would find everything as the previous cycle left it; nil if that is not certain. It is the
// previous plan, because that cycle did everything that there was to do.
func (s *Session) Still(now time.Time) *model.Plan {
	r := &s.rest
	if r.plan == nil || r.restless || s.c.Content() != r.begun || now.Before(r.now) || !s.ask.until.IsZero() && !now.Before(s.ask.until) {
		return nil
	}
	was := s.Now.Time
	s.SetTime(now)
	if string(s.timeParts()) != r.values {
		s.SetTime(was)
		return nil
	}
	plan := *r.plan
	plan.Now, plan.Errors, plan.Fired, plan.Same = now, nil, nil, true
	return &plan
}

// Tick moves to the moment that was passed to Still: later evaluations use that time.
func (s *Session) Tick() {
	s.Cycle++
	s.ask.noFaults()
}

// End closes a cycle, and stores its plan for as long as it is valid.
func (s *Session) End(plan *model.Plan) {
	asks(s, plan)
	s.rest.plan = nil
	if s.c.Content() == s.rest.begun {
		s.rest.plan = plan
	}
}

// asks lists the questions for extenders. If a question must be asked again at some moment, the plan is valid until then.
func asks(s *Session, plan *model.Plan) {
	var again time.Time
	plan.Asks, again = policy.Asks(s.p, s.World, func() *language.Frame {
		return &language.Frame{World: s.World, Workspace: &s.ask.work}
	})
	s.ask.Until(again)
}
