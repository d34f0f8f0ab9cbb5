package session

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Candidates selects the tasks that may be evicted for another task, by the condition of a step.
type Candidates struct {
	s         *Session
	condition *eval.Expr // nil: every task is a candidate
	scope     string
	warn      func(text string)

	known  bool // stands and of are computed
	stands bool
	of     []rules.Read
	text   []byte
}

// NewCandidates returns the Candidates of a step. It calls warn if the condition has an error.
func NewCandidates(s *Session, step *policy.Step, warn func(text string)) *Candidates {
	return &Candidates{s: s, condition: step.Condition(policy.KeyCandidates), scope: step.Word(policy.KeyScope), warn: warn}
}

// Of returns the tasks that may be evicted for a task. erred reports that the condition did not decide for all of them.
func (x *Candidates) Of(t *model.Task, tasks []*model.Task) (pass []*model.Task, erred bool) {
	if x.condition == nil || len(tasks) == 0 {
		return tasks, false
	}
	f := x.s.ask.Frame().OfVictim(t, tasks[0], x.scope)
	defer x.s.ask.Done()
	return slices.DeleteFunc(tasks, func(v *model.Task) bool {
		f.Victim = x.s.TaskView(v)
		ok, err := x.s.filter(x.condition, f)
		if err != nil {
			x.warn("pod " + v.Key + ": " + err.Error())
			erred = true
		}
		return !ok
	}), erred
}

// Kind returns a key: for tasks with equal keys, the same candidates pass on each node until the node changes. false: other changes may
// also change which candidates pass.
func (x *Candidates) Kind(t *model.Task) (string, bool) {
	if !x.known {
		x.known, x.stands = true, x.standing()
	}
	if !x.stands {
		return "", false
	}
	b := append(append(x.text[:0], t.Job.QueueName...), 0)
	if x.scope != policy.ScopeOtherQueues { // the candidates depend on the job
		b = append(append(b, t.Job.Key...), 0)
	}
	b = encodeReads(b, x.s, t, x.of)
	x.text = b
	return string(b), true
}

// encodeReads appends what is read of a task or its job.
func encodeReads(b []byte, s *Session, t *model.Task, of []rules.Read) []byte {
	for i := range of {
		read := &of[i]
		if read.Root == "job" {
			b = language.EncodeRead(b, s.JobView(t.Job), read)
		} else {
			b = language.EncodeRead(b, s.TaskView(t), read)
		}
	}
	return b
}

// standing reports whether the result depends only on the task for which pods are evicted, and on the candidates. It records what the
// condition reads of the task. What the condition reads of a candidate changes only with the candidate's node, or not within a step.
func (x *Candidates) standing() bool {
	if x.condition == nil {
		return true
	}
	for _, read := range x.condition.Reads.All {
		switch {
		case (read.Root == "preemptor" || read.Root == "job") && !read.Through:
			each := slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Each })
			if len(read.Steps) > 0 && (each || policy.OfParts(read) || x.s.p.Reach(read, read.Root) != policy.Within) {
				return false
			}
			if len(read.Steps) > 0 {
				x.of = append(x.of, read)
			}
		case read.Changes > rules.ByCycle && x.s.p.Reach(read, "victim") != policy.Within:
			return false
		}
	}
	return true
}
