package action

import (
	"cmp"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/eviction"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// nominations is the part of a cycle for tasks with a nominated node.
type nominations struct{ *Cycle }

// renew places the tasks with a nominated node before all other tasks. It first promises each task its node as the node will be. A task
// that may no longer have its node loses it. Then renew places each task that fits a node now. The job of a task keeps the placements as
// usual.
func (x nominations) renew() {
	nominated := x.c.Nominated()
	if len(nominated) == 0 {
		return
	}
	x.waits.Action = report.Nominated
	x.forced = map[*model.Task]bool{}
	ahead := eviction.New(eviction.Options{Session: x.s, Txn: x.txn, Action: report.Nominated})
	ahead.LookAhead()
	var renewed []placed
	for _, t := range nominated {
		x.memory.jobs.befell(t.Job)
		if r, ok := ahead.Renew(t); ok {
			renewed = append(renewed, placed{t, r.Bind})
		} else {
			x.c.Nominate(t, "")
		}
	}
	ahead.LookBack()
	for i, p := range renewed {
		before := x.txn.Mark()
		if now, found := x.find(nil, p.task); found && p.task.Status == model.Allocated {
			renewed[i] = now
		} else {
			x.txn.Rollback(before)
		}
		x.note(p.task.Job, p.task, nil)
		x.forced[p.task] = true
	}
	x.hold(renewed)
	for _, j := range x.jobs() {
		if x.s.IsReady(j) {
			x.release(j)
		} else {
			x.jobWait(j, report.Held(j, policy.JobPipelined, x.s.Pipelined(j).Reason()))
		}
	}
	x.waits.Action = ""
}

// jobs returns, in key order, the jobs of tasks for which pods are or were evicted, and others.
func (x nominations) jobs(others ...*model.Job) []*model.Job {
	jobs := others
	for t := range x.forced {
		jobs = append(jobs, t.Job)
	}
	slices.SortFunc(jobs, func(a, b *model.Job) int { return cmp.Compare(a.Key, b.Key) })
	return slices.Compact(jobs)
}

// nomination is the nominated node that a task gets; "": the task loses its nomination.
type nomination struct {
	task *model.Task
	node string
}

// after returns the nominations for later cycles. They belong to waiting tasks of jobs for which pods are or were evicted, or to which a
// step with displace promised resources. A job loses them if it may not start with its resources.
func (x nominations) after() (out []nomination) {
	for _, j := range x.jobs(slices.Collect(maps.Keys(x.promised))...) {
		starts := x.starts(j)
		for _, t := range j.Tasks {
			switch {
			case starts && t.Status == model.Pipelined:
				out = append(out, nomination{t, t.NodeName})
			case t.NominatedNode == "", starts && t.Status == model.Allocated:
			default:
				out = append(out, nomination{t, ""})
				if !starts {
					x.plan.KeptUntil = x.plan.Now // the resources become free for others
				}
			}
		}
	}
	return out
}

// starts reports whether a job may start with what it has and is promised.
func (x nominations) starts(j *model.Job) bool {
	_, whole := x.whole(j)
	return whole || x.s.Pipelined(j).Yes
}
