package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
	"github.com/celsius-scheduler/celsius/engine/report"
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
	answers.Victim
	was    model.Status
	needed model.Reason // what refuses the other, were this one spared
}

// displace makes room for tasks by evicting others.
func (x *cycle) displace(step *policy.Step) {
	left := map[*model.Job][]*model.Task{} // of jobs that come back for another turn
	idle := func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	x.kept = nil
	x.lookAhead()
	x.walk(step, idle, x.overused(step), func(j *model.Job) (again bool) {
		tasks, known := left[j]
		if !known {
			if !x.All(policy.JobValid, x.Frame().OfJob(j)).Yes {
				return false
			}
			tasks = x.tasksOf(step, j)
		}
		again, left[j] = x.takeByForce(step, j, tasks)
		return again
	})
	for _, t := range x.c.TasksByKey() {
		if t.Status == model.Gone {
			x.txn.Return(t, model.Releasing)
		}
	}
}

// lookAhead takes all that is being released for gone while the step lasts: whoever is promised room meets the nodes as they will be.
func (x *cycle) lookAhead() {
	for _, t := range x.c.TasksByKey() {
		if t.Status == model.Releasing && t.Node != model.NoNode {
			x.txn.Leave(t)
		}
	}
}

// takeByForce makes room for a job's tasks, one after the other, until the step's turn is over or one finds none, and gives those that
// are left. What was evicted and promised is kept or undone together, or, where the step commits per task, each kept at once.
func (x *cycle) takeByForce(step *policy.Step, j *model.Job, tasks []*model.Task) (again bool, left []*model.Task) {
	start, byTask := x.txn.Mark(), step.Word(policy.KeyCommit) == "task"
	var done []room
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !over; {
		x.SortTasks(tasks)
		t := tasks[0]
		tasks = tasks[1:]
		if t.Status != model.Pending || t.Role != "" && failed[t.Role] ||
			step.Gate(policy.Preemptive) && !x.All(policy.Preemptive, x.Frame().OfJob(j).OfRequest(t.Request)).Yes {
			x.c.SetVain(t, t.BestEffort)
			continue
		}
		r, found := x.roomFor(step, t)
		if !found {
			x.c.SetVain(t, t.BestEffort)
			failed[t.Role] = true
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.Condition(step.Condition(policy.KeyOnNoNode), x.Frame().OfJob(j), "job "+j.Key+": ")
			continue
		}
		if done = append(done, r); byTask {
			x.carryOut(step, done)
			done = nil
		}
		over = x.turnOver(step, j)
		again = over && len(tasks) > 0
	}
	for role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	kept := byTask
	pipelined := x.Vote(policy.JobPipelined, x.Frame().OfJob(j))
	forced := slices.ContainsFunc(done, func(r room) bool { return !r.placing })
	if !byTask && pipelined.Yes && forced {
		x.carryOut(step, x.giveBack(step, done))
		x.jobWait(j, report.Held(j, policy.JobPipelined, pipelined.Reason()))
		kept = true
	}
	if !kept {
		x.txn.Rollback(start)
	}
	for _, t := range j.Tasks {
		x.c.SetVain(t, false)
	}
	return kept && again, tasks
}

// roomFor finds room for a task: where nobody has to go for it, else on the first node on which it can be made.
func (x *cycle) roomFor(step *policy.Step, t *model.Task) (r room, found bool) {
	if _, ok := x.feasible(t); !ok {
		return room{}, false
	}
	nodes := slices.DeleteFunc(slices.Clone(x.c.Nodes.ByOrder()), func(row int32) bool { return !x.Curable(t, row) })
	if step.Word(policy.KeyNodes) == policy.ByScore {
		nodes = x.ByScore(t, nodes)
	}
	ways := []func(*policy.Step, *model.Task, int32) (room, bool){x.roomThere, x.roomMade}
	if step.Word(policy.KeyScope) == policy.ScopeJob {
		ways = ways[1:] // what is there is not to be had from the job itself
	}
	for _, try := range ways {
		for _, row := range nodes {
			before := x.txn.Mark()
			if r, found = try(step, t, row); found {
				return r, true
			}
			x.txn.Rollback(before)
		}
	}
	return room{}, false
}

// roomThere promises a node on which nobody has to go.
func (x *cycle) roomThere(step *policy.Step, t *model.Task, row int32) (r room, found bool) {
	if _, refuses := x.refusesForce(step, t, row); refuses {
		return room{}, false
	}
	placing := x.thereNow(t, row) && x.placedLater(step, t)
	r, found = x.promise(t, row, nil)
	r.placing = placing
	return r, found
}

// thereNow says whether a node has room for a task beside those that are taken for gone.
func (x *cycle) thereNow(t *model.Task, row int32) bool {
	asked := t.InitRequest
	for _, o := range x.c.TasksByKey() {
		if o.Status == model.Gone && o.NodeName == x.c.Nodes.Rows[row].Name {
			if asked = asked.Add(o.Request); t.GPUCount > 0 && o.GPUCount > 0 {
				return false
			}
		}
	}
	return x.c.Nodes.FitsIdle(asked, row)
}

// placedLater says whether a later step would place a task if there is room now.
func (x *cycle) placedLater(step *policy.Step, t *model.Task) bool {
	return slices.ContainsFunc(x.p.PlacingAfter(step), func(s *policy.Step) bool {
		return x.Condition(s.Condition(policy.KeyWhen), x.Frame(), "") && x.JobPasses(s, t.Job) && x.TaskPasses(s, t)
	})
}

// roomMade evicts one after the other until the task fits, spares who is not needed for that, and promises the node.
func (x *cycle) roomMade(step *policy.Step, t *model.Task, row int32) (r room, found bool) {
	var gone []victim
	for _, v := range x.mayGo(step, t, row) {
		gone = append(gone, victim{Victim: v, was: v.Task.Status})
		x.txn.Leave(v.Task)
		if _, refuses := x.refusesForce(step, t, row); !refuses {
			found = true
			break
		}
	}
	if !found {
		return room{}, false
	}
	for before := 0; before != len(gone); {
		before = len(gone)
		for i := len(gone) - 1; i >= 0; i-- {
			x.txn.Return(gone[i].Task, gone[i].was)
			refuses := false
			if gone[i].needed, refuses = x.refusesForce(step, t, row); refuses {
				x.txn.Leave(gone[i].Task)
			} else {
				gone = slices.Delete(gone, i, i+1)
			}
		}
	}
	if gone, found = x.permitted(step, t, gone); !found {
		return room{}, false
	}
	return x.promise(t, row, gone)
}

// mayGo are those on a node that may go for a task, the first to go first.
func (x *cycle) mayGo(step *policy.Step, t *model.Task, row int32) []answers.Victim {
	var candidates []*model.Task
	for _, v := range x.c.Nodes.Tasks[row] {
		if !v.MayGo() || !inScope(step.Word(policy.KeyScope), t, v) || v.Spared.After(x.plan.Now) {
			continue
		}
		f := x.Frame().OfVictim(t, v, step.Word(policy.KeyScope))
		if x.Condition(step.Condition(policy.KeyCandidates), f, "pod "+v.Key+": ") {
			candidates = append(candidates, v)
		}
	}
	return x.Victims(x.question(step, t), candidates)
}

// question is who may go for a task.
func (x *cycle) question(step *policy.Step, t *model.Task) answers.Question {
	return answers.Question{Site: step.Word(policy.KeyVictims), Scope: step.Word(policy.KeyScope), For: t, Txn: x.txn}
}

// inScope says whether a step looks at a task as one that may go for another.
func inScope(scope string, t, v *model.Task) bool {
	switch scope {
	case policy.ScopeJob:
		return v.Job == t.Job
	case policy.ScopeQueue:
		return v.Job != t.Job && v.Job.Queue == t.Job.Queue
	}
	return v.Job.Queue != t.Job.Queue
}

// permitted puts those who go in the end to the rows once more, as if they were all that were asked about, and all must be let go.
func (x *cycle) permitted(step *policy.Step, t *model.Task, gone []victim) (by []victim, ok bool) {
	var tasks []*model.Task
	for _, v := range gone {
		x.txn.Return(v.Task, v.was)
		tasks = append(tasks, v.Task)
	}
	lets := x.Victims(x.question(step, t), tasks)
	for i, v := range gone {
		at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.Task })
		if at < 0 {
			return nil, false
		}
		gone[i].Victim = lets[at]
		x.txn.Leave(v.Task)
	}
	return gone, true
}

// refusesForce says why a task may not have the room that is or will be on a node.
func (x *cycle) refusesForce(step *policy.Step, t *model.Task, row int32) (why model.Reason, refuses bool) {
	if step.Gate(policy.Allocatable) {
		if a := x.All(policy.Allocatable, x.Frame().OfTask(t)); !a.Yes {
			return a.Reason(), true
		}
	}
	return x.RefusesLater(t, row)
}

// promise promises a task a node, which some others leave for it.
func (x *cycle) promise(t *model.Task, row int32, victims []victim) (r room, ok bool) {
	volumes, err := x.World().Bindings(t, row)
	if err != nil {
		return room{}, false
	}
	b := model.Bind{Node: x.c.Nodes.Rows[row].Name, Feasible: 1, Reason: report.RoomMade(len(victims))}
	b.Task, b.UID, b.Job, b.Queue, b.Action = t.Key, t.UID, t.Job.Key, t.Job.QueueName, x.waits.Action
	b.GPUs, b.Volumes = x.Devices(t, answers.Choice{Row: row, Later: true}), volumes
	x.txn.Pipeline(t, row, b.GPUs)
	x.txn.Reserve(t, volumes)
	return room{placed: placed{t, b}, row: row, victims: victims}, true
}

// giveBack spares those who are not needed for all promises of a turn together, the last to go first.
func (x *cycle) giveBack(step *policy.Step, done []room) []room {
	for i := len(done) - 1; i >= 0; i-- {
		for k := len(done[i].victims) - 1; k >= 0; k-- {
			if less, ok := x.without(step, done, i, k); ok {
				done = less
			}
		}
	}
	return done
}

// without is the promises of a turn with one victim less; false: some would not hold on its node.
func (x *cycle) without(step *policy.Step, done []room, of, which int) (less []room, ok bool) {
	less, before, v := slices.Clone(done), x.txn.Mark(), done[of].victims[which]
	var there []int // the promises on the node
	for i, r := range done {
		if r.row == done[of].row {
			there = append(there, i)
		}
	}
	if len(there) < 2 {
		return done, false
	}
	for _, i := range there {
		x.txn.Unplace(done[i].task)
	}
	x.txn.Return(v.Task, v.was)
	less[of].victims = slices.Delete(slices.Clone(done[of].victims), which, which+1)
	for _, i := range there {
		_, refuses := x.refusesForce(step, done[i].task, done[i].row)
		if !refuses {
			less[i], ok = x.promise(done[i].task, done[i].row, less[i].victims)
		}
		if refuses || !ok {
			x.txn.Rollback(before)
			return done, false
		}
	}
	return less, true
}

// carryOut writes what is evicted and promised into the plan.
func (x *cycle) carryOut(step *policy.Step, done []room) {
	for _, r := range done {
		x.waits.Set(r.task.Job, r.task, nil)
		x.hold([]placed{r.placed})
		for _, v := range r.victims {
			var rows []string
			for _, l := range v.Lets {
				rows = append(rows, l.Table+"/"+l.Name)
			}
			first := policy.Answer{Rule: v.Lets[0]}.Reason()
			x.plan.Evicts = append(x.plan.Evicts, report.Evict(v.Task, r.task, x.waits.Action, step.Via(), first, rows, v.needed))
		}
	}
}
