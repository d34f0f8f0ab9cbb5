package flows

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/flow"
)

// goneJobs contains Jobs of flows that were deleted after they were Completed, by flow and name, until the status of the flow lists them. A
// Job that is deleted as soon as it is Completed is then not created again. The zero value is empty.
type goneJobs struct {
	mu     sync.Mutex
	byFlow map[types.NamespacedName]map[string]*batchv1alpha1.Job
}

func (g *goneJobs) note(flow types.NamespacedName, job *batchv1alpha1.Job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byFlow == nil {
		g.byFlow = map[types.NamespacedName]map[string]*batchv1alpha1.Job{}
	}
	if g.byFlow[flow] == nil {
		g.byFlow[flow] = map[string]*batchv1alpha1.Job{}
	}
	g.byFlow[flow][job.Name] = job
}

// untold returns the Jobs that a flow controlled and its status does not list, and drops the others.
func (g *goneJobs) untold(of *flowv1alpha1.JobFlow, told map[string]bool) map[string]*batchv1alpha1.Job {
	g.mu.Lock()
	defer g.mu.Unlock()
	jobs := g.byFlow[client.ObjectKeyFromObject(of)]
	maps.DeleteFunc(jobs, func(name string, job *batchv1alpha1.Job) bool { return told[name] || !metav1.IsControlledBy(job, of) })
	return maps.Clone(jobs)
}

func (g *goneJobs) forget(flow types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byFlow, flow)
}

// world is a flow with the present state of its Jobs.
type world struct {
	of  *flowv1alpha1.JobFlow
	now time.Time
	// jobs are the Jobs that the flow controls, by name.
	jobs map[string]*batchv1alpha1.Job
	// gone are completed Jobs that were deleted a moment ago.
	gone map[string]*batchv1alpha1.Job
	// completed are the names of Jobs that the status lists as Completed.
	completed map[string]bool
	// foreign are names of the flow's Jobs that are taken by other Jobs.
	foreign map[string]bool
	// listed are the names of the flows. templates are the existing JobTemplates with these names; they must not be changed.
	listed    map[string]bool
	templates map[string]*flowv1alpha1.JobTemplate
}

// jobName returns the name of a flow's Job.
func (w *world) jobName(name string) string { return flow.JobName(w.of.Name, name) }

// ended reports whether a deleted Job was Completed when it was last seen. Such a Job is not created again.
func (w *world) ended(name string) bool { return w.gone[name] != nil || w.completed[name] }

// isCompleted reports whether a Job is Completed, or was before its deletion.
func (w *world) isCompleted(name string) bool {
	if job := w.jobs[name]; job != nil {
		return job.Status.State.Phase == batchv1alpha1.Completed
	}
	return w.ended(name)
}

func (r *Flows) observe(ctx context.Context, of *flowv1alpha1.JobFlow) (*world, error) {
	w := &world{
		of: of, now: r.Now(), jobs: map[string]*batchv1alpha1.Job{}, completed: map[string]bool{}, foreign: map[string]bool{},
		listed: map[string]bool{}, templates: map[string]*flowv1alpha1.JobTemplate{},
	}
	list := &batchv1alpha1.JobList{}
	if err := r.Client.List(ctx, list, client.InNamespace(of.Namespace), client.MatchingFields{r.ByOwner: string(of.UID)}); err != nil {
		return nil, fmt.Errorf("list the Jobs of jobflow %s/%s: %w", of.Namespace, of.Name, err)
	}
	for i := range list.Items {
		w.jobs[list.Items[i].Name] = &list.Items[i]
	}
	for _, told := range of.Status.JobStatusList {
		w.completed[told.Name] = told.State == batchv1alpha1.Completed
	}
	w.gone = r.gone.untold(of, w.completed)
	for i := range of.Spec.Flows {
		w.listed[of.Spec.Flows[i].Name] = true
	}
	templates := &flowv1alpha1.JobTemplateList{}
	if err := r.Client.List(ctx, templates, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the JobTemplates of namespace %s: %w", of.Namespace, err)
	}
	for i := range templates.Items {
		if t := &templates.Items[i]; w.listed[t.Name] {
			w.templates[t.Name] = t
		}
	}
	return w, nil
}

// serves reports whether this controller manages a flow: all its Jobs belong to our schedulers, as far as their templates are known.
// Therefore exactly one of several controllers in a cluster manages the flow.
func (r *Flows) serves(w *world) bool {
	ours, theirs := false, ""
	for i := range w.of.Spec.Flows {
		f := &w.of.Spec.Flows[i]
		template := w.templates[f.Name]
		if template == nil {
			continue
		}
		scheduler := template.Spec.SchedulerName
		if f.Patch != nil && f.Patch.JobSpec != nil {
			scheduler = cmp.Or(f.Patch.JobSpec.SchedulerName, scheduler)
		}
		if r.Serves(scheduler) {
			ours = true
		} else {
			theirs = scheduler
		}
	}
	if ours && theirs != "" {
		r.Tell(w.of, corev1.EventTypeWarning, foreignScheduler, "Create", "some of its Jobs are of the scheduler %s, which is none of those "+
			"that are served here, and others are; so no Job is made: make a JobFlow of each", theirs)
	}
	return theirs == ""
}

// facts returns what the machine's guards can read of a flow, according to its stored status.
func (w *world) facts() statemachines.Facts { return w.counted(&w.of.Status) }

// counted returns the facts of a flow with the Jobs of the given status.
func (w *world) counted(status *flowv1alpha1.JobFlowStatus) statemachines.Facts {
	f := &statemachines.Flow{
		Name: w.of.Name, Namespace: w.of.Namespace, Phase: string(status.State.Phase),
		Retain: string(cmp.Or(w.of.Spec.JobRetainPolicy, flowv1alpha1.Retain)),
		Labels: w.of.Labels, Annotations: w.of.Annotations, Flows: int32(len(w.of.Spec.Flows)),
	}
	for i := range w.of.Spec.Flows {
		name := w.jobName(w.of.Spec.Flows[i].Name)
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
