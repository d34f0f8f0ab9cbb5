package reference

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// placed is a placement that is not kept (yet).
type placed struct {
	task *model.Task
	bind model.Bind
}

// place walks queues, jobs and tasks in order and puts tasks on nodes.
func (x *cycle) place(step *policy.Step) {
	left := map[*model.Job][]*model.Task{} // of jobs that come back for another turn
	overused := func(q *model.Queue) policy.Answer {
		if !step.Gate(policy.Overused) {
			return policy.Answer{}
		}
		return x.any(policy.Overused, x.world().Frame().OfQueue(q))
	}
	settled := func(j *model.Job) bool {
		return j.TaskCount() > 0 && j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && j.Phase != model.PhasePending && x.awaited(step, j).IsZero()
	}
	x.kept = nil
	x.walk(step, settled, overused, func(j *model.Job) (again bool) {
		before := j.PlacedNow
		if x.take(step, j, left) {
			return true
		}
		if j.PlacedNow > before && !x.awaited(step, j).IsZero() {
			left[j] = []*model.Task{} // with these it may stand elsewhere in the order, and so do its pods that are still to be made
			return true
		}
		x.await(step, j)
		return false
	})
}

// take gives one job the floor, if it may have it.
func (x *cycle) take(step *policy.Step, j *model.Job, left map[*model.Job][]*model.Task) (again bool) {
	tasks, known := left[j]
	if !known {
		if a := x.all(policy.JobValid, x.world().Frame().OfJob(j)); !a.Yes {
			x.jobWait(j, a.Reason())
			return false
		}
		for _, t := range j.Tasks {
			if x.taskPasses(step, t) {
				tasks = append(tasks, t)
			}
		}
		x.sortTasks(tasks)
	}
	if len(tasks) == 0 {
		return false
	}
	if step.Gate(policy.Preemptive) {
		if a := x.all(policy.Preemptive, x.world().Frame().OfJob(j).OfRequest(tasks[0].Request)); !a.Yes {
			x.jobWait(j, a.Reason())
			return false
		}
	}
	if again, tasks = x.turn(step, j, tasks); again {
		left[j] = tasks
	}
	return again
}

// turn places a job's tasks, one after the other, until the step's turn is over or a task finds no node, and gives those that are left.
// The placements are kept, held or undone together, or, where the step commits per task, each kept at once.
func (x *cycle) turn(step *policy.Step, j *model.Job, tasks []*model.Task) (again bool, left []*model.Task) {
	start, before := x.txn.Mark(), x.kept.clone()
	var done []placed
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !over; {
		x.sortTasks(tasks)
		t := tasks[0]
		tasks = tasks[1:]
		if t.Role != "" && failed[t.Role] {
			x.taskWait(t, builtin("role", "another pod of role "+t.Role+" found no node"), nil)
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		if !x.allocatable(step, t) {
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		p, found := x.try(t)
		if !found {
			x.c.SetVain(t, t.BestEffort)
			failed[t.Role] = true
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.condition(step.Condition(policy.KeyOnNoNode), x.world().Frame().OfJob(j), "job "+j.Key+": ")
			continue
		}
		if done = append(done, p); step.Word(policy.KeyCommit) == "task" {
			x.keep(done)
			done = nil
		}
		over = x.turnOver(step, j)
		again = over && len(tasks) > 0
	}
	for role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	kept := step.Word(policy.KeyCommit) == "task" || x.finish(j, start, before, done)
	for _, t := range j.Tasks { // one that asks for nothing counts for its gang while it waits, but for the rest of the turn in which it found no place
		x.c.SetVain(t, false)
	}
	return kept && again, tasks
}

// turnOver says whether a job yields the floor after a placement.
func (x *cycle) turnOver(step *policy.Step, j *model.Job) bool {
	switch step.Word(policy.KeyTurn) {
	case "oneTask":
		return true
	case "untilReady":
		return x.all(policy.JobReady, x.world().Frame().OfJob(j)).Yes
	case "untilFed":
		return !x.Starving(j)
	}
	return false
}

// allocatable asks the gate of that name, if the step heeds it.
func (x *cycle) allocatable(step *policy.Step, t *model.Task) bool {
	if !step.Gate(policy.Allocatable) {
		return true
	}
	a := x.all(policy.Allocatable, x.world().Frame().OfTask(t))
	if !a.Yes {
		why := a.Reason()
		if dim, never := x.neverFits(t); never {
			why.Text += "; " + x.never(t, dim)
		}
		x.taskWait(t, why, nil)
	}
	return a.Yes
}

// try finds a node for a task and puts it there.
func (x *cycle) try(t *model.Task) (p placed, found bool) {
	if a := x.all(policy.TaskFeasible, x.world().Frame().OfTask(t)); !a.Yes {
		x.taskWait(t, a.Reason(), nil)
		return placed{}, false
	}
	best, why, nodes := x.choose(t)
	if why != nil {
		x.taskWait(t, *why, nodes)
		return placed{}, false
	}
	volumes, err := x.world().Bindings(t, best.row)
	if err != nil {
		x.taskWait(t, builtin("volumes", err.Error()), nil)
		return placed{}, false
	}
	if first := x.takeKept(t, best.row); first != nil {
		x.taskWait(t, builtin("await-pods", "the place is kept for "+first.Title+", which comes first and whose pods are being made"), nil)
		return placed{}, false
	}
	if t.Status == model.Pipelined {
		x.txn.Unplace(t)
	}
	b := best.bind
	b.Task, b.UID, b.Job, b.Queue, b.Action = t.Key, t.UID, t.Job.Key, t.Job.QueueName, x.action
	b.GPUs, b.Volumes = x.devices(t, best), volumes
	if best.later {
		x.txn.Pipeline(t, best.row, b.GPUs)
	} else {
		x.txn.Allocate(t, best.row, b.GPUs)
	}
	x.txn.Reserve(t, volumes)
	delete(x.taskWaits, t)
	return placed{t, b}, true
}

// finish ends a turn: kept where jobReady holds, held until the cycle ends where jobPipelined does, else undone.
func (x *cycle) finish(j *model.Job, start model.Savepoint, before *kept, done []placed) (keep bool) {
	ready := x.all(policy.JobReady, x.world().Frame().OfJob(j))
	if ready.Yes {
		x.keep(done)
		delete(x.jobWaits, j)
		return true
	}
	pipelined := x.vote(policy.JobPipelined, x.world().Frame().OfJob(j))
	if pipelined.Yes && len(done) > 0 {
		x.hold(done)
		why := model.Reason{Site: policy.JobPipelined, Text: "its places are held, though it is not ready"}
		if pipelined.Rule != nil {
			why.Table, why.Rule = pipelined.Rule.Table, pipelined.Rule.Name
		}
		if j.Counts[model.Pipelined] > 0 {
			why.Text = "its tasks wait for resources that are being released"
		}
		x.jobWait(j, why)
		return false
	}
	x.txn.Rollback(start)
	x.kept = before
	x.undone[j] = len(done)
	why := ready.Reason()
	if n := len(done); n > 0 {
		why.Text = fmt.Sprintf("%s; %d found a node, rolled back", why.Text, n)
	}
	earlier := x.jobWaits[j]
	x.jobWait(j, why)
	x.jobWaits[j].Tried = tried(j, done, earlier)
	return false
}

// keep makes what is allocated binds, and what was held of a job that is ready now; what is pipelined stays promised.
func (x *cycle) keep(done []placed) {
	x.hold(done)
	for _, p := range done {
		x.bind(p)
	}
	if len(done) == 0 || !x.all(policy.JobReady, x.world().Frame().OfJob(done[0].task.Job)).Yes {
		return
	}
	for _, p := range x.held {
		if p.task.Job == done[0].task.Job {
			x.bind(p)
		}
	}
}

func (x *cycle) bind(p placed) {
	if p.task.Status == model.Allocated {
		x.txn.Bind(p.task)
		x.plan.Binds = append(x.plan.Binds, p.bind)
	}
}

// hold leaves placements until the cycle ends.
func (x *cycle) hold(done []placed) {
	for _, p := range done {
		if p.task.Status == model.Allocated {
			x.held = append(x.held, p)
		} else {
			x.promised = append(x.promised, p)
		}
	}
}

// tried is how the tasks of a job fared that was undone, of several turns together; nil: no other task of it waits. Tasks are told by
// their places among those that wait.
func tried(j *model.Job, done []placed, earlier *model.Wait) *model.Tried {
	var waiting []*model.Task
	for _, t := range j.Tasks {
		if t.Waits() {
			waiting = append(waiting, t)
		}
	}
	if len(waiting) < 2 {
		return nil
	}
	found := map[int]string{}
	if earlier != nil && earlier.Tried != nil && earlier.Tried.Waiting == len(waiting) {
		for _, f := range earlier.Tried.Found {
			found[f.Task] = f.Node
		}
	}
	for _, p := range done {
		found[slices.Index(waiting, p.task)] = p.bind.Node
	}
	out := &model.Tried{Waiting: len(waiting)}
	for task, node := range found {
		out.Found = append(out.Found, model.Found{Task: task, Node: node})
	}
	slices.SortFunc(out.Found, func(a, b model.Found) int { return cmp.Compare(a.Task, b.Task) })
	return out
}
