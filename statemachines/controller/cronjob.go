package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/cron"
)

// cronJobMachine is the name of the state machine of CronJobs.
const cronJobMachine = "cronjob"

// The events and effects that rows of the machine of CronJobs can name.
const (
	jobCompleted  = "JobCompleted"
	jobFailed     = "JobFailed"
	effectStart   = "start"
	effectReplace = "replace"
)

const (
	// afterDue is the delay of a check after a scheduled start, so that clocks with a small difference agree that the time has come.
	afterDue = 100 * time.Millisecond
	// manyMissed is the number of missed starts from which an event reports them.
	manyMissed = 100
)

// cronJobs runs the state machine of CronJobs.
type cronJobs struct {
	*parts
	machine *statemachines.Machine
	memory  *memory // separate from the memory of Jobs, which may have the same names
}

func newCronJobs(p *parts) *cronJobs {
	return &cronJobs{p, p.options.StateMachines[cronJobMachine], newMemory()}
}

func addCronJobs(mgr manager.Manager, p *parts) error {
	return ctrl.NewControllerManagedBy(mgr).Named("cronjob").
		For(&batchv1alpha1.CronJob{}, builder.WithPredicates(saysSomethingElse())).
		Owns(&batchv1alpha1.Job{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: phaseChanged})).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&batchv1alpha1.CronJob{}, newCronJobs(p)))
}

// saysSomethingElse selects updates of anything that rows can read: everything but the status.
func saysSomethingElse() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
	)
}

// phaseChanged reports whether an update changes the phase of a Job.
func phaseChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*batchv1alpha1.Job)
	is, ok2 := e.ObjectNew.(*batchv1alpha1.Job)
	return !ok || !ok2 || was.Status.State.Phase != is.Status.State.Phase
}

// cronRun is one reconcile of a CronJob.
type cronRun struct {
	*cronJobs
	of     *batchv1alpha1.CronJob
	rec    *recall
	status batchv1alpha1.CronJobStatus // the next status
	// completed and failed are the CronJob's Jobs that have ended.
	completed, failed []*batchv1alpha1.Job
}

// Reconcile runs the state machine for one CronJob.
func (c *cronJobs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	of := &batchv1alpha1.CronJob{}
	err := c.client.Get(ctx, req.NamespacedName, of)
	switch {
	case apierrors.IsNotFound(err):
		c.memory.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read CronJob %s: %w", req.NamespacedName, err)
	case of.DeletionTimestamp != nil, !c.serves(&batchv1alpha1.Job{Spec: of.Spec.JobTemplate.Spec}):
		return reconcile.Result{}, nil
	}
	rec := c.memory.of(req.NamespacedName, of.UID)
	if rec.behind(of.ResourceVersion) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	run := &cronRun{cronJobs: c, of: of, rec: rec, status: *of.Status.DeepCopy()}
	again, err := run.reconcile(ctx)
	if written := run.write(ctx); written != nil || err != nil {
		if errors.Is(written, errGone) {
			return reconcile.Result{}, nil
		}
		if apierrors.IsConflict(written) {
			return reconcile.Result{RequeueAfter: catchUp}, nil
		}
		return reconcile.Result{}, errors.Join(err, written)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// reconcile returns after which time to reconcile again; 0 means after the next change.
func (r *cronRun) reconcile(ctx context.Context) (time.Duration, error) {
	if err := r.jobs(ctx); err != nil {
		return 0, err
	}
	if err := r.trim(ctx); err != nil {
		return 0, err
	}
	phase, err := r.phase()
	if err != nil {
		return 0, r.wrongRow(err)
	}
	if r.of.Spec.Suspend != nil && *r.of.Spec.Suspend {
		return 0, nil
	}
	schedule := r.schedule()
	if schedule == nil {
		return 0, nil // no start is scheduled until a user writes another schedule
	}
	now := r.now()
	due, err := schedule.Due(r.from(now), now)
	if err != nil {
		r.tell(corev1.EventTypeWarning, "InvalidSchedule", "no Job is started: spec.schedule is %q: %v", r.of.Spec.Schedule, err)
		return 0, nil
	}
	var again time.Duration
	if !due.Next.IsZero() {
		again = due.Next.Sub(now) + afterDue
	}
	if due.At.IsZero() || r.status.LastScheduleTime != nil && due.At.Equal(r.status.LastScheduleTime.Time) {
		return again, nil
	}
	if due.Missed > manyMissed {
		r.tell(corev1.EventTypeWarning, "TooManyMissedTimes", "%d starts were missed, and the last is made up for; set or lower "+
			"spec.startingDeadlineSeconds, or look at the clock", due.Missed)
	}
	return again, r.due(ctx, phase, schedule, due.At)
}

// schedule returns when Jobs start. It returns nil if the schedule is invalid, and reports the mistake in an event.
func (r *cronRun) schedule() *cron.Schedule {
	spec, zoned := &r.of.Spec, cron.NamesZone(r.of.Spec.Schedule)
	if spec.TimeZone != nil && !zoned {
		if _, err := cron.ParseZone(*spec.TimeZone); err != nil {
			r.tell(corev1.EventTypeWarning, "InvalidTimeZone", "no Job is started: spec.timeZone %v", err)
			return nil
		}
	}
	schedule, err := cron.ParseSchedule(spec)
	if err != nil {
		r.tell(corev1.EventTypeWarning, "UnParseableCronJobSchedule", "no Job is started: spec.schedule is %q: %v", spec.Schedule, err)
		return nil
	}
	if zoned {
		r.tell(corev1.EventTypeWarning, "UnsupportedSchedule", "spec.schedule names a time zone, which goes before spec.timeZone; "+
			"write it as spec.timeZone alone")
	}
	return schedule
}

// from returns the time after which scheduled starts count.
func (r *cronRun) from(now time.Time) time.Time {
	from := r.of.CreationTimestamp.Time
	if r.status.LastScheduleTime != nil {
		from = r.status.LastScheduleTime.Time
	}
	if r.of.Spec.StartingDeadlineSeconds != nil {
		if first := now.Unix() - *r.of.Spec.StartingDeadlineSeconds; first > from.Unix() {
			from = time.Unix(first, 0)
		}
	}
	return from
}

func (r *cronRun) tell(kind, reason, format string, args ...any) {
	r.event(r.of, kind, reason, reason, format, args...)
}

// wrongRow reports a row that failed for this CronJob. The error is terminal, because a retry would fail as well.
func (r *cronRun) wrongRow(err error) error {
	r.tell(corev1.EventTypeWarning, "StateMachineError", "%s", err)
	return reconcile.TerminalError(err)
}

// jobs checks all Jobs of the CronJob, and records which have ended, and how.
func (r *cronRun) jobs(ctx context.Context) error {
	list := &batchv1alpha1.JobList{}
	err := r.client.List(ctx, list, client.InNamespace(r.of.Namespace), client.MatchingFields{byOwner: string(r.of.UID)})
	if err != nil {
		return fmt.Errorf("list the Jobs of CronJob %s/%s: %w", r.of.Namespace, r.of.Name, err)
	}
	seen := map[types.UID]bool{}
	for i := range list.Items {
		seen[list.Items[i].UID] = true
		if err := r.look(&list.Items[i]); err != nil {
			return err
		}
	}
	for _, ref := range slices.Clone(r.status.Active) {
		if seen[ref.UID] {
			continue
		}
		job := &batchv1alpha1.Job{}
		err := r.live.Get(ctx, types.NamespacedName{Namespace: r.of.Namespace, Name: ref.Name}, job)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("read Job %s/%s: %w", r.of.Namespace, ref.Name, err)
		case err != nil || job.UID != ref.UID || !metav1.IsControlledBy(job, r.of):
			r.tell(corev1.EventTypeWarning, "StaleReference", "Job %s is gone, and not counted any more", ref.Name)
			r.drop(ref.UID)
		default:
			if err := r.look(job); err != nil {
				return err
			}
		}
	}
	return nil
}

// look records whether a Job has ended. A running Job that the status does not list was created by a controller that crashed before it
// wrote the status.
func (r *cronRun) look(job *batchv1alpha1.Job) error {
	ended, err := r.ended(job)
	if err != nil {
		return r.wrongRow(err)
	}
	active := slices.ContainsFunc(r.status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
	switch {
	case ended == "" && !active && job.DeletionTimestamp == nil:
		r.keep(job)
	case ended != "" && active:
		r.drop(job.UID)
		r.tell(corev1.EventTypeNormal, "SawCompletedJob", "Job %s has ended: %s", job.Name, job.Status.State.Phase)
	}
	switch ended {
	case jobCompleted:
		r.completed = append(r.completed, job)
		at := job.Status.State.LastTransitionTime
		if last := r.status.LastSuccessfulTime; !at.IsZero() && (last == nil || last.Before(&at)) {
			r.status.LastSuccessfulTime = &at
		}
	case jobFailed:
		r.failed = append(r.failed, job)
	}
	return nil
}

// ended returns the event that the machine derives from the end of a Job, or "" if the Job has not ended.
func (r *cronRun) ended(job *batchv1alpha1.Job) (string, error) {
	events, err := r.machine.Events(statemachines.FromJob, statemachines.Change{
		Now: r.now(), CronJob: r.facts().CronJob, MadeJob: &statemachines.MadeJob{
			Name: job.Name, Phase: string(job.Status.State.Phase), Labels: job.Labels, Annotations: job.Annotations,
		},
	})
	for _, e := range events {
		if !e.Delayed && (e.Event == jobCompleted || e.Event == jobFailed) {
			return e.Event, err
		}
	}
	return "", err
}

// keep adds a running Job to the status. drop removes a Job that has ended or no longer exists.
func (r *cronRun) keep(job *batchv1alpha1.Job) {
	r.status.Active = append(r.status.Active, corev1.ObjectReference{
		APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		ResourceVersion: job.ResourceVersion,
	})
}

func (r *cronRun) drop(uid types.UID) {
	r.status.Active = slices.DeleteFunc(r.status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// trim deletes the Jobs beyond the history limits.
func (r *cronRun) trim(ctx context.Context) error {
	var failed error
	completed := cron.Surplus(r.completed, r.of.Spec.SuccessfulJobsHistoryLimit)
	for _, job := range slices.Concat(completed, cron.Surplus(r.failed, r.of.Spec.FailedJobsHistoryLimit)) {
		if job.DeletionTimestamp == nil {
			failed = errors.Join(failed, r.remove(ctx, job.Name, job.UID))
		}
	}
	return failed
}

// remove deletes a Job of the CronJob. Its dependents are deleted in the background.
func (r *cronRun) remove(ctx context.Context, name string, uid types.UID) error {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.of.Namespace, Name: name}}
	err := r.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it no longer exists, and another Job may have its name
		r.drop(uid)
		return nil
	}
	if err != nil {
		r.tell(corev1.EventTypeWarning, "FailedDelete", "Job %s cannot be deleted, which is tried again: %v", name, err)
		return fmt.Errorf("delete Job %s/%s: %w", r.of.Namespace, name, err)
	}
	r.drop(uid)
	r.tell(corev1.EventTypeNormal, "SuccessfulDelete", "deleted Job %s", name)
	return nil
}

func (r *cronRun) facts() statemachines.Facts {
	return statemachines.Facts{Now: r.now(), CronJob: &statemachines.CronJob{
		Name: r.of.Name, Namespace: r.of.Namespace, Labels: r.of.Labels, Annotations: r.of.Annotations,
		ConcurrencyPolicy: string(r.of.Spec.ConcurrencyPolicy), Suspend: r.of.Spec.Suspend != nil && *r.of.Spec.Suspend,
		Active: int32(len(r.status.Active)),
	}}
}

// phase returns the phase that the plain action reaches from the initial phase, because no phase is stored.
func (r *cronRun) phase() (string, error) {
	phase := r.machine.Initial
	for range r.machine.Phases() {
		_, out, err := r.step(phase, r.machine.Otherwise())
		if err != nil {
			return "", err
		}
		if out.Phase == phase {
			break
		}
		phase = out.Phase
	}
	return phase, nil
}

func (r *cronRun) step(phase, action string) (statemachines.Step, statemachines.Outcome, error) {
	step, err := r.machine.Step(phase, action, r.facts())
	if err != nil {
		return step, statemachines.Outcome{}, err
	}
	out, err := r.machine.Next(step, r.facts())
	return step, out, err
}

// due asks the machine what to do at a scheduled start, and does it.
func (r *cronRun) due(ctx context.Context, phase string, schedule *cron.Schedule, at time.Time) error {
	name := cron.JobName(r.of.Name, at)
	if slices.ContainsFunc(r.status.Active, func(ref corev1.ObjectReference) bool { return ref.Name == name }) {
		r.status.LastScheduleTime = &metav1.Time{Time: at} // its creator crashed before it wrote the status
		return nil
	}
	events, err := r.machine.Events(statemachines.FromSchedule, statemachines.Change{Now: r.now(), CronJob: r.facts().CronJob})
	if err != nil {
		return r.wrongRow(err)
	}
	action := r.machine.Otherwise()
	if len(events) > 0 && events[0].Otherwise != "" {
		action = events[0].Otherwise
	}
	step, out, err := r.step(phase, action)
	if err != nil {
		return r.wrongRow(err)
	}
	if out.Message != "" {
		r.tell(corev1.EventTypeWarning, out.Reason, "%s", out.Message)
	}
	switch step.Effect {
	case effectReplace:
		for _, ref := range slices.Clone(r.status.Active) {
			if err := r.remove(ctx, ref.Name, ref.UID); err != nil {
				return err
			}
		}
		return r.start(ctx, schedule, at)
	case effectStart:
		return r.start(ctx, schedule, at)
	}
	return nil
}

// start creates the Job of a scheduled start. If an earlier process created the Job and crashed before it wrote the status, start uses that
// Job.
func (r *cronRun) start(ctx context.Context, schedule *cron.Schedule, at time.Time) error {
	job := cron.Job(r.of, schedule, at)
	if r.client.Get(ctx, client.ObjectKeyFromObject(job), &batchv1alpha1.Job{}) == nil {
		return r.there(ctx, job, at)
	}
	err := r.client.Create(ctx, job, client.FieldOwner(fieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.there(ctx, job, at)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.tell(corev1.EventTypeWarning, "NamespaceTerminating", "no Job is started: namespace %s is being deleted", r.of.Namespace)
		return fmt.Errorf("make Job %s/%s: %w", job.Namespace, job.Name, err)
	case err != nil:
		r.tell(corev1.EventTypeWarning, "FailedCreate", "Job %s cannot be made, which is tried again: %v", job.Name, err)
		return fmt.Errorf("make Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	r.tell(corev1.EventTypeNormal, "SuccessfulCreate", "made Job %s", job.Name)
	r.keep(job)
	r.status.LastScheduleTime = &metav1.Time{Time: at}
	return nil
}

// there checks an existing Job with the name of the Job to create.
func (r *cronRun) there(ctx context.Context, job *batchv1alpha1.Job, at time.Time) error {
	found := &batchv1alpha1.Job{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(job), found); err != nil {
		return fmt.Errorf("read Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	if !metav1.IsControlledBy(found, r.of) {
		r.tell(corev1.EventTypeWarning, "ForeignJob", "no Job is started: there is a Job %s already, which is not of this CronJob; "+
			"delete it, or call the CronJob otherwise", job.Name)
		return nil
	}
	r.status.LastScheduleTime = &metav1.Time{Time: at}
	return r.look(found)
}

// write stores the status if it changed.
func (r *cronRun) write(ctx context.Context) error {
	was := r.of.Status
	if slices.Equal(was.Active, r.status.Active) && was.LastScheduleTime.Equal(r.status.LastScheduleTime) &&
		was.LastSuccessfulTime.Equal(r.status.LastSuccessfulTime) {
		return nil
	}
	status := map[string]any{}
	var active []any
	for _, ref := range r.status.Active {
		active = append(active, map[string]any{
			"apiVersion": ref.APIVersion, "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name, "uid": string(ref.UID),
			"resourceVersion": ref.ResourceVersion,
		})
	}
	if active != nil {
		status["active"] = active
	}
	for key, at := range map[string]*metav1.Time{
		"lastScheduleTime": r.status.LastScheduleTime, "lastSuccessfulTime": r.status.LastSuccessfulTime,
	} {
		if at != nil {
			status[key] = at.UTC().Format(time.RFC3339)
		}
	}
	version, err := r.applyStatus(ctx, r.of, fieldManager, status)
	if err != nil {
		return err
	}
	r.rec.version = version
	return nil
}
