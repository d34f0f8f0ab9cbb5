package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// The effects that the machine of JobFlows can request in addition to sync.
const (
	effectDeleteJobs = "delete"
	effectRest       = "rest"
)

// The reasons of events about JobFlows.
const (
	created          = "Created"
	failedCreate     = "FailedCreate"
	foreignJob       = "ForeignJob"
	foreignScheduler = "ForeignScheduler"
	missingTemplate  = "JobTemplateMissing"
	neverBegins      = "NeverBegins"
	outOfBounds      = "OutOfBounds"
	waits            = "ProbeFails"
)

// Flows runs the state machine of JobFlows.
type Flows struct {
	Shared
	probes *prober
	gone   goneJobs
}

// New creates the controller of JobFlows.
func New(s Shared) *Flows { return &Flows{Shared: s, probes: newProber(s)} }

// JobGone records that a completed Job was deleted.
func (r *Flows) JobGone(job *batchv1alpha1.Job) {
	owner := metav1.GetControllerOfNoCopy(job)
	if owner != nil && owner.Kind == "JobFlow" && job.Status.State.Phase == batchv1alpha1.Completed {
		r.gone.note(types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}, job)
	}
}

// Naming lists the JobFlows that can create Jobs from a template. They may have waited for this template.
func (r *Flows) Naming(ctx context.Context, template *flowv1alpha1.JobTemplate) ([]reconcile.Request, error) {
	list := &flowv1alpha1.JobFlowList{}
	if err := r.Client.List(ctx, list, client.InNamespace(template.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the flows of jobtemplate %s/%s: %w", template.Namespace, template.Name, err)
	}
	var out []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.Flows, func(f flowv1alpha1.Flow) bool { return f.Name == template.Name }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out, nil
}

// Reconcile runs the state machine for one flow.
func (r *Flows) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	of := &flowv1alpha1.JobFlow{}
	err := r.Client.Get(ctx, req.NamespacedName, of)
	if apierrors.IsNotFound(err) {
		r.Memory.Forget(req.NamespacedName)
		r.probes.forget(req.NamespacedName)
		r.gone.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read jobflow %s: %w", req, err)
	}
	if of.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if r.Memory.Behind(of) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	wait, err := r.reconcile(ctx, of)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

func (r *Flows) reconcile(ctx context.Context, of *flowv1alpha1.JobFlow) (time.Duration, error) {
	w, err := r.observe(ctx, of)
	if err != nil {
		return 0, err
	}
	if !r.serves(w) {
		r.gone.forget(client.ObjectKeyFromObject(of))
		return 0, nil
	}
	action, err := r.action(w)
	if err != nil {
		return 0, r.rowError(of, err)
	}
	step, err := r.Machine.Step(string(of.Status.State.Phase), action, w.facts())
	if err != nil {
		return 0, r.rowError(of, err)
	}
	switch step.Effect {
	case effectRest:
		r.gone.forget(client.ObjectKeyFromObject(of))
		return 0, nil
	case effectDeleteJobs:
		return 0, r.deleteJobs(ctx, w)
	}
	wait, failed := r.makeJobs(ctx, w)
	status := w.status()
	phase, err := r.settle(w, status, action)
	if err != nil {
		return 0, errors.Join(failed, r.rowError(of, err))
	}
	status.State.Phase = flowv1alpha1.Phase(phase)
	if err := r.write(ctx, w, status); err != nil {
		return 0, errors.Join(err, failed)
	}
	if step := of.Status.State.Phase; step != status.State.Phase && r.Machine.Final(phase) {
		wait = catchUp // run the effect of the last phase, for example the deletion of Jobs
	}
	return wait, failed
}

// action asks the machine for the action that the state of a flow requires.
func (r *Flows) action(w *world) (string, error) {
	events, err := r.Machine.Events(statemachines.FromFlow, statemachines.Change{Now: w.now, Flow: w.facts().Flow})
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if !e.Delayed {
			return r.Machine.Action(e.Request, statemachines.Policies{}).Action, nil
		}
	}
	return r.Machine.Otherwise(), nil
}

// settle returns the phase that the machine reaches from the present phase with the new counts. It follows transitions until the phase does
// not change.
func (r *Flows) settle(w *world, status *flowv1alpha1.JobFlowStatus, action string) (string, error) {
	phase := cmp.Or(string(w.of.Status.State.Phase), r.Machine.Initial)
	facts := w.counted(status)
	for range len(r.Machine.Phases()) + 1 {
		facts.Flow.Phase = phase
		step, err := r.Machine.Step(phase, action, facts)
		if err != nil {
			return "", err
		}
		out, err := r.Machine.Next(step, facts)
		if err != nil {
			return "", err
		}
		if !out.Changed {
			break
		}
		phase = out.Phase
	}
	return phase, nil
}

// rowError reports a guard that failed for this flow. The error is terminal, because a retry fails until the flow changes.
func (r *Flows) rowError(of *flowv1alpha1.JobFlow, err error) error {
	r.Tell(of, corev1.EventTypeWarning, "StateMachineError", "Evaluate", "%s", err)
	return reconcile.TerminalError(err)
}

// IsGone reports whether the API server refused to write an object because the object was deleted. It is false if the API server does not
// serve the resource, for which it answers NotFound too.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// write stores a flow's new status, if it changed and the flow was not deleted.
func (r *Flows) write(ctx context.Context, w *world, status *flowv1alpha1.JobFlowStatus) error {
	if apiequality.Semantic.DeepEqual(w.of.Status, *status) {
		return nil
	}
	of := w.of.DeepCopy()
	of.Status = *status
	patch := client.MergeFromWithOptions(w.of, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Status().Patch(ctx, of, patch, r.Owner); {
	case IsGone(err):
		return nil
	case err != nil:
		return fmt.Errorf("write the status of jobflow %s/%s: %w", of.Namespace, of.Name, err)
	}
	r.Memory.Wrote(of)
	if was := w.of.Status.State.Phase; was != status.State.Phase && r.Machine.Final(string(status.State.Phase)) {
		kind := corev1.EventTypeNormal
		if status.State.Phase == flowv1alpha1.Failed {
			kind = corev1.EventTypeWarning
		}
		r.Tell(of, kind, string(status.State.Phase), "SyncJobFlow", "the jobflow is %s", status.State.Phase)
		r.Ended(of)
	}
	return nil
}

// deleteJobs deletes the Jobs of a flow that is over. It keeps Jobs that have our labels but another owner.
func (r *Flows) deleteJobs(ctx context.Context, w *world) error {
	var failed []error
	for _, job := range w.jobs {
		if job.DeletionTimestamp != nil {
			continue
		}
		uid := job.UID
		err := r.Client.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			failed = append(failed, fmt.Errorf("delete job %s/%s: %w", job.Namespace, job.Name, err))
		}
	}
	return errors.Join(failed...)
}
