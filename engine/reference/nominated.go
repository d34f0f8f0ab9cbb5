package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// renew gives tasks with a nominated node their places before all other tasks. It promises each task its node as the node will be, and a
// task that may not have its node any more loses it. Then it places each task that fits a node now. The job of a task keeps the places as
// usual.
func (x *cycle) renew() {
	x.waits.Action = report.Nominated
	ahead := &eviction.Search{Answers: x.Answers, Cluster: x.c, Policy: x.p, Txn: x.txn, Action: report.Nominated}
	ahead.LookAhead()
	var renewed []placed
	for _, t := range x.c.Nominated() {
		if r, ok := ahead.Renew(t); ok {
			renewed = append(renewed, placed{t, r.Bind})
		} else {
			x.c.Nominate(t, "")
		}
	}
	ahead.LookBack()
	for i, p := range renewed {
		before := x.txn.Mark()
		if now, found := x.try(nil, p.task); found && p.task.Status == model.Allocated {
			renewed[i] = now
		} else {
			x.txn.Rollback(before)
		}
		x.waits.Set(p.task.Job, p.task, nil)
		x.forced[p.task] = true
	}
	x.hold(renewed)
	for _, j := range x.forcedJobs() {
		if x.IsReady(j) {
			x.release(j)
		} else {
			x.jobWait(j, report.Held(j, policy.JobPipelined, x.Vote(policy.JobPipelined, x.Frame().OfJob(j)).Reason()))
		}
	}
	x.waits.Action = ""
}

// forcedJobs returns, in key order, the jobs of tasks for which pods are or were evicted.
func (x *cycle) forcedJobs() []*model.Job {
	forced := eviction.Served(x.forced)
	return slices.DeleteFunc(slices.Clone(x.c.JobsByKey()), func(j *model.Job) bool { return !forced[j] })
}

// nominate has the cycles that follow keep the room of those that wait for it, as long as the job may start with it: of each job for which
// others go, or went, or that is promised room by a step that displaces.
func (x *cycle) nominate() {
	forced := eviction.Served(x.forced)
	for _, j := range x.c.JobsByKey() {
		if !forced[j] && !x.nominees[j] {
			continue
		}
		starts := x.starts(j)
		for _, t := range j.Tasks {
			switch {
			case starts && t.Status == model.Pipelined:
				x.c.Nominate(t, t.NodeName)
			case t.NominatedNode == "", starts && t.Status == model.Allocated:
			default:
				x.c.Nominate(t, "")
				if !starts {
					x.plan.KeptUntil = x.plan.Now // there is room for others
				}
			}
		}
	}
}

// starts says whether a job may start with what it has and is promised.
func (x *cycle) starts(j *model.Job) bool {
	_, whole := x.whole(j)
	return whole || x.Vote(policy.JobPipelined, x.Frame().OfJob(j)).Yes
}
