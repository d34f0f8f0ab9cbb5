package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

const (
	// looksAtScheduler is the interval at which the controllers read the Lease of the scheduler.
	looksAtScheduler = 15 * time.Second
	// untouchedFor is the age from which an object proves that no scheduler runs, if no scheduler has written to it.
	untouchedFor = 30 * time.Second
	// mostReports limits the number of objects on which one look reports. A cluster may have too many waiting pods to write an event on each.
	mostReports = 100
)

// schedulerWatch reports that no scheduler runs: in the state of each waiting Job, and by one event per outage on each waiting pod.
type schedulerWatch struct {
	*parts
	lease   lease.Watch
	wake    wake
	reports lease.Reports
}

func newSchedulerWatch(p *parts, wakeJob wake) *schedulerWatch {
	name := types.NamespacedName{Namespace: p.options.Namespace, Name: p.options.SchedulerLeaseName}
	return &schedulerWatch{parts: p, lease: lease.Watch{Name: name}, wake: wakeJob}
}

// Start implements manager.Runnable. Only the leader runs it.
func (s *schedulerWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(looksAtScheduler)
	defer ticker.Stop()
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			logOf(ctx).V(1).Info("cannot see whether a scheduler runs", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look reads the Lease of the scheduler. If a scheduler stopped or started, look requests a reconcile of the waiting Jobs.
func (s *schedulerWatch) look(ctx context.Context) error {
	is, err := s.lease.Look(ctx, s.live, s.now())
	if err != nil {
		return err
	}
	was := s.absent.Swap(is)
	if is == nil {
		s.reports = lease.Reports{}
	}
	if (is == nil) != (was == nil) || is != nil && *is != *was {
		if err := s.wakeJobs(ctx); err != nil {
			return err
		}
	}
	if is == nil {
		return nil
	}
	return s.report(ctx, is)
}

func (s *schedulerWatch) wakeJobs(ctx context.Context) error {
	jobs := &batchv1alpha1.JobList{}
	if err := s.client.List(ctx, jobs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	for i := range jobs.Items {
		if job := &jobs.Items[i]; s.serves(job) && string(jobPhase(job)) == s.options.StateMachines["job"].Initial {
			select {
			case s.wake <- event.GenericEvent{Object: job.DeepCopy()}:
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

// report writes an event on the pods that wait for a scheduler, the oldest first.
func (s *schedulerWatch) report(ctx context.Context, v *lease.Vacancy) error {
	pods := &corev1.PodList{}
	if err := s.client.List(ctx, pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var waiting []client.Object
	for i := range pods.Items {
		if pod := &pods.Items[i]; slices.Contains(s.options.SchedulerNames, pod.Spec.SchedulerName) && waitsForScheduler(pod) &&
			s.provenBy(v, pod, scheduledCondition(pod) == nil, scheduledAt(pod)) {
			waiting = append(waiting, pod)
		}
	}
	for _, pod := range s.reports.Next(waiting, mostReports) {
		s.event(pod, corev1.EventTypeWarning, noScheduler, "Wait", "no scheduler runs: %s", v)
	}
	return nil
}

// provenBy reports whether a vacancy explains why an object waits. If no process holds the Lease, and its last holder did not crash, a
// scheduler may run without the Lease. Then only two objects are evidence: one that no scheduler wrote to since its creation, and one that
// was written to before the Lease was released. written is when a scheduler last wrote to the object; zero if unknown.
func (p *parts) provenBy(v *lease.Vacancy, o client.Object, untouched bool, written time.Time) bool {
	switch {
	case v == nil, v.IsDisprovedBy(written):
		return false
	case untouched && (v.Missing || v.Released()):
		return p.now().Sub(o.GetCreationTimestamp().Time) >= untouchedFor
	}
	return !v.Missing
}

// waitsForScheduler reports whether a pod can be bound. A pod with scheduling gates waits until a client removes its gates.
func waitsForScheduler(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0 && !deleting(pod) && !finished(pod)
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

// scheduledAt returns when a scheduler wrote the condition of a pod, or zero if none did.
func scheduledAt(pod *corev1.Pod) time.Time {
	if c := scheduledCondition(pod); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// decidedAt returns the latest time at which a scheduler is known to have written to a PodGroup: the time of a condition, or of its
// creation if it is admitted.
func decidedAt(g *schedulingv1beta1.PodGroup) (at time.Time) {
	if objects.Admitted(g) {
		at = g.CreationTimestamp.Time
	}
	for i := range g.Status.Conditions {
		if c := g.Status.Conditions[i].LastTransitionTime.Time; c.After(at) {
			at = c
		}
	}
	return at
}

// withoutScheduler returns the cause that no scheduler runs, if the PodGroup of a job or one of its pods waits for a scheduler. It returns
// nil if the job waits for another cause.
func (p *parts) withoutScheduler(w *world) *waiting {
	v := p.absent.Load()
	if v == nil || objects.Admitted(w.group) && !slices.ContainsFunc(w.pods, waitsForScheduler) {
		return nil
	}
	untouched := !objects.Admitted(w.group) && len(w.group.Status.Conditions) == 0
	young := untouchedFor - w.now.Sub(w.group.CreationTimestamp.Time)
	if (v.Missing || v.Released()) && untouched && young > 0 {
		w.again = sooner(w.again, young)
	}
	if !p.provenBy(v, w.group, untouched, decidedAt(w.group)) {
		return nil
	}
	return &waiting{noScheduler, fmt.Sprintf("no scheduler runs: %s", v), true}
}
