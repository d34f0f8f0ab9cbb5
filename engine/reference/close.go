package reference

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// close gives every waiting job and task its reason, and every job and queue its status, while promises still count. Then it undoes the
// promises.
func (x *cycle) close() {
	x.statuses()
	stuck := x.listWaits()
	x.nominate()
	for _, p := range x.held {
		if p.task.Status == model.Allocated {
			x.plan.Holds = append(x.plan.Holds, p.bind)
		}
	}
	for _, p := range x.promised {
		if p.task.Status == model.Pipelined {
			x.plan.Pipelines = append(x.plan.Pipelines, p.bind)
		}
	}
	for _, p := range slices.Concat(x.held, x.promised) {
		if p.task.Status == model.Allocated || p.task.Status == model.Pipelined {
			x.txn.Unplace(p.task)
		}
	}
	for _, j := range stuck {
		x.c.SetStuck(j, !x.c.IsStuck(j))
		x.plan.DecideBy(x.plan.Now) // rows read the time
	}
	for _, q := range x.beyond {
		x.c.SetExceeded(q, x.plan.Now)
	}
	report.Queues(x.c, x.plan)
	x.txn.Commit()
	x.plan.Errors, x.plan.Warnings = x.Faults(), append(x.Warnings, x.plan.Warnings...)
	x.c.CloseCycle()
	x.plan.Remember(x.c)
	x.plan.Asks, _ = policy.Asks(x.p, x.World(), x.Frame)
}

// statuses gives every waiting task its reason, and every job its status.
func (x *cycle) statuses() {
	for _, j := range x.c.JobsByKey() {
		if report.MayWait(j) {
			x.waits.Untried(j, report.Unasked(j, x.p.Name, x.p.Mode == "Paused", len(x.p.Actions)), x.feasible)
		}
	}
	causes := &report.Causes{Cluster: x.c, Answers: x}
	for _, j := range x.forcedJobs() {
		if x.starts(j) {
			x.waits.SetServed(j)
		}
	}
	for _, j := range x.c.JobsByKey() {
		if j.Seated() {
			status := x.waits.Status(j, x.whole, causes)
			x.plan.Jobs = append(x.plan.Jobs, &status)
		}
	}
}

// listWaits lists why jobs and tasks wait. It returns the jobs that are stuck and were not, or the reverse.
func (x *cycle) listWaits() (stuck []*model.Job) {
	for _, j := range report.ByQueue(x.c) {
		waits := x.waits.List(j, x.places[j], x.SortTasks)
		x.plan.Waits = append(x.plan.Waits, waits...)
		if x.p.ReadsWaits() && report.MayWait(j) && report.Stuck(j, waits, x.room()) != x.c.IsStuck(j) {
			stuck = append(stuck, j)
		}
	}
	return stuck
}

// room returns the questions that determine whether a job is stuck.
func (x *cycle) room() *report.Room {
	return &report.Room{
		Lacked: x.p.LacksRoom, NeverFits: func(t *model.Task) bool { return x.fitsNowhere(t) != "" },
		NeverStarts: x.GangNeverStarts,
	}
}

// feasible reports whether a task could be placed on some node.
func (x *cycle) feasible(t *model.Task) (why model.Reason, ok bool) {
	a := x.All(policy.TaskFeasible, x.Frame().OfTask(t))
	return a.Reason(), a.Yes
}

// whole reports whether the placements of a job may be kept.
func (x *cycle) whole(j *model.Job) (why model.Reason, ok bool) {
	a := x.All(policy.JobValid, x.Frame().OfJob(j))
	if a.Yes {
		a = x.All(policy.JobReady, x.Frame().OfJob(j))
	}
	return a.Reason(), a.Yes
}

// jobWait records why a job as a whole was not placed.
func (x *cycle) jobWait(j *model.Job, why model.Reason) { x.waits.Set(j, nil, x.waits.ForJob(j, why)) }

// taskWait records why one task was not placed.
func (x *cycle) taskWait(t *model.Task, why model.Reason, nodes []model.NodeCount) {
	x.waits.Set(t.Job, t, x.waits.ForTask(t, why, nodes))
}
