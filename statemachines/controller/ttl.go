package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// expire deletes a finished job, with everything that belongs to it, when its ttlSecondsAfterFinished is over. Otherwise it returns the
// time until then. A job is finished in a phase that the machine calls final.
func (r *jobs) expire(ctx context.Context, w *world) (time.Duration, error) {
	left, ends := r.expiry(w.job)
	if !ends || left > 0 {
		return left, nil
	}
	// The delete requires the resource version, because a user may extend the job's life at this moment.
	as := client.Preconditions{UID: &w.job.UID, ResourceVersion: &w.job.ResourceVersion}
	err := r.client.Delete(ctx, w.job, as, client.PropagationPolicy(metav1.DeletePropagationForeground))
	switch {
	case errors.IsConflict(err):
		return catchUp, nil
	case err == nil:
		r.metrics.collected.Inc()
	case !errors.IsNotFound(err):
		return 0, fmt.Errorf("delete the finished job %s/%s: %w", w.job.Namespace, w.job.Name, err)
	}
	w.rec.collected = true
	return 0, nil
}

// expiry returns how long a finished job still exists. It returns false if the job is never deleted or has not ended.
func (r *jobs) expiry(job *batchv1alpha1.Job) (time.Duration, bool) {
	at, ends := expiresAt(r.machine, job)
	if !ends {
		return 0, false
	}
	return max(0, at.Sub(r.now())), true
}

// expiresAt returns when a finished job is deleted. It returns false if the job has not ended or is never deleted.
func expiresAt(machine *statemachines.Machine, job *batchv1alpha1.Job) (time.Time, bool) {
	if job.Spec.TTLSecondsAfterFinished == nil || !machine.Final(string(job.Status.State.Phase)) {
		return time.Time{}, false
	}
	ended := job.Status.State.LastTransitionTime
	if ended.IsZero() {
		ended = job.CreationTimestamp
	}
	return ended.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
}
