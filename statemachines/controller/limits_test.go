package controller

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// limitCase states how a job comes near a limit, reaches it, and moves away from it.
type limitCase struct {
	name, kind, policies string
	// early brings a new job to the last point at which the limit is not near. Then near brings it to a point at which the limit is near.
	early, near func(s *stage)
	count       string // "2 of 3"; "0 of 0" if the limit is a time
	says        []string
	reach       func(s *stage) // the limit is reached
	end         batchv1alpha1.JobPhase
	leave       func(s *stage) // the limit is no longer near, although it was not reached; nil: not possible
	retried     bool           // the controllers retry without end, and write a status with each try
}

// refusedBy returns a hook that refuses pods as Pod Security does.
func refusedBy(why string) func(client.Object) error {
	return func(obj client.Object) error {
		if _, pod := obj.(*corev1.Pod); !pod {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, obj.GetName(), errors.New(why))
	}
}

// rounds reconciles the job n times.
func rounds(s *stage, n int) {
	for range n {
		s.round()
	}
}

func limitCases() []limitCase {
	const security = `violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`
	fails := func(s *stage) {
		s.play("worker-1", corev1.PodFailed, 137)
		s.settle()
		again(s)
	}
	out := []limitCase{
		{
			name: "pods are refused", kind: batchv1alpha1.RefusalLimitNear, retried: true,
			early: func(s *stage) {
				s.settle()
				s.letIn(schedulingv1beta1.PodGroupInqueue)
				s.refuse = refusedBy(security)
				rounds(s, 7)
			},
			near:  func(s *stage) { rounds(s, 1) },
			count: "8 of 16", says: []string{"8 times in a row", "after 16 times (--max-requeue-num", "terminated", "hostNetwork=true"},
			reach: func(s *stage) { rounds(s, 12) }, end: batchv1alpha1.Terminated,
			leave: func(s *stage) { s.refuse = nil; runs(s) },
		},
		{
			name: "deletions of superfluous pods are refused", kind: batchv1alpha1.RefusalLimitNear, retried: true,
			early: func(s *stage) {
				runs(s)
				s.refuseDelete = refusedBy("a webhook of the platform team protects pods of team research")
				scaleWorker(s, 1)
				rounds(s, 7)
			},
			near:  func(s *stage) { rounds(s, 1) },
			count: "8 of 16", says: []string{"after 16 times", "a webhook of the platform team protects pods"},
			reach: func(s *stage) { rounds(s, 8); s.refuseDelete = nil; rounds(s, 4); s.release(); s.settle() }, end: batchv1alpha1.Terminated,
			leave: func(s *stage) { s.refuseDelete = nil; s.settle(); s.release(); s.settle() },
		},
		{
			name: "restarts of the job", kind: batchv1alpha1.RetryLimitNear, policies: "{event: PodFailed, action: RestartJob}",
			early: runs, near: func(s *stage) { fails(s); fails(s) },
			count: "2 of 3", says: []string{"used 2 of 3 restarts (spec.maxRetry)", "becomes Failed", "cannot be changed"},
			reach: fails, end: batchv1alpha1.Failed,
			leave: func(s *stage) { s.commandJob("AbortJob"); s.release(); s.settle() }, // a suspended job is not restarted
		},
		{
			name: "restarts of containers", kind: batchv1alpha1.TaskRetryLimitNear, policies: "{event: TaskFailed, action: TerminateJob}",
			early: runs, near: func(s *stage) { s.restartContainers("train-worker-0", 2); s.settle() },
			count: "2 of 3",
			says: []string{
				"task worker have used 2 of 3 restarts (maxRetry", "event TaskFailed", "spec.policies[0]", "TerminateJob",
			},
			reach: func(s *stage) { s.restartContainers("train-worker-0", 3); s.settle(); s.release(); s.settle() }, end: batchv1alpha1.Terminated,
			leave: func(s *stage) { s.restartContainers("train-worker-0", 0); s.settle() },
		},
		{
			name: "deletion of the finished job", kind: batchv1alpha1.DeletionNear,
			early: runs, near: func(s *stage) { s.play("train", corev1.PodSucceeded, 0); s.settle() },
			count: "0 of 0", says: []string{"at 2026-11-21T13:", "is deleted with its pods and their logs", "spec.ttlSecondsAfterFinished: 3600"},
		},
	}
	for event, e := range timedEvents() {
		c := limitCase{
			name: "timeout of " + event, kind: batchv1alpha1.TimeoutNear, policies: timedPolicy(event),
			early: func(s *stage) {
				runs(s)
				s.now = s.now.Add(time.Hour).Truncate(time.Second)
				e.begin(s)
				s.settle()
			},
			near:  func(s *stage) { s.pass(s.now.Add(timeout/2+time.Second), true) },
			count: "0 of 0",
			says: []string{
				"the event " + event + " began at ", "after its timeout of 4m0s, spec.policies[0] takes the action AbortJob", "if the job is suspended",
			},
			reach: func(s *stage) { s.pass(s.now.Add(timeout/2), true); s.release(); s.settle() }, end: batchv1alpha1.Aborted,
		}
		if e.end != nil {
			c.leave = func(s *stage) { e.end(s); s.settle() }
		}
		out = append(out, c)
	}
	return out
}

// TestLimitsAreAnnounced brings a job near each limit that ends it, deletes it or triggers a policy. A condition is True before the limit
// is reached. It names the limit, the count and the consequence. It stays the same with new controllers, which write nothing. It is False
// once the limit was reached, and when it is no longer near.
func TestLimitsAreAnnounced(t *testing.T) {
	for _, c := range limitCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.isNear(t)
			if c.reach == nil {
				return
			}
			c.reach(s)
			if got := s.job().Status.State.Phase; got != c.end {
				t.Errorf("at the limit the job is %s, want %s\n%s", got, c.end, s.state())
			}
			c.isOver(s)
			if c.leave != nil {
				s = c.isNear(t)
				c.leave(s)
				c.isOver(s)
			}
		})
	}
}

// isNear brings a new job near the limit, and checks its condition.
func (c *limitCase) isNear(t *testing.T) *stage {
	t.Helper()
	job := trainJob(t, c.policies)
	if c.kind == batchv1alpha1.DeletionNear {
		job.Spec.TTLSecondsAfterFinished = new(int32(3600))
	}
	s := newStage(t, Options{MaxRequeue: 15}, openQueue(), job)
	c.early(s)
	if got := limitCondition(&s.job().Status, c.kind); got != nil {
		t.Errorf("too early: %+v", got)
	}
	if !c.retried { // the number of refusals is stored from half of the limit on
		s.newController()
	}
	c.near(s)
	first := limitCondition(&s.job().Status, c.kind)
	if first == nil || first.Status != metav1.ConditionTrue || first.LastTransitionTime.IsZero() {
		t.Fatalf("the limit is not announced: %+v\n%s", first, s.state())
	}
	if got := fmt.Sprintf("%d of %d", first.Count, first.Limit); got != c.count {
		t.Errorf("the count is %s, want %s", got, c.count)
	}
	for _, text := range c.says {
		if !strings.Contains(first.Message, text) {
			t.Errorf("the message lacks %q: %s", text, first.Message)
		}
	}
	if c.retried {
		return s
	}
	calls := s.calls
	for range 3 {
		s.newController()
		s.round()
	}
	if s.calls != calls {
		t.Errorf("new controllers wrote %d times", s.calls-calls)
	}
	return s
}

// isOver checks that the condition exists and is False.
func (c *limitCase) isOver(s *stage) {
	s.t.Helper()
	got := limitCondition(&s.job().Status, c.kind)
	if got == nil || got.Status != metav1.ConditionFalse || got.Reason != notNear || got.Count != 0 {
		s.t.Errorf("the condition of a limit that is not near: %+v\n%s", got, s.state())
	}
}

// TestRefusalsAreCountedOn refuses a job's pods, and restarts the controllers before each try. The count continues from the condition, so
// that the limit is reached. Each try writes the status at most once.
func TestRefusalsAreCountedOn(t *testing.T) {
	s := newStage(t, Options{MaxRequeue: 15}, openQueue(), trainJob(t, ""))
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.refuse = refusedBy("a webhook of the platform team denies it")
	rounds(s, 8)
	for try := 9; try <= 16; try++ {
		s.newController()
		calls := s.calls
		s.reconcile("job", client.ObjectKeyFromObject(s.job()))
		if wrote := s.calls - calls; wrote > 2 { // the refused pod, and the status
			t.Errorf("try %d wrote %d times", try, wrote)
		}
		c := limitCondition(&s.job().Status, batchv1alpha1.RefusalLimitNear)
		if c == nil || c.Status != metav1.ConditionTrue || int(c.Count) != try {
			t.Fatalf("try %d: %+v", try, c)
		}
	}
	rounds(s, 4)
	if got := s.job().Status.State.Phase; got != batchv1alpha1.Terminating && got != batchv1alpha1.Terminated {
		t.Errorf("after 16 refusals the job is %s", got)
	}
}

// TestNoPauseAfterTheLastRefusal shows that each pause between refusals ends with another try. A cause that is corrected in the last pause
// lets the job run. The last refusal ends the job without a pause, in which a correction would have no effect.
func TestNoPauseAfterTheLastRefusal(t *testing.T) {
	refused := func() *stage {
		s := newStage(t, Options{MaxRequeue: 15}, openQueue(), trainJob(t, ""))
		s.settle()
		s.letIn(schedulingv1beta1.PodGroupInqueue)
		s.refuse = refusedBy(`error looking up service account team/trainer: serviceaccount "trainer" not found`)
		for try := 1; try <= 15; try++ {
			if again, _ := s.reconcile("job", client.ObjectKeyFromObject(s.job())); again {
				t.Fatalf("no pause after refusal %d", try)
			}
		}
		return s
	}
	s := refused()
	s.refuse = nil // in the last pause
	runs(s)
	if got := s.job().Status.State.Phase; got != batchv1alpha1.Running {
		t.Errorf("corrected after 15 refusals, the job is %s\n%s", got, s.state())
	}
	s = refused()
	if again, _ := s.reconcile("job", client.ObjectKeyFromObject(s.job())); !again {
		t.Errorf("after the last refusal the job pauses\n%s", s.state())
	}
	s.settle()
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Terminated || !strings.Contains(got.Message, "refused 16 times") {
		t.Errorf("after the last refusal the job is %+v", got)
	}
}

// TestLimitsAreListed compares the conditions with the table of limits in the docs.
func TestLimitsAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Limits of the controllers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tested := map[string]bool{}
	for _, c := range limitCases() {
		tested[c.kind] = true
	}
	for _, kind := range []string{
		batchv1alpha1.RefusalLimitNear, batchv1alpha1.RetryLimitNear, batchv1alpha1.TaskRetryLimitNear, batchv1alpha1.TimeoutNear,
		batchv1alpha1.DeletionNear,
	} {
		if !strings.Contains(section, "condition `"+kind+"`") || !tested[kind] {
			t.Errorf("%s: in the table of limits or tested: no", kind)
		}
	}
	for line := range strings.Lines(section) { // limits that end, delete or act are announced
		ends := strings.Contains(line, "terminated") || strings.Contains(line, "job is Failed") || strings.Contains(line, "job is deleted") ||
			strings.Contains(line, "the action of the policy") || strings.Contains(line, "policies answer")
		if strings.HasPrefix(line, "| ") && ends && !strings.Contains(line, "condition `") {
			t.Errorf("no condition announces this limit: %s", line)
		}
	}
}
