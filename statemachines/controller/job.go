package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// The name of the machine of Jobs, and the effects that it can request.
const (
	jobMachine    = "job"
	effectSync    = "sync"
	effectKill    = "kill"
	effectRestart = "restartPods"
)

// retryCounter is the counter that a job's status stores.
const retryCounter = "retryCount"

// resumeCounter is the counter of resumes, stored in the ledger of a job's status.
const resumeCounter = "resumeCount"

// catchUp is how long the controllers wait for a cache that is behind the API server.
const catchUp = 20 * time.Millisecond

// jobs runs the state machine of Jobs.
type jobs struct {
	*parts
	machine  *statemachines.Machine
	notYet   []feature
	refusals objects.Refusals
}

func addJobs(mgr manager.Manager, p *parts, asked wake) error {
	r, err := newJobs(p)
	if err != nil {
		return err
	}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &batchv1alpha1.Job{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).Named("job").
		For(&batchv1alpha1.Job{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: jobChanged})).
		Watches(&corev1.Pod{}, r.podHandler()).
		Watches(&schedulingv1beta1.PodGroup{}, owner, builder.WithPredicates(predicate.Funcs{UpdateFunc: groupChanged})).
		Watches(&schedulingv1beta1.Queue{}, handler.EnqueueRequestsFromMapFunc(r.waitingIn),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: stateChanged})).
		Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(r.refusedIn),
			builder.WithPredicates(predicate.Funcs{CreateFunc: never, UpdateFunc: quotaFrees})).
		WatchesRawSource(source.Channel(asked, &handler.EnqueueRequestForObject{})).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&batchv1alpha1.Job{}, r))
}

// The pause between two reconciles of a job if only its pods change. The pods of a gang start and end together, and one status reports all
// of them. The cost of a reconcile grows with the number of pods, so the pause grows, too.
const (
	leastPause = 250 * time.Millisecond
	pauseAPod  = 500 * time.Microsecond
	mostPause  = 5 * time.Second
)

// podHandler requests a reconcile of a changed pod's job. If the job was reconciled a moment ago, the request waits until the pause is
// over, and includes the changes until then.
func (p *parts) podHandler() handler.Funcs {
	type line = workqueue.TypedRateLimitingInterface[reconcile.Request]
	tell := func(l line, pods ...client.Object) {
		for _, pod := range pods {
			owner := metav1.GetControllerOfNoCopy(pod)
			if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != jobKind() {
				continue
			}
			name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name}
			l.AddAfter(reconcile.Request{NamespacedName: name}, p.memory.untilNext(name, owner.UID, p.now()))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, l line) { tell(l, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, l line) { tell(l, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, l line) { tell(l, e.Object) },
	}
}

func jobKind() schema.GroupKind { return batchv1alpha1.GroupVersion.WithKind("Job").GroupKind() }

func newJobs(p *parts) (*jobs, error) {
	notYet, err := features()
	if err != nil {
		return nil, err
	}
	return &jobs{parts: p, machine: p.options.StateMachines[jobMachine], notYet: notYet, refusals: objects.NewRefusals()}, nil
}

// jobChanged selects updates of a job, except those that only change counts.
func jobChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*batchv1alpha1.Job)
	is, ok2 := e.ObjectNew.(*batchv1alpha1.Job)
	return !ok || !ok2 || was.Generation != is.Generation || was.Status.State.Phase != is.Status.State.Phase ||
		was.Status.Version != is.Status.Version || was.Status.RetryCount != is.Status.RetryCount
}

// groupChanged selects updates of a PodGroup that matter to its job.
func groupChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*schedulingv1beta1.PodGroup)
	is, ok2 := e.ObjectNew.(*schedulingv1beta1.PodGroup)
	if !ok || !ok2 || was.Generation != is.Generation || was.Status.Phase != is.Status.Phase {
		return true
	}
	a, b := unschedulable(was), unschedulable(is)
	return (a == nil) != (b == nil) || a != nil && (a.Reason != b.Reason || a.Message != b.Message)
}

func stateChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*schedulingv1beta1.Queue)
	is, ok2 := e.ObjectNew.(*schedulingv1beta1.Queue)
	return !ok || !ok2 || was.Status.State != is.Status.State || len(was.Spec.ExtendClusters) != len(is.Spec.ExtendClusters)
}

// waitingIn lists the jobs that wait in a queue, because the queue may be the cause.
func (r *jobs) waitingIn(ctx context.Context, queue client.Object) []reconcile.Request {
	list := &batchv1alpha1.JobList{}
	if err := r.client.List(ctx, list, client.MatchingFields{byQueue: queue.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		logOf(ctx).Error(err, "list the jobs of a queue", "queue", queue.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if r.waits(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

func never(event.CreateEvent) bool { return false }

// quotaFrees selects updates of a ResourceQuota that may permit pods that were refused before.
func quotaFrees(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*corev1.ResourceQuota)
	is, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
	if !ok || !ok2 || !apiequality.Semantic.DeepEqual(was.Status.Hard, is.Status.Hard) {
		return true
	}
	for name, before := range was.Status.Used {
		if now := is.Status.Used[name]; now.Cmp(before) < 0 {
			return true
		}
	}
	return false
}

// refusedIn lists the jobs in a quota's namespace with refused pods, so that they can retry at once.
func (r *jobs) refusedIn(ctx context.Context, quota client.Object) []reconcile.Request {
	list := &batchv1alpha1.JobList{}
	if err := r.client.List(ctx, list, client.InNamespace(quota.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		logOf(ctx).Error(err, "list the jobs of a namespace", "namespace", quota.GetNamespace())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if job := &list.Items[i]; slices.Contains([]string{failedCreate, pvcError, groupError, pluginError}, job.Status.State.Reason) {
			name := client.ObjectKeyFromObject(job)
			r.memory.of(name, job.UID).free()
			out = append(out, reconcile.Request{NamespacedName: name})
		}
	}
	return out
}

// waits reports whether a job is in the initial phase.
func (r *jobs) waits(job *batchv1alpha1.Job) bool { return string(jobPhase(job)) == r.machine.Initial }

// Reconcile runs the state machine for one job.
func (r *jobs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &batchv1alpha1.Job{}
	err := r.client.Get(ctx, req.NamespacedName, job)
	if apierrors.IsNotFound(err) {
		r.memory.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read job %s: %w", req, err)
	}
	rec := r.memory.of(req.NamespacedName, job.UID)
	if !r.serves(job) {
		return reconcile.Result{RequeueAfter: r.warnNotServed(job, rec)}, nil
	}
	rec.look(r.now())
	rec.restoreRefusals(&job.Status)
	if job.DeletionTimestamp != nil || rec.collected {
		return reconcile.Result{}, nil
	}
	if rec.behind(job.ResourceVersion) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	var wait time.Duration
	w, err := r.observe(ctx, job, rec)
	if err == nil {
		wait, err = r.reconcile(ctx, w)
	}
	switch {
	case errors.Is(err, errGone):
		return reconcile.Result{}, nil
	case errors.Is(err, errBehind), apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: catchUp}, nil
	case isRefusal(err):
		last := r.refused(ctx, job, rec, err)
		limits{r, w}.announceRefusals(ctx, err)
		if last { // a pause would give a user time to correct the cause, and the job would be terminated without another try
			return reconcile.Result{RequeueAfter: catchUp}, nil
		}
		return reconcile.Result{}, err
	case err == nil:
		rec.refusals = 0
	}
	return reconcile.Result{RequeueAfter: sooner(wait, rec.more())}, err
}

// reconcile runs one step of a job. It returns after which time to reconcile again without a further change.
func (r *jobs) reconcile(ctx context.Context, w *world) (time.Duration, error) {
	var err error
	if w.plain, err = r.machine.Step(string(w.job.Status.State.Phase), r.machine.Otherwise(), w.facts()); err != nil {
		return 0, r.rowError(w, err)
	}
	if err := r.payDebts(ctx, w); err != nil {
		return 0, err
	}
	// A failed deletion does not stop the job: its error is returned once the step is done.
	w.trimmed = r.deletePods(ctx, w, w.podsThat(w.superfluous))
	c, wait := r.decide(w)
	step, err := r.machine.Step(string(w.job.Status.State.Phase), c.action, w.facts())
	if err != nil {
		return 0, r.rowError(w, err)
	}
	switch step.Effect {
	case effectKill:
		err = r.kill(ctx, w, step, c)
	case effectRestart:
		err = r.restart(ctx, w, step, c)
	default:
		err = r.sync(ctx, w, step, c)
	}
	if err = errors.Join(err, w.trimmed); err != nil {
		return 0, err
	}
	timers, err := r.machine.Timers(string(w.job.Status.State.Phase), w.facts())
	if err != nil {
		return 0, r.rowError(w, err)
	}
	if len(timers) > 0 {
		wait = sooner(wait, max(timers[0].At.Sub(w.now), time.Millisecond))
	}
	if wait = sooner(wait, w.again); w.more {
		wait = sooner(wait, catchUp)
	}
	expires, err := r.expire(ctx, w)
	return sooner(wait, expires), err
}

// rowError reports a guard that failed for this job. The error is terminal, because a retry fails until the job changes.
func (r *jobs) rowError(w *world, err error) error {
	r.event(w.job, corev1.EventTypeWarning, "StateMachineError", "Evaluate", "%s", err)
	return reconcile.TerminalError(err)
}

// transition is a change of a status by a step.
type transition struct {
	outcome statemachines.Outcome
	cause   cause
	wait    *waiting // why the job waits, or nil
	killed  bool     // its pods were killed
	debts   []debt   // new entries of the ledger
	tried   bool     // the effect of the step was tried
	failed  error    // why the effect failed; nil if it did not
}

// write computes a job's new status, and stores it if it changed.
func (r *jobs) write(ctx context.Context, w *world, t transition) error {
	old := w.job
	job := old.DeepCopy()
	s := &job.Status
	for _, d := range t.debts {
		owe(s, d)
	}
	next := *w
	next.job, next.debts = job, debts(s)
	w.enterBeside(s)
	w.enterClaims(s)
	r.enterCauses(w, s, t)
	count(w.pods, next.goes).write(s)
	s.MinAvailable = job.Spec.MinAvailable
	s.RetryCount += int32(t.outcome.Counters[retryCounter])
	countResumes(s, t.outcome.Counters[resumeCounter])
	for _, d := range w.debts {
		if settled(w, d) {
			paid(s, d.key)
		}
	}
	if t.killed {
		s.Version++
	}
	if t.killed || t.outcome.Changed && r.machine.Final(t.outcome.Phase) {
		s.RunningDuration = &metav1.Duration{Duration: w.now.Sub(job.CreationTimestamp.Time).Truncate(time.Second)}
	}
	r.enter(job, w.now, t, w.facts())
	limits{r, w}.enter(job, t)
	if apiequality.Semantic.DeepEqual(old.Status, *s) {
		w.remember()
		return nil
	}
	if early := countsEvery - w.now.Sub(w.rec.written); early > 0 && t.onlyCounts(&old.Status, s) {
		w.again = sooner(w.again, early)
		return nil
	}
	patch := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, job, patch, client.FieldOwner(fieldManager)); err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !isTooSoon(err) {
			r.event(old, corev1.EventTypeWarning, string(batchv1alpha1.JobStatusError), "UpdateStatus", "the status could not be written: %s", err)
		}
		return fmt.Errorf("write the status of job %s/%s: %w", job.Namespace, job.Name, ofGone(err))
	}
	w.rec.version, w.rec.written = job.ResourceVersion, w.now
	w.job, w.debts, w.causes, w.timeouts = job, debts(&job.Status), nil, timeouts{}
	w.remember()
	r.tell(old, job, t)
	return nil
}

// countsEvery is the minimum time between a write of a status and a following write that changes only counts of pods or PodGroups. The pods
// of a gang start and end together. It applies to jobs and queues.
const countsEvery = time.Second

// onlyCounts reports whether only counts changed in a status, and no event happened. The count of failed pods does not belong to them.
func (t *transition) onlyCounts(old, s *batchv1alpha1.JobStatus) bool {
	with := *s
	with.Pending, with.Running, with.Succeeded = old.Pending, old.Running, old.Succeeded
	with.Terminating, with.Unknown, with.TaskStatusCount = old.Terminating, old.Unknown, old.TaskStatusCount
	return !t.cause.asked && t.cause.event == "" && apiequality.Semantic.DeepEqual(*old, with)
}

// longestHistory is the maximum number of past phases in a job's conditions. The latest are kept. It is limited because a user can restart
// a job any number of times.
const longestHistory = 100

// longestMessage is the maximum length of a message in a status, in bytes.
const longestMessage = 1024

// enter writes the phase, its history, and the cause.
func (r *jobs) enter(job *batchv1alpha1.Job, now time.Time, t transition, facts statemachines.Facts) {
	s := &job.Status
	was, is := s.State.Phase, batchv1alpha1.JobPhase(t.outcome.Phase)
	if is == "" {
		is = batchv1alpha1.JobPhase(r.machine.Initial)
	}
	if is != was {
		at := metav1.NewTime(now).Rfc3339Copy()
		s.State = r.newState(job, is, t)
		s.State.Phase, s.State.LastTransitionTime = is, at
		if remedy := r.resumes(job, facts); remedy != "" && !strings.HasSuffix(s.State.Message, remedy) {
			s.State.Message = strings.TrimPrefix(s.State.Message+"; "+remedy, "; ")
		}
		s.Conditions = append(s.Conditions, batchv1alpha1.JobCondition{Status: is, LastTransitionTime: &at})
		s.Conditions = s.Conditions[max(0, len(s.Conditions)-longestHistory):]
	}
	switch {
	case t.wait != nil && !r.machine.Final(string(is)):
		s.State.Reason, s.State.Message = t.wait.reason, t.wait.message
	case isWaiting(s.State.Reason):
		s.State.Reason, s.State.Message = "", ""
	}
	s.State.Message = clip(s.State.Message)
}

// newState returns the reason and the message of a phase that a job enters. The effect of a policy has priority. It is shown until the job
// has ended, because later states do not show it.
func (r *jobs) newState(job *batchv1alpha1.Job, is batchv1alpha1.JobPhase, t transition) batchv1alpha1.JobState {
	before, row := job.Status.State, batchv1alpha1.JobState{Reason: t.outcome.Reason, Message: t.outcome.Message}
	byPolicy := before.Reason == objects.RefusedTooOften || slices.Contains(r.machine.PolicyEvents(), before.Reason)
	switch ends := r.machine.Final(string(is)); {
	case byPolicy && ends && row.Reason != "":
		row.Message = before.Message + "; " + row.Message
		return row
	case byPolicy && t.cause.event == "" && string(is) != r.machine.Initial:
		return batchv1alpha1.JobState{Reason: before.Reason, Message: before.Message}
	case row.Reason == "" && t.cause.event != "":
		return batchv1alpha1.JobState{Reason: t.cause.event, Message: t.cause.message}
	}
	return row
}

// resumes returns how a user resumes a job in its phase. It returns "" if no command of the machine leads from there to another phase.
func (r *jobs) resumes(job *batchv1alpha1.Job, facts statemachines.Facts) string {
	step, err := r.machine.Step(string(job.Status.State.Phase), string(batchv1alpha1.ResumeJobAction), facts)
	if err != nil || step.To == "" {
		return ""
	}
	return objects.HowToResume(job)
}

// clip shortens a message to the maximum length in a status.
func clip(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "") + " …"
}

// tell counts what changed, and reports it in events.
func (r *jobs) tell(old, job *batchv1alpha1.Job, t transition) { //nolint:gocyclo // one case a kind of news
	s := job.Status
	retries := s.RetryCount - objects.Resumes(&s)
	if more := retries - (old.Status.RetryCount - objects.Resumes(&old.Status)); more > 0 {
		r.metrics.retries.Add(float64(more))
		if retries >= job.Spec.MaxRetry-1 {
			r.event(job, corev1.EventTypeWarning, "MaxRetryNear", t.cause.action, "this is restart %d of the job, and its spec.maxRetry is %d",
				retries, job.Spec.MaxRetry)
		}
	}
	if t.wait != nil && t.wait.warn && (old.Status.State.Reason != s.State.Reason || old.Status.State.Message != s.State.Message) {
		reason := string(batchv1alpha1.PodGroupPending)
		if t.wait.reason == pluginError || t.wait.reason == pvcError {
			reason = t.wait.reason
		}
		r.event(job, corev1.EventTypeWarning, reason, "Wait", "%s: %s", t.wait.reason, t.wait.message)
	}
	if old.Status.State.Phase == s.State.Phase {
		return
	}
	r.metrics.transitions.WithLabelValues(string(s.State.Phase)).Inc()
	if t.cause.action != r.machine.Otherwise() && t.cause.action != "" {
		r.metrics.actions.WithLabelValues(t.cause.action, t.cause.event).Inc()
		r.event(job, corev1.EventTypeNormal, string(batchv1alpha1.ExecuteAction), t.cause.action, "Start to execute action %s: %s",
			t.cause.action, t.cause.message)
	}
	if r.machine.Final(string(s.State.Phase)) {
		kind := corev1.EventTypeNormal
		if s.State.Phase == batchv1alpha1.Failed {
			kind = corev1.EventTypeWarning
		}
		why := ""
		if s.State.Message != "" {
			why = ": " + s.State.Message
		}
		r.event(job, kind, string(s.State.Phase), "Finish", "the job is %s%s", s.State.Phase, why)
	}
	if old.Status.State.Phase == "" {
		r.warnNotYet(job)
	}
}

// remember records which pods the status counts now.
func (w *world) remember() {
	w.rec.counted = make(map[types.UID]*corev1.Pod, len(w.pods))
	for _, pod := range w.pods {
		if !w.goes(pod) {
			w.rec.counted[pod.UID] = pod
		}
	}
}

// isRefusal reports whether the API server refused the object itself, so that a retry is unlikely to succeed.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errForeign)
}

// refused counts refusals, and requests the end of a job that was refused too often. It reports whether it did so. A refusal by a
// ResourceQuota is not counted, because the job waits until the quota has free resources.
func (r *jobs) refused(ctx context.Context, job *batchv1alpha1.Job, rec *recall, err error) bool {
	r.metrics.refusals.Inc()
	if !mayBeFinal(err) {
		rec.refusals = 0
		return false
	}
	refusals := rec.refused()
	if r.options.MaxRequeue < 0 || refusals <= r.options.MaxRequeue || r.machine.Final(string(job.Status.State.Phase)) {
		return false
	}
	rec.refusals = 0
	logOf(ctx).Error(err, "refused too often; the job is terminated", "job", job.Name, "namespace", job.Namespace,
		"times", r.options.MaxRequeue)
	text := fmt.Sprintf("refused %d times: %s", r.options.MaxRequeue+1, err)
	r.event(job, corev1.EventTypeWarning, objects.RefusedTooOften, string(batchv1alpha1.TerminateJobAction), "%s", text)
	return rec.ask(request{action: string(batchv1alpha1.TerminateJobAction), reason: objects.RefusedTooOften, message: text})
}

// announce returns a text about the number of refusals in a row and the limit that ends a job. It returns "" during the first half of the
// limit, and if no limit exists.
func (r *jobs) announce(rec *recall, failed error) string {
	limit := r.options.MaxRequeue + 1
	if n := rec.nextRefusal(); r.options.MaxRequeue >= 0 && n > limit/2 && n < limit && isRefusal(failed) && mayBeFinal(failed) {
		return fmt.Sprintf("; it was refused %d times in a row, and after %d times the job is terminated (--max-requeue-num of the controllers)",
			n, limit)
	}
	return ""
}
