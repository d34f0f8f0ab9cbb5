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
// they left. Who would is barred: it does not go for that job in this step. With what a job gets in one turn more may be taken from it than
// before: if somebody who went for it in an earlier one would do that now, nobody who goes in this one does.
func (x *Search) Stable(done []Room) bool {
	takers := x.takers(done, model.NoNode)
	if len(done) > 0 && x.turns[done[0].Task.Job] < policy.MostDetours && x.fromMates(done) {
		for _, r := range done {
			for _, v := range r.Victims {
				takers = append(takers, barred{v.Task, r.Task.Job})
			}
		}
	}
	for _, b := range takers {
		x.bar(b.victim, b.job)
	}
	return len(takers) == 0
}

// aftermath is what will be once those who are promised room have it.
type aftermath struct {
	mates    []*Room // the other promises of the cycle so far to the jobs of some
	promised map[*model.Task]bool
	others   []*Search
}

// suppose takes those who are promised room, and all others of their jobs who are, for Running, and those who go for them for pending again.
func (x *Search) suppose(done []Room) (a aftermath) {
	a.promised, a.others = make(map[*model.Task]bool, len(done)), x.others()
	jobs := map[*model.Job]bool{}
	again := func(r *Room) {
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for i := range done {
		a.promised[done[i].Task] = true
		again(&done[i])
	}
	for i := range done {
		j := done[i].Task.Job
		if jobs[j] {
			continue
		}
		jobs[j] = true
		for _, at := range x.keptOf[j] {
			if r := &x.kept[at]; !a.promised[r.Task] {
				a.mates = append(a.mates, r)
				again(r)
			}
		}
		for _, t := range j.Tasks {
			if t.Status == model.Pipelined {
				x.Txn.Suppose(t, model.Running)
			}
		}
	}
	for _, r := range a.mates {
		a.promised[r.Task] = true
	}
	return a
}

// takers are those who go for some promises and would take the room back, on one node, or on any.
func (x *Search) takers(done []Room, row int32) (out []barred) {
	if !slices.ContainsFunc(done, func(r Room) bool { return (row == model.NoNode || r.row == row) && len(r.Victims) > 0 }) {
		return nil
	}
	before := x.Txn.Mark()
	a := x.suppose(done)
	for _, r := range done {
		for _, v := range r.Victims {
			if (row == model.NoNode || r.row == row) && x.takesBack(a.others, v.Task, r.row, a.promised) {
				out = append(out, barred{v.Task, r.Task.Job})
			}
		}
	}
	x.Txn.Rollback(before)
	return out
}

// fromMates says whether somebody who went for the other promises would take their room back.
func (x *Search) fromMates(done []Room) bool {
	if !slices.ContainsFunc(done, func(r Room) bool { return len(x.keptOf[r.Task.Job]) > 0 }) {
		return false
	}
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	a := x.suppose(done)
	return slices.ContainsFunc(a.mates, func(r *Room) bool {
		return slices.ContainsFunc(r.Victims, func(v Victim) bool { return x.takesBack(a.others, v.Task, r.row, a.promised) })
	})
}

// StableNeed says the same of the room for several tasks of a job.
func (x *Gangs) StableNeed(n *Need) bool {
	if len(n.Units) == 0 {
		return true
	}
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	j, gone, rows := n.Rooms[0].Task.Job, victimsOf(n.Units), map[*model.Task]int32{}
	promised := make(map[*model.Task]bool, len(n.Rooms))
	var earlier []*model.Task
	mates := 0
	for i := range x.needs {
		if m := &x.needs[i]; m.Rooms[0].Task.Job == j {
			mates, earlier = mates+1, append(earlier, m.Victims()...)
			for _, r := range m.Rooms {
				promised[r.Task] = true
			}
		}
	}
	for _, t := range slices.Concat(gone, earlier) {
		rows[t] = x.c.Nodes.Index[t.NodeName]
		x.Txn.Suppose(t, model.Pending)
	}
	for _, r := range n.Rooms {
		promised[r.Task] = true
	}
	for _, t := range j.Tasks {
		if t.Status == model.Pipelined {
			x.Txn.Suppose(t, model.Running)
		}
	}
	others := x.others()
	back := func(t *model.Task) bool { return x.takesBack(others, t, rows[t], promised) }
	takers := slices.DeleteFunc(slices.Clone(gone), func(t *model.Task) bool { return !back(t) })
	if mates < policy.MostDetours && slices.ContainsFunc(earlier, back) {
		takers = gone
	}
	for _, t := range takers {
		x.bar(t, j)
	}
	return len(takers) == 0
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
		o.Step, o.Served, o.InVain, o.Warn = s, nil, nil, func(string) {}
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
