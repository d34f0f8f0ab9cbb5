package objects

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStuckContainer checks that a job that waits for a pod with an image that cannot be pulled names the image first.
func TestStuckContainer(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bert-master-0"}}
	pod.Spec.Containers = []corev1.Container{{Name: "train", Image: "registry.example.com/bert:typo"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "train"}}
	for reason, want := range map[string]bool{"ImagePullBackOff": true, "ContainerCreating": false, "PodInitializing": false} {
		pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
		got := StuckContainer([]*corev1.Pod{pod})
		if (got != "") != want {
			t.Errorf("%s: %q", reason, got)
		}
		const begins = "container train of pod bert-master-0 cannot pull image registry.example.com/bert:typo (ImagePullBackOff)"
		if want && !strings.HasPrefix(got.Before("task worker waits for task master"), begins) {
			t.Errorf("got %q, want %s …", got, begins)
		}
	}
}
