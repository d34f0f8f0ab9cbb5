package flows

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// longestHistory is the maximum number of past phases of a Job in the status; the latest are kept. A Job can be restarted any number of
// times.
const longestHistory = 20

// status computes the status of a flow from its Jobs, except the phase.
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

// order returns the names of the flow's Jobs in the order of its flows. Jobs of flows that are no longer in the spec follow.
func (w *world) order() []string {
	names := make([]string, 0, len(w.of.Spec.Flows))
	for i := range w.of.Spec.Flows {
		names = append(names, w.jobName(w.of.Spec.Flows[i].Name))
	}
	return distinct(append(names, slices.Sorted(maps.Keys(w.jobs))...))
}

// withHistory returns the names of the Jobs with a history, in the order of the flows. Other Jobs follow in the order of the status.
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

// distinct removes repeated names.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		was := seen[name]
		seen[name] = true
		return was
	})
}

// listFor returns the list of the status for a Job's phase, or nil.
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
	default: // Completing and Terminating are transitions without a list
		return nil
	}
}

// history returns a Job's entry in the status, updated with its present phase.
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
