package objects

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestQuotaRemedies lets a quota of 8 CPUs refuse a pod of 4. The message tells a job to wait only for pods after whose end the job can
// start.
func TestQuotaRemedies(t *testing.T) {
	pod := func(name, cpu string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		return p
	}
	job := func(minAvailable, workers int32, depends bool) *batchv1alpha1.Job {
		j := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{MinAvailable: minAvailable}}
		for name, replicas := range map[string]int32{"launcher": 1, "worker": workers} {
			cpu := map[string]string{"launcher": "1", "worker": "4"}[name]
			task := batchv1alpha1.TaskSpec{Name: name, Replicas: replicas}
			task.Template.Spec = pod("", cpu, "").Spec
			if depends && name == "worker" {
				task.DependsOn = &batchv1alpha1.DependsOn{Name: []string{"launcher"}}
			}
			j.Spec.Tasks = append(j.Spec.Tasks, task)
		}
		return j
	}
	first := pod("train-worker-0", "4", corev1.PodRunning)
	scoped := pod("train-worker-0", "4", corev1.PodRunning)
	scoped.Spec.PriorityClassName = "high"
	const others, own, alone = "wait until other pods of the namespace end", "wait until pods of the job end", "than the job alone needs"
	for _, c := range []struct {
		name string
		of   Demand
		want string
	}{
		{"nothing is known of the job", Demand{}, others},
		{"a gang that fits", JobDemand(job(2, 2, false), nil), others},
		{"a gang of which the smallest pods fit", JobDemand(job(2, 4, false), nil), others},
		{"a gang that does not fit", JobDemand(job(3, 2, false), nil), alone + " (the 3 pods that must start together request requests.cpu=9"},
		{"a gang that ran in part", JobDemand(job(3, 2, false), []*corev1.Pod{pod("train-launcher-0", "1", corev1.PodSucceeded)}), others},
		{"tasks that run one after the other", JobDemand(job(3, 2, true), nil), others},
		{"pods of the job", JobDemand(job(1, 4, false), []*corev1.Pod{first, first}), own},
		{"pods of the job have ended", JobDemand(job(1, 4, false), []*corev1.Pod{pod("a", "8", corev1.PodFailed)}), others},
		{"pods that the quota may not count", JobDemand(job(1, 4, false), []*corev1.Pod{scoped, scoped}), others},
		{"a job of the short format", GroupDemand(3, []*corev1.Pod{first}, []*corev1.Pod{first, first}), alone},
	} {
		err := errors.New("pods is forbidden: exceeded quota: q, requested: requests.cpu=4, used: requests.cpu=8, limited: requests.cpu=8")
		got := NewRefusals().Reported(pod("train-worker-1", "4", ""), c.of, err)
		if !strings.Contains(got, c.want) || !strings.HasPrefix(got, "ResourceQuota q of the namespace ") {
			t.Errorf("%s:\n got %s\nwant … %s …", c.name, got, c.want)
		}
	}
}
