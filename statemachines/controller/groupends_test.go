package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// nativeUID is the UID of the owner in the tests below, and nativeGroup its PodGroup.
const (
	nativeUID   = "5f0c2c8e-6a1b-4b8f-9d6f-1f0f5f1a7c11"
	nativeGroup = "podgroup-" + nativeUID
)

// nativePod is a pod of the owner, in a gang of three.
func nativePod(apiVersion, kind string, n int) *corev1.Pod {
	pod := owned(apiVersion, kind, "bert-finetune")
	pod.Name, pod.UID = fmt.Sprintf("bert-finetune-%d", n), types.UID(fmt.Sprintf("pod-%d", n))
	pod.OwnerReferences[0].UID = nativeUID
	pod.Annotations = map[string]string{schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey: "3"}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), "nvidia.com/gpu": resource.MustParse("2"),
	}
	return pod
}

// native is a batch/v1 Job, or another owner, with three running pods.
func native(t *testing.T, o Options, owner client.Object, apiVersion, kind string) *stage {
	t.Helper()
	s := newStage(t, o, openQueue())
	if owner != nil {
		owner.SetNamespace(namespace)
		owner.SetName("bert-finetune")
		owner.SetUID(nativeUID)
		s.add(owner)
	}
	for n := range 3 {
		s.add(nativePod(apiVersion, kind, n))
	}
	s.settle()
	s.play("bert", corev1.PodRunning, 0)
	s.letIn(schedulingv1beta1.PodGroupRunning)
	s.settle()
	return s
}

// drop deletes pods immediately.
func drop(s *stage, numbers ...int) {
	s.t.Helper()
	for _, n := range numbers {
		s.evict(fmt.Sprintf("bert-finetune-%d", n))
	}
	s.release()
	s.settle()
}

// update changes the owner and its status.
func update[T client.Object](s *stage, owner T, change func(T)) {
	s.t.Helper()
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: "bert-finetune"}, owner); err != nil {
		s.t.Fatal(err)
	}
	change(owner)
	if err := s.api.Update(s.t.Context(), owner); err != nil {
		s.t.Fatal(err)
	}
}

// ends gives a batch/v1 Job a condition with the status True.
func ends(s *stage, as batchv1.JobConditionType) {
	s.t.Helper()
	job := &batchv1.Job{}
	update(s, job, func(*batchv1.Job) {})
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: as, Status: corev1.ConditionTrue})
	if err := s.api.Status().Update(s.t.Context(), job); err != nil {
		s.t.Fatal(err)
	}
}

// passes advances the time, and reconciles before and after.
func passes(s *stage, d time.Duration) {
	s.t.Helper()
	s.settle()
	s.now = s.now.Add(d)
	s.settle()
}

// queueHolds returns the counts of the queue's PodGroups that hold or will hold resources.
func queueHolds(s *stage) string {
	st := s.queue("default").Status
	return fmt.Sprintf("%d pending, %d inqueue, %d running, %d unknown", st.Pending, st.Inqueue, st.Running, st.Unknown)
}

// TestNativeWorkThatEndedHoldsNothing ends the work of owners that are not Volcano Jobs, in every way. The test acts as the scheduler: a
// PodGroup becomes Completed when enough of its pods have ended. Otherwise the scheduler admits it again. In the end the PodGroup is
// Completed or deleted, and the queue counts it in no phase that reserves resources.
func TestNativeWorkThatEndedHoldsNothing(t *testing.T) {
	job := func() client.Object { return &batchv1.Job{} }
	for _, c := range []struct {
		name             string
		owner            client.Object
		apiVersion, kind string
		end              func(s *stage)
		phase            schedulingv1beta1.PodGroupPhase // of the PodGroup; "": it is deleted
	}{
		{"a Job completes, and its pods are deleted after its TTL", job(), "batch/v1", "Job", func(s *stage) {
			s.play("bert", corev1.PodSucceeded, 0)
			ends(s, batchv1.JobComplete)
			s.letIn(schedulingv1beta1.PodGroupCompleted)
			passes(s, time.Hour)
			drop(s, 1)
			drop(s, 0, 2)
		}, schedulingv1beta1.PodGroupCompleted},
		{"a Job reaches its backoffLimit, and its pods are deleted", job(), "batch/v1", "Job", func(s *stage) {
			ends(s, batchv1.JobFailureTarget)
			drop(s, 0, 1, 2)
		}, ""},
		{"a Job fails after its pods were deleted, as before Kubernetes 1.31", job(), "batch/v1", "Job", func(s *stage) {
			drop(s, 0, 1, 2)
			s.letIn(schedulingv1beta1.PodGroupInqueue)
			ends(s, batchv1.JobFailed)
		}, ""},
		{"a Job fails with one failed pod left of a gang of three", job(), "batch/v1", "Job", func(s *stage) {
			s.play("bert-finetune-1", corev1.PodFailed, 137)
			ends(s, batchv1.JobFailed)
			drop(s, 0, 2)
			s.letIn(schedulingv1beta1.PodGroupInqueue)
		}, ""},
		{"a Job is suspended", job(), "batch/v1", "Job", func(s *stage) {
			update(s, &batchv1.Job{}, func(job *batchv1.Job) { job.Spec.Suspend = new(true) })
			drop(s, 0, 1, 2)
			s.letIn(schedulingv1beta1.PodGroupInqueue)
		}, ""},
		{"a Job has its parallelism set to 0", job(), "batch/v1", "Job", func(s *stage) {
			update(s, &batchv1.Job{}, func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(0)) })
			drop(s, 0, 1, 2)
		}, ""},
		{"a Job of a CronJob completes", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly-finetune", UID: "cron-uid", Controller: new(true)},
		}}}, "batch/v1", "Job", func(s *stage) {
			s.play("bert", corev1.PodSucceeded, 0)
			s.letIn(schedulingv1beta1.PodGroupCompleted)
			ends(s, batchv1.JobComplete)
			drop(s, 0, 1, 2)
		}, schedulingv1beta1.PodGroupCompleted},
		{"a StatefulSet is scaled to 0", &appsv1.StatefulSet{}, "apps/v1", "StatefulSet", func(s *stage) {
			update(s, &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) { set.Spec.Replicas = new(int32(0)) })
			drop(s, 0, 1, 2)
			s.letIn(schedulingv1beta1.PodGroupInqueue)
		}, ""},
		{"a ReplicaSet is scaled to 0", &appsv1.ReplicaSet{}, "apps/v1", "ReplicaSet", func(s *stage) {
			update(s, &appsv1.ReplicaSet{}, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(int32(0)) })
			drop(s, 0, 1, 2)
		}, ""},
		{"an owner of a kind that is not known is suspended", nil, "ray.io/v1", "RayCluster", func(s *stage) {
			drop(s, 0, 1, 2)
			s.letIn(schedulingv1beta1.PodGroupInqueue)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := native(t, Options{}, c.owner, c.apiVersion, c.kind)
			c.end(s)
			for range 4 {
				passes(s, 3*time.Minute)
			}
			groups := s.groups()
			if c.phase == "" && len(groups) != 0 || c.phase != "" && (len(groups) != 1 || groups[0].Status.Phase != c.phase) {
				t.Errorf("the PodGroup, which is to be %q: %+v", c.phase, groups)
			}
			if got := queueHolds(s); got != "0 pending, 0 inqueue, 0 running, 0 unknown" {
				t.Errorf("the queue counts %s", got)
			}
		})
	}
}

// TestNativeWorkThatGoesOnKeepsItsGroup checks PodGroups that groupEnds must not delete.
func TestNativeWorkThatGoesOnKeepsItsGroup(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		owner   client.Object
		end     func(s *stage)
		waits   time.Duration
	}{
		{"its pods run", Options{}, &batchv1.Job{}, func(s *stage) { ends(s, batchv1.JobFailureTarget) }, time.Hour},
		{"a Job waits before it tries again", Options{}, &batchv1.Job{}, func(s *stage) { drop(s, 0, 1, 2) }, 6 * time.Minute},
		{"the Job is deleted, and its PodGroup with it", Options{}, nil, func(s *stage) { drop(s, 0, 1, 2) }, time.Hour},
		{"the scheduler has a moment to write Completed", Options{}, &batchv1.Job{}, func(s *stage) {
			s.play("bert", corev1.PodSucceeded, 0)
			ends(s, batchv1.JobComplete)
		}, finishedFor / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := native(t, c.options, c.owner, "batch/v1", "Job")
			c.end(s)
			passes(s, c.waits)
			if n := len(s.groups()); n != 1 {
				t.Errorf("%d PodGroups, want 1", n)
			}
		})
	}
	t.Run("it is of another scheduler", func(t *testing.T) {
		s := native(t, Options{SchedulerNames: []string{"celsius"}}, &batchv1.Job{}, "batch/v1", "Job")
		update(s, &batchv1.Job{}, func(job *batchv1.Job) { job.Spec.Suspend = new(true) })
		for _, pod := range s.pods() {
			pod.Spec.SchedulerName = "volcano"
			if err := s.api.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		drop(s, 0, 1, 2)
		passes(s, time.Hour)
		if n := len(s.groups()); n != 1 {
			t.Errorf("%d PodGroups, want 1", n)
		}
	})
}

// TestResumedJobGetsItsGroupAgain suspends a batch/v1 Job and resumes it. Its pods then have a PodGroup again, even if the controllers
// deleted the old one just after they assigned it to a new pod.
func TestResumedJobGetsItsGroupAgain(t *testing.T) {
	s := native(t, Options{}, &batchv1.Job{}, "batch/v1", "Job")
	suspend := func(is bool) {
		update(s, &batchv1.Job{}, func(job *batchv1.Job) { job.Spec.Suspend = &is })
	}
	suspend(true)
	drop(s, 0, 1, 2)
	passes(s, time.Second)
	if n := len(s.groups()); n != 0 {
		t.Fatalf("%d PodGroups of a suspended Job", n)
	}
	suspend(false)
	for n := range 3 {
		s.add(nativePod("batch/v1", "Job", n))
	}
	s.settle()
	if groups := s.groups(); len(groups) != 1 || groups[0].Name != nativeGroup || groups[0].Spec.MinMember != 3 {
		t.Fatalf("PodGroups of the resumed Job: %+v", groups)
	}
	first := s.groups()[0]
	if err := s.api.Delete(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&first)}
	result, err := s.reconcilers["podgroup"].Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != missingFor || len(s.groups()) != 0 {
		t.Fatalf("at first: %+v, %v, %d PodGroups", result, err, len(s.groups()))
	}
	s.now = s.now.Add(missingFor)
	if _, err := s.reconcilers["podgroup"].Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if groups := s.groups(); len(groups) != 1 || groups[0].Name != nativeGroup {
		t.Errorf("PodGroups of pods whose PodGroup was deleted: %+v", groups)
	}
	if slices.ContainsFunc(s.pods(), deleting) {
		t.Error("a pod was deleted")
	}
}
