package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// notServed is the reason of the event on a Job that no controllers manage: the Job names a scheduler that is similar to one of ours.
const notServed = "SchedulerNotServed"

// warnNotServed reports by an event, once for each Job, that its schedulerName is probably misspelled. It returns when to check again, or
// 0. Jobs of other schedulers stay unchanged. A Job gets no event if its name is not similar to one of ours, if it is Volcano's, or if
// other controllers wrote a status. It first gives them time to do so.
func (r *jobs) warnNotServed(job *batchv1alpha1.Job, rec *recall) time.Duration {
	name := job.Spec.SchedulerName
	why, near := objects.NotServed(name, r.options.SchedulerNames)
	if near == "" || name == volcanoScheduler || job.Status.State.Phase != "" || job.DeletionTimestamp != nil || rec.warnedNotServed {
		return 0
	}
	if left := job.CreationTimestamp.Add(objects.TakenWithin).Sub(r.now()); left > 0 {
		return left
	}
	rec.warnedNotServed = true
	r.event(job, corev1.EventTypeWarning, notServed, "Initiate", "no controllers have taken the Job, because %s", why)
	return 0
}
