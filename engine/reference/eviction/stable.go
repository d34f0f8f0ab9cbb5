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
		x.barred[b] = true
	}
	return len(takers) == 0
}

// takers are those of them who would, on one node, or on any.
func (x *Search) takers(done []Room, row int32) (out []barred) {
	before := x.Txn.Mark()
	for _, r := range done {
		x.Txn.Suppose(r.Task, model.Running)
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for _, r := range done {
		for _, v := range r.Victims {
			if (row == model.NoNode || r.Row == row) && x.takesBack(v.Task, r.Row, done) {
				out = append(out, barred{v.Task, r.Task.Job})
			}
		}
	}
	x.Txn.Rollback(before)
	return out
}

// StableNeed says the same of the room for several tasks of a job.
func (x *Gangs) StableNeed(n Need) bool {
	before, stable := x.Txn.Mark(), true
	rows := map[*model.Task]int32{}
	var gone []*model.Task
	for _, u := range n.Units {
		for _, v := range u.victims {
			gone, rows[v.Task] = append(gone, v.Task), x.Cluster.Nodes.Index[v.Task.NodeName]
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for _, r := range n.Rooms {
		x.Txn.Suppose(r.Task, model.Running)
	}
	for _, t := range gone {
		if x.takesBack(t, rows[t], n.Rooms) {
			x.barred[barred{t, n.Rooms[0].Task.Job}], stable = true, false
		}
	}
	x.Txn.Rollback(before)
	return stable
}

// takesBack says whether by some step of the policy a task has those evicted from a node who were promised it.
func (x *Search) takesBack(t *model.Task, row int32, done []Room) bool {
	return slices.ContainsFunc(x.Policy.Displacing(), func(s *policy.Step) bool {
		if !x.about(s, t) || !x.mayForce(s, t) {
			return false
		}
		before, warnings := x.Txn.Mark(), x.Warnings
		defer func() {
			x.Txn.Rollback(before)
			x.Warnings = warnings // nothing of it is done
		}()
		back := &Search{
			Answers: x.Answers, Cluster: x.Cluster, Policy: x.Policy, Txn: x.Txn, Step: s, Action: x.Action, denied: map[*model.Job]bool{},
		}
		r, found := back.roomMade(t, row)
		return found && slices.ContainsFunc(r.Victims, func(v Victim) bool {
			return slices.ContainsFunc(done, func(r Room) bool { return r.Task == v.Task })
		})
	})
}

// mayForce asks what a step asks before it looks for room.
func (x *Search) mayForce(s *policy.Step, t *model.Task) bool {
	f := x.Frame().OfJob(t.Job)
	return t.Job.Seated() && x.All(policy.JobValid, f).Yes && x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes &&
		(!s.Gate(policy.Overused) || !x.Any(policy.Overused, x.Frame().OfQueue(t.Job.Queue)).Yes) &&
		(!s.Gate(policy.Preemptive) || x.All(policy.Preemptive, f.OfRequest(t.Request)).Yes)
}
