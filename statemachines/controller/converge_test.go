package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// statusWrites counts the writes of the job's status while the job is reconciled repeatedly, with one second in between.
func statusWrites(s *stage, looks int) int {
	s.t.Helper()
	writes := 0
	was := s.job().ResourceVersion
	for range looks {
		s.now = s.now.Add(countsEvery)
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "train"}}
		if _, err := s.reconcilers["job"].Reconcile(context.Background(), request); err != nil {
			s.t.Fatal(err)
		}
		if is := s.job().ResourceVersion; is != was {
			writes, was = writes+1, is
		}
	}
	return writes
}

// scale sets the replicas of the workers and the size of the gang.
func (s *stage) scale(replicas, minAvailable int32) {
	s.t.Helper()
	job := s.job()
	job.Spec.Tasks[1].Replicas, job.Spec.MinAvailable = replicas, minAvailable
	if err := s.api.Update(context.Background(), job); err != nil {
		s.t.Fatal(err)
	}
}

// TestScaledDownWhilePodsWait scales a running job from 100 workers to 20 while 36 of the workers wait. The 80 extra pods are deleted, and
// then the job does not change.
func TestScaledDownWhilePodsWait(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.MinAvailable, job.Spec.Tasks[0].Replicas, job.Spec.Tasks[1].Replicas = 20, 0, 100
	s := newStage(t, Options{}, openQueue(), job)
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.settle()
	for i := range 64 {
		s.playOne(fmt.Sprintf("train-worker-%d", i), corev1.PodRunning)
	}
	s.settle()
	if got := s.job().Status; got.State.Phase != batchv1alpha1.Running || got.Running != 64 || got.Pending != 36 {
		t.Fatalf("before: %+v", got)
	}
	s.scale(20, 20)
	writes := statusWrites(s, 30)
	left := 0
	for _, pod := range s.pods() {
		if !deleting(pod) {
			left++
		}
	}
	if got := s.job().Status; left != 20 || writes > 3 || got.State.Phase != batchv1alpha1.Running || got.Running != 20 || got.Pending != 0 {
		t.Errorf("%d pods are left, the status was written %d times and is %+v", left, writes, got)
	}
}

// playOne sets the phase of one pod.
func (s *stage) playOne(name string, phase corev1.PodPhase) {
	s.t.Helper()
	pod := &corev1.Pod{}
	if err := s.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, pod); err != nil {
		s.t.Fatal(err)
	}
	pod.Status.Phase = phase
	if err := s.api.Status().Update(context.Background(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// TestJobsConverge scales jobs in every phase up and down, with pods in every phase. While the pods do not change, the status is written at
// most as often as there are phases, and then no more. No extra pod remains, except finished ones if the phase retains them.
func TestJobsConverge(t *testing.T) {
	const jobs = 400
	r := rand.New(rand.NewPCG(3, 4))
	podPhases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown}
	phases := builtIn().machines[jobMachine].Phases()
	for range jobs {
		job := trainJob(t, "")
		job.Spec.MinAvailable, job.Spec.Tasks[1].Replicas = 1, int32(1+r.IntN(9))
		s := newStage(t, Options{}, openQueue(), job)
		s.settle()
		s.letIn(schedulingv1beta1.PodGroupInqueue)
		s.settle()
		for _, pod := range s.pods() {
			s.playOne(pod.Name, podPhases[r.IntN(len(podPhases))])
		}
		phase := phases[r.IntN(len(phases))]
		job = s.job()
		job.Status.State.Phase = batchv1alpha1.JobPhase(phase)
		if err := s.api.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		replicas := int32(r.IntN(12))
		s.scale(replicas, int32(r.IntN(int(replicas)+2)))
		s.newController()
		if writes, more := statusWrites(s, 25), statusWrites(s, 5); writes > len(phases) || more > 0 {
			t.Fatalf("from %s the status was written %d times, then %d more:\n%s", phase, writes, more, s.state())
		}
		for _, pod := range s.pods() {
			i, _ := podIndex(pod)
			if pod.Annotations[batchv1alpha1.TaskSpecKey] == "worker" && i >= int(replicas) && !deleting(pod) && !finished(pod) {
				t.Fatalf("from %s: pod %s is left, and there are %d replicas:\n%s", phase, pod.Name, replicas, s.state())
			}
		}
	}
}

// TestStatusPace writes a status 100 times a second. At most 50 writes pass in any 10 s, and the last state is written if the writer waits
// as long as requested.
func TestStatusPace(t *testing.T) {
	job := trainJob(t, "")
	s := newStage(t, Options{}, openQueue(), job)
	var passed []time.Time
	var last time.Duration
	write := func(running int32) error {
		job := s.job()
		old := job.DeepCopy()
		job.Status.Running = running
		return s.parts.client.Status().Patch(t.Context(), job, client.MergeFrom(old))
	}
	for i := range int32(3000) {
		err := write(i + 1)
		if later := (*tooSoon)(nil); errors.As(err, &later) {
			last = later.wait
		} else if err != nil {
			t.Fatal(err)
		} else {
			passed = append(passed, s.now)
		}
		s.now = s.now.Add(10 * time.Millisecond)
	}
	for i := range passed {
		if i >= 50 && passed[i].Sub(passed[i-50]) < 10*time.Second {
			t.Fatalf("write %d came %s after write %d", i, passed[i].Sub(passed[i-50]), i-50)
		}
	}
	if len(passed) < 100 || last <= 0 || last > time.Second {
		t.Errorf("%d of 3000 writes passed in 30 s; the last wait is %s", len(passed), last)
	}
	s.now = s.now.Add(last)
	if err := write(4000); err != nil || s.job().Status.Running != 4000 {
		t.Errorf("the last state is not written: %v", err)
	}
	tired := patient{reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, fmt.Errorf("write: %w", &tooSoon{last})
	})}
	if result, err := tired.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != last {
		t.Errorf("a deferred write gives %+v, %v", result, err)
	}
}
