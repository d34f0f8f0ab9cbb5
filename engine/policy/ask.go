package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Answer is what a site says, with the row that decided. Rule is nil where no row did.
type Answer struct {
	Yes  bool
	Rule *Rule
	Text string
}

// Reason of the answer, for the plan.
func (a Answer) Reason() model.Reason {
	if a.Rule == nil {
		return model.Reason{Text: a.Text}
	}
	return a.Rule.reason(a.Text)
}

// guard says whether a row has an opinion; a guard that errs is an error of the row.
func (s *Session) guard(r *Rule, f *language.Frame) (has bool, err ref.Val) {
	if r.When == nil {
		return true, nil
	}
	has, err = r.When.Holds(f)
	s.watch(r.When, f)
	return has, err
}

// opinion asks a row of a yes-or-no site.
func (s *Session) opinion(r *Rule, f *language.Frame) language.Opinion {
	switch has, err := s.guard(r, f); {
	case err != nil:
		s.evaluated[r.Number]++
		return s.erred(r, f, err)
	case !has:
		s.evaluated[r.Number]++
		return language.Abstain
	}
	return s.says(r, f)
}

// says asks a row whose guard holds.
func (s *Session) says(r *Rule, f *language.Frame) language.Opinion {
	s.evaluated[r.Number]++
	holds, err := r.Expression.Holds(f)
	s.watch(r.Expression, f)
	switch {
	case err != nil:
		return s.erred(r, f, err)
	case holds:
		return language.Yes
	}
	return language.No
}

// erred counts an error of a row, and gives what the row is taken to say then.
func (s *Session) erred(r *Rule, f *language.Frame, err ref.Val) language.Opinion {
	s.fault(r, f, err)
	switch r.OnError {
	case "deny":
		return Denial(r.Site)
	case "allow":
		if r.Site.DenyIs {
			return language.No
		}
		return language.Yes
	}
	return language.Abstain
}

// Denial is what a row of a site says that denies.
func Denial(site *Site) language.Opinion {
	if site.DenyIs {
		return language.Yes
	}
	return language.No
}

// all asks for agreement: the first row that says no decides.
func (s *Session) all(site string, f *language.Frame) Answer {
	for _, r := range s.p.rules[site] {
		if s.opinion(r, f) == language.No {
			return s.answer(false, r, f)
		}
	}
	return Answer{Yes: true}
}

// agreed is all without words.
func (s *Session) agreed(site string, f *language.Frame) bool {
	for _, r := range s.p.rules[site] {
		if s.opinion(r, f) == language.No {
			return false
		}
	}
	return true
}

// vote goes tier by tier: a refusal is final, else a permit is; nobody: permit.
func (s *Session) vote(site string, f *language.Frame) Answer {
	var permit *Rule
	tier := -1
	for _, r := range s.p.rules[site] {
		if r.Tier != tier && permit != nil {
			break
		}
		tier = r.Tier
		switch s.opinion(r, f) {
		case language.No:
			return s.answer(false, r, f)
		case language.Yes:
			if permit == nil {
				permit = r
			}
		case language.Abstain:
		}
	}
	return Answer{Yes: true, Rule: permit}
}

func (s *Session) answer(yes bool, r *Rule, f *language.Frame) Answer {
	return Answer{yes, r, s.text(r, f)}
}

// text is what a row says against its subject: its message, its expression, or how it erred.
func (s *Session) text(r *Rule, f *language.Frame) string {
	if _, err := s.guard(r, f); err != nil {
		return fmt.Sprintf("erred: %v", err)
	}
	if v := r.Expression.Eval(f); types.IsError(v) {
		return fmt.Sprintf("erred: %v", v)
	}
	if r.Message == nil {
		return r.Expression.Text.Value + " does not hold"
	}
	return s.words(r.Message, f)
}

// Words is the message, with what eval gives for its expressions.
func (m *Message) Words(eval func(*eval.Expr) ref.Val) string {
	var b strings.Builder
	for _, p := range m.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(language.Text(eval(p.expr)))
	}
	return b.String()
}

// words are a message's about what a frame is about.
func (s *Session) words(m *Message, f *language.Frame) string {
	return m.Words(func(e *eval.Expr) ref.Val {
		defer s.watch(e, f)
		return e.Eval(f)
	})
}

// askJob asks a site about a job.
func (s *Session) askJob(j *model.Job, ask func(f *language.Frame) Answer) Answer {
	f := s.frame().OfJob(j)
	defer s.done()
	return ask(f)
}

// Valid asks jobValid.
func (s *Session) Valid(j *model.Job) Answer {
	return s.askJob(j, func(f *language.Frame) Answer { return s.all(JobValid, f) })
}

// Ready asks jobReady: may the job's placements be kept?
func (s *Session) Ready(j *model.Job) Answer {
	return s.askJob(j, func(f *language.Frame) Answer { return s.all(JobReady, f) })
}

// IsReady is Ready where nobody wants to know why not.
func (s *Session) IsReady(j *model.Job) bool {
	f := s.frame().OfJob(j)
	defer s.done()
	return s.agreed(JobReady, f)
}

// Pipelined asks jobPipelined: may they be held?
func (s *Session) Pipelined(j *model.Job) Answer {
	return s.askJob(j, func(f *language.Frame) Answer { return s.vote(JobPipelined, f) })
}

// Enqueueable asks jobEnqueueable: may the job be let in?
func (s *Session) Enqueueable(j *model.Job) Answer {
	return s.askJob(j, func(f *language.Frame) Answer { return s.vote(JobEnqueueable, f) })
}

// Starving asks jobStarving: all rows of the first tier that has any; none: no.
func (s *Session) Starving(j *model.Job) bool {
	f := s.frame().OfJob(j)
	defer s.done()
	starving, tier := false, -1
	for _, r := range s.p.rules[JobStarving] {
		if tier >= 0 && r.Tier != tier {
			break
		}
		tier = r.Tier
		switch s.opinion(r, f) {
		case language.No:
			return false
		case language.Yes:
			starving = true
		case language.Abstain:
		}
	}
	return starving
}

// Overused asks whether to skip a queue now: any row.
func (s *Session) Overused(q *model.Queue) Answer {
	f := s.frame()
	defer s.done()
	f.Queue = s.QueueView(q)
	for _, r := range s.p.rules[Overused] {
		if s.opinion(r, f) == language.Yes {
			return s.answer(true, r, f)
		}
	}
	return Answer{}
}

// Allocatable asks whether the queue may take a task.
func (s *Session) Allocatable(t *model.Task) Answer {
	f := s.frame().OfTask(t)
	defer s.done()
	return s.all(Allocatable, f)
}

// MayAllocate is Allocatable without words.
func (s *Session) MayAllocate(t *model.Task) bool {
	f := s.frame().OfTask(t)
	defer s.done()
	return s.agreed(Allocatable, f)
}

// Preemptive asks whether a job's queue may take request by force.
func (s *Session) Preemptive(j *model.Job, request model.Resources) Answer {
	f := s.frame().OfJob(j)
	defer s.done()
	f.Request = s.Amounts(request)
	return s.all(Preemptive, f)
}

// Feasible asks taskFeasible: can the task be placed anywhere at all?
func (s *Session) Feasible(t *model.Task) Answer {
	f := s.frame().OfTask(t)
	defer s.done()
	return s.all(TaskFeasible, f)
}

// JobFilter evaluates a step's condition on a job. An error is false, with its text.
func (s *Session) JobFilter(e *eval.Expr, j *model.Job) (bool, error) {
	f := s.frame().OfJob(j)
	defer s.done()
	return s.filter(e, f)
}

// TaskFilter evaluates a step's condition on a task.
func (s *Session) TaskFilter(e *eval.Expr, t *model.Task) (bool, error) {
	f := s.frame().OfTask(t)
	defer s.done()
	return s.filter(e, f)
}

// Condition evaluates a step's condition on the cluster.
func (s *Session) Condition(e *eval.Expr) (bool, error) {
	f := s.frame()
	defer s.done()
	return s.filter(e, f)
}

// QueueAmounts gives a queue's computed Resources by name, for reports; ok is false where there is none.
func (s *Session) QueueAmounts(q *model.Queue, name string) (model.Resources, bool) {
	for _, x := range s.p.attributes {
		if x.On == "queue" && x.Name == name {
			if a, ok := readAttribute(x, s.QueueView(q)).(*language.Amounts); ok {
				return a.Resources, true
			}
		}
	}
	return nil, false
}

func (s *Session) filter(e *eval.Expr, f *language.Frame) (bool, error) {
	holds, err := e.Holds(f)
	s.watch(e, f)
	if err != nil {
		return false, fmt.Errorf("%s: %v", strings.TrimSpace(e.Text.Value), err)
	}
	return holds, nil
}
