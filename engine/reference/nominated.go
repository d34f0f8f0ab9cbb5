package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// renew places the tasks with a nominated node before all other tasks. It first promises each task its node as the node will be. A task
// that may no longer have its node loses it. Then renew places each task that fits a node now. The job of a task keeps the placements as
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

// nominate makes later cycles keep resources for waiting tasks, if their job may start with them. It applies to jobs for which pods are or
// were evicted, and to jobs to which a step with displace promised resources.
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
					x.plan.KeptUntil = x.plan.Now // the resources become free for others
				}
			}
		}
	}
}

// starts reports whether a job may start with what it has and is promised.
func (x *cycle) starts(j *model.Job) bool {
	_, whole := x.whole(j)
	return whole || x.Vote(policy.JobPipelined, x.Frame().OfJob(j)).Yes
}
