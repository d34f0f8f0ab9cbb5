package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/kept"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/verdict"
)

// place walks queues, jobs and tasks in order, and places tasks on nodes.
func (x *Cycle) place(step *policy.Step) {
	if !step.Gate(policy.BeyondShare) { // resources that earlier steps keep for pods that do not exist yet stay kept
		x.kept = nil
	}
	p := &placing{Cycle: x, step: step, left: map[*model.Job]*taskQueue{}}
	settled := func(j *model.Job) bool {
		return j.TaskCount() > 0 && j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && j.Phase != model.PhasePending &&
			x.awaited(step, j).IsZero()
	}
	x.walk(step, visit{idle: settled, drop: overused(x.s, step), turn: p.visit})
}

// placing is the state of a step with place.
type placing struct {
	*Cycle
	step *policy.Step
	left map[*model.Job]*taskQueue // of jobs that get another turn
	room taskQueue                 // scratch memory
}

// visit gives a job its turn, and reports whether the job gets another turn.
func (x *placing) visit(j *model.Job) (again bool) {
	placed := j.PlacedNow
	if x.take(j) {
		return true
	}
	if j.PlacedNow > placed && !x.awaited(x.step, j).IsZero() {
		x.left[j] = &taskQueue{further: true} // its position in the order may have changed, also for its pods that do not exist yet
		return true
	}
	x.await(x.step, j)
	x.blocks(x.step, j, x.result.left)
	return false
}

// take places tasks of a job, if jobValid and the gates permit it.
func (x *placing) take(j *model.Job) (again bool) {
	todo := x.left[j]
	x.result.unsettled = x.result.unsettled || todo != nil // it covers only the remaining tasks, and does not describe the others
	if todo == nil {
		if !x.valid(j) {
			return false
		}
		todo = &x.room
		x.tasksOf(x.step, j, todo)
	}
	if todo.empty() || todo.further && !x.stillTakes(x.step, j) {
		return false
	}
	if x.step.Gate(policy.BeyondShare) && !x.beyondShare(j, todo) || x.step.Gate(policy.Preemptive) && !x.preemptive(j, todo) {
		x.result.left = !x.s.IsReady(j)
		return false
	}
	before := len(x.plan.Binds)
	again = x.turn(x.step, j, todo)
	if len(x.plan.Binds) > before && x.step.Gate(policy.BeyondShare) {
		x.lasting.exceeded = append(x.lasting.exceeded, j.Queue)
	}
	if again && todo == &x.room {
		x.left[j] = &taskQueue{tasks: slices.Clone(todo.tasks), moves: todo.moves, further: true}
	}
	return again
}

// overused returns a function that evaluates the gate overused, if the step has it.
func overused(s *session.Session, step *policy.Step) func(q *model.Queue) policy.Answer {
	return func(q *model.Queue) policy.Answer {
		if !step.Gate(policy.Overused) {
			return policy.Answer{}
		}
		return s.OverusedIn(step, q)
	}
}

// preemptive evaluates the gate preemptive for the first task to be placed.
func (x *Cycle) preemptive(j *model.Job, todo *taskQueue) bool {
	a := x.s.Preemptive(j, todo.tasks[0].Request)
	if !a.Yes {
		x.jobWait(j, a.Reason())
	}
	return a.Yes
}

// accepted contains the request that the rows of beyondShare accepted for the turn of a job, and the part that the turn placed.
type accepted struct{ request, placed model.Resources }

// covers reports whether the rows accepted a task together with what was placed already.
func (a *accepted) covers(t *model.Task) bool { return a.placed.Add(t.Request).Fits(a.request) }

func (a *accepted) place(t *model.Task) { a.placed.AddIn(t.Request, 1) }

// beyondShare reports whether the rows of beyondShare accept a job. If so, it clears the reasons that earlier steps gave for the job and
// its tasks. If not, the job gets the reason of a row that states one. Tasks that wait because of the share of their queue get it too. The
// turn leaves out tasks in front if the rows refuse them, and the job can start without them.
func (x *Cycle) beyondShare(j *model.Job, todo *taskQueue) bool {
	first, all := policy.Answer{}, todo.tasks
	last := firstOfAlike(all) // with fewer of the last equal tasks, the request is the same
	for i := range all[:last+1] {
		request, enough := j.NextRequestWith(all[i:])
		if i > 0 && !enough {
			break
		}
		a := x.s.BeyondShare(j, request)
		if i == 0 {
			first = a
		}
		if !a.Yes {
			continue
		}
		x.accepted = accepted{request: request}
		x.note(j, nil, nil)
		for _, t := range all[i:] {
			x.note(j, t, nil)
		}
		x.keptFromShare(all[:i], first)
		todo.tasks = all[i:]
		return true
	}
	if first.Text != "" {
		x.note(j, nil, x.waits.Instead(j, first.Reason()))
		x.keptFromShare(all, first)
	}
	return false
}

// firstOfAlike returns the index of the first task from which on all tasks have the same role and request.
func firstOfAlike(tasks []*model.Task) int {
	i := len(tasks) - 1
	for i > 0 && tasks[i-1].Role == tasks[i].Role && tasks[i-1].Request.Equal(tasks[i].Request) {
		i--
	}
	return i
}

// keptFromShare records the reason of a row of beyondShare for tasks that wait because of the share of their queue.
func (x *Cycle) keptFromShare(tasks []*model.Task, a policy.Answer) {
	for _, t := range tasks {
		if w := x.waits.Of(t); a.Text != "" && w != nil && x.s.Policy().RefusesShare(w.Reason) {
			x.taskWait(t, a.Reason(), nil)
		}
	}
}

// mayExceed evaluates the rows of beyondShare for a task, if they did not accept it together with what was placed already. This happens if
// other tasks found no node, or come later in the order although the job needs them. rest are the tasks that follow.
func (x *Cycle) mayExceed(t *model.Task, rest []*model.Task) bool {
	if x.accepted.covers(t) {
		return true
	}
	request, _ := t.Job.NextRequestWith(slices.Concat([]*model.Task{t}, rest))
	a := x.s.BeyondShare(t.Job, request)
	if a.Yes {
		x.accepted = accepted{request: request}
	} else if a.Text != "" {
		x.taskWait(t, a.Reason(), nil)
	}
	return a.Yes
}

// taskQueue contains the tasks of a job that are still to be tried, in order.
type taskQueue struct {
	tasks []*model.Task
	all   []*model.Task // tasks is the rest of it
	moves bool
	// further states that the job had a turn before, so that the conditions of the step are evaluated again.
	further bool
}

func (q *taskQueue) empty() bool { return len(q.tasks) == 0 }

func (q *taskQueue) pop(s *session.Session) *model.Task {
	if q.moves {
		s.SortTasks(q.tasks)
	}
	t := q.tasks[0]
	q.tasks = q.tasks[1:]
	return t
}

// tasksOf fills a queue with the tasks of a job that a step takes.
func (x *Cycle) tasksOf(step *policy.Step, j *model.Job, q *taskQueue) {
	q.moves, q.all = x.s.TasksMove(), q.all[:0]
	x.result.unsettled = x.result.unsettled || x.hasForced(j)
	for _, t := range j.Tasks {
		if x.taskPasses(step, t) && !x.forced[t] { // a promise for which other tasks are evicted is kept
			q.all = append(q.all, t)
		}
	}
	x.s.SortTasks(q.all)
	q.tasks = q.all
}

// stillTakes evaluates again whether a step takes a job, unless that cannot change while the step runs.
func (x *Cycle) stillTakes(step *policy.Step, j *model.Job) bool {
	return !step.Moves(policy.KeyJobs) || x.jobPasses(step, policy.KeyJobs, j)
}

func (x *Cycle) taskPasses(step *policy.Step, t *model.Task) bool {
	tasks := step.Condition(policy.KeyTasks)
	if tasks == nil {
		return t.Waits()
	}
	ok, err := x.s.TaskFilter(tasks, t)
	if err != nil {
		x.warn("pod " + t.Key + ": " + err.Error())
	}
	return ok && t.Waits()
}

// withoutPlace records that a task got no node in this turn. A task that requests nothing counts for its gang while it waits, until then.
func (x *Cycle) withoutPlace(t *model.Task) {
	if t.BestEffort {
		x.c.SetVain(t, true)
		x.without = append(x.without, t)
	}
}

// endTurn removes the marks of the turn.
func (x *Cycle) endTurn(done []placed) {
	for _, t := range x.without {
		x.c.SetVain(t, false)
	}
	x.without = x.without[:0]
	clear(done)
	x.done = done[:0]
}

// mayAllocate evaluates the gates allocatable and beyondShare, if the step has them. rest are the tasks that follow.
func (x *Cycle) mayAllocate(step *policy.Step, t *model.Task, rest []*model.Task) bool {
	if step.Gate(policy.BeyondShare) && !x.mayExceed(t, rest) {
		return false
	}
	if !step.Heeds(policy.Allocatable) {
		return true
	}
	a := x.s.AllocatableIn(step, t)
	if !a.Yes {
		why := a.Reason()
		if never := x.s.NeverFits(t); never != "" {
			why.Text += "; " + never
		}
		x.taskWait(t, why, nil)
	}
	return a.Yes
}

// find finds a node for a task and places it there. A task that was promised a node first gives up the promise, and gets it back if no node
// is found.
func (x *Cycle) find(step *policy.Step, t *model.Task) (p placed, found bool) {
	if a := x.s.Feasible(t); !a.Yes {
		x.taskWait(t, a.Reason(), nil)
		return placed{}, false
	}
	if t.Status != model.Pipelined {
		return x.choose(step, t)
	}
	x.result.open = true // the results of nodes depend on giving up the promise
	before := x.txn.Mark()
	x.txn.Unplace(t)
	if p, found = x.choose(step, t); !found {
		x.txn.Rollback(before)
	}
	return p, found
}

// choose places a task on the best node that accepts it. The task is placed on idle resources only if its queue may bind it now.
func (x *Cycle) choose(step *policy.Step, t *model.Task) (p placed, found bool) {
	class := x.s.Class(t)
	choice, found := class.Choose()
	x.result.open = x.result.open || found
	if !found {
		x.result.refused = append(x.result.refused, t)
		nodes := class.Rejections()
		x.taskWait(t, report.NoNode(policy.Predicates, nodes), nodes)
		return placed{}, false
	}
	if !choice.Later {
		if a := x.s.BindableIn(step, t); !a.Yes {
			x.taskWait(t, a.Reason(), nil)
			return placed{}, false
		}
	}
	volumes, err := x.s.Bindings(t, choice.Row)
	if err != nil {
		x.taskWait(t, report.Builtin("volumes", err.Error()), nil)
		return placed{}, false
	}
	if first := x.kept.Take(t, choice.Row); first != nil {
		x.result.unsettled = true
		if at := kept.NextTry(t.Job, first); !at.IsZero() {
			x.s.Until(at)
			x.plan.DecideBy(at)
		}
		x.taskWait(t, report.KeptFor(first, x.s.Policy().MayName(t.Namespace, first.Namespace)), nil)
		return placed{}, false
	}
	return x.put(t, choice, volumes), true
}

// put moves a task to the chosen node. The task is allocated if it fits now. Otherwise it is pipelined. volumes are the volumes that must
// be bound before the pod.
func (x *Cycle) put(t *model.Task, ch verdict.Choice, volumes []model.VolumeBind) placed {
	node := x.c.Nodes.Rows[ch.Row]
	b := model.Bind{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: node.Name, Action: x.waits.Action,
		Score: ch.Score, Feasible: ch.Feasible, Reason: report.OnlyNode(policy.Predicates),
	}
	if ch.RunnerUp != model.NoNode {
		b.RunnerUp, b.RunnerUpScore, b.Scores = x.c.Nodes.Rows[ch.RunnerUp].Name, ch.RunScore, x.scores(&ch)
		x.others = ch.Scores(x.others[:0], ch.RunnerUp)
		b.Reason = report.Preferred(policy.Scores, &b, x.others)
		x.text = report.AppendPreferred(x.text[:0], &b)
		b.Reason.Text = x.memory.texts.New(x.text)
	}
	b.GPUs = x.s.Devices(t, ch.Row, ch.Later)
	if ch.Later {
		x.txn.Pipeline(t, ch.Row, b.GPUs)
	} else {
		x.txn.Allocate(t, ch.Row, b.GPUs)
	}
	b.Volumes, b.CPUs = volumes, t.CPUs.String()
	x.txn.Reserve(t, volumes)
	x.note(t.Job, t, nil)
	return placed{t, b}
}

// scores returns the scores of the chosen node, in memory that the plan keeps.
func (x *Cycle) scores(ch *verdict.Choice) []model.RowScore {
	x.others = ch.Scores(x.others[:0], ch.Row)
	out := x.memory.scores.Slice(len(x.others))
	copy(out, x.others)
	return out
}

// finish ends a turn. The placements are kept if jobReady is true, held if jobPipelined is true, and otherwise undone.
func (x *Cycle) finish(
	step *policy.Step, j *model.Job, start model.Savepoint, before *kept.Places, done []placed,
) (keep bool) {
	if step.Word(policy.KeyCommit) == "task" {
		x.result.left = step.Condition(policy.KeyBlocksQueue) != nil && !x.s.IsReady(j)
		return true
	}
	ready := x.s.Ready(j)
	x.result.left = !ready.Yes
	if ready.Yes {
		x.keep(done)
		x.note(j, nil, nil)
		return true
	}
	pipelined := x.s.Pipelined(j)
	if pipelined.Yes && (len(done) > 0 || x.hasForced(j)) {
		x.hold(done)
		x.jobWait(j, report.Unready(j, policy.JobPipelined, pipelined.Reason(), ready.Reason()))
		return false
	}
	x.txn.Rollback(start)
	x.kept = before
	x.result.undone = len(done)
	x.waits.SetUndone(j, len(done))
	wait := x.waits.ForJob(j, report.RolledBack(ready.Reason(), len(done)))
	wait.Tried = x.tried(j, done)
	x.note(j, nil, wait)
	return false
}

// keep binds the allocated tasks; pipelined tasks stay promised.
func (x *Cycle) keep(done []placed) {
	for _, p := range done {
		if p.task.Status == model.Allocated {
			x.txn.Bind(p.task)
			x.plan.Binds = slab.Append(x.plan.Binds, p.bind)
			continue
		}
		x.pipelined = append(x.pipelined, p)
	}
	if len(done) > 0 && len(x.held) > 0 && x.s.IsReady(done[0].task.Job) {
		x.release(done[0].task.Job)
	}
}

// hold keeps the placements of a job that waits for its pipelined tasks, until the end of the cycle.
func (x *Cycle) hold(done []placed) {
	for _, p := range done {
		if p.task.Status == model.Allocated {
			x.held = append(x.held, p)
			continue
		}
		x.pipelined = append(x.pipelined, p)
	}
}

// release binds the held tasks of a job that is now ready.
func (x *Cycle) release(j *model.Job) {
	var rest []placed
	for _, p := range x.held {
		if p.task.Job != j || p.task.Status != model.Allocated {
			rest = append(rest, p)
			continue
		}
		x.txn.Bind(p.task)
		x.plan.Binds = slab.Append(x.plan.Binds, p.bind)
	}
	x.held = rest
}
