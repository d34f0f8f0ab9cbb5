package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// room is a promise for which others go.
type room struct {
	placed
	row     int32
	victims []victim // in the order in which they were evicted
	// placing says that the room is there now, nobody has to go, and a later step would place the task.
	placing bool
}

// victim is a task that goes for another.
type victim struct {
	session.Victim
	was    model.Status
	needed model.Reason // what refuses the other, were this one spared
}

// force is the work of a step that displaces.
type force struct {
	*Cycle
	step        *policy.Step
	scope, site string
	allocatable bool
	placing     []*policy.Step // that come later
	gone        []*model.Task  // that are taken for gone: what was being released, and those who go
	settled     bool           // some turn was kept
}

// displace makes room for tasks by evicting others.
func (x *Cycle) displace(step *policy.Step) {
	left := map[*model.Job]*taskQueue{} // of jobs that come back for another turn
	d := &force{
		Cycle: x, step: step, scope: step.Word(policy.KeyScope), site: step.Word(policy.KeyVictims), allocatable: step.Gate(policy.Allocatable),
		placing: x.s.Policy().PlacingAfter(step),
	}
	start := x.txn.Mark()
	idle := func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	x.kept = nil
	x.walk(step, visit{begin: d.lookAhead, idle: idle, drop: x.overused(step), turn: func(j *model.Job) (again bool) {
		todo := left[j]
		if todo == nil {
			if !x.s.Valid(j).Yes {
				return false
			}
			todo = &taskQueue{}
			x.tasksOf(step, j, todo)
		}
		if again = d.turn(j, todo); again {
			left[j] = todo
		}
		return again
	}})
	d.lookBack(start)
}

// lookAhead takes all that is being released for gone while the step lasts: whoever is promised room meets the nodes as they will be.
func (x *force) lookAhead() {
	for row, releasing := range x.c.Nodes.Releasing[model.Pods] {
		if releasing == 0 {
			continue
		}
		for _, t := range x.c.Nodes.Tasks[row] {
			if t.Status == model.Releasing {
				x.gone = append(x.gone, t)
			}
		}
	}
	for _, t := range x.gone {
		x.txn.Leave(t)
	}
}

// lookBack ends that.
func (x *force) lookBack(start model.Savepoint) {
	if !x.settled {
		x.txn.Rollback(start)
		return
	}
	for _, t := range x.gone {
		x.txn.Return(t, model.Releasing)
	}
}

// turn makes room for a job's tasks, one after the other, until the step's turn is over or one finds none. What was evicted and promised
// is kept or undone together, or, where the step commits per task, each kept at once. It says whether the job comes back for the tasks
// that are left.
func (x *force) turn(j *model.Job, todo *taskQueue) (again bool) {
	start, byTask := x.txn.Mark(), x.step.Word(policy.KeyCommit) == "task"
	var done []room
	var failed []string // roles of which a task found no room
	for over := false; !todo.empty() && !over; {
		t := todo.pop(x.s)
		if t.Status != model.Pending || t.Role != "" && slices.Contains(failed, t.Role) ||
			x.step.Gate(policy.Preemptive) && !x.s.Preemptive(j, t.Request).Yes {
			x.withoutPlace(t)
			continue
		}
		r, found := x.roomFor(t)
		if !found {
			x.withoutPlace(t)
			if !slices.Contains(failed, t.Role) {
				failed = append(failed, t.Role)
			}
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.jobPasses(x.step, policy.KeyOnNoNode, j)
			continue
		}
		if done = append(done, r); byTask {
			x.conclude(done)
			done = nil
		}
		over = x.turnOver(x.step, j)
		again = over && !todo.empty()
	}
	for _, role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	kept := byTask
	forced := slices.ContainsFunc(done, func(r room) bool { return !r.placing })
	if pipelined := x.s.Pipelined(j); !byTask && pipelined.Yes && forced {
		x.conclude(x.giveBack(done))
		x.jobWait(j, report.Held(j, policy.JobPipelined, pipelined.Reason()))
		kept = true
	}
	if !kept {
		x.txn.Rollback(start)
	}
	x.endTurn(nil)
	return kept && again
}

// roomFor finds room for a task: where nobody has to go for it, else on the first node on which it can be made.
func (x *force) roomFor(t *model.Task) (r room, found bool) {
	if !x.s.Feasible(t).Yes {
		return room{}, false
	}
	class := x.s.Class(t)
	var nodes []int32
	for _, row := range x.c.Nodes.ByOrder() {
		if class.Curable(row) {
			nodes = append(nodes, row)
		}
	}
	if x.step.Word(policy.KeyNodes) == policy.ByScore {
		nodes = x.s.ByScore(t, nodes)
	}
	if x.scope != policy.ScopeJob && x.mayAllocate(t) { // what is there is not to be had from the job itself
		for _, row := range nodes {
			if !x.s.Class(t).TakesLater(row) {
				continue
			}
			placing := x.thereNow(t, row) && x.placedLater(t)
			if r, found = x.promise(t, row, nil); found {
				r.placing = placing
				return r, true
			}
		}
	}
	for _, row := range nodes {
		before := x.txn.Mark()
		if r, found = x.roomMade(t, row); found {
			return r, true
		}
		x.txn.Rollback(before)
	}
	return room{}, false
}

// thereNow says whether a node has room for a task beside those that are taken for gone.
func (x *force) thereNow(t *model.Task, row int32) bool {
	asked := t.InitRequest
	for _, o := range x.gone {
		if o.NodeName == x.c.Nodes.Rows[row].Name {
			if asked = asked.Add(o.Request); t.GPUCount > 0 && o.GPUCount > 0 {
				return false
			}
		}
	}
	return x.c.Nodes.FitsIdle(asked, row)
}

// placedLater says whether a later step would place a task if there is room now.
func (x *force) placedLater(t *model.Task) bool {
	return slices.ContainsFunc(x.placing, func(s *policy.Step) bool {
		return x.taken(s) && x.jobPasses(s, policy.KeyJobs, t.Job) && x.taskPasses(s, t)
	})
}

// roomMade evicts one after the other until the task fits, spares who is not needed for that, and promises the node.
func (x *force) roomMade(t *model.Task, row int32) (r room, found bool) {
	var gone []victim
	for _, v := range x.mayGo(t, row) {
		gone = append(gone, victim{Victim: v, was: v.Task.Status})
		x.txn.Leave(v.Task)
		if found = x.takes(t, row); found {
			break
		}
	}
	if !found {
		return room{}, false
	}
	for before := 0; before != len(gone); {
		before = len(gone)
		for i := len(gone) - 1; i >= 0; i-- {
			v := &gone[i]
			x.txn.Return(v.Task, v.was)
			if x.takes(t, row) {
				gone = slices.Delete(gone, i, i+1)
				continue
			}
			v.needed = x.refusal(t, row)
			x.txn.Leave(v.Task)
		}
	}
	if !x.permitted(t, gone) {
		return room{}, false
	}
	return x.promise(t, row, gone)
}

// mayGo are those on a node that may go for a task, the first to go first.
func (x *force) mayGo(t *model.Task, row int32) []session.Victim {
	var candidates []*model.Task
	for _, v := range x.c.Nodes.Tasks[row] {
		if v.MayGo() && x.inScope(t, v) && !x.spared(v) && x.isCandidate(t, v) {
			candidates = append(candidates, v)
		}
	}
	if !x.enough(t, row, candidates) {
		return nil
	}
	return x.s.Victims(x.question(t), candidates)
}

// spared says whether an eviction of a task was refused a short while ago. It can go again later, though nothing else changes.
func (x *force) spared(v *model.Task) bool {
	if !v.Spared.After(x.plan.Now) {
		return false
	}
	x.s.Until(v.Spared)
	return true
}

// enough says whether a task could fit if all candidates went, as far as amounts tell: if not, nobody need be asked.
func (x *force) enough(t *model.Task, row int32, candidates []*model.Task) bool {
	for _, dim := range x.c.Nodes.Dims() {
		if !t.InitRequest.Has(dim) {
			continue
		}
		room := x.c.Nodes.FutureIdle(dim, row)
		for _, v := range candidates {
			room += v.Request.Get(dim)
		}
		if t.InitRequest[dim] > room+model.Slack {
			return false
		}
	}
	return true
}

func (x *force) question(t *model.Task) session.Question {
	return session.Question{Site: x.site, Scope: x.scope, For: t, Txn: x.txn}
}

// inScope says whether the step looks at a task as one that may go for another.
func (x *force) inScope(t, v *model.Task) bool {
	switch x.scope {
	case policy.ScopeJob:
		return v.Job == t.Job
	case policy.ScopeQueue:
		return v.Job != t.Job && v.Job.Queue == t.Job.Queue
	}
	return v.Job.Queue != t.Job.Queue
}

func (x *force) isCandidate(t, v *model.Task) bool {
	condition := x.step.Condition(policy.KeyCandidates)
	if condition == nil {
		return true
	}
	ok, err := x.s.VictimFilter(condition, t, v, x.scope)
	if err != nil {
		x.warn("pod " + v.Key + ": " + err.Error())
	}
	return ok
}

// permitted puts those who go in the end to the rows once more, as if they were all that were asked about: all must be let go.
func (x *force) permitted(t *model.Task, gone []victim) bool {
	tasks := make([]*model.Task, len(gone))
	for i, v := range gone {
		x.txn.Return(v.Task, v.was)
		tasks[i] = v.Task
	}
	lets := x.s.Victims(x.question(t), tasks)
	for i, v := range gone {
		at := slices.IndexFunc(lets, func(l session.Victim) bool { return l.Task == v.Task })
		if at < 0 {
			return false
		}
		gone[i].Victim = lets[at]
		x.txn.Leave(v.Task)
	}
	return true
}

func (x *force) mayAllocate(t *model.Task) bool { return !x.allocatable || x.s.MayAllocate(t) }

// takes says whether a task may have the room that is or will be on a node.
func (x *force) takes(t *model.Task, row int32) bool {
	return x.mayAllocate(t) && x.s.Class(t).TakesLater(row)
}

// refusal is why it may not.
func (x *force) refusal(t *model.Task, row int32) model.Reason {
	if x.allocatable {
		if a := x.s.Allocatable(t); !a.Yes {
			return a.Reason()
		}
	}
	return x.s.Class(t).RefusedLater(row)
}

// promise promises a task a node, which some others leave for it.
func (x *force) promise(t *model.Task, row int32, victims []victim) (r room, ok bool) {
	volumes, err := x.s.Bindings(t, row)
	if err != nil {
		return room{}, false
	}
	b := model.Bind{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: x.c.Nodes.Rows[row].Name, Action: x.waits.Action,
		Feasible: 1, Reason: report.RoomMade(len(victims)),
	}
	b.GPUs, b.Volumes = x.s.Devices(t, row, true), volumes
	x.txn.Pipeline(t, row, b.GPUs)
	x.txn.Reserve(t, volumes)
	return room{placed: placed{t, b}, row: row, victims: victims}, true
}

// giveBack spares those who are not needed for all promises of a turn together, the last to go first.
func (x *force) giveBack(done []room) []room {
	on := map[int32][]int{} // the promises on each node
	for i, r := range done {
		on[r.row] = append(on[r.row], i)
	}
	for i := len(done) - 1; i >= 0; i-- {
		there := on[done[i].row]
		if len(there) < 2 {
			continue
		}
		for k := len(done[i].victims) - 1; k >= 0; k-- {
			done = x.without(done, there, i, k)
		}
	}
	return done
}

// without is the promises of a turn with one victim less, if those on its node hold without it.
func (x *force) without(done []room, there []int, of, which int) []room {
	less, before, v := slices.Clone(done), x.txn.Mark(), done[of].victims[which]
	for _, i := range there {
		x.txn.Unplace(done[i].task)
	}
	x.txn.Return(v.Task, v.was)
	less[of].victims = slices.Delete(slices.Clone(done[of].victims), which, which+1)
	for _, i := range there {
		ok := x.takes(done[i].task, done[i].row)
		if ok {
			less[i], ok = x.promise(done[i].task, done[i].row, less[i].victims)
		}
		if !ok {
			x.txn.Rollback(before)
			return done
		}
	}
	return less
}

// conclude writes what is evicted and promised into the plan.
func (x *force) conclude(done []room) {
	for _, r := range done {
		x.note(r.task.Job, r.task, nil)
		x.pipelined = append(x.pipelined, r.placed)
		x.settled = true
		for _, v := range r.victims {
			x.gone = append(x.gone, v.Task)
			rows := make([]string, len(v.Lets))
			for i, l := range v.Lets {
				rows[i] = l.Table + "/" + l.Name
			}
			first := policy.Answer{Rule: v.Lets[0]}.Reason()
			x.plan.Evicts = append(x.plan.Evicts, report.Evict(v.Task, r.task, x.waits.Action, x.step.Via(), first, rows, v.needed))
		}
	}
}
