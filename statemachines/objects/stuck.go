package objects

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// NoPriorityClass states that the pods of a job name a PriorityClass that does not exist, so the API server refuses them. Its argument is
// the name of the class.
const NoPriorityClass = "PriorityClass %s does not exist; create it, or change priorityClassName in the job and its pod templates"

// Stuck is why a container cannot start until a user changes something, or "" if no cause is known.
type Stuck string

// Before returns a text with the cause first and then its effect.
func (s Stuck) Before(effect string) string {
	if s == "" {
		return effect
	}
	return string(s) + "; " + effect
}

// StuckContainer finds the first container that cannot start without help: its image cannot be pulled, or its configuration is wrong.
func StuckContainer(pods []*corev1.Pod) Stuck {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range list {
				if waits := list[i].State.Waiting; waits != nil && needsHelp(waits.Reason) {
					return Stuck(describeStuck(pod, &list[i], waits))
				}
			}
		}
	}
	return ""
}

// describeStuck states which container of which pod cannot start, and its image.
func describeStuck(pod *corev1.Pod, status *corev1.ContainerStatus, waits *corev1.ContainerStateWaiting) string {
	image := status.Image
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == status.Name && list[i].Image != "" {
				image = list[i].Image
			}
		}
	}
	text := fmt.Sprintf("container %s of pod %s cannot start: %s", status.Name, pod.Name, waits.Reason)
	if strings.Contains(waits.Reason, "Image") {
		text = fmt.Sprintf("container %s of pod %s cannot pull %s (%s); correct the image, or the access to its registry", status.Name,
			pod.Name, imageText(image), waits.Reason)
	}
	if waits.Message != "" {
		text += ": " + waits.Message
	}
	return text
}

// needsHelp reports whether a container that waits for this reason of the kubelet waits until a user changes something.
func needsHelp(reason string) bool {
	switch reason {
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "CreateContainerConfigError",
		"CreateContainerError", "RunContainerError", "CrashLoopBackOff":
		return true
	default:
		return false
	}
}

// imageText returns a phrase with the image. A snapshot of a cluster may not contain the image.
func imageText(image string) string {
	if image == "" {
		return "its image"
	}
	return "image " + image
}
