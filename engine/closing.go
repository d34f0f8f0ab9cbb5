package engine

import (
	"cmp"
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// The conditions of a PodGroup.
const (
	unschedulable = "Unschedulable"
	scheduled     = "Scheduled"
	// notEnoughResources is the reason where the row that said no gives none.
	notEnoughResources = "NotEnoughResources"
)

// closing computes what PodGroups' and queues' statuses should be at the end of a cycle, while what is only
// promised still counts (docs/volcano.md, PodGroups at the end of a cycle).
func closing(x *action.Cycle, s *policy.Session, plan *model.Plan) {
	c := s.Cluster()
	whole := &model.Condition{Type: scheduled, Status: "True", Reason: "tasks in gang are ready to be scheduled"}
	plan.Jobs = x.Jobs(func(j *model.Job) model.JobStatus {
		condition := conditionOf(x, s, j, whole)
		return model.JobStatus{
			Job: j.Key, Phase: phaseOf(j, condition), Running: j.Counts[model.Running], Succeeded: j.Counts[model.Succeeded],
			Failed: j.Counts[model.Failed], Condition: condition,
		}
	})
	warnings(c, plan)
	for _, q := range c.QueuesByName() {
		st := model.QueueStatus{Queue: q.Name, Allocated: map[string]string{}}
		for i, v := range q.Allocated {
			if q.Allocated.Has(i) {
				st.Allocated[c.Dims.Name(i)] = c.Dims.Quantity(i, v).String()
			}
		}
		plan.Queues = append(plan.Queues, st)
	}
}

// conditionOf says whether a job's placements may be kept: that is what Scheduled means, and whole says.
func conditionOf(x *action.Cycle, s *policy.Session, j *model.Job, whole *model.Condition) *model.Condition {
	if j.TaskCount() == 0 {
		return refusedCondition(x, j)
	}
	answer := s.Valid(j)
	if answer.Yes {
		answer = s.Ready(j)
	}
	if answer.Yes {
		return whole
	}
	if leavingOnly(j) {
		return nil
	}
	why := cmp.Or(x.Cause(j), x.Refusal(j))
	if why == nil {
		why = &model.Wait{Reason: answer.Reason()}
	}
	missing := max(j.MinMember-j.Ready()-int64(x.Undone(j)), 0)
	return waitsFor(cmp.Or(answer.Rule.Reason, notEnoughResources), why,
		fmt.Sprintf("%d/%d tasks in gang unschedulable: ", missing, max(j.TaskCount(), j.MinMember)))
}

// leavingOnly says whether a gang that is not whole lacks nothing but members that are on their way out: none is there that
// could be placed in their stead, so nothing of it is unschedulable, and what was said of it last stands until they are gone.
func leavingOnly(j *model.Job) bool {
	return j.Counts[model.Pending]+j.Counts[model.Pipelined] == 0 && j.Counts[model.Releasing] > 0 && j.Ready()+releasing(j) >= j.MinMember
}

// releasing is how many tasks hold a node on their way out.
func releasing(j *model.Job) int64 {
	if j.Counts[model.Releasing] == 0 {
		return 0
	}
	var n int64
	for _, t := range j.Tasks {
		if t.Status == model.Releasing && t.NodeName != "" {
			n++
		}
	}
	return n
}

// refusedCondition says why a job that has no tasks yet was not let in: until it is, it gets none that could say so.
func refusedCondition(x *action.Cycle, j *model.Job) *model.Condition {
	why := x.Refusal(j)
	if why == nil || j.Phase != model.PhasePending {
		return nil
	}
	return waitsFor(cmp.Or(why.Reason.Reason, notEnoughResources), why, "not let into queue "+j.QueueName+": ")
}

func waitsFor(reason string, why *model.Wait, what string) *model.Condition {
	return &model.Condition{
		Type: unschedulable, Status: "True", Reason: reason, Message: what + why.String(),
		Cause: model.RowName(why.Reason.Table, why.Reason.Rule),
	}
}

// phaseOf is the phase after the cycle. A task that was bound just now is not scheduled yet.
func phaseOf(j *model.Job, condition *model.Condition) string {
	if j.Counts[model.Running] > 0 && condition != nil && condition.Type == unschedulable {
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

// warnings names what pods ask for that this version does not heed.
func warnings(c *model.Cluster, plan *model.Plan) {
	if c.Claiming > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("%d pod(s) claim resources (DRA), which this version does not heed", c.Claiming))
	}
}
