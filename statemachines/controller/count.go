package controller

import (
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// counts is what a job's status says of its pods.
type counts struct {
	pending, running, succeeded, failed, terminating, unknown int32

	tasks map[string]batchv1alpha1.TaskState
	going map[string]int32 // those of terminating, by task
}

// count adds up a job's pods. A pod that goes, because it is being deleted or is about to be, counts as
// that alone, whatever its phase.
func count(pods []*corev1.Pod, goes func(*corev1.Pod) bool) counts {
	c := counts{tasks: map[string]batchv1alpha1.TaskState{}, going: map[string]int32{}}
	for _, pod := range pods {
		task := pod.Annotations[batchv1alpha1.TaskSpecKey]
		if goes(pod) {
			c.terminating++
			c.going[task]++
			continue
		}
		phase := pod.Status.Phase
		switch phase {
		case corev1.PodPending, "":
			phase = corev1.PodPending
			c.pending++
		case corev1.PodRunning:
			c.running++
		case corev1.PodSucceeded:
			c.succeeded++
		case corev1.PodFailed:
			c.failed++
		default:
			phase = corev1.PodUnknown
			c.unknown++
		}
		if c.tasks[task].Phase == nil {
			c.tasks[task] = batchv1alpha1.TaskState{Phase: map[corev1.PodPhase]int32{}}
		}
		c.tasks[task].Phase[phase]++
	}
	return c
}

// write puts the counts into a status.
func (c counts) write(s *batchv1alpha1.JobStatus) {
	s.Pending, s.Running, s.Succeeded, s.Failed = c.pending, c.running, c.succeeded, c.failed
	s.Terminating, s.Unknown = c.terminating, c.unknown
	s.TaskStatusCount = c.tasks
	if len(c.tasks) == 0 {
		s.TaskStatusCount = nil
	}
}

// taskTotal is how many pods of a task a status has counted.
func taskTotal(s *batchv1alpha1.JobStatus, task string) int32 {
	total := int32(0)
	for _, n := range s.TaskStatusCount[task].Phase {
		total += n
	}
	return total
}
