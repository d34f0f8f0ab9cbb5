package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// close gives every job and task that waits its reason and every job and queue its status, while what is only promised still counts;
// then undoes that.
func (x *cycle) close() {
	for _, j := range x.c.JobsByKey() {
		if waits(j) {
			x.untried(j)
		}
	}
	x.statuses()
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
	x.waits()
	for _, p := range slices.Concat(x.held, x.promised) {
		if p.task.Status == model.Allocated || p.task.Status == model.Pipelined {
			x.txn.Unplace(p.task)
		}
	}
	x.txn.Commit()
	x.plan.Errors = x.erred()
	x.c.CloseCycle()
}

// statuses are those of jobs and queues.
func (x *cycle) statuses() {
	for _, j := range x.c.JobsByKey() {
		if j.Seated() {
			condition := x.conditionOf(j)
			x.plan.Jobs = append(x.plan.Jobs, &model.JobStatus{
				Job: j.Key, Phase: phase(j, condition), Running: j.Counts[model.Running], Succeeded: j.Counts[model.Succeeded], Failed: j.Counts[model.Failed], Condition: condition,
			})
		}
	}
	if x.c.Claiming > 0 {
		x.warn(fmt.Sprintf("%d pod(s) claim resources (DRA), which this version does not heed", x.c.Claiming))
	}
	for _, q := range x.c.QueuesByName() {
		status := model.QueueStatus{Queue: q.Name, Allocated: map[string]string{}}
		for i, v := range q.Allocated {
			if q.Allocated.Has(i) {
				status.Allocated[x.c.Dims.Name(i)] = x.c.Dims.Quantity(i, v).String()
			}
		}
		x.plan.Queues = append(x.plan.Queues, status)
	}
}

// waits lists why all that waits does so: by queue and job, the job's own reason before those of its tasks, in their order.
func (x *cycle) waits() {
	jobs := slices.Clone(x.c.JobsByKey())
	slices.SortStableFunc(jobs, func(a, b *model.Job) int { return cmp.Compare(a.QueueName, b.QueueName) })
	for _, j := range jobs {
		add := func(w *model.Wait) {
			w.Place = x.places[j]
			x.plan.Waits = append(x.plan.Waits, *w)
		}
		if w := x.jobWaits[j]; w != nil && (j.Phase == model.PhasePending || unplaced(j)) {
			add(w)
		}
		var left []*model.Task
		for _, t := range j.Tasks {
			if x.taskWaits[t] != nil && t.Status == model.Pending {
				left = append(left, t)
			}
		}
		x.sortTasks(left)
		for _, t := range left {
			add(x.taskWaits[t])
		}
	}
}

// untried gives the pending tasks that no verb came to their reason, and so a job that waits to be let in and has no tasks yet.
func (x *cycle) untried(j *model.Job) {
	if x.jobWaits[j] != nil || j.Counts[model.Pending] == 0 && (j.Phase != model.PhasePending || j.TaskCount() > 0) {
		return
	}
	if why := x.unasked(j); why.Rule != "" && !j.Orphan {
		x.jobWait(j, why)
		return
	}
	for _, t := range j.Tasks {
		switch {
		case t.Status != model.Pending || x.taskWaits[t] != nil:
		case j.Orphan:
			if !t.Foreign {
				x.taskWait(t, builtin("podgroup", "its PodGroup is not there"), nil)
			}
		default:
			why := builtin("turn", "not tried: its job's turn ended, or no action of the pipeline takes it")
			if a := x.all(policy.TaskFeasible, x.world().Frame().OfTask(t)); !a.Yes {
				why = a.Reason()
			}
			x.taskWait(t, why, nil)
		}
	}
}

// unasked is why no action comes to a job as a whole; without a rule: some may.
func (x *cycle) unasked(j *model.Job) model.Reason {
	switch {
	case j.Queue == nil:
		return builtin("queue", "there is no queue "+strconv.Quote(j.QueueName))
	case !j.Seated():
		return builtin("queue", "the queue "+j.QueueName+" only holds other queues; name one below it")
	case x.p.Mode == "Paused":
		return builtin("paused", "policy "+x.p.Name+" is paused: nothing is decided until its mode is Active")
	case len(x.p.Actions) == 0:
		return builtin("pipeline", "the pipeline of policy "+x.p.Name+" is empty: it names no action that could let jobs in or place pods")
	case j.TaskCount() == 0:
		return builtin("pipeline", "no action of the pipeline of policy "+x.p.Name+" lets the job in")
	}
	return model.Reason{}
}

// conditionOf says whether a job's placements may be kept: that is what Scheduled means. nil: what was said last stands.
func (x *cycle) conditionOf(j *model.Job) *model.Condition {
	if j.TaskCount() == 0 {
		why := x.jobWaits[j]
		if why == nil || j.Phase != model.PhasePending {
			return nil
		}
		return unschedulable(cmp.Or(why.Reason.Reason, "NotEnoughResources"), "not let into queue "+j.QueueName+": ", why)
	}
	answer := x.all(policy.JobValid, x.world().Frame().OfJob(j))
	if answer.Yes {
		answer = x.all(policy.JobReady, x.world().Frame().OfJob(j))
	}
	leaving := releasing(j)
	switch {
	case answer.Yes:
		return &model.Condition{Type: "Scheduled", Status: "True", Reason: "tasks in gang are ready to be scheduled"}
	case j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && leaving > 0 && j.Ready()+leaving >= j.MinMember:
		return nil // it lacks nothing but members that are on their way out
	}
	why := x.jobWaits[j]
	for _, t := range slices.Backward(j.Tasks) {
		if w := x.taskWaits[t]; w != nil && t.Status == model.Pending {
			why = w // of the first of them
		}
	}
	if why == nil {
		why = &model.Wait{Reason: answer.Reason()}
	}
	missing := max(j.MinMember-j.Ready()-int64(x.undone[j]), 0)
	return unschedulable(cmp.Or(answer.Rule.Reason, "NotEnoughResources"), fmt.Sprintf("%d/%d tasks in gang unschedulable: ", missing, max(j.TaskCount(), j.MinMember)), why)
}

func unschedulable(reason, what string, why *model.Wait) *model.Condition {
	return &model.Condition{
		Type: "Unschedulable", Status: "True", Reason: reason, Message: what + why.String(), Cause: model.RowName(why.Reason.Table, why.Reason.Rule),
	}
}

// phase is the phase after the cycle. A task that was bound just now is not scheduled yet.
func phase(j *model.Job, condition *model.Condition) string {
	if j.Counts[model.Running] > 0 && condition != nil && condition.Type == "Unschedulable" {
		return "Unknown"
	}
	finished := j.Counts[model.Succeeded] + j.Counts[model.Failed]
	begun := finished + j.Counts[model.Running] + j.Counts[model.Bound] + releasing(j)
	switch {
	case begun >= j.MinMember && begun == finished && j.TaskCount() > 0:
		return "Completed"
	case begun >= j.MinMember && begun > 0:
		return "Running"
	case j.Phase == "Inqueue":
		return "Inqueue"
	}
	return "Pending"
}

// releasing is how many tasks hold a node on their way out.
func releasing(j *model.Job) (n int64) {
	for _, t := range j.Tasks {
		if t.Status == model.Releasing && t.NodeName != "" {
			n++
		}
	}
	return n
}

// builtin is a reason that no row of a table gives.
func builtin(rule, text string) model.Reason {
	return model.Reason{Table: "builtin", Rule: rule, Text: text}
}

// jobWait notes why a job as a whole was left.
func (x *cycle) jobWait(j *model.Job, why model.Reason) {
	x.jobWaits[j] = &model.Wait{Job: j.Key, Queue: j.QueueName, Action: x.action, Reason: why}
}

// taskWait notes why one task was left.
func (x *cycle) taskWait(t *model.Task, why model.Reason, nodes []model.NodeCount) {
	x.taskWaits[t] = &model.Wait{Job: t.Job.Key, Task: t.Key, Queue: t.Job.QueueName, Action: x.action, Reason: why, Nodes: nodes}
}
