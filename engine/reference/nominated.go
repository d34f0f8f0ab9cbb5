package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// renew gives the tasks with a nominated node their room before anybody else has a turn: each is promised its node as it will be, and who
// may not have it any more loses it; then each whom a node takes now is placed there. What of that is held is kept by its job as ever.
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
		if now, found := x.try(p.task); found && p.task.Status == model.Allocated {
			renewed[i] = now
		} else {
			x.txn.Rollback(before)
		}
		x.waits.Set(p.task.Job, p.task, nil)
		x.forced[p.task] = true
	}
	x.hold(renewed)
	for _, j := range x.forcedJobs() {
		if x.All(policy.JobReady, x.Frame().OfJob(j)).Yes {
			x.release(j)
		} else {
			x.jobWait(j, report.Held(j, policy.JobPipelined, x.Vote(policy.JobPipelined, x.Frame().OfJob(j)).Reason()))
		}
	}
	x.waits.Action = ""
}

// forcedJobs are those of which others go for a task, or went, in key order.
func (x *cycle) forcedJobs() []*model.Job {
	forced := eviction.Served(x.forced)
	return slices.DeleteFunc(slices.Clone(x.c.JobsByKey()), func(j *model.Job) bool { return !forced[j] })
}

// nominate has the cycles that follow keep the room of those that wait for it, of each job for which others go, or went: as long as the job
// may start with it.
func (x *cycle) nominate() {
	for _, j := range x.forcedJobs() {
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
