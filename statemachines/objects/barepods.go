package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/decode"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// GroupOf returns the name of the PodGroup that a pod names, in either spelling of the key.
func GroupOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey],
		pod.Annotations[schedulingv1beta1.VolcanoGroupNameAnnotationKey])
}

// BareGroupName returns the PodGroup name that all pods of one controller share, or the name for a pod without a controller.
func BareGroupName(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return batchv1alpha1.PodgroupNamePrefix + string(owner.UID)
	}
	return batchv1alpha1.PodgroupNamePrefix + string(pod.UID)
}

// BareGroup returns the PodGroup of a bare pod. Annotations of the pod take precedence over those of its owner. For each annotation that
// cannot be read, it returns an error, and the PodGroup omits that annotation.
func BareGroup(pod *corev1.Pod, name string, inherited map[string]string) (group *schedulingv1beta1.PodGroup, wrong []error) {
	says := func(key string) string { return cmp.Or(pod.Annotations[key], inherited[key]) }
	group = &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: pod.Namespace, OwnerReferences: bareOwners(pod),
			Annotations: map[string]string{}, Labels: map[string]string{},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember:         1,
			PriorityClassName: pod.Spec.PriorityClassName,
			Queue:             says(schedulingv1beta1.QueueNameAnnotationKey),
		},
		Status: schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupPending},
	}
	for key, value := range inherited {
		if strings.HasPrefix(key, schedulingv1beta1.AnnotationPrefix) {
			group.Annotations[key] = value
		}
	}
	copyKeys(pod.Annotations, group.Annotations, schedulingv1beta1.PodPreemptable, schedulingv1beta1.CooldownTime,
		schedulingv1beta1.RevocableZone)
	copyFirst(pod.Annotations, group.Annotations, schedulingv1beta1.JDBMinAvailable, schedulingv1beta1.JDBMaxUnavailable)
	copyKeys(pod.Labels, group.Labels, schedulingv1beta1.PodPreemptable, schedulingv1beta1.CooldownTime)

	if text := says(schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			wrong = append(wrong, fmt.Errorf("annotation %s is %q; it must be a whole number from 1, and counts as 1 now",
				schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey, text))
			n = 1
		}
		group.Spec.MinMember = int32(n)
	}
	resources := corev1.ResourceList{}
	addTimes(resources, podNeeds(&pod.ObjectMeta, &pod.Spec), int64(group.Spec.MinMember))
	if text := says(schedulingv1beta1.VolcanoGroupMinResourcesAnnotationKey); text != "" {
		given, err := amounts(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("annotation %s cannot be read: %w; it must be a JSON object of quantities from 0, such as "+
				"{\"cpu\":\"4\"}", schedulingv1beta1.VolcanoGroupMinResourcesAnnotationKey, err))
		} else {
			resources = given
		}
	}
	group.Spec.MinResources = &resources
	return group, wrong
}

// amounts parses resources. Negative amounts are an error.
func amounts(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	if err := decode.JSON([]byte(text), &list); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if amount := list[name]; amount.Sign() < 0 {
			return nil, fmt.Errorf("%s is %s", name, amount.String())
		}
	}
	return list, nil
}

// bareOwners returns the owners of a bare pod's PodGroup: the owners of the pod if a controller owns it, otherwise the pod. The PodGroup
// does not block the deletion of its owners: that would require permissions on the owner, and its kind would have to be known.
func bareOwners(pod *corev1.Pod) []metav1.OwnerReference {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		owners := slices.Clone(pod.OwnerReferences)
		for i := range owners {
			owners[i].BlockOwnerDeletion = nil
		}
		return owners
	}
	owner := metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	owner.BlockOwnerDeletion = nil
	return []metav1.OwnerReference{*owner}
}
