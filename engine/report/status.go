package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Types of the conditions of a PodGroup.
const (
	unschedulable = "Unschedulable"
	scheduled     = "Scheduled"
	// notEnoughResources is the reason if the row that rejected gives none.
	notEnoughResources = "NotEnoughResources"
)

// Status returns the status of a job's PodGroup at the end of a cycle, while promises still count (docs/volcano.md, PodGroups at the end of
// a cycle). whole reports whether the job's placements may be kept, and why not. It is called for jobs that have tasks. The cause of an
// unschedulable job comes first in its message, and only once.
func (w *Waits) Status(
	j *model.Job, whole func(*model.Job) (why model.Reason, ok bool), causes *Causes,
) model.JobStatus {
	condition := w.condition(j, whole)
	if condition != nil && condition.Type == unschedulable {
		if why := causes.of(w, j); why != "" {
			condition.Message = Short(why + " | " + strings.Replace(condition.Message, ": "+why, "", 1))
		}
	}
	return model.JobStatus{
		Job: j.Key, Phase: w.phase(j, condition), Running: j.Counts[model.Running], Succeeded: j.Counts[model.Succeeded],
		Failed: j.Counts[model.Failed], Condition: condition,
	}
}

// condition reports whether a job's placements may be kept, which is the meaning of Scheduled. nil: the last condition stays.
func (w *Waits) condition(j *model.Job, whole func(*model.Job) (why model.Reason, ok bool)) *model.Condition {
	if j.TaskCount() == 0 {
		return w.notLetIn(j)
	}
	answer, ok := whole(j)
	if ok {
		return w.whole
	}
	if leavingOnly(j) {
		return nil
	}
	why := model.Wait{Reason: answer}
	if own := w.jobs[j]; own != nil {
		why = *own
	}
	why.InVain = w.ofJob(j)
	for _, t := range j.Tasks {
		if own := w.tasks[t]; own != nil && t.Status == model.Pending {
			vain := slices.Concat(why.InVain, w.vain[vainOf{j, t}])
			why = *own
			why.InVain = vain
			break
		}
	}
	missing := max(j.MinMember-j.Ready()-int64(w.undone[j]), 0)
	what := fmt.Sprintf("%d/%d tasks in gang unschedulable: ", missing, max(j.TaskCount(), j.MinMember))
	return waitsFor(&why, cmp.Or(blocked(&why), answer.Reason), what)
}

// blocked returns FIFOBlocked for a job that waits behind another job of its queue, and "" for any other job.
func blocked(w *model.Wait) string {
	if w.Reason.Site == "" && w.Reason.Table == "builtin" && w.Reason.Rule == ruleFIFO {
		return reasonFIFOBlocked
	}
	return ""
}

// notLetIn states why a job that has no tasks yet was not admitted. It has no tasks that could state the reason before it is admitted.
func (w *Waits) notLetIn(j *model.Job) *model.Condition {
	why := w.jobs[j]
	if why == nil || j.Phase != model.PhasePending {
		return nil
	}
	return waitsFor(why, cmp.Or(blocked(why), why.Reason.Reason), "not let into queue "+j.QueueName+": ")
}

func waitsFor(why *model.Wait, reason, what string) *model.Condition {
	return &model.Condition{
		Type: unschedulable, Status: "True", Reason: cmp.Or(reason, notEnoughResources), Message: Short(what + why.String()),
		Cause: model.RowName(why.Reason.Table, why.Reason.Rule),
	}
}

// longestMessage limits the message of a condition, in bytes. The message is written into each pod of a job, and users choose the names in
// it.
const longestMessage = 4096

// Short cuts a message that is too long for a condition. It escapes control characters and line breaks in the message, because users choose
// the names that it contains.
func Short(message string) string {
	message = source.Line(message)
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "") + " …"
}

// leavingOnly reports whether an incomplete gang lacks only members that are terminating. No task waits that could replace them, so no task
// is unschedulable, and the last condition stays until they are gone.
func leavingOnly(j *model.Job) bool {
	leaving := releasing(j)
	return j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && leaving > 0 && j.Ready()+leaving >= j.MinMember
}

// releasing returns the number of tasks that hold a node while they terminate.
func releasing(j *model.Job) (n int64) {
	if j.Counts[model.Releasing]+j.Counts[model.Unknown] == 0 {
		return 0
	}
	for _, t := range j.Tasks {
		if t.Leaves() && t.NodeName != "" {
			n++
		}
	}
	return n
}

// phase returns the phase after the cycle. A task that was just bound is not scheduled yet.
func (w *Waits) phase(j *model.Job, condition *model.Condition) string {
	if j.Counts[model.Running] > 0 && condition != nil && condition.Type == unschedulable {
		return "Unknown"
	}
	finished := j.Counts[model.Succeeded] + j.Counts[model.Failed]
	begun := finished + j.Counts[model.Running] + j.Counts[model.Bound] + releasing(j)
	switch {
	case begun >= j.MinMember && begun == finished && j.TaskCount() > 0 && (finished > 0 || j.Phase != model.PhasePending):
		return "Completed"
	case begun >= j.MinMember && begun > 0:
		return "Running"
	case j.Phase == model.PhaseCompleted && finished == j.TaskCount(): // its work is finished, and some or all of its pods were deleted since
		return model.PhaseCompleted
	case j.Phase == "Inqueue", w.served[j] && j.Phase != model.PhasePending:
		return "Inqueue"
	}
	return "Pending"
}

// Queues adds the statuses of queues to a plan, and warns of requests of pods that this version ignores.
func Queues(c *model.Cluster, plan *model.Plan) {
	Unheeded(c, plan)
	for _, q := range c.QueuesByName() {
		plan.Queues = append(plan.Queues, Queue(c, q))
	}
}

// Unheeded warns of requests of pods that this version ignores.
func Unheeded(c *model.Cluster, plan *model.Plan) {
	if c.Claiming > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("%d pod(s) claim resources (DRA), which this version does not heed", c.Claiming))
	}
}

// Queue returns the status of one queue.
func Queue(c *model.Cluster, q *model.Queue) model.QueueStatus {
	status := model.QueueStatus{Queue: q.Name, Allocated: map[string]string{}}
	for i, v := range q.Allocated {
		if q.Allocated.Has(i) {
			status.Allocated[c.Dims.Name(i)] = c.Dims.Quantity(i, v).String()
		}
	}
	return status
}
