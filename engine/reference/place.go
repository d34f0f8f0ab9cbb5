package reference

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/kept"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// placed is a placement that is not permanent (yet).
type placed struct {
	task *model.Task
	bind model.Bind
}

// place walks queues, jobs and tasks in order, and places tasks on nodes.
func (x *cycle) place(step *policy.Step) {
	left := map[*model.Job][]*model.Task{} // of jobs that get another turn
	settled := func(j *model.Job) bool {
		return j.TaskCount() > 0 && j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && j.Phase != model.PhasePending &&
			x.awaited(step, j).IsZero()
	}
	if !step.Gate(policy.BeyondShare) { // resources that earlier steps keep for pods that do not exist yet stay kept
		x.kept = nil
	}
	x.walk(x.JobsOf(step, settled), x.overused(step), func(j *model.Job) (again, blocks bool) {
		before := j.PlacedNow
		again, waits := x.take(step, j, left)
		if again {
			return true, false
		}
		if j.PlacedNow > before && !x.awaited(step, j).IsZero() {
			left[j] = []*model.Task{} // its position in the order may have changed, also for its pods that do not exist yet
			return true, false
		}
		x.await(step, j)
		return false, waits && x.blocks(step, j)
	})
}

// overused returns a function that evaluates the gate overused, if the step has it.
func (x *cycle) overused(step *policy.Step) func(q *model.Queue) policy.Answer {
	return func(q *model.Queue) policy.Answer {
		if !step.Gate(policy.Overused) {
			return policy.Answer{}
		}
		return x.AnyOf(x.p.RulesIn(step, policy.Overused), x.Frame().OfQueue(q))
	}
}

// tasksOf returns the tasks of a job to which a step applies, in order.
func (x *cycle) tasksOf(step *policy.Step, j *model.Job) (tasks []*model.Task) {
	for _, t := range j.Tasks {
		if x.TaskPasses(step, t) && !x.forced[t] { // a promise for which other tasks are evicted is kept
			tasks = append(tasks, t)
		}
	}
	x.SortTasks(tasks)
	return tasks
}

// take gives one job a turn, if jobValid and the gates permit it. waits states that the job had tasks to place, and is not ready.
func (x *cycle) take(step *policy.Step, j *model.Job, left map[*model.Job][]*model.Task) (again, waits bool) {
	tasks, known := left[j]
	if !known {
		if x.refused(j, policy.JobValid, x.Frame().OfJob(j)) {
			return false, false
		}
		tasks = x.tasksOf(step, j)
	}
	switch {
	case len(tasks) == 0 || known && !x.JobPasses(step, j):
		return false, false
	case step.Gate(policy.Preemptive) && x.refused(j, policy.Preemptive, x.Frame().OfJob(j).OfRequest(tasks[0].Request)):
		return false, !x.IsReady(j)
	}
	if step.Gate(policy.BeyondShare) {
		var yes bool
		if tasks, yes = x.beyondShare(j, tasks); !yes {
			return false, !x.IsReady(j)
		}
	}
	before := len(x.plan.Binds)
	if again, waits, tasks = x.turn(step, j, tasks, known); again {
		left[j] = tasks
	}
	if len(x.plan.Binds) > before && step.Gate(policy.BeyondShare) {
		x.beyond = append(x.beyond, j.Queue)
	}
	return again, waits
}

// beyondShare reports whether the rows of beyondShare accept a job. If so, it clears the reasons that earlier steps gave for the job and
// its tasks, and returns the tasks of the turn: it leaves out tasks in front if the rows refuse them, and the job can start without them.
// If not, the job gets the reason of a row that states one. Tasks that wait because of the share of their queue get it too.
func (x *cycle) beyondShare(j *model.Job, tasks []*model.Task) (turn []*model.Task, yes bool) {
	for i := range tasks {
		request, enough := j.NextRequestWith(tasks[i:])
		if i > 0 && !enough {
			break
		}
		if !x.Any(policy.BeyondShare, x.Frame().OfJob(j).OfRequest(request)).Yes {
			continue
		}
		x.keptFromShare(j, tasks, i)
		x.accepted, x.exceeding = request, nil
		x.waits.Set(j, nil, nil)
		for _, t := range tasks[i:] {
			x.waits.Set(j, t, nil)
		}
		return tasks[i:], true
	}
	if why := x.keptFromShare(j, tasks, len(tasks)); why != nil {
		x.waits.Set(j, nil, x.waits.Instead(j, *why))
	}
	return nil, false
}

// keptFromShare records a reason for the first n tasks, if they wait because of the share of their queue. The reason is why the rows of
// beyondShare reject the job with all of its tasks. It returns nil if no row states why.
func (x *cycle) keptFromShare(j *model.Job, tasks []*model.Task, n int) *model.Reason {
	if n == 0 {
		return nil
	}
	request, _ := j.NextRequestWith(tasks)
	why := x.whyNotBeyond(x.Frame().OfJob(j).OfRequest(request))
	for _, t := range tasks[:n] {
		if w := x.waits.Of(t); why != nil && w != nil && x.p.RefusesShare(w.Reason) {
			x.taskWait(t, *why, nil)
		}
	}
	return why
}

// whyNotBeyond returns the reason of the first row of beyondShare that rejects and states why; nil: none does.
func (x *cycle) whyNotBeyond(f *language.Frame) *model.Reason {
	for _, r := range x.p.Rules(policy.BeyondShare) {
		if r.Message != nil && x.Opinion(r, f) == language.No && x.Text(r, f) != "" {
			why := policy.Answer{Rule: r, Text: x.Text(r, f)}.Reason()
			return &why
		}
	}
	return nil
}

// mayExceed evaluates the rows of beyondShare for a task. It does so unless they accepted the task together with what the turn has placed
// since their last evaluation. rest are the tasks that follow.
func (x *cycle) mayExceed(j *model.Job, t *model.Task, rest []*model.Task) bool {
	if x.exceeding.Add(t.Request).Fits(x.accepted) {
		return true
	}
	request, _ := j.NextRequestWith(append([]*model.Task{t}, rest...))
	f := x.Frame().OfJob(j).OfRequest(request)
	if x.Any(policy.BeyondShare, f).Yes {
		x.accepted, x.exceeding = request, nil
		return true
	}
	if why := x.whyNotBeyond(f); why != nil {
		x.taskWait(t, *why, nil)
	}
	return false
}

// refused evaluates a gate for a job, and records the reason if it is false.
func (x *cycle) refused(j *model.Job, gate string, f *language.Frame) bool {
	a := x.All(gate, f)
	if !a.Yes {
		x.jobWait(j, a.Reason())
	}
	return !a.Yes
}

// turn places a job's tasks, one after the other, until the step's turn is over or a task finds no node. It returns the remaining tasks.
// waits states that the job is not ready afterwards. The placements are kept, held or rolled back together. If the step commits by task,
// each placement is kept at once. In a further turn of the job, the conditions of the step are evaluated again for each task.
func (x *cycle) turn(step *policy.Step, j *model.Job, tasks []*model.Task, further bool) (again, waits bool, left []*model.Task) {
	start, before := x.txn.Mark(), x.kept.Clone()
	var done []placed
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !over; {
		x.SortTasks(tasks)
		t := tasks[0]
		tasks = tasks[1:]
		if further && !x.TaskPasses(step, t) {
			continue
		}
		if t.Role != "" && failed[t.Role] {
			x.taskWait(t, report.RoleFailed(t.Role), nil)
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		if !x.allocatable(step, t, tasks) {
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		promised := x.txn.Mark()
		p, found := x.try(step, t)
		if !found {
			x.txn.Rollback(promised)
			x.c.SetVain(t, t.BestEffort)
			failed[t.Role] = true
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.Condition(step.Condition(policy.KeyOnNoNode), x.Frame().OfJob(j), "job "+j.Key+": ")
			continue
		}
		x.exceeding = x.exceeding.Add(t.Request)
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
	kept, ready := true, false
	if step.Word(policy.KeyCommit) == "task" {
		ready = x.IsReady(j)
	} else {
		kept, ready = x.finish(j, start, before, done)
	}
	for _, t := range j.Tasks { // a task that requests nothing counts for its gang while it waits, except in a turn in which it got no node
		x.c.SetVain(t, false)
	}
	return kept && again, !ready, tasks
}

// turnOver reports whether a job's turn ends after a placement.
func (x *cycle) turnOver(step *policy.Step, j *model.Job) bool {
	switch step.Word(policy.KeyTurn) {
	case "oneTask":
		return true
	case "untilReady":
		return x.IsReady(j)
	case "untilFed":
		return !x.Starving(j)
	}
	return false
}

// allocatable evaluates the gates allocatable and beyondShare, if the step has them. rest are the tasks that follow.
func (x *cycle) allocatable(step *policy.Step, t *model.Task, rest []*model.Task) bool {
	if step.Gate(policy.BeyondShare) && !x.mayExceed(t.Job, t, rest) {
		return false
	}
	if !step.Heeds(policy.Allocatable) {
		return true
	}
	a := x.AllOf(x.p.RulesIn(step, policy.Allocatable), x.Frame().OfTask(t))
	if !a.Yes {
		why := a.Reason()
		if never := x.fitsNowhere(t); never != "" {
			why.Text += "; " + never
		}
		x.taskWait(t, why, nil)
	}
	return a.Yes
}

// fitsNowhere returns a text for a task that requests more than any empty node has; "" for any other task.
func (x *cycle) fitsNowhere(t *model.Task) string {
	for _, dim := range x.c.Nodes.Dims() {
		if never := x.NeverFits(t, dim); never != "" && len(x.c.Nodes.ByOrder()) > 0 {
			return never
		}
	}
	return ""
}

// try finds a node for a task and places it there. A task that was promised a node first gives up the promise.
func (x *cycle) try(step *policy.Step, t *model.Task) (p placed, found bool) {
	if why, ok := x.feasible(t); !ok {
		x.taskWait(t, why, nil)
		return placed{}, false
	}
	if t.Status == model.Pipelined {
		x.txn.Unplace(t)
	}
	best, found, refused := x.Choose(t)
	if !found {
		x.taskWait(t, report.NoNode(policy.Predicates, refused), refused)
		return placed{}, false
	}
	if a := x.AllOf(x.p.RulesIn(step, policy.Bindable), x.Frame().OfTask(t)); !best.Later && !a.Yes {
		x.taskWait(t, a.Reason(), nil)
		return placed{}, false
	}
	volumes, err := x.World().Bindings(t, best.Row)
	if err != nil {
		x.taskWait(t, report.Builtin("volumes", err.Error()), nil)
		return placed{}, false
	}
	if first := x.kept.Take(t, best.Row); first != nil {
		x.plan.DecideBy(kept.NextTry(t.Job, first))
		x.taskWait(t, report.KeptFor(first, x.p.MayName(t.Namespace, first.Namespace)), nil)
		return placed{}, false
	}
	b := best.Bind
	b.Task, b.UID, b.Job, b.Queue, b.Action = t.Key, t.UID, t.Job.Key, t.Job.QueueName, x.waits.Action
	b.GPUs, b.Volumes = x.Devices(t, best), volumes
	if best.Later {
		x.txn.Pipeline(t, best.Row, b.GPUs)
	} else {
		x.txn.Allocate(t, best.Row, b.GPUs)
	}
	x.txn.Reserve(t, volumes)
	b.CPUs = t.CPUs.String()
	x.waits.Set(t.Job, t, nil)
	return placed{t, b}, true
}

// finish ends a turn. It keeps the placements if jobReady is true, holds them until the cycle ends if jobPipelined is true, and otherwise
// rolls them back. ready is the answer of jobReady.
func (x *cycle) finish(j *model.Job, start model.Savepoint, before *kept.Places, done []placed) (keep, ready bool) {
	answer := x.All(policy.JobReady, x.Frame().OfJob(j))
	if answer.Yes {
		x.keep(done)
		x.waits.Set(j, nil, nil)
		return true, true
	}
	pipelined := x.Vote(policy.JobPipelined, x.Frame().OfJob(j))
	if pipelined.Yes && (len(done) > 0 || slices.ContainsFunc(j.Tasks, func(t *model.Task) bool { return x.forced[t] })) {
		x.hold(done)
		x.jobWait(j, report.Unready(j, policy.JobPipelined, pipelined.Reason(), answer.Reason()))
		return false, false
	}
	x.txn.Rollback(start)
	x.kept = before
	x.waits.SetUndone(j, len(done))
	wait := x.waits.ForJob(j, report.RolledBack(answer.Reason(), len(done)))
	wait.Tried = report.Tried(j, len(done), func(t *model.Task) string {
		i := slices.IndexFunc(done, func(p placed) bool { return p.task == t })
		if i < 0 {
			return ""
		}
		return done[i].bind.Node
	})
	x.waits.Set(j, nil, wait)
	return false, false
}

// keep binds the allocated tasks, and the tasks of a job that waited for the job to become ready. It does not bind pipelined tasks: these
// wait until resources are released.
func (x *cycle) keep(done []placed) {
	x.hold(done)
	for _, p := range done {
		x.bind(p)
	}
	if len(done) == 0 || !x.All(policy.JobReady, x.Frame().OfJob(done[0].task.Job)).Yes {
		return
	}
	x.release(done[0].task.Job)
}

// release binds the held tasks of a job that is ready.
func (x *cycle) release(j *model.Job) {
	for _, p := range x.held {
		if p.task.Job == j {
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

// hold keeps placements until the end of the cycle.
func (x *cycle) hold(done []placed) {
	for _, p := range done {
		if p.task.Status == model.Allocated {
			x.held = append(x.held, p)
		} else {
			x.promised = slices.DeleteFunc(x.promised, func(before placed) bool { return before.task == p.task })
			x.promised = append(x.promised, p)
		}
	}
}

// awaited returns until when a step waits for a job's pods: for a while after admission, as long as some pods do not exist yet. The zero
// time: it does not wait.
func (x *cycle) awaited(step *policy.Step, j *model.Job) (until time.Time) {
	wait := step.Period(policy.KeyAwaitPods)
	if end := j.AdmittedAt.Add(wait); wait > 0 && !j.AdmittedAt.IsZero() && len(j.Expected) > 0 && end.After(x.plan.Now) {
		return end
	}
	return until
}

// await keeps resources for a job that is awaited and just had its turn.
func (x *cycle) await(step *policy.Step, j *model.Job) {
	until := x.awaited(step, j)
	least := j.MinMember - j.Ready() - j.Counts[model.Pipelined]
	if until.IsZero() || least > 0 && j.Valid() >= j.MinMember { // the pods that must start together exist, but could not start
		return
	}
	if kept.LacksLeftOut(x.c, j) {
		return
	}
	x.plan.DecideBy(until)
	if x.kept == nil {
		var gate func(*model.Task) bool
		if step.Gate(policy.Allocatable) {
			gate = func(t *model.Task) bool { return x.All(policy.Allocatable, x.Frame().OfTask(t)).Yes }
		}
		x.kept = kept.New(x.c, x.plan.Now, gate)
	}
	x.kept.Keep(j, least)
}
