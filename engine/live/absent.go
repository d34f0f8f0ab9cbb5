package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	// looksAtControllers is the time between two looks at the Lease of the controllers.
	looksAtControllers = 15 * time.Second
	// untouchedFor is the age from which an object counts as waiting if the controllers have not written to it.
	untouchedFor = 30 * time.Second
	// mostReports limits the number of objects on which one look reports.
	mostReports = 100
)

// controllersWatch reports that no controllers run. It writes one event per outage on each Job without a status and on each pod without a
// PodGroup.
type controllersWatch struct {
	lease   lease.Watch
	names   []string
	server  client.Reader // reads the Lease
	objects client.Reader // reads from a cache
	tell    func(on client.Object, v *lease.Vacancy)
	reports lease.Reports
	log     logr.Logger
}

func (s *scheduler) newControllersWatch(objects client.Reader, said *recorder) *controllersWatch {
	return &controllersWatch{
		lease: lease.Watch{Name: types.NamespacedName{Namespace: s.o.Namespace, Name: s.o.ControllersLeaseName}},
		names: s.o.SchedulerNames, server: s.client, objects: objects, log: s.log,
		tell: func(on client.Object, v *lease.Vacancy) {
			said.Eventf(on, corev1.EventTypeWarning, eventNoControllers, "no controllers run: %s", v)
		},
	}
}

func (w *controllersWatch) run(ctx context.Context) {
	ticker := time.NewTicker(looksAtControllers)
	defer ticker.Stop()
	for {
		if err := w.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			w.log.V(1).Info("cannot see whether controllers run", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads the Lease of the controllers, and reports if no process holds it. Controllers may run without a Lease, so it reports only on
// objects that none of them wrote to.
func (w *controllersWatch) look(ctx context.Context, now time.Time) error {
	v, err := w.lease.Look(ctx, w.server, now)
	if err != nil {
		return err
	}
	if v == nil {
		w.reports = lease.Reports{}
		return nil
	}
	jobs, pods := &batchv1alpha1.JobList{}, &corev1.PodList{}
	if err := w.objects.List(ctx, jobs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	if err := w.objects.List(ctx, pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var waiting []client.Object
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Status.State.Phase == "" && (job.Spec.SchedulerName == "" || slices.Contains(w.names, job.Spec.SchedulerName)) {
			waiting = append(waiting, job)
		}
	}
	for i := range pods.Items {
		if w.waits(&pods.Items[i]) {
			waiting = append(waiting, &pods.Items[i])
		}
	}
	waiting = slices.DeleteFunc(waiting, func(o client.Object) bool { return now.Sub(o.GetCreationTimestamp().Time) < untouchedFor })
	for _, o := range w.reports.Next(waiting, mostReports) {
		w.tell(o, v)
	}
	return nil
}

// waits reports whether a pod waits until the controllers create its PodGroup. For a pod without an owner, the scheduler creates the
// PodGroup.
func (w *controllersWatch) waits(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && slices.Contains(w.names, pod.Spec.SchedulerName) &&
		model.GroupOf(pod) == "" && metav1.GetControllerOfNoCopy(pod) != nil
}
