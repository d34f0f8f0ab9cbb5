package flows

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

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/flow"
)

// makeJobs creates the Jobs that may begin. A failure of one does not affect the others. It returns after which time to check again without
// a further change.
func (r *Flows) makeJobs(ctx context.Context, w *world) (wait time.Duration, failed error) {
	var looks []time.Duration
	if n := len(w.of.Spec.Flows); r.MaxJobs > 0 && n > r.MaxJobs {
		r.Tell(w.of, corev1.EventTypeWarning, outOfBounds, "Create",
			"spec.flows: are %d, and a JobFlow may have %d here; make several JobFlows, or have the controllers started with a greater "+
				"--max-jobs-per-flow", n, r.MaxJobs)
		return 0, nil
	}
	for i := range w.of.Spec.Flows {
		f := &w.of.Spec.Flows[i]
		name := w.jobName(f.Name)
		if w.jobs[name] != nil || w.ended(name) {
			continue
		}
		begins, again := r.mayBegin(ctx, w, i)
		if again > 0 {
			looks = append(looks, again)
		}
		if !begins {
			continue
		}
		if err := r.makeJob(ctx, w, i); err != nil {
			r.Tell(w.of, corev1.EventTypeWarning, failedCreate, "Create", "flows[%d]: job %s: %s", i, name, err)
			failed = errors.Join(failed, fmt.Errorf("make job %s/%s: %w", w.of.Namespace, name, err))
		}
	}
	if len(w.foreign) > 0 {
		looks = append(looks, lookAgain)
	}
	if len(looks) > 0 {
		wait = slices.Min(looks)
	}
	return wait, failed
}

// mayBegin reports whether the Job of a flow may begin, and otherwise after which time to check again without a further change. Each target
// must be Completed. If the flow has a probe, it is sufficient that the probe succeeds for the targets that are not Completed.
func (r *Flows) mayBegin(ctx context.Context, w *world, i int) (begins bool, again time.Duration) {
	f := &w.of.Spec.Flows[i]
	if f.DependsOn == nil {
		return true, 0
	}
	var open []*batchv1alpha1.Job // targets that are not Completed
	begun := true
	for j, target := range f.DependsOn.Targets {
		name := w.jobName(target)
		if !w.listed[target] {
			r.Tell(w.of, corev1.EventTypeWarning, neverBegins, "Create",
				"flows[%d].dependsOn.targets[%d]: there is no flow %s, so flow %s never begins", i, j, target, f.Name)
		}
		switch job := w.jobs[name]; {
		case w.isCompleted(name):
		case job == nil || slices.Contains([]batchv1alpha1.JobPhase{
			batchv1alpha1.Failed, batchv1alpha1.Terminated, batchv1alpha1.Aborted,
		}, job.Status.State.Phase):
			begun = false
		default:
			open = append(open, job)
		}
	}
	if !begun || len(open) == 0 || f.DependsOn.Probe == nil {
		return begun && len(open) == 0, 0
	}
	holds, why, again := r.probes.ask(ctx, w.of, f, open)
	if why != "" {
		r.Tell(w.of, corev1.EventTypeWarning, waits, "Probe", "flows[%d] %s waits: %s", i, f.Name, why)
	}
	return holds, again
}

// makeJob creates the Job of one flow. An existing Job of that name is used only if this flow controls it.
func (r *Flows) makeJob(ctx context.Context, w *world, i int) error {
	f := &w.of.Spec.Flows[i]
	name := types.NamespacedName{Namespace: w.of.Namespace, Name: w.jobName(f.Name)}
	there := &batchv1alpha1.Job{}
	if err := r.Client.Get(ctx, name, there); err == nil {
		r.meet(w, there)
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // the caller says what was done
	}
	template := w.templates[f.Name]
	if template == nil {
		r.Tell(w.of, corev1.EventTypeWarning, missingTemplate, "Create",
			"flows[%d].name: there is no JobTemplate %s in namespace %s; make it, and its Job is made then", i, f.Name, w.of.Namespace)
		return nil
	}
	job, err := flow.Job(w.of, f, template)
	if err != nil {
		return err
	}
	err = r.Client.Create(ctx, job, r.Owner)
	if apierrors.IsAlreadyExists(err) { // the cache does not show it yet
		if err := r.Live.Get(ctx, name, there); err != nil {
			return err //nolint:wrapcheck // the caller says what was done
		}
		r.meet(w, there)
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	w.jobs[job.Name] = job
	r.Tell(w.of, corev1.EventTypeNormal, created, "Create", "created job %s from jobtemplate %s", job.Name, template.Name)
	return nil
}

// meet handles an existing Job with the name of one of the flow's Jobs.
func (r *Flows) meet(w *world, job *batchv1alpha1.Job) {
	if metav1.IsControlledBy(job, w.of) {
		w.jobs[job.Name] = job
		return
	}
	w.foreign[job.Name] = true
	r.Tell(w.of, corev1.EventTypeWarning, foreignJob, "Create",
		"there is a Job %s that this JobFlow did not make, and it is not taken for its own; delete or rename that Job", job.Name)
}
