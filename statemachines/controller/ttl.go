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

// expire deletes a job that has ended and whose ttlSecondsAfterFinished is over, with all that belongs
// to it; or says when that will be. A job has ended in a phase that the machine calls final.
func (r *jobs) expire(ctx context.Context, w *world) (time.Duration, error) {
	left, ends := r.expiry(w.job)
	if !ends || left > 0 {
		return left, nil
	}
	// Only as it is here: whoever writes it a longer life at this moment comes first.
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

// expiry says how long a job stays after its end; false where it stays for good, or has not ended.
func (r *jobs) expiry(job *batchv1alpha1.Job) (time.Duration, bool) {
	at, ends := expiresAt(r.machine, job)
	if !ends {
		return 0, false
	}
	return max(0, at.Sub(r.now())), true
}

// expiresAt returns when a finished job is deleted; false if the job has not ended or is never deleted.
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
