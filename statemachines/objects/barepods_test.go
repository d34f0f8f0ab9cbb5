package objects

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestBareGroupTellsAllThatIsWrong checks that one unreadable annotation does not hide another, and that readable ones are used.
func TestBareGroupTellsAllThatIsWrong(t *testing.T) {
	for _, amounts := range []string{`{"cpu":"x"}`, `{"cpu":"1","memory":"-1Gi"}`} {
		tellsAllThatIsWrong(t, amounts)
	}
}

func tellsAllThatIsWrong(t *testing.T, amounts string) {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{
		schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey:    "0",
		schedulingv1beta1.VolcanoGroupMinResourcesAnnotationKey: amounts,
		schedulingv1beta1.QueueNameAnnotationKey:                "gpu",
	}
	group, wrong := BareGroup(pod, "g", nil)
	if len(wrong) != 2 || !strings.Contains(wrong[0].Error(), "group-min-member") || !strings.Contains(wrong[1].Error(),
		"group-min-resources") {
		t.Errorf("told is %v", wrong)
	}
	if group.Spec.MinMember != 1 || group.Spec.Queue != "gpu" || group.Spec.MinResources.Pods().Value() != 1 {
		t.Errorf("the PodGroup is %+v", group.Spec)
	}
}

// TestBareGroup checks that annotations of a pod take precedence over those of its owner: admission relies on this.
func TestBareGroup(t *testing.T) {
	pod := &corev1.Pod{}
	owner := map[string]string{schedulingv1beta1.QueueNameAnnotationKey: "research"}
	if group, _ := BareGroup(pod, "g", owner); group.Spec.Queue != "research" {
		t.Errorf("the owner's queue is %q", group.Spec.Queue)
	}
	pod.Annotations = map[string]string{schedulingv1beta1.QueueNameAnnotationKey: "default"}
	if group, _ := BareGroup(pod, "g", owner); group.Spec.Queue != "default" {
		t.Errorf("the pod's queue is %q", group.Spec.Queue)
	}
}
