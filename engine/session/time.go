package session

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// rest is what tells whether a cycle can find anything other than the last one did.
type rest struct {
	parts    []*eval.Expr // of all expressions: those that read the time only
	restless bool         // some expression may change with each moment, in a way that is not followed

	begun  uint64 // the content when the last cycle began
	now    time.Time
	values string      // of parts
	passed uint64      // how often time has changed an account
	text   []byte      // scratch for such
	plan   *model.Plan // of the last cycle, nil where it changed the cluster's content
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
	// Changes of these accounts by time are not followed: a column has a value for each node, a sum that is not Timed would evaluate each
	// member, and a quota tree is evaluated in parts.
	for _, x := range s.p.Accounts {
		s.rest.restless = s.rest.restless || !x.Timed && slices.ContainsFunc(policy.ArgumentsOf(x.Args), moves)
	}
	for _, site := range []string{policy.Predicates, policy.Scores, policy.DevicePredicates, policy.DeviceScores, policy.QueueOrder} {
		for _, r := range s.p.Rules(site) {
			s.rest.restless = s.rest.restless || moves(r.When) || moves(r.Expression)
		}
	}
}

// timeParts is a text of what the parts that read the time only say now.
// It is good until it is asked for again.
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

// Still gives the plan of a cycle that would find everything as the last one left it, and nil where that is not known.
// It is the last plan: what there was to do, that cycle did.
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

// Tick moves to the moment that Still was asked about: what is evaluated from here on is of then.
func (s *Session) Tick() {
	s.Cycle++
	s.ask.noFaults()
}

// End closes a cycle, and keeps its plan for as long as it holds.
func (s *Session) End(plan *model.Plan) {
	asks(s, plan)
	s.rest.plan = nil
	if s.c.Content() == s.rest.begun {
		s.rest.plan = plan
	}
}

// asks lists what extenders are to be asked; where something has to be asked again at some moment, the plan holds until then.
func asks(s *Session, plan *model.Plan) {
	var again time.Time
	plan.Asks, again = policy.Asks(s.p, s.World, func() *language.Frame {
		return &language.Frame{World: s.World, Workspace: &s.ask.work}
	})
	s.ask.Until(again)
}
