// Package podspec compares the specs of pods.
package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// SameToleration reports whether two tolerations are equal.
func SameToleration(a, b corev1.Toleration) bool {
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect &&
		SamePointee(a.TolerationSeconds, b.TolerationSeconds)
}

// SamePointee reports whether two optional values are equal.
func SamePointee[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// SameContainer reports whether two containers have the same image, restart policy and ports.
func SameContainer(a, b corev1.Container) bool {
	return a.Image == b.Image && SamePointee(a.RestartPolicy, b.RestartPolicy) && slices.Equal(a.Ports, b.Ports)
}

// Images returns the images that a pod mounts.
func Images(spec *corev1.PodSpec) []string {
	var out []string
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil && image.Reference != "" {
			out = append(out, image.Reference)
		}
	}
	return out
}

// Requests returns what the kubelet and kube-scheduler count for a pod until it is finished. After the pod has a node, its status counts
// too, because the kubelet reports there what it granted in a resize. A field of the status exists only if its feature is enabled, so the
// options suit every cluster.
func Requests(o *corev1.Pod) corev1.ResourceList {
	placed := o.Spec.NodeName != ""
	return podresource.PodRequests(o, podresource.PodResourcesOptions{
		UseStatusResources: placed,
		InPlacePodLevelResourcesVerticalScalingEnabled: placed,
		UseDRANodeAllocatableResourceClaimStatus:       placed,
	})
}

// TellsResources reports whether the status of a pod states amounts that count in place of, or in addition to, its spec's.
func TellsResources(s *corev1.PodStatus) bool {
	tells := func(list []corev1.ContainerStatus) bool {
		for i := range list {
			if list[i].Resources != nil || list[i].AllocatedResources != nil {
				return true
			}
		}
		return false
	}
	return s.Resources != nil || s.AllocatedResources != nil ||
		len(s.NodeAllocatableResourceClaimStatuses) > 0 || tells(s.ContainerStatuses) || tells(s.InitContainerStatuses)
}
