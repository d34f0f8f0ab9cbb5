package controller

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// counts is the number of a job's pods by phase, in total and for each task.
type counts struct {
	byPhase
	tasks map[string]*byPhase
}

// byPhase is the number of pods in each phase. A pod that is terminating counts only as terminating.
type byPhase struct {
	pending, running, succeeded, failed, unknown, terminating int32
}

// add counts a pod. goes states that the pod is being deleted or is about to be deleted. Such a pod counts only as terminating.
func (n *byPhase) add(phase corev1.PodPhase, goes bool) {
	switch {
	case goes:
		n.terminating++
	case phase == corev1.PodPending, phase == "":
		n.pending++
	case phase == corev1.PodRunning:
		n.running++
	case phase == corev1.PodSucceeded:
		n.succeeded++
	case phase == corev1.PodFailed:
		n.failed++
	default:
		n.unknown++
	}
}

// phases returns the number of pods of each phase, without zeros.
func (n *byPhase) phases() map[corev1.PodPhase]int32 {
	out := map[corev1.PodPhase]int32{
		corev1.PodPending: n.pending, corev1.PodRunning: n.running, corev1.PodSucceeded: n.succeeded, corev1.PodFailed: n.failed,
		corev1.PodUnknown: n.unknown,
	}
	maps.DeleteFunc(out, func(_ corev1.PodPhase, pods int32) bool { return pods == 0 })
	return out
}

// count counts a job's pods.
func count(pods []*corev1.Pod, goes func(*corev1.Pod) bool) counts {
	c := counts{tasks: map[string]*byPhase{}}
	var name string
	var task *byPhase
	for _, pod := range pods {
		if is := pod.Annotations[batchv1alpha1.TaskSpecKey]; task == nil || is != name { // the pods are sorted by task
			if name = is; c.tasks[name] == nil {
				c.tasks[name] = &byPhase{}
			}
			task = c.tasks[name]
		}
		gone := goes(pod)
		c.add(pod.Status.Phase, gone)
		task.add(pod.Status.Phase, gone)
	}
	return c
}

// write writes the counts into a status.
func (c counts) write(s *batchv1alpha1.JobStatus) {
	s.Pending, s.Running, s.Succeeded, s.Failed = c.pending, c.running, c.succeeded, c.failed
	s.Terminating, s.Unknown = c.terminating, c.unknown
	s.TaskStatusCount = nil
	for name, task := range c.tasks {
		phases := task.phases()
		if len(phases) == 0 {
			continue
		}
		if s.TaskStatusCount == nil {
			s.TaskStatusCount = map[string]batchv1alpha1.TaskState{}
		}
		s.TaskStatusCount[name] = batchv1alpha1.TaskState{Phase: phases}
	}
}

// taskTotal returns how many pods of a task a status counts.
func taskTotal(s *batchv1alpha1.JobStatus, task string) int32 {
	total := int32(0)
	for _, n := range s.TaskStatusCount[task].Phase {
		total += n
	}
	return total
}
