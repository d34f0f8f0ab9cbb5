package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// displace evicts tasks to free resources for other tasks.
func (x *cycle) displace(step *policy.Step) {
	left, idle := map[*model.Job][]*model.Task{}, func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	force := &eviction.Search{
		Answers: x.Answers, Cluster: x.c, Policy: x.p, Txn: x.txn, Step: step, Action: x.waits.Action, Waits: x.waits,
		Served: eviction.Served(x.forced),
	}
	gangs := &eviction.Gangs{Search: force}
	jobs := x.JobsOf(step, idle) // evaluated in the present state
	force.LookAhead()
	force.Kept = slices.DeleteFunc(x.rooms, func(r eviction.Room) bool { // without those that a step in between placed
		return r.Task.Status != model.Pipelined || r.Task.Node != r.Row
	})
	x.rooms, x.kept = force.Kept, nil
	before := len(force.Kept)
	x.walk(jobs, x.overused(step), func(j *model.Job) (again, blocks bool) {
		tasks, known := left[j]
		if !known {
			if !x.All(policy.JobValid, x.Frame().OfJob(j)).Yes {
				return false, false
			}
			tasks = x.tasksOf(step, j)
		}
		if known && !x.JobPasses(step, j) {
			return false, false
		}
		if step.Word(policy.KeyUnit) == policy.UnitGang {
			again, left[j] = x.takeTogether(gangs, j, tasks, known)
		} else {
			force.TakeTurn(func() (t eviction.Turn) {
				t, again, left[j] = x.takeByForce(force, j, slices.Clone(tasks), known)
				return t
			})
		}
		waits := !again && len(tasks) > 0 && !x.IsReady(j) && !x.Vote(policy.JobPipelined, x.Frame().OfJob(j)).Yes
		return again, waits && x.blocks(step, j)
	})
	if len(force.Kept) > before {
		x.rooms = force.GiveBack(force.Kept)
		for _, r := range x.rooms {
			x.promise(r, len(r.Victims) > 0)
		}
		x.plan.Evicts = eviction.Tell(x.plan.Evicts, x.rooms, x.told)
	}
	for _, n := range gangs.Needs() {
		for _, r := range n.Rooms {
			x.promise(r, len(n.Units) > 0)
		}
		x.plan.Evicts = append(x.plan.Evicts, gangs.EvictsForGang(n)...)
	}
	force.LookBack()
}

// promise holds a promised task until the end of the cycle. forced states that pods are evicted for it.
func (x *cycle) promise(r eviction.Room, forced bool) {
	x.hold([]placed{{r.Task, r.Bind}})
	x.nominees[r.Task.Job] = true
	if forced {
		x.forced[r.Task] = true
	}
}

// takeTogether frees resources for several of a job's tasks at once. It returns the remaining tasks, if the job gets another turn for them.
func (x *cycle) takeTogether(
	gangs *eviction.Gangs, j *model.Job, tasks []*model.Task, further bool,
) (again bool, left []*model.Task) {
	if further {
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *model.Task) bool { return !x.TaskPasses(gangs.Step, t) })
	}
	needs, left := gangs.Take(j, tasks, func() bool { return x.turnOver(gangs.Step, j) })
	for _, n := range needs {
		for _, r := range n.Rooms {
			x.waits.Set(j, r.Task, nil)
		}
		x.jobWait(j, report.Held(j, policy.JobPipelined, n.Pipelined))
	}
	return len(left) > 0, left
}

// takeByForce frees resources for a job's tasks, one after the other. It ends when the step's turn is over, or when the step stops after a
// failure. The evictions and promises are kept or undone together; if the step commits by task, each is kept at once. Unstable ones are
// undone. It reports whether the job gets another turn, and for which tasks.
func (x *cycle) takeByForce(
	force *eviction.Search, j *model.Job, tasks []*model.Task, further bool,
) (out eviction.Turn, again bool, left []*model.Task) {
	step := force.Step
	start, byTask := x.txn.Mark(), step.Word(policy.KeyCommit) == "task"
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !over; {
		x.SortTasks(tasks)
		t := tasks[0]
		tasks = tasks[1:]
		if t.Role != "" && failed[t.Role] || x.passes(step, t, further) {
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		before := x.txn.Mark()
		r, found := force.RoomFor(t)
		if !found {
			x.c.SetVain(t, t.BestEffort)
			failed[t.Role] = true
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.Condition(step.Condition(policy.KeyOnNoNode), x.Frame().OfJob(j), "job "+j.Key+": ")
			continue
		}
		switch {
		case !byTask:
			out.Done = append(out.Done, r)
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
	if out.Kept, out.Stable = x.keepTurn(force, j, slices.Clone(out.Done)); !out.Kept {
		x.txn.Rollback(start)
	}
	for _, t := range j.Tasks {
		x.c.SetVain(t, false)
	}
	return out, out.Kept && again, tasks
}

// passes reports whether to search no resources for a task. It does not wait, the step no longer applies to it in a further turn, or its
// queue may not evict tasks for it.
func (x *cycle) passes(step *policy.Step, t *model.Task, further bool) bool {
	return t.Status != model.Pending || further && !x.TaskPasses(step, t) ||
		step.Gate(policy.Preemptive) && !x.All(policy.Preemptive, x.Frame().OfJob(t.Job).OfRequest(t.Request)).Yes
}

// keepTurn keeps the promises of a turn as a whole under two conditions. The job may be held with them, and a later step could not place it
// without them.
func (x *cycle) keepTurn(force *eviction.Search, j *model.Job, done []eviction.Room) (kept, stable bool) {
	if force.Step.Word(policy.KeyCommit) == "task" {
		return true, true // each promise was kept when it was found
	}
	pipelined := x.Vote(policy.JobPipelined, x.Frame().OfJob(j))
	if !pipelined.Yes || !slices.ContainsFunc(done, func(r eviction.Room) bool { return !r.Placing }) {
		return false, true
	}
	done = force.GiveBack(done)
	if ok, again := force.Stable(done); !ok {
		return false, !again
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
