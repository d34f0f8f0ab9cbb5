package session

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// answers combines the answers of the rows of a site.
type answers struct{ base }

// Errors returns the number of evaluations that failed so far.
func (s *answers) Errors() uint64 { return s.ask.Errors() }

// all requires agreement: the first row that answers no decides.
func (s *answers) all(site string, f *language.Frame) policy.Answer {
	return s.allOf(s.p.Rules(site), f)
}

func (s *answers) allOf(rules []*policy.Rule, f *language.Frame) policy.Answer {
	for _, r := range rules {
		if s.ask.Opinion(r, f) == language.No {
			return s.answer(false, r, f)
		}
	}
	return policy.Answer{Yes: true}
}

// agreed does what all does, without the text of the answer.
func (s *answers) agreed(site string, f *language.Frame) bool {
	for _, r := range s.p.Rules(site) {
		if s.ask.Opinion(r, f) == language.No {
			return false
		}
	}
	return true
}

// vote evaluates tier by tier. A refusal decides. Otherwise a permit in the tier decides. If no row has an opinion, the answer is a permit.
func (s *answers) vote(site string, f *language.Frame) policy.Answer {
	var permit *policy.Rule
	tier := -1
	for _, r := range s.p.Rules(site) {
		if r.Tier != tier && permit != nil {
			break
		}
		tier = r.Tier
		switch s.ask.Opinion(r, f) {
		case language.No:
			return s.answer(false, r, f)
		case language.Yes:
			if permit == nil {
				permit = r
			}
		case language.Abstain:
		}
	}
	return policy.Answer{Yes: true, Rule: permit}
}

func (s *answers) answer(yes bool, r *policy.Rule, f *language.Frame) policy.Answer {
	return policy.Answer{Yes: yes, Rule: r, Text: s.ask.Text(r, f)}
}

// askJob calls ask with a frame for a job.
func (s *answers) askJob(j *model.Job, ask func(f *language.Frame) policy.Answer) policy.Answer {
	f := s.ask.Frame().OfJob(j)
	defer s.ask.Done()
	return ask(f)
}

// Valid evaluates jobValid.
func (s *answers) Valid(j *model.Job) policy.Answer {
	return s.askJob(j, func(f *language.Frame) policy.Answer { return s.all(policy.JobValid, f) })
}

// Ready evaluates jobReady: may the job's placements be kept?
func (s *answers) Ready(j *model.Job) policy.Answer {
	return s.askJob(j, func(f *language.Frame) policy.Answer { return s.all(policy.JobReady, f) })
}

// IsReady does what Ready does, for callers that do not need the reason.
func (s *answers) IsReady(j *model.Job) bool {
	f := s.ask.Frame().OfJob(j)
	defer s.ask.Done()
	return s.agreed(policy.JobReady, f)
}

// Pipelined evaluates jobPipelined: may the job's placements be held?
func (s *answers) Pipelined(j *model.Job) policy.Answer {
	return s.askJob(j, func(f *language.Frame) policy.Answer { return s.vote(policy.JobPipelined, f) })
}

// Enqueueable evaluates jobEnqueueable: may the job be admitted?
func (s *answers) Enqueueable(j *model.Job) policy.Answer {
	return s.askJob(j, func(f *language.Frame) policy.Answer { return s.vote(policy.JobEnqueueable, f) })
}

// Starving evaluates jobStarving. All rows of the first tier with rows must agree; without rows the answer is no.
func (s *answers) Starving(j *model.Job) bool {
	f := s.ask.Frame().OfJob(j)
	defer s.ask.Done()
	starving, tier := false, -1
	for _, r := range s.p.Rules(policy.JobStarving) {
		if tier >= 0 && r.Tier != tier {
			break
		}
		tier = r.Tier
		switch s.ask.Opinion(r, f) {
		case language.No:
			return false
		case language.Yes:
			starving = true
		case language.Abstain:
		}
	}
	return starving
}

// Overused reports whether to skip a queue now: one row that answers yes is enough.
func (s *answers) Overused(q *model.Queue) policy.Answer { return s.OverusedIn(nil, q) }

// OverusedIn does what Overused does, with the rows that a step uses; nil: all rows.
func (s *answers) OverusedIn(step *policy.Step, q *model.Queue) policy.Answer {
	f := s.ask.Frame()
	defer s.ask.Done()
	f.Queue = s.QueueView(q)
	for _, r := range s.p.RulesIn(step, policy.Overused) {
		if s.ask.Opinion(r, f) == language.Yes {
			return s.answer(true, r, f)
		}
	}
	return policy.Answer{}
}

// Allocatable reports whether the queue may receive a task.
func (s *answers) Allocatable(t *model.Task) policy.Answer { return s.AllocatableIn(nil, t) }

// AllocatableIn does what Allocatable does, with the rows that a step uses; nil: all rows.
func (s *answers) AllocatableIn(step *policy.Step, t *model.Task) policy.Answer {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	return s.allOf(s.p.RulesIn(step, policy.Allocatable), f)
}

// BeyondShare reports whether a job may start with request although its queue then holds more than its share. One row that accepts is
// enough. If no row accepts, the answer is that of the first row whose message is not empty.
func (s *answers) BeyondShare(j *model.Job, request model.Resources) (refusal policy.Answer) {
	f := s.ask.Frame().OfJob(j).OfRequest(request)
	defer s.ask.Done()
	for _, r := range s.p.Rules(policy.BeyondShare) {
		switch opinion := s.ask.Opinion(r, f); {
		case opinion == language.Yes:
			return policy.Answer{Yes: true}
		case opinion == language.No && r.Message != nil && refusal.Text == "":
			refusal = s.answer(false, r, f)
		}
	}
	return refusal
}

// MayAllocate does what Allocatable does, without the text of the answer.
func (s *answers) MayAllocate(t *model.Task) bool {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	return s.agreed(policy.Allocatable, f)
}

// BindableIn reports, by the rows that a step uses, whether a task may be bound now.
func (s *answers) BindableIn(step *policy.Step, t *model.Task) policy.Answer {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	return s.allOf(s.p.RulesIn(step, policy.Bindable), f)
}

// Preemptive reports whether a job's queue may evict pods of other queues to get request.
func (s *answers) Preemptive(j *model.Job, request model.Resources) policy.Answer {
	f := s.ask.Frame().OfJob(j)
	defer s.ask.Done()
	f.Request = s.Amounts(request)
	return s.all(policy.Preemptive, f)
}

// Feasible evaluates taskFeasible: can the task be placed on any node at all?
func (s *answers) Feasible(t *model.Task) policy.Answer {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	return s.all(policy.TaskFeasible, f)
}

// JobFilter evaluates a step's condition for a job. An error counts as false, and is returned.
func (s *answers) JobFilter(e *eval.Expr, j *model.Job) (bool, error) {
	f := s.ask.Frame().OfJob(j)
	defer s.ask.Done()
	return s.filter(e, f)
}

// TaskFilter evaluates a step's condition for a task.
func (s *answers) TaskFilter(e *eval.Expr, t *model.Task) (bool, error) {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	return s.filter(e, f)
}

// Condition evaluates a step's condition for the cluster.
func (s *answers) Condition(e *eval.Expr) (bool, error) {
	f := s.ask.Frame()
	defer s.ask.Done()
	return s.filter(e, f)
}

// Count evaluates a step's number for the cluster. An error counts as 0, and is returned.
func (s *answers) Count(e *eval.Expr) (int, error) {
	f := s.ask.Frame()
	defer s.ask.Done()
	v := e.Eval(f)
	s.ask.Watch(e, f)
	if n, ok := v.(types.Int); ok {
		return int(n), nil
	}
	return 0, fmt.Errorf("%s: %v", strings.TrimSpace(e.Text.Value), v)
}

func (s *answers) filter(e *eval.Expr, f *language.Frame) (bool, error) {
	holds, err := e.Holds(f)
	s.ask.Watch(e, f)
	if err != nil {
		return false, fmt.Errorf("%s: %v", strings.TrimSpace(e.Text.Value), err)
	}
	return holds, nil
}
