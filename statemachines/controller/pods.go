package controller

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// podIndex returns the number of a pod within its task, from 0. It returns false if the pod has no readable number.
func podIndex(pod *corev1.Pod) (int, bool) {
	for _, from := range []map[string]string{pod.Annotations, pod.Labels} {
		if n, err := strconv.Atoi(from[batchv1alpha1.TaskIndex]); err == nil && n >= 0 {
			return n, true
		}
	}
	n, err := strconv.Atoi(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
	return n, err == nil && n >= 0
}

// podVersion returns the job's version when the pod was created, or 0 if the pod does not state it.
func podVersion(pod *corev1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Annotations[batchv1alpha1.JobVersion], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// podRetry returns the job's retryCount when the pod was created, or 0 if the pod does not state it.
func podRetry(pod *corev1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Annotations[batchv1alpha1.JobRetryCountKey], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func deleting(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
