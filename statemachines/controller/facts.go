package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// jobPhase returns the phase of a job. A job without a phase is pending.
func jobPhase(job *batchv1alpha1.Job) batchv1alpha1.JobPhase {
	if job.Status.State.Phase == "" {
		return batchv1alpha1.Pending
	}
	return job.Status.State.Phase
}

// jobFacts returns a job in the form that guards read, with the spec and the counted pods.
func jobFacts(job *batchv1alpha1.Job, pods []*corev1.Pod, goes func(*corev1.Pod) bool) *statemachines.Job {
	c := count(pods, goes)
	facts := &statemachines.Job{
		Name: job.Name, Namespace: job.Namespace, UID: string(job.UID), Queue: objects.QueueName(job.Spec.Queue),
		Labels: job.Labels, Annotations: job.Annotations, CreatedAt: job.CreationTimestamp.Time,
		Deleting:     job.DeletionTimestamp != nil,
		MinAvailable: job.Spec.MinAvailable, MinSuccess: job.Spec.MinSuccess, MaxRetry: job.Spec.MaxRetry,
		Status: statemachines.JobStatus{
			Pending: c.pending, Running: c.running, Succeeded: c.succeeded, Failed: c.failed,
			Terminating: c.terminating, Unknown: c.unknown,
			MinAvailable: job.Status.MinAvailable, RetryCount: job.Status.RetryCount, Version: job.Status.Version,
			ResumeCount: objects.Resumes(&job.Status),
		},
	}
	facts.Pods = sync.OnceValue(func() []statemachines.Pod { return podsFacts(pods, goes) })
	restarts, finished := restartsByTask(pods, goes), finishedByTask(pods)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		n := c.tasks[task.Name]
		if n == nil {
			n = &byPhase{}
		}
		facts.Tasks = append(facts.Tasks, statemachines.Task{
			Name: task.Name, Replicas: task.Replicas, MinAvailable: task.MinAvailable, MaxRetry: task.MaxRetry, Restarts: restarts[task.Name],
			Pending: n.pending, Running: n.running, Succeeded: n.succeeded, Failed: n.failed, Terminating: n.terminating, Unknown: n.unknown,
			FinishedAt: finished[task.Name],
		})
	}
	return facts
}

// restartsByTask counts the container restarts of each task's pods. Finished and terminating pods do not count.
func restartsByTask(pods []*corev1.Pod, goes func(*corev1.Pod) bool) map[string]int32 {
	out := map[string]int32{}
	for _, pod := range pods {
		if restarts := restartsOf(pod.Status.InitContainerStatuses) + restartsOf(pod.Status.ContainerStatuses); restarts > 0 &&
			!goes(pod) && !finished(pod) {
			out[pod.Annotations[batchv1alpha1.TaskSpecKey]] += restarts
		}
	}
	return out
}

// finishedByTask returns for each task when its last finished pod ended.
func finishedByTask(pods []*corev1.Pod) map[string]time.Time {
	out := map[string]time.Time{}
	for _, pod := range pods {
		if !finished(pod) {
			continue
		}
		if at, task := finishedAt(pod), pod.Annotations[batchv1alpha1.TaskSpecKey]; at.After(out[task]) {
			out[task] = at
		}
	}
	return out
}

func restartsOf(containers []corev1.ContainerStatus) int32 {
	n := int32(0)
	for i := range containers {
		n += containers[i].RestartCount
	}
	return n
}

// podsFacts returns pods in the form that guards read, sorted by name. A pod that counts as terminating has deleting set.
func podsFacts(pods []*corev1.Pod, goes func(*corev1.Pod) bool) []statemachines.Pod {
	out := make([]statemachines.Pod, 0, len(pods))
	for _, pod := range pods {
		facts := *podFacts(pod)
		facts.Deleting = goes(pod)
		out = append(out, facts)
	}
	slices.SortFunc(out, func(a, b statemachines.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// podFacts returns a pod in the form that event rows read.
func podFacts(pod *corev1.Pod) *statemachines.Pod {
	facts := &statemachines.Pod{
		Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Role: pod.Annotations[batchv1alpha1.TaskSpecKey],
		Labels: pod.Labels, Annotations: pod.Annotations,
		Phase: string(pod.Status.Phase), Reason: pod.Status.Reason, Message: pod.Status.Message,
		Deleting: deleting(pod), CreatedAt: pod.CreationTimestamp.Time, Version: podVersion(pod),
	}
	if facts.Phase == "" {
		facts.Phase = string(corev1.PodPending)
	}
	facts.FinishedAt = finishedAt(pod)
	if facts.Deleting {
		facts.DeletedAt = deletedAt(pod)
	}
	if pod.Status.StartTime != nil {
		facts.StartedAt = pod.Status.StartTime.Time
	}
	facts.Containers = append(containerFacts(pod.Status.InitContainerStatuses, true), containerFacts(pod.Status.ContainerStatuses, false)...)
	return facts
}

func containerFacts(statuses []corev1.ContainerStatus, init bool) []statemachines.Container {
	facts := make([]statemachines.Container, 0, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		c := statemachines.Container{Name: s.Name, Init: init, Restarts: s.RestartCount, Ready: s.Ready}
		if s.State.Waiting != nil {
			c.Waiting = s.State.Waiting.Reason
		}
		if s.State.Terminated != nil {
			c.ExitCode, c.Terminated = new(s.State.Terminated.ExitCode), s.State.Terminated.Reason
		}
		facts = append(facts, c)
	}
	return facts
}

func groupFacts(group *schedulingv1beta1.PodGroup) *statemachines.PodGroup {
	if group == nil {
		return nil
	}
	return &statemachines.PodGroup{Name: group.Name, Phase: string(group.Status.Phase)}
}

// happened returns when a pod entered its present state: deleting, finished, running or created.
func happened(pod *corev1.Pod) time.Time {
	at := pod.CreationTimestamp.Time
	switch {
	case deleting(pod):
		return deletedAt(pod)
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		return at
	case pod.Status.StartTime != nil:
		at = pod.Status.StartTime.Time
	}
	for i := range pod.Status.ContainerStatuses {
		s := pod.Status.ContainerStatuses[i].State
		if s.Running != nil && s.Running.StartedAt.After(at) {
			at = s.Running.StartedAt.Time
		}
		if s.Terminated != nil && s.Terminated.FinishedAt.After(at) {
			at = s.Terminated.FinishedAt.Time
		}
	}
	return at
}

// finishedAt returns when the last container of a finished pod ended, or zero if that is not known.
func finishedAt(pod *corev1.Pod) time.Time {
	var at time.Time
	if !finished(pod) {
		return at
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.FinishedAt.After(at) {
				at = t.FinishedAt.Time
			}
		}
	}
	return at
}

// deletedAt returns when the deletion of a pod was requested. The deletion timestamp states when the deletion must be complete.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := int64(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}
