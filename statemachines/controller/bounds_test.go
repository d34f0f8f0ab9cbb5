package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// huge is a number of replicas that a user once requested.
const huge = 2_000_000_000

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func hugeJob(t *testing.T) *batchv1alpha1.Job {
	job := trainJob(t, "")
	job.Spec.MinAvailable = 1
	for i := range job.Spec.Tasks {
		job.Spec.Tasks[i].Replicas, job.Spec.Tasks[i].MinAvailable = huge, nil
	}
	return job
}

// TestHugeJob has a job that requests billions of pods. Each reconcile creates some of them and needs memory only for these. Meanwhile
// another job gets its pods.
func TestHugeJob(t *testing.T) {
	other := trainJob(t, "")
	other.Name, other.UID = "other", "other-uid"
	s := newStage(t, Options{MaxPods: -1}, openQueue(), hugeJob(t), other)
	s.round()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	const most = 300 << 20 // the fake API server uses more than half of it
	for turn := 1; turn <= 2; turn++ {
		if got := allocated(func() { s.round() }); got > most {
			t.Errorf("%d MB were allocated in one turn", got>>20)
		}
		of := map[string]int{}
		for _, pod := range s.pods() {
			of[pod.Annotations[batchv1alpha1.JobNameKey]]++
		}
		if of["train"] < turn*inTurn || of["train"] > turn*(inTurn+atOnce) || of["other"] != 3 {
			t.Fatalf("after %d turns there are pods %v, want some %d of train and 3 of other", turn, of, turn*inTurn)
		}
	}
	if got := s.groups()[1].Spec; got.MinTaskMember["worker"] != huge || got.MinResources.Cpu().Sign() < 0 {
		t.Errorf("the PodGroup says %+v", got)
	}
}

// TestOutOfBounds checks that no object is created for a job above a limit, and that the job states why. When the job is corrected, it
// runs.
func TestOutOfBounds(t *testing.T) {
	t.Run("pods", func(t *testing.T) {
		s := newStage(t, Options{MaxPods: 3}, openQueue(), hugeJob(t))
		s.settle()
		state := s.job().Status.State
		if len(s.groups()) != 0 || state.Reason != outOfBounds || !strings.Contains(state.Message,
			"they ask for 4000000000 pods, and a job may have 3 here") {
			t.Errorf("%d PodGroups, state %+v", len(s.groups()), state)
		}
		if !s.told("train Warning PodGroupPending: OutOfBounds: spec.tasks") {
			t.Errorf("nobody was told: %q", s.lines)
		}
		job := s.job()
		for i := range job.Spec.Tasks {
			job.Spec.Tasks[i].Replicas = 1
		}
		if err := s.api.Update(context.Background(), job); err != nil {
			t.Fatal(err)
		}
		runs(s)
		if got := s.job().Status.State; got.Phase != batchv1alpha1.Running || got.Reason == outOfBounds || len(s.pods()) != 2 {
			t.Errorf("state %+v, %d pods", got, len(s.pods()))
		}
	})
	t.Run("mounts", func(t *testing.T) {
		job := trainJob(t, "")
		for i := range 200 {
			job.Spec.Volumes = append(job.Spec.Volumes, batchv1alpha1.VolumeSpec{MountPath: fmt.Sprint("/", i), VolumeClaimName: "data"})
			job.Spec.Tasks[0].Template.Spec.Containers = append(job.Spec.Tasks[0].Template.Spec.Containers,
				corev1.Container{Name: fmt.Sprint("c", i)})
		}
		s := newStage(t, Options{}, openQueue(), job)
		s.settle()
		if got := s.job().Status.State; got.Reason != outOfBounds || !strings.Contains(got.Message, "mounts, and a pod may have 10000") {
			t.Errorf("state %+v", got)
		}
	})
}

// TestHugeStatus has a job whose status counts billions of pods that do not exist. A new controller detects that they are missing, with
// little memory.
func TestHugeStatus(t *testing.T) {
	job := hugeJob(t)
	job.Spec.Policies = []batchv1alpha1.LifecyclePolicy{{Event: "PodEvicted", Action: "AbortJob"}}
	job.Status = batchv1alpha1.JobStatus{
		State: batchv1alpha1.JobState{Phase: batchv1alpha1.Running}, MinAvailable: 1, Running: huge,
		TaskStatusCount: map[string]batchv1alpha1.TaskState{"worker": {Phase: map[corev1.PodPhase]int32{"Running": huge}}},
	}
	s := newStage(t, Options{}, openQueue(), job)
	const most = 50 << 20
	if got := allocated(s.settle); got > most {
		t.Errorf("%d MB were allocated", got>>20)
	}
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Aborted ||
		!s.told("ExecuteAction: Start to execute action AbortJob: PodEvicted of a pod of task worker") {
		t.Errorf("state %+v, told %q", got, s.lines)
	}
}

// TestManyPodsGo checks that all pods of a large job are deleted in several reconciles, after a command and for a job that has already
// ended.
func TestManyPodsGo(t *testing.T) {
	const many = inTurn + 100
	for name, end := range map[string]func(*stage){
		"Aborted": func(s *stage) { s.commandJob("AbortJob") },
		"Terminated": func(s *stage) {
			job := s.job()
			job.Status.State.Phase = batchv1alpha1.Terminated
			if err := s.api.Status().Update(context.Background(), job); err != nil {
				t.Fatal(err)
			}
			s.newController()
			s.round()
			left := slices.DeleteFunc(s.pods(), deleting)
			if n := len(left); n != many+1-inTurn {
				t.Errorf("one turn leaves %d pods of %d", n, many+1)
			}
			s.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := trainJob(t, "")
			job.Spec.MinAvailable, job.Spec.Tasks[1].Replicas = 1, many
			s := newStage(t, Options{}, openQueue(), job)
			runs(s)
			if got := len(s.pods()); got != many+1 {
				t.Fatalf("%d pods", got)
			}
			end(s)
			s.release()
			s.settle()
			if got := s.job().Status; string(got.State.Phase) != name || len(s.pods()) != 0 {
				t.Errorf("%s, %d pods are left", got.State.Phase, len(s.pods()))
			}
		})
	}
}

// TestHistory checks that the number of conditions of a job that restarts without end is limited.
func TestHistory(t *testing.T) {
	s := newStage(t, Options{}, openQueue())
	j, ok := s.reconcilers["job"].(*jobs)
	if !ok {
		t.Fatal("no controller of jobs")
	}
	job := trainJob(t, "")
	for i := range 3 * longestHistory {
		phase := batchv1alpha1.Pending
		if i%2 == 1 {
			phase = batchv1alpha1.Restarting
		}
		j.enter(job, s.now, transition{outcome: statemachines.Outcome{Phase: string(phase)}}, statemachines.Facts{Job: &statemachines.Job{}})
	}
	if got := job.Status.Conditions; len(got) != longestHistory || got[len(got)-1].Status != batchv1alpha1.Restarting {
		t.Errorf("%d conditions", len(got))
	}
}

// TestSumsOfHugeTasks checks the resources of a gang of billions of pods. The tasks together have more pods than an int32 can store.
func TestSumsOfHugeTasks(t *testing.T) {
	job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{MinAvailable: math.MaxInt32}}
	for _, name := range []string{"a", "b", "c"} {
		job.Spec.Tasks = append(job.Spec.Tasks, batchv1alpha1.TaskSpec{Name: name, Replicas: huge, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{
					{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1T")}}},
				},
			},
		}})
	}
	got := objects.MinResources(job, func(string) int32 { return 0 })["cpu"]
	want := resource.MustParse("1T")
	want.Mul(math.MaxInt32)
	if got.Cmp(want) != 0 {
		t.Errorf("the gang needs cpu %s, want %s", got.String(), want.String())
	}
}

// TestManyRequests checks that the number of waiting commands is limited.
func TestManyRequests(t *testing.T) {
	r := newMemory().of(types.NamespacedName{Name: "train"}, "uid")
	taken := 0
	for range 100_000 {
		if r.ask(request{action: "AbortJob"}) {
			taken++
		}
	}
	if taken < 10 || taken > 1000 || len(r.requests) != taken {
		t.Errorf("%d requests were taken", taken)
	}
}

// TestManyErrors checks that only the first few of many errors are shown, and that a refusal among them is still recognized.
func TestManyErrors(t *testing.T) {
	errs := make([]error, 100_000)
	for i := range errs {
		errs[i] = fmt.Errorf("pod %d: %w", i, errForeign)
	}
	got := joined(errs)
	if !errors.Is(got, errForeign) ||
		got.Error() != "pod 0: belongs to another owner\npod 1: belongs to another owner\npod 2: belongs to another owner\nand 99997 more" {
		t.Error(got)
	}
	if joined(make([]error, 3)) != nil {
		t.Error("no errors are an error")
	}
}
