package action

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/kept"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// awaited returns until when a step waits for a job's pods: for a while after admission, as long as some pods are not created yet. The zero
// time: the step does not wait. The answer may change at that time.
func (x *Cycle) awaited(step *policy.Step, j *model.Job) (until time.Time) {
	wait := step.Period(policy.KeyAwaitPods)
	if wait == 0 || j.AdmittedAt.IsZero() || len(j.Expected) == 0 {
		return until
	}
	if end := j.AdmittedAt.Add(wait); end.After(x.plan.Now) {
		x.s.Until(end)
		return end
	}
	return until
}

// await keeps resources for a job that is awaited and just had its turn. It keeps them for the pods without which the job cannot start, if
// there are enough for all of these pods. It also keeps them for as many other pods as possible. Each cycle computes them again.
func (x *Cycle) await(step *policy.Step, j *model.Job) {
	until := x.awaited(step, j)
	least := j.MinMember - j.Ready() - j.Counts[model.Pipelined]
	if until.IsZero() || least > 0 && j.Valid() >= j.MinMember { // the pods that must start together exist, but could not start
		return
	}
	x.result.unsettled = true // the step takes the job until then
	if kept.LacksLeftOut(x.c, j) {
		return
	}
	x.plan.DecideBy(until)
	if x.kept == nil {
		var gate func(*model.Task) bool
		if step.Gate(policy.Allocatable) {
			gate = x.s.MayAllocate
		}
		x.kept = kept.New(x.c, x.plan.Now, gate)
	}
	x.kept.Keep(j, least)
}
