package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// notNear is the reason of a limit condition that is False.
const notNear = "NotNear"

// defaultTaskRetry is the limit of a task whose maxRetry is 0. The row task-failed of the job machine uses the same number.
const defaultTaskRetry = 3

// nearLimit is a limit of a job that is near. It becomes a condition with the status True.
type nearLimit struct {
	reason, message string
	count, limit    int32 // 0 if the limit is a time
}

// isNear reports whether at least half of a limit is used.
func isNear(count, limit int32) bool { return count >= limit/2 }

// limitLook returns a limit of a job if it is near, and nil if it is not. known is false if this write of the status cannot determine it.
// In that case the condition does not change.
type limitLook func(job *batchv1alpha1.Job, t transition) (near *nearLimit, known bool)

// limits reports in conditions which limits of a job are near, during one reconcile.
type limits struct {
	r *jobs
	w *world
}

// enter writes the limit conditions of a status whose phase and counters are complete. It changes a condition only if its limit comes
// near, is no longer near, or has another count.
func (l limits) enter(job *batchv1alpha1.Job, t transition) {
	for _, c := range []struct {
		kind string
		look limitLook
	}{
		{batchv1alpha1.RefusalLimitNear, l.refusalsNear},
		{batchv1alpha1.RetryLimitNear, l.retriesNear},
		{batchv1alpha1.TaskRetryLimitNear, l.taskRetriesNear},
		{batchv1alpha1.TimeoutNear, l.timeoutNear},
		{batchv1alpha1.DeletionNear, l.deletionNear},
	} {
		if near, known := c.look(job, t); known {
			setLimit(&job.Status, c.kind, near, l.w.now)
		}
	}
}

// limitCondition returns the condition of that type, or nil.
func limitCondition(s *batchv1alpha1.JobStatus, kind string) *batchv1alpha1.JobLimitCondition {
	i := slices.IndexFunc(s.LimitConditions, func(c batchv1alpha1.JobLimitCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.LimitConditions[i]
}

// setLimit sets a condition to True with a limit that is near, or to False if near is nil. A limit that was never near has no condition.
func setLimit(s *batchv1alpha1.JobStatus, kind string, near *nearLimit, now time.Time) {
	is := batchv1alpha1.JobLimitCondition{Type: kind, Status: metav1.ConditionFalse, Reason: notNear, Message: "the limit is no longer near"}
	if near != nil {
		is.Status, is.Reason, is.Message, is.Count, is.Limit = metav1.ConditionTrue, near.reason, clip(near.message), near.count, near.limit
	}
	is.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	switch was := limitCondition(s, kind); {
	case was == nil && near == nil:
	case was == nil:
		s.LimitConditions = append(s.LimitConditions, is)
	case was.Status == is.Status:
		is.LastTransitionTime = was.LastTransitionTime
		*was = is
	default:
		*was = is
	}
}

// refusalsNear returns the limit of refusals in a row by the API server if it is near. The number is known only after a step that tried
// its effect.
func (l limits) refusalsNear(job *batchv1alpha1.Job, t transition) (*nearLimit, bool) {
	switch {
	case l.r.machine.Final(string(job.Status.State.Phase)):
		return nil, true
	case !t.tried || t.failed != nil && !isRefusal(t.failed):
		return nil, false
	case t.failed == nil || !mayBeFinal(t.failed):
		return nil, true
	}
	return l.refusalLimit(job, l.w.rec.nextRefusal(), t.failed), true
}

// refusalLimit returns the limit of refusals if it is near. It returns nil if the action TerminateJob does not lead to another phase.
func (l limits) refusalLimit(job *batchv1alpha1.Job, refusals int, refusal error) *nearLimit {
	count, limit := int32(refusals), int32(l.r.options.MaxRequeue+1)
	if l.r.options.MaxRequeue < 0 || !isNear(count, limit) {
		return nil
	}
	action := string(batchv1alpha1.TerminateJobAction)
	step, err := l.r.machine.Step(string(job.Status.State.Phase), action, l.w.facts())
	if err != nil || step.To == "" {
		return nil
	}
	return &nearLimit{
		reason: "RefusalsNearLimit", count: min(count, limit), limit: limit,
		message: fmt.Sprintf("the API server refused objects of the job %d times in a row; after %d times (--max-requeue-num of the "+
			"controllers) the job is terminated. Correct what the API server refuses. Its last answer: %s", count, limit, refusal),
	}
}

// announceRefusals writes the condition of refusals after a reconcile that ended before its status was written, such as a refused deletion.
// It does nothing if the status has the condition already. A write that fails is repeated with the next refusal.
func (l limits) announceRefusals(ctx context.Context, refusal error) {
	if l.w == nil || l.w.rec.refusals == 0 {
		return
	}
	old := l.w.job
	near, was := l.refusalLimit(old, l.w.rec.refusals, refusal), limitCondition(&old.Status, batchv1alpha1.RefusalLimitNear)
	if near == nil || was != nil && was.Status == metav1.ConditionTrue && was.Count == near.count {
		return
	}
	job := old.DeepCopy()
	setLimit(&job.Status, batchv1alpha1.RefusalLimitNear, near, l.w.now)
	patch := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	switch err := l.r.client.Status().Patch(ctx, job, patch, client.FieldOwner(fieldManager)); {
	case err == nil:
		l.w.job, l.w.rec.version = job, job.ResourceVersion
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !isTooSoon(err):
		logOf(ctx).Error(err, "write the condition of refusals", "job", job.Name, "namespace", job.Namespace)
	}
}

// restoreRefusals restores the number of refusals that an earlier process stored with the condition.
func (r *recall) restoreRefusals(s *batchv1alpha1.JobStatus) {
	if r.restored {
		return
	}
	r.restored = true
	if c := limitCondition(s, batchv1alpha1.RefusalLimitNear); c != nil && c.Status == metav1.ConditionTrue {
		r.refusals = int(c.Count)
	}
}

// retriesNear returns the limit of restarts of the job if it is near. The state machine determines whether this number of restarts ends a
// job.
func (l limits) retriesNear(job *batchv1alpha1.Job, _ transition) (*nearLimit, bool) {
	resumes := objects.Resumes(&job.Status)
	retries, limit := job.Status.RetryCount-resumes, max(1, job.Spec.MaxRetry) // the first restart is always the last one
	if phase := string(job.Status.State.Phase); !l.r.machine.Final(phase) && isNear(retries, limit) {
		end, err := l.endOfRetries(phase, resumes, max(retries, limit))
		if err != nil {
			return nil, false
		}
		if end != "" {
			return &nearLimit{
				reason: "RetriesNearLimit", count: min(retries, limit), limit: limit,
				message: fmt.Sprintf("the job has used %d of %d restarts (spec.maxRetry); with the last one it becomes %s. Remove the cause of the "+
					"restarts: spec.maxRetry of an existing job cannot be changed", min(retries, limit), limit, end),
			}, true
		}
	}
	return nil, true
}

// endOfRetries returns the final phase to which a restart leads after the given number of retries. It returns "" if a restart leads to no
// final phase, or if it leads to one even after 0 retries.
func (l limits) endOfRetries(phase string, resumes, retries int32) (string, error) {
	facts := l.w.facts()
	job := *facts.Job
	job.Status.ResumeCount = resumes
	facts.Job = &job
	restart, err := l.r.machine.Step(phase, string(batchv1alpha1.RestartJobAction), facts)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller leaves the condition as it is
	}
	if restart.To != "" {
		phase = restart.To
	}
	after := func(retries int32) (string, error) {
		job.Status.RetryCount = resumes + retries
		step, err := l.r.machine.Step(phase, l.r.machine.Otherwise(), facts)
		if err != nil {
			return "", err //nolint:wrapcheck // see above
		}
		out, err := l.r.machine.Next(step, facts)
		return out.Phase, err //nolint:wrapcheck // see above
	}
	early, err := after(0)
	if err != nil || l.r.machine.Final(early) {
		return "", err
	}
	end, err := after(retries)
	if err != nil || !l.r.machine.Final(end) {
		return "", err
	}
	return end, nil
}

// taskRetriesNear compares the restarts of the containers of each task with the limit, and returns the task that is nearest to its limit.
// The rows of events of the state machine and the policies of the job determine whether an action follows at the limit.
func (l limits) taskRetriesNear(job *batchv1alpha1.Job, t transition) (*nearLimit, bool) {
	phase := string(job.Status.State.Phase)
	if t.killed || l.r.machine.Final(phase) {
		return nil, true
	}
	facts, policies := l.w.facts(), policiesOf(job)
	o, err := l.r.machine.Observe(statemachines.FromPod, facts)
	if err != nil {
		return nil, false
	}
	if o = o.Calling(policies); o.Idle() {
		return nil, true
	}
	var nearest *nearLimit
	for i := range facts.Job.Tasks {
		task := facts.Job.Tasks[i]
		limit := task.MaxRetry
		if limit == 0 {
			limit = defaultTaskRetry
		}
		count := min(task.Restarts, limit)
		if limit < 0 || !isNear(count, limit) || nearest != nil && count*nearest.limit <= nearest.count*limit {
			continue
		}
		task.Restarts = limit
		d, event := l.answerTo(o, &task, policies)
		if !l.hasEffect(phase, d.Action) {
			continue
		}
		nearest = &nearLimit{
			reason: "TaskRetriesNearLimit", count: count, limit: limit,
			message: fmt.Sprintf("the containers of task %s have used %d of %d restarts (maxRetry of the task); with the last one the event %s "+
				"has %s take the action %s. Remove the cause of the restarts, which the logs of the previous containers show", task.Name, count, limit,
				event, policyName(d), d.Action),
		}
	}
	return nearest, true
}

// answerTo returns the action that follows if a pod of the given task runs, and the event that leads to it. It ignores the plain action.
func (l limits) answerTo(
	o statemachines.Observer, task *statemachines.Task, policies statemachines.Policies,
) (d statemachines.Decision, event string) {
	pod := &statemachines.Pod{Role: task.Name, Phase: "Running", Version: l.w.job.Status.Version}
	change := statemachines.Change{Now: l.w.now, Job: l.w.facts().Job, Pod: pod, PodWas: &statemachines.Pod{Phase: "Running"}, Task: task}
	events, _ := o.Events(change) // the events of rows whose guards succeed still count
	for _, e := range events {
		if d := l.r.machine.Action(e.Request, policies); d.Action != l.r.machine.Otherwise() {
			return d, e.Event
		}
	}
	return statemachines.Decision{}, ""
}

// hasEffect reports whether an action has a different effect in a phase than the plain action.
func (l limits) hasEffect(phase, action string) bool {
	if action == "" {
		return false
	}
	step, err := l.r.machine.Step(phase, action, l.w.facts())
	plain, plainErr := l.r.machine.Step(phase, l.r.machine.Otherwise(), l.w.facts())
	return err == nil && plainErr == nil && step.Row != plain.Row
}

// policyName names the policy that decided, for messages.
func policyName(d statemachines.Decision) string {
	if d.Policy == "" {
		return "the lifecycle"
	}
	return d.Policy
}

// runningTimeout is a cause that still applies, with the time when it began and the time when its action is taken.
type runningTimeout struct {
	happening
	since, due time.Time
	key        string
}

// announceAt returns when half of the timeout is over.
func (d runningTimeout) announceAt() time.Time { return d.since.Add(d.due.Sub(d.since) / 2) }

// timeouts are the timeouts of policies that one look at a job has found.
type timeouts struct {
	looked bool            // the look is complete
	first  *runningTimeout // the one that ends first, of the timeouts that are half over
}

// add returns the time until a timeout is to be announced. If half of the timeout is over, add records the timeout and returns 0.
func (t *timeouts) add(d runningTimeout, now time.Time) time.Duration {
	if early := d.announceAt().Sub(now); early > 0 {
		return early
	}
	before := func(a, b *runningTimeout) bool {
		return a.due.Before(b.due) || a.due.Equal(b.due) && a.Policy+a.Event.Event < b.Policy+b.Event.Event
	}
	if t.first == nil || before(&d, t.first) {
		t.first = &d
	}
	return 0
}

// timeoutNear returns the timeout of a policy that is near. The condition names no pod, because the first pod may differ at each look.
func (l limits) timeoutNear(job *batchv1alpha1.Job, t transition) (*nearLimit, bool) {
	phase, d := string(job.Status.State.Phase), l.w.timeouts.first
	switch {
	case t.killed || l.r.machine.Final(phase):
		return nil, true
	case !l.w.timeouts.looked:
		return nil, false
	case d == nil || d.key != "" && d.key == t.cause.key || !l.hasEffect(phase, d.Action):
		return nil, true
	}
	remedy := "The timeout ends if the event ends before, or if the job is suspended"
	if d.Fact {
		remedy = "The timeout ends if the job is suspended"
	}
	return &nearLimit{
		reason: "TimeoutRunning",
		message: fmt.Sprintf("the event %s began at %s; at %s, after its timeout of %s, %s takes the action %s. %s", d.Event.Event,
			clockTime(d.since), clockTime(d.due), d.due.Sub(d.since), policyName(d.Decision), d.Action, remedy),
	}, true
}

// deletionNear returns the time at which a finished job is deleted, as a limit that is near.
func (l limits) deletionNear(job *batchv1alpha1.Job, _ transition) (*nearLimit, bool) {
	at, ends := expiresAt(l.r.machine, job)
	if !ends {
		return nil, true
	}
	return &nearLimit{
		reason: "DeletionScheduled",
		message: fmt.Sprintf("the job has ended; at %s it is deleted with its pods and their logs (spec.ttlSecondsAfterFinished: %d). Copy what "+
			"is needed before", clockTime(at), *job.Spec.TTLSecondsAfterFinished),
	}, true
}

func clockTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }
