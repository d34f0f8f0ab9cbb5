package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

const train = `
metadata: {name: train}
spec:
  schedulerName: celsius
  minAvailable: 3
  maxRetry: 3
  queue: default
  policies: [%s]
  tasks:
  - {name: ps, replicas: 1, template: {spec: {containers: [{name: main, image: x}]}}}
  - {name: worker, replicas: 2, template: {spec: {containers: [{name: main, image: x}]}}}
`

// story describes what happens to one job, in steps. Between the steps the controllers become idle.
type story struct {
	name     string
	policies string
	tell     func(s *stage)
	want     batchv1alpha1.JobPhase
}

// runs brings a job to the point at which all its pods run.
func runs(s *stage) {
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.settle()
	s.play("train", corev1.PodRunning, 0)
	s.settle()
}

// again lets a restarted job run again.
func again(s *stage) {
	s.release()
	runs(s)
}

func stories() []story {
	return []story{
		{"completes", "", func(s *stage) {
			runs(s)
			s.play("train", corev1.PodSucceeded, 0)
			s.settle()
		}, batchv1alpha1.Completed},
		{"restarted once by a failed pod", "{event: PodFailed, action: RestartJob}", func(s *stage) {
			runs(s)
			s.play("worker-1", corev1.PodFailed, 137)
			s.settle()
			again(s)
			s.play("train", corev1.PodSucceeded, 0)
			s.settle()
		}, batchv1alpha1.Completed},
		{"restarted until it has failed", "{event: PodFailed, action: RestartJob}", func(s *stage) {
			runs(s)
			for range 3 {
				s.play("worker-0", corev1.PodFailed, 1)
				s.settle()
				again(s)
			}
		}, batchv1alpha1.Failed},
		{"one pod restarted", "{exitCode: 137, action: RestartPod}", func(s *stage) {
			runs(s)
			s.play("worker-1", corev1.PodFailed, 137)
			s.settle()
			again(s)
			s.play("train", corev1.PodSucceeded, 0)
			s.settle()
		}, batchv1alpha1.Completed},
		{"one task restarted", "{event: PodFailed, action: RestartTask}", func(s *stage) {
			runs(s)
			s.play("worker-1", corev1.PodFailed, 137)
			s.settle()
			again(s)
		}, batchv1alpha1.Running},
		{"evicted pod is made again", "", func(s *stage) {
			runs(s)
			s.evict("train-worker-0")
			s.settle()
			again(s)
		}, batchv1alpha1.Running},
		{"eviction aborts", "{event: PodEvicted, action: AbortJob}", func(s *stage) {
			runs(s)
			s.evict("train-worker-0")
			s.release() // no controller saw it disappear
			s.settle()
			s.release()
			s.settle()
		}, batchv1alpha1.Aborted},
		{"aborted and resumed", "", func(s *stage) {
			runs(s)
			s.play("worker-1", corev1.PodFailed, 1)
			s.settle()
			s.commandJob("AbortJob")
			s.release()
			s.settle()
			s.commandJob("ResumeJob")
			again(s)
		}, batchv1alpha1.Running},
		{"all failed, aborted and resumed", "{event: PodFailed, action: AbortJob}", func(s *stage) {
			runs(s)
			s.play("train", corev1.PodFailed, 1)
			s.settle()
			s.commandJob("ResumeJob")
			s.release()
			s.settle()
			again(s)
		}, batchv1alpha1.Running},
		{"terminated", "", func(s *stage) {
			runs(s)
			s.commandJob("TerminateJob")
			s.release()
			s.settle()
		}, batchv1alpha1.Terminated},
		{"completed by command", "", func(s *stage) {
			runs(s)
			s.commandJob("CompleteJob")
			s.release()
			s.settle()
		}, batchv1alpha1.Completed},
		{"completes with its task", "{event: TaskCompleted, action: CompleteJob}", func(s *stage) {
			runs(s)
			s.play("ps", corev1.PodSucceeded, 0)
			s.settle()
			s.release()
			s.settle()
		}, batchv1alpha1.Completed},
		{"gang unknown", "{event: Unknown, action: RestartJob}", func(s *stage) {
			runs(s)
			s.letIn(schedulingv1beta1.PodGroupUnknown)
			s.settle()
			again(s)
		}, batchv1alpha1.Running},
		{"scaled", "{event: PodEvicted, action: TerminateJob}", func(s *stage) {
			runs(s)
			scaleWorker(s, 4)
			s.settle()
			s.play("train", corev1.PodRunning, 0)
			s.settle()
			scaleWorker(s, 1)
			s.settle()
			s.release()
			s.settle()
		}, batchv1alpha1.Running},
	}
}

// scaleWorker sets the replicas of task worker.
func scaleWorker(s *stage, replicas int32) {
	job := s.job()
	job.Spec.Tasks[1].Replicas = replicas
	job.Spec.MinAvailable = 1 + min(replicas, 2)
	job.Generation++
	if err := s.api.Update(s.t.Context(), job); err != nil {
		s.t.Fatal(err)
	}
}

// tellStory runs a story on a new stage.
func tellStory(t *testing.T, st story, amnesia bool, trouble trouble) *stage {
	t.Helper()
	job := parseJob(t, fmt.Sprintf(train, st.policies))
	job.Spec.Plugins = map[string][]string{"svc": nil}
	s := newStage(t, Options{}, openQueue(), job)
	s.amnesia, s.trouble = amnesia, trouble
	st.tell(s)
	return s
}

// TestStories checks the end of each story, and that it is the same if every reconcile is done by a new controller.
func TestStories(t *testing.T) {
	for _, st := range stories() {
		t.Run(st.name, func(t *testing.T) {
			s := tellStory(t, st, false, trouble{})
			if got := s.job().Status.State.Phase; got != st.want {
				t.Errorf("the job is %s, want %s\n%s", got, st.want, s.state())
			}
			if diff := cmp.Diff(s.state(), tellStory(t, st, true, trouble{}).state()); diff != "" {
				t.Errorf("controllers without memory end elsewhere (-with memory +without):\n%s", diff)
			}
		})
	}
}

// TestResumeIsNoRetry suspends and resumes a job more often than its maxRetry. The job runs, and failed pods can still restart it exactly
// as often as maxRetry permits. The number of restarts that Volcano's clients read includes both.
func TestResumeIsNoRetry(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), parseJob(t, fmt.Sprintf(train, "{event: PodFailed, action: RestartJob}")))
	runs(s)
	for i := range 5 {
		s.commandJob("AbortJob")
		s.release()
		s.settle()
		s.commandJob("ResumeJob")
		again(s)
		if got := s.job().Status; got.State.Phase != batchv1alpha1.Running || got.RetryCount != int32(i+1) {
			t.Fatalf("resumed %d times, the job is %s with retryCount %d", i+1, got.State.Phase, got.RetryCount)
		}
	}
	for i, want := range []batchv1alpha1.JobPhase{batchv1alpha1.Running, batchv1alpha1.Running, batchv1alpha1.Failed} {
		s.newController()
		s.play("worker-0", corev1.PodFailed, 1)
		s.settle()
		again(s)
		if got := s.job().Status.State; got.Phase != want {
			t.Fatalf("restarted %d times, the job is %+v", i+1, got)
		}
	}
	if !s.told("MaxRetryNear: this is restart 2 of the job, and its spec.maxRetry is 3") {
		t.Errorf("the limit was not announced: %q", s.lines)
	}
}

// TestLastTryIsKept restarts a job until it has failed. The failed pod of the last try stays, with its logs, even if the API server refuses
// a deletion at any moment.
func TestLastTryIsKept(t *testing.T) {
	for call := 0; call < 80; call += 9 {
		s := newStage(t, Options{}, openQueue(), parseJob(t, fmt.Sprintf(train, "{event: PodFailed, action: RestartJob}")))
		s.trouble = trouble{call: call}
		runs(s)
		for try := range 3 {
			s.play("worker-0", corev1.PodFailed, 1)
			s.settle()
			s.release()
			if try < 2 {
				runs(s)
			}
		}
		if got := s.job().Status.State.Phase; got != batchv1alpha1.Failed || len(s.pods()) != 1 || s.pods()[0].Name != "train-worker-0" {
			t.Fatalf("trouble at write %d: the job is %s, and its last failed pod is not all that is left:\n%s", call, got, s.state())
		}
	}
}

// TestTrouble lets every single write of every story fail, and requires the same result: the same phases, counters and pods, and no object
// created twice. The most difficult case is a controller that crashes after its write and before it gets the answer. It is tried at each
// write, and the other cases in turn.
func TestTrouble(t *testing.T) {
	for _, st := range stories() {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			calm := tellStory(t, st, false, trouble{})
			want := calm.state()
			for call := 1; call <= calm.calls; call++ {
				others := []trouble{{call, false, true}, {call, false, false}, {call, true, false}}
				for _, tr := range []trouble{{call, true, true}, others[call%len(others)]} {
					s := tellStory(t, st, false, tr)
					if diff := cmp.Diff(want, s.state()); diff != "" {
						t.Fatalf("%+v of %d calls (-calm +trouble):\n%s", tr, calm.calls, diff)
					}
				}
			}
		})
	}
}
