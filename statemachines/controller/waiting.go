package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// The causes why a job waits, as reasons of its state.
const (
	queueNotFound  = "QueueNotFound"
	queueClosed    = "QueueClosed"
	claimNotFound  = "ClaimNotFound"
	notYetHonoured = "NotYetHonoured"
	groupPending   = string(batchv1alpha1.PodGroupPending)
	groupError     = string(batchv1alpha1.PodGroupError)
	notSchedulable = "Unschedulable"
	podsNotRunning = "PodsNotRunning"
	failedCreate   = objects.FailedCreate
	outOfBounds    = "OutOfBounds"
	tasksWait      = "TasksWait"
	otherScheduler = "OtherScheduler"
	containerWaits = "ContainerWaits"
	noScheduler    = "NoScheduler"
	pvcError       = string(batchv1alpha1.PVCError)
	pluginError    = string(batchv1alpha1.PluginError)
)

// waiting is why a job waits.
type waiting struct {
	reason, message string
	warn            bool // also write an event
}

// isWaiting reports whether a reason is one of the above. They apply only as long as they are true.
func isWaiting(reason string) bool {
	switch reason {
	case queueNotFound, queueClosed, claimNotFound, notYetHonoured, groupPending, groupError, notSchedulable, podsNotRunning,
		failedCreate, outOfBounds, pluginError, tasksWait, pvcError, otherScheduler, containerWaits, noScheduler:
		return true
	default:
		return false
	}
}

// outOfBounds returns which part of a job exceeds what the controllers create. For a job that passed admission, admission has already
// checked this.
func (r *jobs) outOfBounds(job *batchv1alpha1.Job) *waiting {
	const mostMounts = 10_000 // mounts of one pod: an object cannot contain more
	pods := int64(0)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		pods += int64(max(0, task.Replicas))
		if mounts := len(job.Spec.Volumes) * len(task.Template.Spec.Containers); mounts > mostMounts {
			return &waiting{
				outOfBounds, fmt.Sprintf("spec.volumes: %d volumes in %d containers of a pod of task %s are %d mounts, and a pod may have %d; mount "+
					"fewer",
					len(job.Spec.Volumes), len(task.Template.Spec.Containers), task.Name, mounts, mostMounts), true,
			}
		}
	}
	if most := r.options.MaxPods; most > 0 && pods > int64(most) {
		return &waiting{outOfBounds, fmt.Sprintf("spec.tasks: they ask for %d pods, and a job may have %d here; ask for fewer, or have the "+
			"owner of the cluster raise --max-pods-per-job of the controllers", pods, most), true}
	}
	return nil
}

// cannotBegin returns what prevents a job from getting a PodGroup, or nil.
func (r *jobs) cannotBegin(ctx context.Context, w *world) (*waiting, error) {
	if w.queue == nil {
		return &waiting{queueNotFound, fmt.Sprintf("there is no queue %s; create it, or create the job again in another queue",
			objects.QueueName(w.job.Spec.Queue)), true}, nil
	}
	if _, wait := r.pluginsOf(w); wait != nil {
		return wait, nil
	}
	return r.claims(ctx, w)
}

// waitsFor returns what a job with a PodGroup waits for. schedulers are the names of our schedulers.
func (w *world) waitsFor(schedulers []string) *waiting {
	queue := objects.QueueName(w.job.Spec.Queue)
	c := unschedulable(w.group)
	switch {
	case !objects.Admitted(w.group) && w.queue != nil && closed(w.queue):
		return &waiting{queueClosed, fmt.Sprintf("queue %s is %s; the job waits until it is opened", queue, w.queue.Status.State), true}
	case c != nil && c.Message != "":
		return &waiting{notSchedulable, c.Message, true}
	case c != nil:
		return &waiting{notSchedulable, c.Reason, true}
	case !objects.Admitted(w.group):
		return &waiting{groupPending, fmt.Sprintf("PodGroup %s waits to be let into queue %s", w.group.Name, queue), false}
	}
	if wait := w.foreignPods(schedulers); wait != nil {
		return wait
	}
	stuck := objects.StuckContainer(w.pods)
	switch {
	case w.dependents.Waiting() != "":
		return &waiting{tasksWait, stuck.Before(w.dependents.Waiting()), stuck != ""}
	case stuck != "":
		return &waiting{containerWaits, string(stuck), true}
	default:
		return &waiting{podsNotRunning, fmt.Sprintf("waits until %d of its pods run", w.job.Spec.MinAvailable), false}
	}
}

// foreignPods returns a wait if a pod template names a scheduler that is not ours, because the job's scheduler does not place its pods.
// Otherwise it returns nil.
func (w *world) foreignPods(schedulers []string) *waiting {
	for i := range w.job.Spec.Tasks {
		name := w.job.Spec.Tasks[i].Template.Spec.SchedulerName
		if name == "" || name == w.job.Spec.SchedulerName || slices.Contains(schedulers, name) {
			continue
		}
		return &waiting{otherScheduler, fmt.Sprintf("spec.tasks[%d].template.spec.schedulerName: the pods of task %s name scheduler %q, so the "+
			"job's scheduler does not place them; remove schedulerName from the template, or write %s", i, w.job.Spec.Tasks[i].Name, name,
			cmp.Or(w.job.Spec.SchedulerName, schedulers[0])), true}
	}
	return nil
}

// closed reports whether a queue accepts no new work. A queue without a state is open.
func closed(queue *schedulingv1beta1.Queue) bool {
	return queue.Status.State == schedulingv1beta1.QueueStateClosed || queue.Status.State == schedulingv1beta1.QueueStateClosing
}
