package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// The machine of JobFlows, and the effects that it may ask for besides sync.
const (
	jobFlowMachine   = "jobflow"
	effectDeleteJobs = "delete"
	effectRest       = "rest"
)

// The reasons of events about JobFlows.
const (
	flowCreated         = "Created"
	flowForeignJob      = "ForeignJob"
	flowMissingTemplate = "JobTemplateMissing"
	flowWaits           = "ProbeFails"
)

// jobFlows obeys the machine of JobFlows.
type jobFlows struct {
	*parts
	machine *statemachines.Machine
	probes  *prober
	gone    *goneJobs
}

// goneJobs holds the Jobs of flows that were Completed when they were deleted, by the UID of their flow, until a status tells of them:
// one that is deleted as soon as it is Completed is not made again.
type goneJobs struct {
	mu     sync.Mutex
	byFlow map[types.UID]map[string]*batchv1alpha1.Job
}

func (g *goneJobs) of(flow types.UID) map[string]*batchv1alpha1.Job {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.byFlow[flow])
}

func (g *goneJobs) forget(flow types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byFlow, flow)
}

// deleted notes a Job that is gone.
func (r *jobFlows) deleted(e event.DeleteEvent) bool {
	job, ok := e.Object.(*batchv1alpha1.Job)
	if !ok || job.Status.State.Phase != batchv1alpha1.Completed {
		return true
	}
	if owner := metav1.GetControllerOfNoCopy(job); owner != nil && owner.Kind == "JobFlow" {
		r.gone.mu.Lock()
		defer r.gone.mu.Unlock()
		if r.gone.byFlow[owner.UID] == nil {
			r.gone.byFlow[owner.UID] = map[string]*batchv1alpha1.Job{}
		}
		r.gone.byFlow[owner.UID][job.Name] = job
	}
	return true
}

func addJobFlows(mgr manager.Manager, p *parts) error {
	r := newJobFlows(p)
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &flowv1alpha1.JobFlow{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).Named("jobflow").
		For(&flowv1alpha1.JobFlow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1alpha1.Job{}, owner, builder.WithPredicates(predicate.Funcs{DeleteFunc: r.deleted})).
		Watches(&flowv1alpha1.JobTemplate{}, handler.EnqueueRequestsFromMapFunc(r.flowsOf),
			builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		WithOptions(p.controllerOptions()).
		Complete(r)
}

func newJobFlows(p *parts) *jobFlows {
	return &jobFlows{
		parts: p, machine: p.options.StateMachines[jobFlowMachine], probes: newProber(p.client),
		gone: &goneJobs{byFlow: map[types.UID]map[string]*batchv1alpha1.Job{}},
	}
}

// flowsOf lists the flows that may make Jobs from a template: one that was missing may be there now.
func (r *jobFlows) flowsOf(ctx context.Context, template client.Object) []reconcile.Request {
	list := &flowv1alpha1.JobFlowList{}
	if err := r.client.List(ctx, list, client.InNamespace(template.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		logOf(ctx).Error(err, "list the flows of a template", "template", template.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.Flows, func(f flowv1alpha1.Flow) bool { return f.Name == template.GetName() }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// flowKey keeps flows apart from jobs and queues in the memory: no other name has a slash.
func flowKey(name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: name.Namespace, Name: "jobflow/" + name.Name}
}

// Reconcile does what the machine says about one flow.
func (r *jobFlows) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	flow := &flowv1alpha1.JobFlow{}
	err := r.client.Get(ctx, req.NamespacedName, flow)
	if apierrors.IsNotFound(err) {
		r.memory.forget(flowKey(req.NamespacedName))
		r.probes.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read jobflow %s: %w", req, err)
	}
	if flow.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	rec := r.memory.of(flowKey(req.NamespacedName), flow.UID)
	if rec.behind(flow.ResourceVersion) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	wait, err := r.reconcile(ctx, flow, rec)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: catchUp}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// flowWorld is a flow with its Jobs, as they are now.
type flowWorld struct {
	flow *flowv1alpha1.JobFlow
	now  time.Time
	// jobs are those that the flow controls, by name.
	jobs map[string]*batchv1alpha1.Job
	// gone are those that were Completed and were deleted a moment ago.
	gone map[string]*batchv1alpha1.Job
	// foreign are names that Jobs of the flow should have and others have.
	foreign map[string]bool
}

// jobName is what the Job of a flow is called.
func (w *flowWorld) jobName(flow string) string { return w.flow.Name + "-" + flow }

// ended says whether a Job was Completed when it was last seen: it is not made again.
func (w *flowWorld) ended(name string) bool {
	return w.gone[name] != nil || slices.ContainsFunc(w.flow.Status.JobStatusList, func(s flowv1alpha1.JobStatus) bool {
		return s.Name == name && s.State == batchv1alpha1.Completed
	})
}

func (r *jobFlows) observe(ctx context.Context, flow *flowv1alpha1.JobFlow) (*flowWorld, error) {
	w := &flowWorld{flow: flow, now: r.now(), jobs: map[string]*batchv1alpha1.Job{}, gone: r.gone.of(flow.UID),
		foreign: map[string]bool{}}
	list := &batchv1alpha1.JobList{}
	if err := r.client.List(ctx, list, client.InNamespace(flow.Namespace), client.MatchingFields{byOwner: string(flow.UID)}); err != nil {
		return nil, fmt.Errorf("list the Jobs of jobflow %s/%s: %w", flow.Namespace, flow.Name, err)
	}
	for i := range list.Items {
		w.jobs[list.Items[i].Name] = &list.Items[i]
	}
	return w, nil
}

func (r *jobFlows) reconcile(ctx context.Context, flow *flowv1alpha1.JobFlow, rec *recall) (time.Duration, error) {
	w, err := r.observe(ctx, flow)
	if err != nil {
		return 0, err
	}
	action, err := r.action(w)
	if err != nil {
		return 0, r.rowError(flow, err)
	}
	step, err := r.machine.Step(string(flow.Status.State.Phase), action, w.facts())
	if err != nil {
		return 0, r.rowError(flow, err)
	}
	switch step.Effect {
	case effectRest:
		return 0, nil
	case effectDeleteJobs:
		return 0, r.deleteJobs(ctx, w)
	}
	wait, failed := r.makeJobs(ctx, w)
	status := w.status()
	phase, err := r.settle(w, status, action)
	if err != nil {
		return 0, errors.Join(failed, r.rowError(flow, err))
	}
	status.State.Phase = flowv1alpha1.Phase(phase)
	if err := r.write(ctx, w, status, rec); err != nil {
		return 0, errors.Join(err, failed)
	}
	if step := flow.Status.State.Phase; step != status.State.Phase && r.machine.Final(phase) {
		wait = catchUp // what follows on the last phase: Jobs that are not kept are deleted
	}
	return wait, failed
}

// action asks the machine what the state of a flow calls for.
func (r *jobFlows) action(w *flowWorld) (string, error) {
	events, err := r.machine.Events(statemachines.FromFlow, statemachines.Change{Now: w.now, Flow: w.facts().Flow})
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if !e.Delayed {
			return r.machine.Action(e.Request, statemachines.Policies{}).Action, nil
		}
	}
	return r.machine.Otherwise(), nil
}

// settle asks the machine where a flow stands with its new counts, and from there again, until nothing leads on.
func (r *jobFlows) settle(w *flowWorld, status *flowv1alpha1.JobFlowStatus, action string) (string, error) {
	phase := cmp.Or(string(w.flow.Status.State.Phase), r.machine.Initial)
	facts := w.counted(status)
	for range len(r.machine.Phases()) + 1 {
		facts.Flow.Phase = phase
		step, err := r.machine.Step(phase, action, facts)
		if err != nil {
			return "", err
		}
		out, err := r.machine.Next(step, facts)
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

// rowError tells of a guard that failed on this flow's data. Another try would fail as well, until the flow changes.
func (r *jobFlows) rowError(flow *flowv1alpha1.JobFlow, err error) error {
	r.event(flow, corev1.EventTypeWarning, "StateMachineError", "Evaluate", "%s", err)
	return reconcile.TerminalError(err)
}

// facts are what the machine's guards may read of a flow as its status tells it.
func (w *flowWorld) facts() statemachines.Facts { return w.counted(&w.flow.Status) }

// counted are the facts with the Jobs that a status tells of.
func (w *flowWorld) counted(status *flowv1alpha1.JobFlowStatus) statemachines.Facts {
	f := &statemachines.Flow{
		Name: w.flow.Name, Namespace: w.flow.Namespace, Phase: string(status.State.Phase),
		Retain: string(cmp.Or(w.flow.Spec.JobRetainPolicy, flowv1alpha1.Retain)),
		Labels: w.flow.Labels, Annotations: w.flow.Annotations, Flows: int32(len(w.flow.Spec.Flows)),
	}
	for i := range w.flow.Spec.Flows {
		name := w.jobName(w.flow.Spec.Flows[i].Name)
		job := w.jobs[name]
		switch {
		case job == nil && w.ended(name):
			f.Completed++
		case job != nil:
			*counterOf(f, job.Status.State.Phase)++
		}
	}
	return statemachines.Facts{Flow: f, Now: w.now}
}

func counterOf(f *statemachines.Flow, phase batchv1alpha1.JobPhase) *int32 {
	switch phase {
	case batchv1alpha1.Pending:
		return &f.Pending
	case batchv1alpha1.Running:
		return &f.Running
	case batchv1alpha1.Completed:
		return &f.Completed
	case batchv1alpha1.Failed:
		return &f.Failed
	case batchv1alpha1.Terminated:
		return &f.Terminated
	default:
		return &f.Unknown
	}
}

// write stores a flow's new status, if it is new.
func (r *jobFlows) write(ctx context.Context, w *flowWorld, status *flowv1alpha1.JobFlowStatus, rec *recall) error {
	if apiequality.Semantic.DeepEqual(w.flow.Status, *status) {
		return nil
	}
	flow := w.flow.DeepCopy()
	flow.Status = *status
	patch := client.MergeFromWithOptions(w.flow, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, flow, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of jobflow %s/%s: %w", flow.Namespace, flow.Name, err)
	}
	rec.version = flow.ResourceVersion
	if len(w.gone) > 0 {
		r.gone.forget(flow.UID)
	}
	if was := w.flow.Status.State.Phase; was != status.State.Phase && r.machine.Final(string(status.State.Phase)) {
		kind := corev1.EventTypeNormal
		if status.State.Phase == flowv1alpha1.Failed {
			kind = corev1.EventTypeWarning
		}
		r.event(flow, kind, string(status.State.Phase), "SyncJobFlow", "the jobflow is %s", status.State.Phase)
	}
	return nil
}

// deleteJobs deletes the Jobs of a flow that is over. A Job that only has our labels is somebody else's.
func (r *jobFlows) deleteJobs(ctx context.Context, w *flowWorld) error {
	var failed []error
	for _, job := range w.jobs {
		if job.DeletionTimestamp != nil {
			continue
		}
		uid := job.UID
		err := r.client.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			failed = append(failed, fmt.Errorf("delete job %s/%s: %w", job.Namespace, job.Name, err))
		}
	}
	return errors.Join(failed...)
}
