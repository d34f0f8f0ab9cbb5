package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// restartContainers sets how often the only container of a running pod was restarted.
func (s *stage) restartContainers(name string, restarts int32) {
	s.t.Helper()
	pod := &corev1.Pod{}
	if err := s.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, pod); err != nil {
		s.t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts}}
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time = s.now
	if err := s.api.Status().Update(context.Background(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass in steps and reconciles the job after each. If restarts is true, new controllers start in between.
func (s *stage) pass(until time.Time, restarts bool) {
	s.t.Helper()
	for s.now.Before(until) {
		s.now = s.now.Add(min(45*time.Second, until.Sub(s.now)))
		if restarts {
			s.newController()
		}
		s.settle()
	}
}

// timed describes an event for a running job: how its cause begins, and how it can end.
type timed struct {
	begin, end func(s *stage)
	pod        string // the pod of the event
}

func timedEvents() map[string]timed {
	return map[string]timed{
		"Unknown": {
			begin: func(s *stage) { s.letIn(schedulingv1beta1.PodGroupUnknown) },
			end:   func(s *stage) { s.letIn(schedulingv1beta1.PodGroupRunning) },
		},
		"PodEvicted": {begin: func(s *stage) { s.evict("train-worker-1") }, pod: "train-worker-1"},
		"PodFailed":  {begin: func(s *stage) { s.play("worker-1", corev1.PodFailed, 1) }, pod: "train-worker-1"},
		"TaskCompleted": {begin: func(s *stage) {
			s.play("worker-0", corev1.PodSucceeded, 0)
			s.now = s.now.Add(3 * time.Minute) // the task completes with its last pod
			s.play("worker-1", corev1.PodSucceeded, 0)
		}, pod: "train-worker-1"},
		"TaskFailed": {
			begin: func(s *stage) { s.restartContainers("train-worker-1", 3) },
			end:   func(s *stage) { s.restartContainers("train-worker-1", 0) },
		},
		"PodPending": {
			begin: func(s *stage) { scaleWorker(s, 3) },
			end:   func(s *stage) { s.play("train", corev1.PodRunning, 0) },
		},
	}
}

// timeout is the timeout of the policies in TestTimeouts.
const timeout = 4 * time.Minute

// begins returns a job that has run for an hour, at the beginning of the cause.
func (e timed) begins(t *testing.T, policy string) *stage {
	s := newStage(t, Options{}, openQueue(), trainJob(t, policy))
	runs(s)
	s.now = s.now.Add(time.Hour)
	e.begin(s)
	return s
}

// aborts reports whether the action of the policy was taken.
func aborts(s *stage) bool {
	return slices.Contains([]batchv1alpha1.JobPhase{batchv1alpha1.Aborting, batchv1alpha1.Aborted}, s.job().Status.State.Phase)
}

// TestTimeouts takes an action for every event of the machine, without and with a timeout. With one, the action is taken when the cause has
// lasted that long, and not before. Pods may terminate at once or late, and the controllers may restart in between. The action is not taken
// if the cause ends before.
func TestTimeouts(t *testing.T) {
	events := timedEvents()
	for _, event := range builtIn().machines[jobMachine].PolicyEvents() {
		if event == "*" || event == string(batchv1alpha1.JobUpdatedEvent) { // no row derives the latter
			continue
		}
		e, ok := events[event]
		if !ok {
			t.Errorf("no case for event %s", event)
			continue
		}
		t.Run(event+" without timeout", func(t *testing.T) {
			s := e.begins(t, fmt.Sprintf("{event: %s, action: AbortJob}", event))
			s.settle()
			if want := event != "PodPending"; aborts(s) != want { // only policies with a timeout react to it
				t.Errorf("the job is %s", s.job().Status.State.Phase)
			}
		})
		for _, goes := range []string{"at once", "late", "after a restart"} {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, pods go %s, restarts %v", event, goes, restarts), func(t *testing.T) {
					e.actsInTime(t, event, goes, restarts)
				})
			}
		}
		if e.end != nil {
			t.Run(event+" is over", func(t *testing.T) {
				s := e.begins(t, timedPolicy(event))
				s.settle()
				s.pass(s.now.Add(timeout/2), false)
				e.end(s)
				s.pass(s.now.Add(2*timeout), false)
				if aborts(s) {
					t.Errorf("the action was taken although the cause had ended; the job is %s", s.job().Status.State.Phase)
				}
			})
		}
	}
}

// actsInTime checks that the action is taken when its cause has lasted for the timeout, and not before.
func (e timed) actsInTime(t *testing.T, event, goes string, restarts bool) {
	s := e.begins(t, timedPolicy(event))
	began := s.now
	release := func() {
		if e.pod != "" && event != "PodEvicted" {
			s.evict(e.pod)
		}
		s.release()
	}
	switch {
	case goes == "at once" && event == "PodEvicted": // no controller sees the pod terminate
		release()
		s.settle()
	case goes == "at once":
		s.settle()
		release()
	case goes == "after a restart" && event == "PodEvicted": // the pod disappears while no controller runs
		release()
		s.newController()
	}
	s.settle()
	if wait := lookAt(s); wait <= 0 || wait > timeout {
		t.Errorf("the next look is in %s", wait)
	}
	s.pass(began.Add(timeout-20*time.Second), restarts)
	if aborts(s) {
		t.Errorf("the action was taken %s after the event", s.now.Sub(began))
	}
	s.pass(began.Add(timeout+2*time.Second), restarts)
	if !aborts(s) {
		t.Errorf("no action was taken; the job is %s, %v", s.job().Status.State.Phase, s.job().Status.ControlledResources)
	}
	for key := range s.job().Status.ControlledResources {
		if strings.HasPrefix(key, causeKey) {
			t.Errorf("entry %s is left", key)
		}
	}
}

// timedPolicy returns a policy that aborts the job after the timeout.
func timedPolicy(event string) string {
	return fmt.Sprintf("{event: %s, action: AbortJob, timeout: %s}", event, timeout)
}

// lookAt reconciles the job once, and returns when it must be reconciled again.
func lookAt(s *stage) time.Duration {
	s.t.Helper()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "train"}}
	result, err := s.reconcilers["job"].Reconcile(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return result.RequeueAfter
}

// TestDelayedRestart restarts the task of an evicted pod once, when the timeout is over, although the pod no longer exists. An earlier
// restart ends the causes of the pods that it restarts.
func TestDelayedRestart(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t,
		"{event: PodEvicted, action: RestartTask, timeout: 4m}, {event: PodFailed, action: RestartPod, timeout: 1m}"))
	runs(s)
	began := s.now
	s.evict("train-worker-1")
	s.release()
	s.newController()
	s.settle()
	s.play("worker", corev1.PodRunning, 0)
	s.pass(began.Add(3*time.Minute), true)
	if got := s.job().Status; got.RetryCount != 0 || len(got.ControlledResources) != 1 {
		t.Fatalf("before: %+v", got)
	}
	s.pass(began.Add(5*time.Minute), true)
	again(s)
	s.pass(began.Add(15*time.Minute), true)
	if got := s.job().Status; got.RetryCount != 1 || got.State.Phase != batchv1alpha1.Running || len(got.ControlledResources) != 0 {
		t.Errorf("after: %+v", got)
	}
	s.play("worker-0", corev1.PodFailed, 1)
	s.settle()
	s.pass(s.now.Add(65*time.Second), false)
	again(s)
	s.pass(s.now.Add(10*time.Minute), false)
	if got := s.job().Status; got.RetryCount != 2 || got.State.Phase != batchv1alpha1.Running || len(got.ControlledResources) != 0 {
		t.Errorf("after the restart of the failed pod: %+v", got)
	}
}
