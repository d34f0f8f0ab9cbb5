package proof

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// aftermath checks the state after evictions.
type aftermath struct{ *Cycle }

// stable checks that a victim, once pending again, could not evict the promised tasks from its node. No step may find resources for it
// there by evictions that the rows permit, if it does not fit without them. This applies to the turn in which the victim was evicted,
// because later evictions and promises may change the results of rows.
func (x aftermath) stable(all []*promise, i int, v victim) {
	of := all[i]
	turn := func(p *promise) bool {
		return p == of || p.task.Job == of.task.Job && p.step == of.step && of.step.Word(policy.KeyCommit) == "job"
	}
	for _, kind := range []Kind{Stable, AtEnd} {
		again := ""
		x.tried(func() {
			if kind == Stable {
				x.undo(all[i:], func(p *promise) bool { return !turn(p) })
			}
			again = x.takenBack(all, of.row, v.task, func(p *promise) bool { return p.step != nil && (kind == AtEnd || turn(p)) })
		})
		if again != "" {
			x.violated(kind, of.task.Key, v.task.Key, "pending again it would have the room back, by the rows of %s", again)
			return
		}
	}
}

// takenBack returns by which rows a victim, once pending again, would evict some of the tasks that were promised its node; "": by none.
func (x aftermath) takenBack(all []*promise, row int32, victim *model.Task, which func(*promise) bool) string {
	ours := map[*model.Task]bool{}
	for _, p := range all {
		if which(p) {
			ours[p.task] = true
			x.txn.Suppose(p.task, model.Running)
			for _, v := range p.victims {
				x.txn.Suppose(v.task, model.Pending)
			}
		}
	}
	for _, s := range x.p.Displacing() {
		if x.forces(s, victim) && x.takesBack(s, victim, row, ours) {
			return s.Word(policy.KeyVictims)
		}
	}
	return ""
}

// forces reports whether a step evicts tasks for a task at all.
func (x aftermath) forces(s *policy.Step, t *model.Task) bool {
	j := x.Frame().OfJob(t.Job)
	return t.Job.Seated() && x.Condition(s.Condition(policy.KeyWhen), x.Frame(), "") && x.JobPasses(s, t.Job) && x.TaskPasses(s, t) &&
		x.All(policy.JobValid, j).Yes && x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes &&
		(!s.Gate(policy.Overused) || !x.Any(policy.Overused, x.Frame().OfQueue(t.Job.Queue)).Yes) &&
		(!s.Gate(policy.Preemptive) || x.All(policy.Preemptive, j.OfRequest(t.Request)).Yes)
}

// takesBack reports whether a task would fit a node only with the eviction of tasks in ours that the rows permit.
func (x aftermath) takesBack(s *policy.Step, t *model.Task, row int32, ours map[*model.Task]bool) (back bool) {
	scope := s.Word(policy.KeyScope)
	candidates := slices.DeleteFunc(slices.Clone(x.c.Nodes.Tasks[row]), func(o *model.Task) bool {
		return !o.MayGo() || !inScope(s, t, o) || o.Spared.After(x.now) ||
			!x.Condition(s.Condition(policy.KeyCandidates), x.Frame().OfVictim(t, o, scope), "")
	})
	lets, _ := x.Victims(answers.Question{Site: s.Word(policy.KeyVictims), Scope: scope, For: t, Txn: x.txn}, candidates)
	back = true
	for _, withOurs := range []bool{true, false} {
		x.tried(func() {
			for _, l := range lets {
				if withOurs || !ours[l.Task] {
					x.txn.Leave(l.Task)
				}
			}
			back = back && withOurs == (x.refuses(&promise{task: t, step: s}, row) == "")
		})
	}
	return back
}
