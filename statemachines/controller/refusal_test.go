package controller

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// TestRefusalText checks that the text of a refused pod begins with the cause, for messages of Kubernetes' admission plugins.
func TestRefusalText(t *testing.T) {
	for _, c := range []struct{ answer, begins string }{
		{
			"maximum cpu usage per Container is 2, but limit is 4",
			"a LimitRange of the namespace refuses the pod: maximum cpu usage per Container is 2",
		},
		{"minimum memory usage per Pod is 1Gi, but request is 512Mi", "a LimitRange of the namespace refuses the pod: minimum memory"},
		{
			"cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
			"a LimitRange of the namespace refuses the pod: cpu max limit to request ratio",
		},
		{
			`violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`,
			"Pod Security (restricted:latest) of the namespace refuses the pod: host namespaces (hostNetwork=true)",
		},
		{
			"exceeded quota: team-quota, requested: requests.cpu=4, used: requests.cpu=6, limited: requests.cpu=8",
			"ResourceQuota team-quota of the namespace is exhausted (requested: requests.cpu=4, used",
		},
		{
			"exceeded quota: team-quota, requested: requests.cpu=4, used: requests.cpu=0, limited: requests.cpu=2",
			"ResourceQuota team-quota of the namespace allows less than the pod alone needs (requested: requests.cpu=4, limited",
		},
		{
			"failed quota: team-quota: must specify requests.memory for: train",
			"ResourceQuota team-quota of the namespace refuses the pod, because its containers must specify requests.memory",
		},
		{`error looking up service account res/trainer: serviceaccount "trainer" not found`, "ServiceAccount trainer does not exist"},
		{"no PriorityClass with name high-priority-training was found", "PriorityClass high-priority-training does not exist"},
		{"a webhook of the platform team denies it", "create pod bert-worker-0: "},
	} {
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "bert-worker-0", errors.New(c.answer))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bert-worker-0"}}
		err := refusalText(objects.NewRefusals(), pod, objects.Demand{}, refusal)
		if !strings.HasPrefix(err.Error(), c.begins) || !strings.Contains(err.Error(), "bert-worker-0") {
			t.Errorf("%s:\n got %s\nwant %s …", c.answer, err, c.begins)
		}
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: the answer of the API server is lost", c.answer)
		}
	}
}

// TestQuotaIsNeverFinal lets a quota refuse a job's pods, PodGroup or claims far more often than the limit of refusals. The job waits, and
// runs when the quota has free resources. Another type of refusal announces the limit before it ends the job, even together with a refusal
// by a quota.
func TestQuotaIsNeverFinal(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-ps-0", errors.New(why))
	}
	exceeded := forbidden("exceeded quota: team-quota, requested: requests.cpu=4, used: requests.cpu=8, limited: requests.cpu=8")
	unstated := forbidden("failed quota: team-quota: must specify requests.memory for: train")
	security := forbidden(`violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`)
	for _, c := range []struct {
		name  string
		err   error
		final bool
	}{
		{"exceeded", exceeded, false},
		{"unstated", unstated, false},
		{"two of them", errors.Join(exceeded, unstated), false},
		{"security", security, true},
		{"security and quota", errors.Join(exceeded, security), true},
		{"foreign", errForeign, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{MaxRequeue: 5}, openQueue(), trainJob(t, ""))
			s.settle()
			s.letIn(schedulingv1beta1.PodGroupInqueue)
			refuse := true
			s.refuse = func(obj client.Object) error {
				if _, pod := obj.(*corev1.Pod); pod && refuse {
					return c.err
				}
				return nil
			}
			announced := false
			for range 20 {
				s.round()
				announced = announced || strings.Contains(s.job().Status.State.Message, "after 6 times the job is terminated")
			}
			if got := s.job().Status.State; got.Phase == batchv1alpha1.Terminating || got.Phase == batchv1alpha1.Terminated {
				if !c.final || !announced {
					t.Errorf("the job is %+v; the end was announced: %v", got, announced)
				}
				return
			}
			if c.final || announced {
				t.Fatalf("the job is %+v; the end was announced: %v", s.job().Status.State, announced)
			}
			refuse = false
			runs(s)
			if got := s.job().Status.State.Phase; got != batchv1alpha1.Running {
				t.Errorf("the job is %s once the quota is free", got)
			}
		})
	}
}

// TestForeignPods checks that a job whose template names another scheduler reports this.
func TestForeignPods(t *testing.T) {
	job := &batchv1alpha1.Job{}
	job.Spec.SchedulerName = "celsius"
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: "worker"}}
	w := &world{job: job}
	for scheduler, want := range map[string]bool{"": false, "celsius": false, "volcano": false, "default-scheduler": true} {
		job.Spec.Tasks[0].Template.Spec.SchedulerName = scheduler
		if got := w.foreignPods([]string{"celsius", "volcano"}); (got != nil) != want {
			t.Errorf("%q: %v", scheduler, got)
		}
	}
}
