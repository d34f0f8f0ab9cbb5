package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestPodsFacts checks that guards read a job's pods sorted by name, and that pods that count as terminating have deleting set.
func TestPodsFacts(t *testing.T) {
	t.Parallel()
	pod := func(name, role string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{batchv1alpha1.TaskSpecKey: role}},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	pods := []*corev1.Pod{pod("b", "worker", ""), pod("a", "ps", corev1.PodFailed)}
	job := jobFacts(&batchv1alpha1.Job{}, pods, func(p *corev1.Pod) bool { return p.Name == "b" })
	type told struct {
		name, role, phase string
		deleting          bool
	}
	var got []told
	for _, p := range job.Pods() {
		got = append(got, told{p.Name, p.Role, p.Phase, p.Deleting})
	}
	want := []told{{"a", "ps", "Failed", false}, {"b", "worker", "Pending", true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(told{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
