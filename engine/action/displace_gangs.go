package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/eviction"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// together frees resources for as many of a job's tasks as it may be held with. It stops when the step's turn is over or no resources are
// found. It reports whether the job gets another turn for the remaining tasks. This requires that the step still applies to them.
func (x *force) together(j *model.Job, todo *taskQueue) (again bool) {
	if todo.further {
		todo.tasks = slices.DeleteFunc(todo.tasks, func(t *model.Task) bool { return !x.taskPasses(x.step, t) })
	}
	for over, some := false, false; !over; some = true {
		todo.tasks = slices.DeleteFunc(todo.tasks, func(t *model.Task) bool { return t.Status != model.Pending })
		if todo.empty() {
			return false
		}
		x.s.SortTasks(todo.tasks)
		tasks := x.mayTake(j, todo.tasks)
		if len(tasks) == 0 {
			return false
		}
		before := x.txn.Mark()
		n, found := x.gangs.StableRoom(j, tasks)
		x.gangs.TellInVain(j, found || some)
		if !found || n.Placing() || !x.mayTakeRoom(j, tasks, &n) {
			x.txn.Rollback(before)
			return false
		}
		x.some, x.roomy[j] = true, true
		x.gangs.KeepNeed(n)
		for _, r := range n.Rooms {
			x.note(j, r.Task, nil)
		}
		for _, t := range n.Victims() {
			x.victims = append(x.victims, t)
			x.memory.jobs.befell(t.Job)
		}
		x.jobWait(j, report.Held(j, policy.JobPipelined, n.Pipelined))
		over = x.turnOver(x.step, j)
	}
	todo.tasks = slices.DeleteFunc(todo.tasks, func(t *model.Task) bool { return t.Status != model.Pending })
	return !todo.empty() && x.jobPasses(x.step, policy.KeyJobs, j)
}

// mayTake returns the tasks, in their order, for which their queue may evict tasks together. It leaves out the others.
func (x *force) mayTake(j *model.Job, tasks []*model.Task) (out []*model.Task) {
	if !x.step.Gate(policy.Preemptive) || x.s.Preemptive(j, sumOf(tasks)).Yes {
		return tasks
	}
	var sum, refused model.Resources
	for _, t := range tasks {
		if refused != nil && t.Request.Equal(refused) {
			continue // equal to the previous task
		}
		if with := sum.Add(t.Request); x.s.Preemptive(j, with).Yes {
			out, sum, refused = append(out, t), with, nil
		} else {
			refused = t.Request
		}
	}
	return out
}

// mayTakeRoom evaluates the gate again if resources were found for only some of its tasks.
func (x *force) mayTakeRoom(j *model.Job, tasks []*model.Task, n *eviction.Need) (may bool) {
	if !x.step.Gate(policy.Preemptive) || len(n.Rooms) == len(tasks) {
		return true
	}
	x.gangs.Before(n, func() { may = x.s.Preemptive(j, sumOf(n.Tasks())).Yes })
	return may
}

// sumOf returns the sum of the requests of some tasks.
func sumOf(tasks []*model.Task) (sum model.Resources) {
	for _, t := range tasks {
		sum = sum.Add(t.Request)
	}
	return sum
}

// tellNeeds promises what was kept for several tasks at once, and adds the evictions for it to the plan.
func (x *force) tellNeeds() {
	for _, n := range x.gangs.Needs() {
		for _, r := range n.Rooms {
			x.pipelined = append(x.pipelined, placed{r.Task, r.Bind})
			x.keepFor(r.Task.Job)
			if len(n.Units) > 0 {
				x.byForce(r.Task)
			}
		}
		x.plan.Evicts = append(x.plan.Evicts, x.gangs.EvictsForGang(&n)...)
	}
}
