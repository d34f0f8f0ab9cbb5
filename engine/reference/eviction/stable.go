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
		x.barred[b] = true
	}
	if len(takers) > 0 || !(aftermath{x}).fromMates(done) {
		return len(takers) == 0, true
	}
	for _, r := range done {
		if x.vain.Reset(); len(r.Victims) > 0 {
			x.vain.OfMates()
		}
		x.tellInVain(r.Task.Job, r.Task, false)
	}
	return false, false
}

// aftermath checks the state after the promised tasks run.
type aftermath struct{ *Search }

// mates returns the cycle's other promises so far to the same jobs, except those of jobs that had many turns in this step.
func (x aftermath) mates(done []Room) []Room {
	return slices.DeleteFunc(slices.Clone(x.Kept), func(k Room) bool {
		return x.turns[k.Task.Job] >= policy.MostMates || slices.ContainsFunc(done, func(r Room) bool { return r.Task == k.Task }) ||
			!slices.ContainsFunc(done, func(r Room) bool { return r.Task.Job == k.Task.Job })
	})
}

// suppose treats the tasks with promises, and all promised tasks of their jobs, as Running. It treats their victims as Pending again.
func (x aftermath) suppose(done, mates []Room) {
	for _, r := range slices.Concat(done, mates) {
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for _, r := range done {
		x.Txn.Suppose(r.Task, model.Running)
	}
	for _, r := range done {
		for _, t := range r.Task.Job.Tasks {
			if t.Status == model.Pipelined && x.turns[t.Job] < policy.MostMates {
				x.Txn.Suppose(t, model.Running)
			}
		}
	}
}

// takers returns the victims of some promises that would take the resources back, on one node or, with model.NoNode, on any node.
func (x *Search) takers(done []Room, row int32) (out []barred) {
	after := aftermath{x}
	before, mates := x.Txn.Mark(), after.mates(done)
	after.suppose(done, mates)
	for _, r := range done {
		for _, v := range r.Victims {
			if (row == model.NoNode || r.Row == row) && x.takesBack(v.Task, r.Row, slices.Concat(done, mates)) {
				out = append(out, barred{v.Task, r.Task.Job})
			}
		}
	}
	x.Txn.Rollback(before)
	return out
}

// fromMates reports whether a victim of the other promises would take their resources back.
func (x aftermath) fromMates(done []Room) bool {
	before, mates := x.Txn.Mark(), x.mates(done)
	defer x.Txn.Rollback(before)
	x.suppose(done, mates)
	return slices.ContainsFunc(mates, func(r Room) bool {
		return slices.ContainsFunc(r.Victims, func(v Victim) bool { return x.takesBack(v.Task, r.Row, slices.Concat(done, mates)) })
	})
}

// StableNeed does what Stable does, for the promises to several tasks of a job.
func (x *Gangs) StableNeed(n Need) (ok, again bool) {
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	j, gone := n.Rooms[0].Task.Job, victimsOf(n.Units)
	mates := slices.DeleteFunc(slices.Clone(x.needs), func(m Need) bool { return m.Rooms[0].Task.Job != j })
	if len(mates) >= policy.MostMates {
		mates = nil
	}
	rooms, earlier := n.Rooms, []Victim(nil)
	for _, m := range mates {
		rooms, earlier = slices.Concat(rooms, m.Rooms), append(earlier, victimsOf(m.Units)...)
	}
	rows := map[*model.Task]int32{}
	for _, v := range slices.Concat(gone, earlier) {
		rows[v.Task] = x.Cluster.Nodes.Index[v.Task.NodeName]
		x.Txn.Suppose(v.Task, model.Pending)
	}
	for _, t := range j.Tasks {
		if t.Status == model.Pipelined {
			x.Txn.Suppose(t, model.Running)
		}
	}
	back := func(v Victim) bool { return x.takesBack(v.Task, rows[v.Task], rooms) }
	ok = len(gone) == 0 || !slices.ContainsFunc(earlier, back)
	for _, v := range gone {
		if back(v) {
			x.barred[barred{v.Task, j}], ok, again = true, false, true
		}
	}
	return ok, again
}

// takesBack reports whether some step of the policy would evict the promised tasks from a node for a task.
func (x *Search) takesBack(t *model.Task, row int32, done []Room) bool {
	return slices.ContainsFunc(x.Policy.Displacing(), func(s *policy.Step) bool {
		if !x.about(s, t) || !x.mayForce(s, t) {
			return false
		}
		before, warnings := x.Txn.Mark(), x.Warnings
		defer func() {
			x.Txn.Rollback(before)
			x.Warnings = warnings // this only looks ahead
		}()
		back := &Search{
			Answers: x.Answers, Cluster: x.Cluster, Policy: x.Policy, Txn: x.Txn, Step: s, Action: x.Action, denied: map[*model.Job]bool{},
			sets: subsets.Few,
		}
		r, found := back.roomMade(t, row)
		return found && slices.ContainsFunc(r.Victims, func(v Victim) bool {
			return slices.ContainsFunc(done, func(r Room) bool { return r.Task == v.Task })
		})
	})
}

// mayForce evaluates the conditions of a step before it searches victims.
func (x *Search) mayForce(s *policy.Step, t *model.Task) bool {
	f := x.Frame().OfJob(t.Job)
	return t.Job.Seated() && x.All(policy.JobValid, f).Yes && x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes &&
		(!s.Gate(policy.Overused) || !x.Any(policy.Overused, x.Frame().OfQueue(t.Job.Queue)).Yes) &&
		(!s.Gate(policy.Preemptive) || x.All(policy.Preemptive, f.OfRequest(t.Request)).Yes)
}
