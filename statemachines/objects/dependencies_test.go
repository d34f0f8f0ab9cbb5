package objects

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestDependentTasks checks that a task waits until the minimum number of pods of the other tasks is ready or has succeeded.
func TestDependentTasks(t *testing.T) {
	pod := func(task string, phase corev1.PodPhase, ready bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{batchv1alpha1.TaskSpecKey: task}}}
		p.Spec.NodeName, p.Status.Phase = "n", phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: ready}}
		return p
	}
	for _, c := range []struct {
		name string
		on   string // names of tasks, and "any" if one of them is sufficient
		pods []*corev1.Pod
		want string
	}{
		{"nobody is there", "a", nil, "task a, of which 0 of 2 pods are ready"},
		{"one runs and is ready", "a", []*corev1.Pod{pod("a", "Running", true)}, "task a, of which 1 of 2 pods are ready"},
		{"one is not ready", "a", []*corev1.Pod{pod("a", "Running", true), pod("a", "Running", false)}, "task a, of which 1 of 2 pods are ready"},
		{"one has succeeded", "a", []*corev1.Pod{pod("a", "Running", true), pod("a", "Succeeded", false)}, ""},
		{"one has failed", "a", []*corev1.Pod{pod("a", "Failed", false), pod("a", "Succeeded", false)}, "task a, of which 1 of 2 pods are ready"},
		{"as many as it must have", "b", []*corev1.Pod{pod("b", "Running", true)}, ""},
		{"all", "a b", []*corev1.Pod{pod("b", "Running", true)}, "task a, of which 0 of 2 pods are ready"},
		{
			"all, of which none is there", "a b", nil,
			"task a, of which 0 of 2 pods are ready and task b, of which 0 of 1 pods are ready",
		},
		{"any", "a b any", []*corev1.Pod{pod("b", "Running", true)}, ""},
		{
			"any, of which none is there", "a b any", nil,
			"task a, of which 0 of 2 pods are ready or task b, of which 0 of 1 pods are ready",
		},
		{"any of one", "b any", nil, "task b, of which 0 of 1 pods are ready"},
		{"a task that is not there", "x", nil, "task x, which the job does not have"},
	} {
		on := &batchv1alpha1.DependsOn{}
		for word := range strings.FieldsSeq(c.on) {
			if word == "any" {
				on.Iteration = batchv1alpha1.IterationAny
			} else {
				on.Name = append(on.Name, word)
			}
		}
		job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{MinAvailable: 4, Tasks: []batchv1alpha1.TaskSpec{
			{Name: "a", Replicas: 2}, {Name: "b", Replicas: 3, MinAvailable: new(int32(1))}, {Name: "c", Replicas: 1, DependsOn: on},
		}}}
		got := DependentTasks(job, c.pods)
		if got["c"].Waits != c.want || len(got) != 1 {
			t.Errorf("%s: waits for %q, want %q", c.name, got["c"].Waits, c.want)
		}
		group := PodGroup(job, got, func(string) int32 { return 0 })
		if _, there := group.Spec.MinTaskMember["c"]; there || group.Spec.MinMember != 3 {
			t.Errorf("%s: a task that has not started is part of the gang: %+v", c.name, group.Spec)
		}
		group = PodGroup(job, DependentTasks(job, append(c.pods, pod("c", "Pending", false))), func(string) int32 { return 0 })
		if group.Spec.MinTaskMember["c"] != 1 || group.Spec.MinMember != 4 {
			t.Errorf("%s: a task that has started is no part of the gang: %+v", c.name, group.Spec)
		}
	}
}
