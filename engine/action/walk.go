package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// visit contains the functions of a verb for the jobs of a step.
type visit struct {
	// begin is called before the first turn; nil: there is nothing to do.
	begin func()
	// idle reports whether there is nothing to do for a job. Such a job is not even sorted.
	idle func(*model.Job) bool
	// drop returns whether to skip the rest of a queue, and why.
	drop func(*model.Queue) policy.Answer
	// turn runs one turn of a job, and reports whether the job gets another.
	turn func(*model.Job) (again bool)
}

// walk gives turns to the jobs of a step, always to the first job of the first queue. A turn with an effect may change the orders of queues
// and jobs, which are then read again. A turn without effect leaves everything as it was, and the queue's next job follows.
func (x *Cycle) walk(step *policy.Step, v visit) {
	jobs, queues := x.memory.jobs.of(step), x.s.Queues()
	for _, q := range jobs.begin(func(j *model.Job) bool {
		x.c.Breathe()
		x.c.Turn = j
		return !v.idle(j) && x.jobPasses(step, policy.KeyJobs, j)
	}) {
		if v.begin != nil {
			v.begin()
			v.begin = nil
		}
		queues.Put(q)
	}
	for {
		q, ok := queues.Take()
		if !ok {
			break
		}
		if why := jobs.dropped(q, v.drop); why.Yes {
			reason := why.Reason()
			jobs.drop(q, func(*model.Job) model.Reason { return reason })
		} else if x.tryJobs(q, jobs, v) {
			queues.Put(q)
		}
	}
	jobs.end()
}

// tryJobs gives turns to the jobs of a queue until a turn has an effect or a job blocks the queue. It returns false if no turns are left.
func (x *Cycle) tryJobs(q *model.Queue, jobs attempts, v visit) (effect bool) {
	for j := jobs.next(q); j != nil; j = jobs.next(q) {
		again, effect := x.try(j, v)
		blocks := x.result.blocks
		jobs.tried(j, again, effect)
		if blocks {
			jobs.drop(q, x.behind(j))
			return false
		}
		if effect {
			return true
		}
	}
	return false
}

// blocks evaluates whether a job that waits after its turn blocks its queue, so that the jobs behind it wait as well.
func (x *Cycle) blocks(step *policy.Step, j *model.Job, waits bool) {
	if waits && step.Condition(policy.KeyBlocksQueue) != nil {
		x.result.blocks = x.jobPasses(step, policy.KeyBlocksQueue, j)
	}
}

// behind records that a job blocks its queue, and returns the reason of the jobs behind it.
func (x *Cycle) behind(first *model.Job) func(*model.Job) model.Reason {
	x.memory.jobs.blocked()
	return func(j *model.Job) model.Reason {
		return report.Behind(first, x.s.Policy().MayName(j.Namespace, first.Namespace))
	}
}

// try gives a job a turn. The turn has an effect if some change remains.
func (x *Cycle) try(j *model.Job, v visit) (again, effect bool) {
	x.c.Breathe()
	x.result.reset()
	content, errors := x.c.Content(), x.s.Errors()
	x.c.Handle(j)
	again = v.turn(j)
	x.c.Turn = nil
	x.result.erred = x.s.Errors() != errors
	effect = again || x.result.unsettled || x.c.Content() != content
	if effect && len(x.plan.Binds)+len(x.plan.Admits)+len(x.plan.Evicts) > 0 {
		x.txn.Commit() // the cycle will not be undone as a whole
	}
	return again, effect
}

// turn places the tasks of one job in order. It ends when the step's turn is over, when onNoNode stops it after a task without a node, or
// when no task is left. Its placements are kept, held or undone together; if the step commits by task, each is kept at once. turn reports
// whether the job gets another turn for the remaining tasks.
func (x *Cycle) turn(step *policy.Step, j *model.Job, todo *taskQueue) (again bool) {
	start := x.txn.Mark()
	before := x.kept.Clone()
	done := x.done[:0]
	var failed []string // roles of which a task found no node
	for over := false; !todo.empty() && !over; {
		x.c.Breathe()
		t := todo.pop(x.s)
		if todo.further && !x.taskPasses(step, t) {
			continue
		}
		if t.Role != "" && slices.Contains(failed, t.Role) {
			x.taskWait(t, report.RoleFailed(t.Role), nil)
			x.withoutPlace(t)
			continue
		}
		if !x.mayAllocate(step, t, todo.tasks) {
			x.withoutPlace(t)
			continue
		}
		p, found := x.find(step, t)
		if !found {
			x.withoutPlace(t)
			if !slices.Contains(failed, t.Role) {
				failed = append(failed, t.Role)
			}
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.jobPasses(step, policy.KeyOnNoNode, j)
			continue
		}
		done = slab.Append(done, p)
		x.accepted.place(t)
		if step.Word(policy.KeyCommit) == "task" {
			x.keep(done)
			done = done[:0]
		}
		over = x.turnOver(step, j)
		again = over && !todo.empty()
	}
	for _, role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	kept := x.finish(step, j, start, before, done)
	x.endTurn(done)
	return kept && again
}

// turnOver reports whether a job's turn ends after a placement.
func (x *Cycle) turnOver(step *policy.Step, j *model.Job) bool {
	switch step.Word(policy.KeyTurn) {
	case "oneTask":
		return true
	case "untilReady":
		return x.s.IsReady(j)
	case "untilFed":
		return !x.s.Starving(j)
	}
	return false
}
