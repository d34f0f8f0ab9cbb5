package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// barred is a task that may not be evicted for a job.
type barred struct {
	victim *model.Task
	job    *model.Job
}

// Stable reports whether the evictions are stable. They are not if a victim, once it is pending again, could have its preemptor evicted
// from the node that the victim left. Such a victim is barred: it is not evicted for that job again in this step. again reports whether the
// turn may be tried again without the barred victims. It may not if the new promises let a victim of an earlier turn take its resources
// back.
func (x *Search) Stable(done []Room) (ok, again bool) {
	takers := x.takers(done, model.NoNode)
	for _, b := range takers {
		x.bar(b.victim, b.job)
	}
	if len(takers) > 0 || !x.kept.hasMates(done) || !newAftermath(x).fromMates(done) {
		return len(takers) == 0, true
	}
	for i := range done {
		if x.vain.Reset(); len(done[i].Victims) > 0 {
			x.vain.OfMates()
		}
		x.vain.told(x, done[i].Task.Job, done[i].Task, false)
	}
	return false, false
}

// hasMates reports whether some job of the promises has other promises, and has not had too many turns.
func (k *keeping) hasMates(done []Room) bool {
	return slices.ContainsFunc(done, func(r Room) bool { return len(k.of[r.Task.Job]) > 0 && k.turns[r.Task.Job] < policy.MostMates })
}

// aftermath is the state after the promised tasks run.
type aftermath struct {
	*Search
	mates    []*Room // the cycle's other promises so far to the same jobs
	promised map[*model.Task]bool
	others   []*Search // one for each step with displace of the policy; only used to look ahead
}

func newAftermath(x *Search) *aftermath {
	a := &aftermath{Search: x, promised: map[*model.Task]bool{}}
	for _, s := range x.Session.Policy().Displacing() {
		o := x.Options
		o.Step, o.Served, o.InVain, o.Warn = s, nil, nil, func(string) {}
		a.others = append(a.others, New(o))
	}
	return a
}

// suppose treats the tasks with promises, and all promised tasks of their jobs, as Running. It treats their victims as Pending again.
func (a *aftermath) suppose(done []Room) {
	x := a.Search
	jobs := map[*model.Job]bool{}
	again := func(r *Room) {
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for i := range done {
		a.promised[done[i].Task] = true
		x.Txn.Suppose(done[i].Task, model.Running)
		again(&done[i])
	}
	for i := range done {
		j := done[i].Task.Job
		if jobs[j] || x.kept.turns[j] >= policy.MostMates {
			continue // promises of jobs that had many turns in this step are checked separately
		}
		jobs[j] = true
		for _, at := range x.kept.of[j] {
			if r := &x.kept.rooms[at]; !a.promised[r.Task] {
				a.mates = append(a.mates, r)
				again(r)
			}
		}
		a.runs(j)
	}
	for _, r := range a.mates {
		a.promised[r.Task] = true
	}
}

// runs treats the promised tasks of a job as Running.
func (a *aftermath) runs(j *model.Job) {
	for _, t := range j.Tasks {
		if t.Status == model.Pipelined {
			a.Txn.Suppose(t, model.Running)
		}
	}
}

// takers returns the victims of some promises that would take the resources back, on one node or, with model.NoNode, on any node.
func (x *Search) takers(done []Room, row int32) (out []barred) {
	if !slices.ContainsFunc(done, func(r Room) bool { return (row == model.NoNode || r.row == row) && len(r.Victims) > 0 }) {
		return nil
	}
	before, a := x.Txn.Mark(), newAftermath(x)
	a.suppose(done)
	for _, r := range done {
		for _, v := range r.Victims {
			if (row == model.NoNode || r.row == row) && a.takesBack(v.Task, r.row) {
				out = append(out, barred{v.Task, r.Task.Job})
			}
		}
	}
	x.Txn.Rollback(before)
	return out
}

// fromMates reports whether a victim of the other promises would take their resources back.
func (a *aftermath) fromMates(done []Room) bool {
	before := a.Txn.Mark()
	defer a.Txn.Rollback(before)
	a.suppose(done)
	return slices.ContainsFunc(a.mates, func(r *Room) bool {
		return slices.ContainsFunc(r.Victims, func(v Victim) bool { return a.takesBack(v.Task, r.row) })
	})
}

// StableNeed does what Stable does, for the promises to several tasks of a job.
func (x *Gangs) StableNeed(n *Need) (ok, again bool) {
	if len(n.Units) == 0 {
		return true, false
	}
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	j, gone, rows, a := n.Rooms[0].Task.Job, victimsOf(n.Units), map[*model.Task]int32{}, newAftermath(x.Search)
	var mates []*Need
	for i := range x.needs {
		if m := &x.needs[i]; m.Rooms[0].Task.Job == j {
			mates = append(mates, m)
		}
	}
	if len(mates) >= policy.MostMates {
		mates = nil
	}
	var earlier []*model.Task
	for _, m := range append(slices.Clone(mates), n) {
		for _, r := range m.Rooms {
			a.promised[r.Task] = true
		}
		if m != n {
			earlier = append(earlier, m.Victims()...)
		}
	}
	for _, t := range slices.Concat(gone, earlier) {
		rows[t] = x.c.Nodes.Index[t.NodeName]
		x.Txn.Suppose(t, model.Pending)
	}
	a.runs(j)
	back := func(t *model.Task) bool { return a.takesBack(t, rows[t]) }
	ok = !slices.ContainsFunc(earlier, back)
	for _, t := range gone {
		if back(t) {
			x.bar(t, j)
			ok, again = false, true
		}
	}
	return ok, again
}

// bar prevents the eviction of a task for a job.
func (x *Search) bar(t *model.Task, j *model.Job) {
	if x.barred == nil {
		x.barred = map[barred]bool{}
	}
	x.barred[barred{t, j}] = true
}

// unbarred returns the tasks that may be evicted for a task's job.
func (x *Search) unbarred(t *model.Task, tasks []*model.Task) []*model.Task {
	if len(x.barred) == 0 {
		return tasks
	}
	return slices.DeleteFunc(tasks, func(v *model.Task) bool { return x.barred[barred{v, t.Job}] })
}

// takesBack reports whether some step would evict the promised tasks from a node for a task.
func (a *aftermath) takesBack(t *model.Task, row int32) bool {
	return slices.ContainsFunc(a.others, func(other *Search) bool {
		if !a.About(other.Step, t) || !a.mayForce(other.Step, t) {
			return false
		}
		before := a.Txn.Mark()
		defer a.Txn.Rollback(before)
		other.sets = subsets.Few
		r, found := other.roomMade(t, row)
		return found && slices.ContainsFunc(r.Victims, func(v Victim) bool { return a.promised[v.Task] })
	})
}

// mayForce evaluates the conditions of a step before it searches victims.
func (a *aftermath) mayForce(s *policy.Step, t *model.Task) bool {
	return t.Job.Seated() && a.Session.Valid(t.Job).Yes && a.Session.Feasible(t).Yes &&
		(!s.Gate(policy.Overused) || !a.Session.Overused(t.Job.Queue).Yes) &&
		(!s.Gate(policy.Preemptive) || a.Session.Preemptive(t.Job, t.Request).Yes)
}
