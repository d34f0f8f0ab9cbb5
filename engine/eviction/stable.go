package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// barred is a task that does not go for a job.
type barred struct {
	victim *model.Task
	job    *model.Job
}

// Stable says whether none of those who go would, once they are pending again, have somebody evicted for whom they went, on the node that
// they left. Who would is barred: it does not go for that job in this step.
func (x *Search) Stable(done []Room) bool {
	takers := x.takers(done, model.NoNode)
	for _, b := range takers {
		x.bar(b.victim, b.job)
	}
	return len(takers) == 0
}

// takers are those of them who would, on one node, or on any.
func (x *Search) takers(done []Room, row int32) (out []barred) {
	if !slices.ContainsFunc(done, func(r Room) bool { return (row == model.NoNode || r.row == row) && len(r.Victims) > 0 }) {
		return nil
	}
	before := x.Txn.Mark()
	promised := make(map[*model.Task]bool, len(done))
	for _, r := range done {
		promised[r.Task] = true
		x.Txn.Suppose(r.Task, model.Running)
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	others := x.others()
	for _, r := range done {
		for _, v := range r.Victims {
			if (row == model.NoNode || r.row == row) && x.takesBack(others, v.Task, r.row, promised) {
				out = append(out, barred{v.Task, r.Task.Job})
			}
		}
	}
	x.Txn.Rollback(before)
	return out
}

// StableNeed says the same of the room for several tasks of a job.
func (x *Gangs) StableNeed(n *Need) bool {
	if len(n.Units) == 0 {
		return true
	}
	before, stable := x.Txn.Mark(), true
	gone := n.Victims()
	rows, promised := make([]int32, len(gone)), make(map[*model.Task]bool, len(n.Rooms))
	for i, t := range gone {
		rows[i] = x.c.Nodes.Index[t.NodeName]
		x.Txn.Suppose(t, model.Pending)
	}
	for _, r := range n.Rooms {
		promised[r.Task] = true
		x.Txn.Suppose(r.Task, model.Running)
	}
	others := x.others()
	for i, t := range gone {
		if x.takesBack(others, t, rows[i], promised) {
			x.bar(t, n.Rooms[0].Task.Job)
			stable = false
		}
	}
	x.Txn.Rollback(before)
	return stable
}

// bar has a task not go for a job.
func (x *Search) bar(t *model.Task, j *model.Job) {
	if x.barred == nil {
		x.barred = map[barred]bool{}
	}
	x.barred[barred{t, j}] = true
}

// unbarred are those of some tasks who go for a task's job.
func (x *Search) unbarred(t *model.Task, tasks []*model.Task) []*model.Task {
	if len(x.barred) == 0 {
		return tasks
	}
	return slices.DeleteFunc(tasks, func(v *model.Task) bool { return x.barred[barred{v, t.Job}] })
}

// others are searches by each step of the policy that displaces, of which nothing is done.
func (x *Search) others() (out []*Search) {
	for _, s := range x.Session.Policy().Displacing() {
		o := x.Options
		o.Step, o.Served, o.Warn = s, nil, func(string) {}
		out = append(out, New(o))
	}
	return out
}

// takesBack says whether by some step a task has those evicted from a node who were promised it.
func (x *Search) takesBack(others []*Search, t *model.Task, row int32, promised map[*model.Task]bool) bool {
	return slices.ContainsFunc(others, func(other *Search) bool {
		if !x.About(other.Step, t) || !x.mayForce(other.Step, t) {
			return false
		}
		before := x.Txn.Mark()
		defer x.Txn.Rollback(before)
		r, found := other.roomMade(t, row)
		return found && slices.ContainsFunc(r.Victims, func(v Victim) bool { return promised[v.Task] })
	})
}

// mayForce asks what a step asks before it looks for room.
func (x *Search) mayForce(s *policy.Step, t *model.Task) bool {
	return t.Job.Seated() && x.Session.Valid(t.Job).Yes && x.Session.Feasible(t).Yes &&
		(!s.Gate(policy.Overused) || !x.Session.Overused(t.Job.Queue).Yes) &&
		(!s.Gate(policy.Preemptive) || x.Session.Preemptive(t.Job, t.Request).Yes)
}
