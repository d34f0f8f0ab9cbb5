package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// makeJobs makes the Jobs that may begin. What hinders one of them is in no other's way. It says when to look again though nothing
// happens.
func (r *jobFlows) makeJobs(ctx context.Context, w *flowWorld) (wait time.Duration, failed error) {
	for i := range w.flow.Spec.Flows {
		f := &w.flow.Spec.Flows[i]
		name := w.jobName(f.Name)
		if w.jobs[name] != nil || w.ended(name) || !w.targetsCompleted(f) {
			continue
		}
		why, again := r.probes.ask(ctx, w, f)
		if again > 0 {
			wait = sooner(wait, again)
			if why != "" {
				r.event(w.flow, corev1.EventTypeWarning, flowWaits, "Probe", "flows[%d] %s waits: %s", i, f.Name, why)
			}
			continue
		}
		if err := r.makeJob(ctx, w, i); err != nil {
			r.event(w.flow, corev1.EventTypeWarning, failedCreate, "Create", "flows[%d]: job %s: %s", i, name, err)
			failed = errors.Join(failed, fmt.Errorf("make job %s/%s: %w", w.flow.Namespace, name, err))
		}
	}
	return wait, failed
}

// targetsCompleted says whether all that a Job waits for is Completed, or was.
func (w *flowWorld) targetsCompleted(f *flowv1alpha1.Flow) bool {
	if f.DependsOn == nil {
		return true
	}
	for _, target := range f.DependsOn.Targets {
		name := w.jobName(target)
		job := w.jobs[name]
		if job == nil && !w.ended(name) || job != nil && job.Status.State.Phase != batchv1alpha1.Completed {
			return false
		}
	}
	return true
}

// makeJob makes the Job of one flow. A Job of that name that is there already is ours only if this flow controls it.
func (r *jobFlows) makeJob(ctx context.Context, w *flowWorld, i int) error {
	f := &w.flow.Spec.Flows[i]
	name := types.NamespacedName{Namespace: w.flow.Namespace, Name: w.jobName(f.Name)}
	there := &batchv1alpha1.Job{}
	if err := r.client.Get(ctx, name, there); err == nil {
		r.meet(w, there)
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // the caller says what was done
	}
	template := &flowv1alpha1.JobTemplate{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: w.flow.Namespace, Name: f.Name}, template)
	if apierrors.IsNotFound(err) {
		r.event(w.flow, corev1.EventTypeWarning, flowMissingTemplate, "Create",
			"flows[%d].name: there is no JobTemplate %s in namespace %s; make it, and its Job is made then", i, f.Name, w.flow.Namespace)
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	job, err := jobOf(w.flow, f, template)
	if err != nil {
		return err
	}
	err = r.client.Create(ctx, job, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) { // the cache did not show it yet
		if err := r.live.Get(ctx, name, there); err != nil {
			return err //nolint:wrapcheck // the caller says what was done
		}
		r.meet(w, there)
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	w.jobs[job.Name] = job
	r.event(w.flow, corev1.EventTypeNormal, flowCreated, "Create", "created job %s from jobtemplate %s", job.Name, template.Name)
	return nil
}

// meet takes in a Job that has the name of one of the flow's.
func (r *jobFlows) meet(w *flowWorld, job *batchv1alpha1.Job) {
	if metav1.IsControlledBy(job, w.flow) {
		w.jobs[job.Name] = job
		return
	}
	w.foreign[job.Name] = true
	r.event(w.flow, corev1.EventTypeWarning, flowForeignJob, "Create",
		"there is a Job %s that this JobFlow did not make, and it is not taken for its own; delete or rename that Job", job.Name)
}

// jobOf is the Job of a flow.
func jobOf(flow *flowv1alpha1.JobFlow, f *flowv1alpha1.Flow, template *flowv1alpha1.JobTemplate) (*batchv1alpha1.Job, error) {
	spec := template.Spec.DeepCopy()
	if f.Patch != nil && f.Patch.JobSpec != nil {
		merged, err := mergeJobSpec(spec, f.Patch.JobSpec)
		if err != nil {
			return nil, fmt.Errorf("merge patch.jobSpec into jobtemplate %s: %w", template.Name, err)
		}
		spec = merged
	}
	marks := func() map[string]string {
		return map[string]string{
			flowv1alpha1.CreatedByJobTemplate: template.Namespace + "." + template.Name,
			flowv1alpha1.CreatedByJobFlow:     flow.Namespace + "." + flow.Name,
		}
	}
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: flow.Namespace, Name: flow.Name + "-" + f.Name, Labels: marks(), Annotations: marks(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(flow, flowv1alpha1.GroupVersion.WithKind("JobFlow"))},
		},
		Spec: *spec,
	}, nil
}
