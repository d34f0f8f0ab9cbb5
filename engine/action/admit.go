package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// admit admits jobs, in order. It does not evaluate jobEnqueueable for a job without minResources. A refused job is not tried again in the
// cycle.
func (x *Cycle) admit(step *policy.Step) {
	in := func(j *model.Job) bool { return j.Phase != model.PhasePending }
	never := func(*model.Queue) policy.Answer { return policy.Answer{} }
	x.walk(step, visit{idle: in, drop: never, turn: func(j *model.Job) (again bool) {
		why := policy.Answer{Yes: true}
		if step.Flag(policy.KeyVote) && j.HasMinResources {
			why = x.s.Enqueueable(j)
		}
		if !why.Yes {
			x.jobWait(j, why.Reason())
			x.blocks(step, j, true)
			return false
		}
		x.note(j, nil, nil)
		x.txn.Admit(j, x.plan.Now)
		reason := why.Reason()
		reason.Reason = "" // only a refusal has a condition reason
		x.plan.Admits = slab.Append(x.plan.Admits, model.Admit{Job: j.Key, Queue: j.QueueName, Reason: reason})
		return false
	}})
}
