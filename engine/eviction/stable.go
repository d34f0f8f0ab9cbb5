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
	if going(done) == 0 {
		return true
	}
	before, stable := x.Txn.Mark(), true
	promised := make(map[*model.Task]bool, len(done))
	for _, r := range done {
		promised[r.Task] = true
		x.Txn.Suppose(r.Task, model.Running)
		for _, v := range r.Victims {
			x.Txn.Suppose(v.Task, model.Pending)
		}
	}
	for _, r := range done {
		for _, v := range r.Victims {
			if x.takesBack(v.Task, r.row, promised) {
				if x.barred == nil {
					x.barred = map[barred]bool{}
				}
				x.barred[barred{v.Task, r.Task.Job}], stable = true, false
			}
		}
	}
	x.Txn.Rollback(before)
	return stable
}

// takesBack says whether by some step of the policy a task has those evicted from a node who were promised it.
func (x *Search) takesBack(t *model.Task, row int32, promised map[*model.Task]bool) bool {
	return slices.ContainsFunc(x.Session.Policy().Displacing(), func(s *policy.Step) bool {
		if !x.About(s, t) || !x.mayForce(s, t) {
			return false
		}
		before := x.Txn.Mark()
		defer x.Txn.Rollback(before)
		o := x.Options
		o.Step, o.Warn = s, func(string) {} // nothing of it is done
		back := New(o)
		back.served = nil
		r, found := back.roomMade(t, row)
		return found && slices.ContainsFunc(r.Victims, func(v Victim) bool { return promised[v.Task] })
	})
}

// mayForce asks what a step asks before it looks for room.
func (x *Search) mayForce(s *policy.Step, t *model.Task) bool {
	return t.Job.Seated() && x.Session.Valid(t.Job).Yes && x.Session.Feasible(t).Yes &&
		(!s.Gate(policy.Overused) || !x.Session.Overused(t.Job.Queue).Yes) &&
		(!s.Gate(policy.Preemptive) || x.Session.Preemptive(t.Job, t.Request).Yes)
}
