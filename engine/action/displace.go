package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/eviction"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// force is the work of a step that displaces.
type force struct {
	*Cycle
	step   *policy.Step
	search *eviction.Search
	gangs  *eviction.Gangs
	some   bool // of the turns were kept
	// victims of the turns that were kept, some of whom may be spared in the end
	victims []*model.Task
}

// displace makes room for tasks by evicting others.
func (x *Cycle) displace(step *policy.Step) {
	later := x.s.Policy().PlacingAfter(step)
	f := &force{Cycle: x, step: step, search: eviction.New(eviction.Options{
		Session: x.s, Txn: x.txn, Step: step, Action: x.waits.Action, Warn: x.warn,
		Placed: func(t *model.Task) bool {
			return slices.ContainsFunc(later, func(s *policy.Step) bool {
				return x.taken(s) && x.jobPasses(s, policy.KeyJobs, t.Job) && x.taskPasses(s, t)
			})
		},
	})}
	f.gangs = &eviction.Gangs{Search: f.search}
	left := map[*model.Job]*taskQueue{} // of jobs that come back for another turn
	start := x.txn.Mark()
	idle := func(j *model.Job) bool { return j.Counts[model.Pending] == 0 }
	x.kept = nil
	x.walk(step, visit{begin: f.search.LookAhead, idle: idle, drop: overused(x.s, step), turn: func(j *model.Job) (again bool) {
		todo := left[j]
		if todo == nil {
			if !x.s.Valid(j).Yes {
				return false
			}
			todo = &taskQueue{}
			x.tasksOf(step, j, todo)
		}
		if step.Word(policy.KeyUnit) == policy.UnitGang {
			again = f.together(j, todo)
		} else {
			again = f.turn(j, todo)
		}
		if again {
			left[j] = todo
		}
		return again
	}})
	if !f.some {
		x.txn.Rollback(start)
		f.search.LookBack() // what of it was committed on the way
		return
	}
	goes := map[*model.Task]bool{}
	for _, r := range f.search.Kept() {
		x.pipelined = append(x.pipelined, placed{r.Task, r.Bind})
		if len(r.Victims) > 0 {
			if x.forced == nil {
				x.forced = map[*model.Task]bool{}
			}
			x.forced[r.Task] = true
		}
		x.plan.Evicts = append(x.plan.Evicts, f.search.Evicts(r)...)
		for _, v := range r.Victims {
			goes[v.Task] = true
		}
	}
	f.plan.Evicts = append(f.plan.Evicts, f.needs(goes)...)
	for _, t := range f.victims {
		if !goes[t] {
			x.memory.jobs.befell(t.Job)
		}
	}
	f.search.LookBack()
}

// turn makes room for a job's tasks, one after the other, until the step's turn is over or one finds none. What was evicted and promised
// is kept or undone together, or, where the step commits per task, each kept at once. It says whether the job comes back for the tasks
// that are left.
func (x *force) turn(j *model.Job, todo *taskQueue) (again bool) {
	start, byTask := x.txn.Mark(), x.step.Word(policy.KeyCommit) == "task"
	var done []eviction.Room
	var failed []string // roles of which a task found no room
	for over := false; !todo.empty() && !over; {
		t := todo.pop(x.s)
		if t.Role != "" && slices.Contains(failed, t.Role) || x.passes(j, t) {
			x.withoutPlace(t)
			continue
		}
		before := x.txn.Mark()
		r, found := x.search.RoomFor(t)
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
			done = append(done, r)
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
	kept := byTask || x.keepTurn(j, done)
	if !kept {
		x.txn.Rollback(start)
	}
	x.endTurn(nil)
	return kept && again
}

// passes says whether no room is sought for a task: it does not wait for any, or may not take it by force.
func (x *force) passes(j *model.Job, t *model.Task) bool {
	return t.Status != model.Pending || x.step.Gate(policy.Preemptive) && !x.s.Preemptive(j, t.Request).Yes
}

// keepTurn keeps the promises of a turn as a whole, if the job may be held with them and a later step would not make do without.
func (x *force) keepTurn(j *model.Job, done []eviction.Room) (kept bool) {
	pipelined := x.s.Pipelined(j)
	if !pipelined.Yes || !slices.ContainsFunc(done, func(r eviction.Room) bool { return !r.Placing }) {
		return false
	}
	x.keepRoom(x.search.GiveBack(done)...)
	x.jobWait(j, report.Held(j, policy.JobPipelined, pipelined.Reason()))
	return true
}

// keepRoom keeps promises.
func (x *force) keepRoom(done ...eviction.Room) {
	x.some = true
	x.search.Keep(done...)
	for _, r := range done {
		x.note(r.Task.Job, r.Task, nil)
		for _, v := range r.Victims {
			x.victims = append(x.victims, v.Task)
			x.memory.jobs.befell(v.Task.Job)
		}
	}
}
