package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// displace makes room for tasks by evicting others.
func (x *cycle) displace(step *policy.Step) {
	left := map[*model.Job][]*model.Task{} // of jobs that come back for another turn
	idle := func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	x.kept = nil
	force := &eviction.Search{Answers: x.Answers, Cluster: x.c, Policy: x.p, Txn: x.txn, Step: step, Action: x.waits.Action, Served: x.served()}
	gangs := &eviction.Gangs{Search: force}
	force.LookAhead()
	force.Kept = slices.DeleteFunc(x.rooms, func(r eviction.Room) bool { // those that a step between has placed
		return r.Task.Status != model.Pipelined || r.Task.Node != r.Row
	})
	x.rooms = force.Kept
	before := len(force.Kept)
	x.walk(step, idle, x.overused(step), func(j *model.Job) (again bool) {
		tasks, known := left[j]
		if !known {
			if !x.All(policy.JobValid, x.Frame().OfJob(j)).Yes {
				return false
			}
			tasks = x.tasksOf(step, j)
		}
		if step.Word(policy.KeyUnit) == policy.UnitGang {
			again, left[j] = x.takeTogether(gangs, j, tasks)
			return again
		}
		stable := false
		for !stable { // else it is tried once more, without those who would take the room back
			again, stable, left[j] = x.takeByForce(force, j, slices.Clone(tasks))
		}
		return again
	})
	if len(force.Kept) > before {
		x.rooms = force.Spare(force.Kept)
		x.tellEvicts()
	}
	for _, n := range gangs.Needs() {
		evicts := gangs.EvictsForGang(n)
		for _, r := range n.Rooms {
			x.hold([]placed{{r.Task, r.Bind}})
			if len(evicts) > 0 {
				x.forced[r.Task] = true
			}
		}
		x.plan.Evicts = append(x.plan.Evicts, evicts...)
	}
	force.LookBack()
}

// served are the jobs for which others go, or went and they have yet to get their room.
func (x *cycle) served() map[*model.Job]bool {
	served := map[*model.Job]bool{}
	for t := range x.forced {
		served[t.Job] = true
	}
	return served
}

// tellEvicts has the plan tell of those who go for others: who is spared by now goes no more.
func (x *cycle) tellEvicts() {
	goes := map[string]model.Evict{}
	for _, r := range x.rooms {
		x.hold([]placed{{r.Task, r.Bind}})
		for _, e := range eviction.Evicts(r) {
			goes[e.Task] = e
			x.forced[r.Task] = true
			x.told[e.Task] = true
		}
	}
	told := x.plan.Evicts
	x.plan.Evicts = nil
	for _, e := range told {
		if now, ok := goes[e.Task]; ok {
			e = now
			delete(goes, e.Task)
		} else if x.told[e.Task] {
			continue
		}
		x.plan.Evicts = append(x.plan.Evicts, e)
	}
	for _, r := range x.rooms {
		for _, e := range eviction.Evicts(r) {
			if _, untold := goes[e.Task]; untold {
				x.plan.Evicts = append(x.plan.Evicts, e)
			}
		}
	}
}

// takeTogether makes room for as many of a job's tasks as it may be held with, until the step's turn is over or there is none, and gives
// those that are left. The job comes back for them only if the step is still about it.
func (x *cycle) takeTogether(gangs *eviction.Gangs, j *model.Job, tasks []*model.Task) (again bool, left []*model.Task) {
	waiting := func() []*model.Task {
		return slices.DeleteFunc(slices.Clone(tasks), func(t *model.Task) bool { return t.Status != model.Pending })
	}
	for over := false; len(waiting()) > 0 && !over; {
		x.SortTasks(tasks)
		var all model.Resources
		for _, t := range waiting() {
			all = all.Add(t.Request)
		}
		if gangs.Step.Gate(policy.Preemptive) && !x.All(policy.Preemptive, x.Frame().OfJob(j).OfRequest(all)).Yes {
			return false, nil
		}
		before := x.txn.Mark()
		n, found := gangs.RoomForGang(j, waiting())
		for ; found && !gangs.StableNeed(n); n, found = gangs.RoomForGang(j, waiting()) {
			x.txn.Rollback(before)
		}
		if !found || n.Placing() {
			x.txn.Rollback(before)
			return false, nil
		}
		gangs.KeepNeed(n)
		for _, r := range n.Rooms {
			x.waits.Set(j, r.Task, nil)
		}
		x.jobWait(j, report.Held(j, policy.JobPipelined, n.Pipelined))
		over = x.turnOver(gangs.Step, j)
	}
	return len(waiting()) > 0 && x.JobPasses(gangs.Step, j), waiting()
}

// takeByForce makes room for a job's tasks, one after the other, until the step's turn is over or one finds none, and gives those that
// are left. What was evicted and promised is kept or undone together, or, where the step commits per task, each kept at once. What is not
// stable is undone.
func (x *cycle) takeByForce(force *eviction.Search, j *model.Job, tasks []*model.Task) (again, stable bool, left []*model.Task) {
	step := force.Step
	start, byTask := x.txn.Mark(), step.Word(policy.KeyCommit) == "task"
	var done []eviction.Room
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !over; {
		x.SortTasks(tasks)
		t := tasks[0]
		tasks = tasks[1:]
		if t.Role != "" && failed[t.Role] || x.passes(step, t) {
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		before := x.txn.Mark()
		r, found := force.RoomFor(t)
		for ; found && byTask && !force.Stable([]eviction.Room{r}); r, found = force.RoomFor(t) {
			x.txn.Rollback(before)
		}
		if !found {
			x.c.SetVain(t, t.BestEffort)
			failed[t.Role] = true
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.Condition(step.Condition(policy.KeyOnNoNode), x.Frame().OfJob(j), "job "+j.Key+": ")
			continue
		}
		switch {
		case !byTask:
			done = append(done, r)
		case r.Placing:
			x.txn.Rollback(before)
		default:
			x.keepRoom(force, r)
		}
		over = x.turnOver(step, j)
		again = over && len(tasks) > 0
	}
	for role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	kept, stable := byTask, true
	if !byTask {
		kept, stable = x.keepTurn(force, j, done)
	}
	if !kept {
		x.txn.Rollback(start)
	}
	for _, t := range j.Tasks {
		x.c.SetVain(t, false)
	}
	return kept && again, stable, tasks
}

// passes says whether no room is sought for a task: it does not wait for any, or may not take it by force.
func (x *cycle) passes(step *policy.Step, t *model.Task) bool {
	return t.Status != model.Pending ||
		step.Gate(policy.Preemptive) && !x.All(policy.Preemptive, x.Frame().OfJob(t.Job).OfRequest(t.Request)).Yes
}

// keepTurn keeps the promises of a turn as a whole, if the job may be held with them and a later step would not make do without.
func (x *cycle) keepTurn(force *eviction.Search, j *model.Job, done []eviction.Room) (kept, stable bool) {
	pipelined := x.Vote(policy.JobPipelined, x.Frame().OfJob(j))
	if !pipelined.Yes || !slices.ContainsFunc(done, func(r eviction.Room) bool { return !r.Placing }) {
		return false, true
	}
	if done = force.GiveBack(done); !force.Stable(done) {
		return false, false
	}
	x.keepRoom(force, done...)
	x.jobWait(j, report.Held(j, policy.JobPipelined, pipelined.Reason()))
	return true, true
}

// keepRoom keeps promises.
func (x *cycle) keepRoom(force *eviction.Search, done ...eviction.Room) {
	force.Keep(done...)
	for _, r := range done {
		x.waits.Set(r.Task.Job, r.Task, nil)
	}
}
