package flows

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// longestHistory is how many of the phases that a Job was in are told, the last ones: a Job may be restarted as often as it likes.
const longestHistory = 20

// status is what the Jobs of a flow make of its status, but for the phase.
func (w *world) status() *flowv1alpha1.JobFlowStatus {
	s := &flowv1alpha1.JobFlowStatus{State: w.of.Status.State}
	histories := map[string]flowv1alpha1.JobStatus{}
	for _, h := range w.of.Status.JobStatusList {
		histories[h.Name] = h
	}
	for _, name := range w.order() {
		job := w.jobs[name]
		if job == nil {
			if w.foreign[name] {
				s.UnKnowJobs = append(s.UnKnowJobs, name)
			}
			continue
		}
		if list := listFor(s, job.Status.State.Phase); list != nil {
			*list = append(*list, name)
		}
		if s.Conditions == nil {
			s.Conditions = map[string]flowv1alpha1.Condition{}
		}
		created := job.CreationTimestamp
		s.Conditions[name] = flowv1alpha1.Condition{
			Phase: job.Status.State.Phase, CreateTimestamp: &created, RunningDuration: job.Status.RunningDuration,
			TaskStatusCount: job.Status.TaskStatusCount,
		}
		histories[name] = history(histories[name], job, w.now)
	}
	for name, job := range w.gone {
		if w.jobs[name] == nil {
			histories[name] = history(histories[name], job, w.now)
		}
	}
	for _, name := range w.withHistory(histories) {
		s.JobStatusList = append(s.JobStatusList, histories[name])
	}
	return s
}

// order names the flow's Jobs in the order of its flows, then those of flows that it lists no more.
func (w *world) order() []string {
	names := make([]string, 0, len(w.of.Spec.Flows))
	for i := range w.of.Spec.Flows {
		names = append(names, w.jobName(w.of.Spec.Flows[i].Name))
	}
	return distinct(append(names, slices.Sorted(maps.Keys(w.jobs))...))
}

// withHistory names the Jobs of which something is remembered, in the order of the flows; then the others, as they stood.
func (w *world) withHistory(histories map[string]flowv1alpha1.JobStatus) []string {
	names := w.order()
	for i := range w.of.Status.JobStatusList {
		names = append(names, w.of.Status.JobStatusList[i].Name)
	}
	return slices.DeleteFunc(distinct(names), func(name string) bool {
		_, ok := histories[name]
		return !ok
	})
}

// distinct leaves out names that stand before already.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		was := seen[name]
		seen[name] = true
		return was
	})
}

// listFor is the list of names that a Job's phase puts it into; nil where it is in none.
func listFor(s *flowv1alpha1.JobFlowStatus, phase batchv1alpha1.JobPhase) *[]string {
	switch phase {
	case batchv1alpha1.Pending:
		return &s.PendingJobs
	case batchv1alpha1.Running:
		return &s.RunningJobs
	case batchv1alpha1.Failed:
		return &s.FailedJobs
	case batchv1alpha1.Completed:
		return &s.CompletedJobs
	case batchv1alpha1.Terminated:
		return &s.TerminatedJobs
	case "", batchv1alpha1.Aborting, batchv1alpha1.Aborted, batchv1alpha1.Restarting:
		return &s.UnKnowJobs
	default: // Completing and Terminating are on their way
		return nil
	}
}

// history is what is told of a Job, with what is seen of it now.
func history(was flowv1alpha1.JobStatus, job *batchv1alpha1.Job, now time.Time) flowv1alpha1.JobStatus {
	at := metav1.NewTime(now).Rfc3339Copy()
	start := job.CreationTimestamp
	is := flowv1alpha1.JobStatus{
		Name: job.Name, State: job.Status.State.Phase, StartTimestamp: &start, RestartCount: job.Status.RetryCount,
		RunningHistories: slices.Clone(was.RunningHistories),
	}
	if d := job.Status.RunningDuration; d != nil {
		end := metav1.NewTime(start.Add(d.Duration))
		is.EndTimestamp = &end
	}
	last := len(is.RunningHistories) - 1
	if is.State == "" || last >= 0 && is.RunningHistories[last].State == is.State {
		return is
	}
	if last >= 0 {
		is.RunningHistories[last].EndTimestamp = &at
	}
	is.RunningHistories = append(is.RunningHistories, flowv1alpha1.JobRunningHistory{StartTimestamp: &at, State: is.State})
	is.RunningHistories = is.RunningHistories[max(0, len(is.RunningHistories)-longestHistory):]
	return is
}
