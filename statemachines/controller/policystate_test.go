package controller

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

const resumeTrain = "; celsius job resume train -n team resumes it"

// TestStateNamesThePolicy ends a job by a policy, for each event of the machine and each action that ends a job. The status must first
// state the event, the pod, the policy and its timeout, while the pods terminate and after that. Then it states how to resume a job that
// can be resumed.
func TestStateNamesThePolicy(t *testing.T) {
	for event, e := range timedEvents() {
		for _, action := range []batchv1alpha1.Action{"AbortJob", "CompleteJob", "TerminateJob"} {
			t.Run(fmt.Sprint(event, action), func(t *testing.T) {
				s := e.begins(t, fmt.Sprintf("{event: %s, action: %s, timeout: %s}", event, action, timeout))
				began := s.now
				s.pass(began.Add(2*timeout), false)
				first, remedy := event+" of pod train-worker-", ""
				switch event {
				case "Unknown":
					first = event
				case "PodFailed", "PodEvicted":
					first += "1"
				}
				if action == "AbortJob" {
					remedy = resumeTrain
				}
				last := fmt.Sprintf(": spec.policies[0] (timeout %s) requests %s%s", timeout, action, remedy)
				check := func() {
					t.Helper()
					got := s.job().Status.State
					if got.Reason != event || !strings.HasPrefix(got.Message, first) || !strings.HasSuffix(got.Message, last) {
						t.Errorf("state %+v, want %q … %q", got, first, last)
					}
				}
				check()
				s.release()
				s.settle()
				check()
				if got := s.job().Status.State.Phase; strings.HasSuffix(string(got), "ing") {
					t.Errorf("the job is %s still", got)
				}
			})
		}
	}
}

// TestSuspendedByUser checks that the status states that a user suspended the job, and how to resume it by its real name.
func TestSuspendedByUser(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, "{event: PodFailed, action: RestartJob}"))
	runs(s)
	s.commandJob("AbortJob")
	s.release()
	s.settle()
	want := "the job was suspended (action AbortJob)" + resumeTrain
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Aborted || got.Reason != "Suspended" || got.Message != want {
		t.Errorf("state %+v", got)
	}
	s.commandJob("ResumeJob")
	again(s)
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Running || got.Reason != "" || got.Message != "" {
		t.Errorf("resumed, state %+v", got)
	}
}

// TestFailedByRestarts checks that the status names the last event, its pod and its policy before the limit that ended the job.
func TestFailedByRestarts(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, "{event: PodFailed, action: RestartJob}"))
	runs(s)
	for range 3 {
		s.play("worker-1", corev1.PodFailed, 7)
		s.settle()
		again(s)
	}
	const want = "PodFailed of pod train-worker-1 (exit code 7): spec.policies[0] requests RestartJob; the job was restarted maxRetry times"
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Failed || got.Reason != "MaxRetryReached" || got.Message != want {
		t.Errorf("state %+v, want %q", got, want)
	}
}
