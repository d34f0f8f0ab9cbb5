package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/eviction"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// force is the state of a step with displace.
type force struct {
	*Cycle
	step   *policy.Step
	search *eviction.Search
	gangs  *eviction.Gangs
	left   map[*model.Job]*taskQueue // of jobs that get another turn
	some   bool                      // some turns were kept
	apart  bool                      // some turns were kept task by task, and not for several tasks at once
	// victims of the kept turns; some of them may not be evicted in the end
	victims []*model.Task
	// jobsInVain contains the outcomes of jobs whose turn had no effect, by kind.
	jobsInVain map[string]jobInVain
	// tasksInVain contains the tasks of the present turn for which no resources were found, by a key that equal tasks share.
	tasksInVain map[string]taskInVain
	last        model.InVain // the last one that was reported
}

// jobInVain is the outcome of a job at a content of the cluster.
type jobInVain struct {
	content uint64
	out     *outcome
}

// taskInVain states why no pod is evicted for a task, at a state.
type taskInVain struct {
	at  state
	why model.InVain
}

// state is what the result for a task of a turn depends on in addition to the task: the content of the cluster, and the number of failed
// roles.
type state struct {
	content uint64
	failed  int
}

// displace evicts tasks to free resources for other tasks.
func (x *Cycle) displace(step *policy.Step) {
	f := &force{
		Cycle: x, step: step, left: map[*model.Job]*taskQueue{}, jobsInVain: map[string]jobInVain{}, tasksInVain: map[string]taskInVain{},
	}
	f.search = eviction.New(eviction.Options{
		Session: x.s, Txn: x.txn, Step: step, Action: x.waits.Action, Warn: x.warn, Served: x.served(),
		InVain: func(j *model.Job, t *model.Task, why model.InVain) {
			f.last = why
			x.result.inVain(x.waits, j, t, &why)
		},
		About: func(s *policy.Step, t *model.Task) bool {
			return x.taken(s) && x.jobPasses(s, policy.KeyJobs, t.Job) && x.taskPasses(s, t)
		},
	})
	x.rooms = slices.DeleteFunc(x.rooms, func(r eviction.Room) bool { return !r.Stands() }) // without those that a step in between placed
	f.search.Keep(x.rooms...)
	f.gangs = &eviction.Gangs{Search: f.search}
	start := x.txn.Mark()
	idle := func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	x.kept, x.roomy = nil, map[*model.Job]bool{}
	x.walk(step, visit{begin: f.search.LookAhead, idle: idle, drop: overused(x.s, step), turn: f.visit})
	x.roomy = nil
	if !f.some {
		x.txn.Rollback(start)
		f.search.LookBack() // other steps were committed in the meantime
		return
	}
	if f.apart {
		if x.told == nil {
			x.told = map[string]bool{}
		}
		x.rooms = f.search.Kept()
		f.tellEvicts()
	}
	f.tellNeeds()
	f.befell()
	f.search.LookBack()
}

// visit gives a job its turn, and reports whether the job gets another turn.
func (x *force) visit(j *model.Job) (again bool) {
	content, todo := x.c.Content(), x.left[j]
	// A further turn covers only the remaining tasks, so its outcome does not describe the others.
	x.result.unsettled = x.result.unsettled || x.hasForced(j) || todo != nil
	var kind string
	if todo == nil {
		if kind = x.kind(j); x.inVain(j, kind, content) || !x.s.Valid(j).Yes {
			return false
		}
		todo = &taskQueue{}
		x.tasksOf(x.step, j, todo)
	}
	if todo.further && !x.stillTakes(x.step, j) {
		return false
	}
	some := !todo.empty()
	if todo, again = x.turns(j, todo); again {
		todo.further = true
		x.left[j] = todo
	} else if some {
		x.leave(j)
	}
	if kind != "" && x.c.Content() == content {
		x.jobsInVain[kind] = jobInVain{content, x.result.outcome(j)}
	}
	return again
}

// befell makes later steps try the jobs of victims again that are not evicted after all.
func (x *force) befell() {
	for _, t := range x.victims {
		if t.Status != model.Gone {
			x.memory.jobs.befell(t.Job)
		}
	}
}

// leave decides whether a job blocks its queue after its last turn. A job that is ready or pipelined does not block it.
func (x *force) leave(j *model.Job) {
	x.blocks(x.step, j, x.step.Condition(policy.KeyBlocksQueue) != nil && !x.s.IsReady(j) && !x.s.Pipelined(j).Yes)
}

// kind returns a key that jobs with equal outcomes share; "": the job has none.
func (x *force) kind(j *model.Job) string {
	kind, _ := x.memory.jobs.of(x.step).alike(j)
	return kind
}

// inVain reports whether the turn of a job of this kind is known to have no effect. If so, it reports for the job what was reported for the
// job that was tried.
func (x *force) inVain(j *model.Job, kind string, content uint64) bool {
	was, tried := x.jobsInVain[kind]
	if !tried || was.content != content {
		return false
	}
	x.tell(j, was.out)
	x.result.blocks = was.out.blocks
	return true
}

// turns gives a job its turn. It reports whether the job gets another turn, and for which tasks.
func (x *force) turns(j *model.Job, todo *taskQueue) (left *taskQueue, again bool) {
	if x.step.Word(policy.KeyUnit) == policy.UnitGang {
		return todo, x.together(j, todo)
	}
	x.search.TakeTurn(func() (t eviction.Turn) {
		left = &taskQueue{tasks: slices.Clone(todo.tasks), moves: todo.moves, further: todo.further}
		t, again = x.turn(j, left)
		return t
	})
	return left, again
}

// tellEvicts updates the evictions of the plan. It removes those that are no longer needed.
func (x *force) tellEvicts() {
	goes, evicts := map[string]model.Evict{}, [][]model.Evict{}
	for i := range x.rooms {
		r := &x.rooms[i]
		x.pipelined = append(x.pipelined, placed{r.Task, r.Bind})
		x.keepFor(r.Task.Job)
		evicts = append(evicts, r.Evicts())
		for _, e := range evicts[i] {
			goes[e.Task] = e
			x.told[e.Task] = true
		}
		if len(r.Victims) > 0 {
			x.byForce(r.Task)
		}
	}
	told := x.plan.Evicts
	x.plan.Evicts = nil
	for _, e := range told {
		if now, ok := goes[e.Task]; ok {
			e = now
			delete(goes, e.Task)
		} else if x.told[e.Task] {
			x.memory.jobs.befell(x.c.Tasks[e.Task].Job)
			continue
		}
		x.plan.Evicts = append(x.plan.Evicts, e)
	}
	for _, list := range evicts {
		for _, e := range list {
			if _, untold := goes[e.Task]; untold {
				x.plan.Evicts = append(x.plan.Evicts, e)
				delete(goes, e.Task)
			}
		}
	}
}

// turn frees resources for a job's tasks, one after the other. It ends when the step's turn is over, or when the step stops after a
// failure. The evictions and promises are kept or undone together; if the step commits by task, each is kept at once. Unstable ones are
// undone. turn reports whether the job gets another turn for the remaining tasks.
func (x *force) turn(j *model.Job, todo *taskQueue) (turn eviction.Turn, again bool) {
	start, byTask := x.txn.Mark(), x.step.Word(policy.KeyCommit) == "task"
	var failed []string // roles of which a task found no resources
	clear(x.tasksInVain)
	for over := false; !todo.empty() && !over; {
		x.c.Breathe()
		t := todo.pop(x.s)
		if t.Role != "" && slices.Contains(failed, t.Role) || x.passes(j, t, todo.further) {
			x.withoutPlace(t)
			continue
		}
		before := x.txn.Mark()
		r, found := x.roomFor(t, len(failed))
		if !found {
			x.withoutPlace(t)
			if !slices.Contains(failed, t.Role) {
				failed = append(failed, t.Role)
			}
			x.c.SetRoleFailed(j, t.Role, true)
			over = !x.jobPasses(x.step, policy.KeyOnNoNode, j)
			continue
		}
		switch {
		case !byTask:
			turn.Done = append(turn.Done, r)
		case r.Placing:
			x.txn.Rollback(before)
		default:
			x.keepRoom(r)
		}
		over = x.turnOver(x.step, j)
		again = over && !todo.empty()
	}
	for _, role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	if turn.Kept, turn.Stable = x.keepTurn(j, slices.Clone(turn.Done)); !turn.Kept {
		x.txn.Rollback(start)
	}
	x.endTurn(nil)
	return turn, turn.Kept && again
}

// roomFor finds a place for a task. If an equal task found none at the same state, it does not search again: for a wide gang of equal
// tasks, the first searches decide.
func (x *force) roomFor(t *model.Task, failed int) (eviction.Room, bool) {
	key, ok := x.memory.jobs.of(x.step).alikeInTurn(t)
	ok = ok && !t.BestEffort // the state does not contain which of these tasks found no place
	at := state{x.c.Content(), failed}
	if was, tried := x.tasksInVain[key]; ok && tried && was.at == at {
		x.search.TellAgain(t, was.why)
		return eviction.Room{}, false
	}
	r, found := x.search.RoomFor(t)
	if ok && !found {
		x.tasksInVain[key] = taskInVain{at, x.last}
	}
	return r, found
}

// passes reports whether to search no resources for a task. It does not wait, the step no longer applies to it in a further turn, or its
// queue may not evict tasks for it.
func (x *force) passes(j *model.Job, t *model.Task, further bool) bool {
	return t.Status != model.Pending || further && !x.taskPasses(x.step, t) ||
		x.step.Gate(policy.Preemptive) && !x.s.Preemptive(j, t.Request).Yes
}

// keepTurn keeps the promises of a turn as a whole under two conditions. The job may be held with them, and a later step could not place it
// without them.
func (x *force) keepTurn(j *model.Job, done []eviction.Room) (kept, stable bool) {
	if x.step.Word(policy.KeyCommit) == "task" {
		return true, true // each promise was kept when it was found
	}
	pipelined := x.s.Pipelined(j)
	if !pipelined.Yes || !slices.ContainsFunc(done, func(r eviction.Room) bool { return !r.Placing }) {
		return false, true
	}
	x.search.GiveBack(done)
	if ok, again := x.search.Stable(done); !ok {
		return false, !again
	}
	x.keepRoom(done...)
	x.jobWait(j, report.Held(j, policy.JobPipelined, pipelined.Reason()))
	return true, true
}

// keepRoom keeps promises, and makes steps try the jobs of the victims again.
func (x *force) keepRoom(done ...eviction.Room) {
	x.some, x.apart = true, true
	x.search.KeepTurn(done...)
	x.roomy[done[0].Task.Job] = true
	for _, r := range done {
		x.note(r.Task.Job, r.Task, nil)
		for _, v := range r.Victims {
			x.victims = append(x.victims, v.Task)
			x.memory.jobs.befell(v.Task.Job)
		}
	}
}
