package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// atOnce limits the parallel requests for one job. inTurn limits how many of its pods are created, and how many deleted, before the status
// is written and other jobs are reconciled.
const (
	atOnce = 16
	inTurn = 500
)

// errForeign states that a name that a job needs is taken by an object of another owner.
var errForeign = errors.New("belongs to another owner")

// payDebts deletes the pods that the ledger of the status lists for deletion. A kill that is complete is removed from the ledger at once.
// It also deletes the PodGroup, and must not delete the next one.
func (r *jobs) payDebts(ctx context.Context, w *world) error {
	if len(w.debts) == 0 {
		return nil
	}
	var victims []*corev1.Pod
	for _, pod := range w.pods {
		if w.owed(pod) {
			victims = append(victims, pod)
		}
	}
	if err := r.deletePods(ctx, w, victims); err != nil {
		return err
	}
	if !slices.ContainsFunc(w.debts, debt.kills) {
		return nil
	}
	if err := (besides{r, w}).clear(ctx); err != nil {
		return err
	}
	if err := r.deleteGroup(ctx, w); err != nil {
		return err
	}
	stays := statemachines.Outcome{Phase: string(w.job.Status.State.Phase)}
	return r.write(ctx, w, transition{outcome: stays, cause: cause{action: r.machine.Otherwise()}})
}

// settled reports whether a debt is complete. A kill is complete when the last of its pods is being deleted, because from then on the
// version distinguishes old pods. A restart is complete when the last of its pods no longer exists.
func settled(w *world, d debt) bool {
	return !slices.ContainsFunc(w.pods, func(pod *corev1.Pod) bool {
		leaving := deleting(pod) || w.gone[pod.UID]
		return d.owes(pod) && (!d.kills() || !leaving)
	})
}

// retained reports whether a step keeps a pod.
func retained(step statemachines.Step, pod *corev1.Pod) bool {
	return step.Retain == retainFinished && finished(pod)
}

// kill deletes a job's PodGroup and its pods, except the pods to retain. If the row leads to a fixed phase, kill writes that phase first.
// Then a controller that crashes continues the kill after its restart, nothing is counted twice, and the deletions cause no events.
func (r *jobs) kill(ctx context.Context, w *world, step statemachines.Step, c cause) error {
	if step.To != "" {
		out, err := r.machine.Next(step, w.facts())
		if err != nil {
			return r.rowError(w, err)
		}
		owed := debt{key: killKey, number: w.job.Status.Version + 1, retain: step.Retain}
		if err := r.write(ctx, w, transition{outcome: out, cause: c, killed: true, debts: []debt{owed}}); err != nil {
			return err
		}
		w.rec.answered(c)
		return r.payDebts(ctx, w)
	}
	var victims []*corev1.Pod
	for _, pod := range w.pods {
		if !retained(step, pod) {
			victims = append(victims, pod)
		}
	}
	if err := r.deletePods(ctx, w, victims); err != nil {
		return err
	}
	if err := (besides{r, w}).clear(ctx); err != nil {
		return err
	}
	if err := r.deleteGroup(ctx, w); err != nil {
		return err
	}
	return r.conclude(ctx, w, step, transition{cause: c})
}

// restart deletes the pods that the step targets: the pod of the event, or the pods of its task or partition. They are created again once
// they no longer exist. The rest of the job keeps running.
func (r *jobs) restart(ctx context.Context, w *world, step statemachines.Step, c cause) error {
	if c.pod == nil {
		r.event(w.job, corev1.EventTypeWarning, "NoTarget", c.action,
			"%s does nothing: it restarts the %s to which an event happened, and this (%s) happened to none", c.action, step.Of, c.message)
		w.rec.answered(c)
		return nil
	}
	out, err := r.machine.Next(step, w.facts())
	if err != nil {
		return r.rowError(w, err)
	}
	scope := scopeOf(step.Of, c.pod)
	retry := w.job.Status.RetryCount + int32(out.Counters[retryCounter])
	owed := debt{key: restartKey + scope, scope: scope, number: retry, retain: step.Retain}
	if step.To != "" {
		if err := r.write(ctx, w, transition{outcome: out, cause: c, debts: []debt{owed}}); err != nil {
			return err
		}
		w.rec.answered(c)
		return r.payDebts(ctx, w)
	}
	var victims []*corev1.Pod
	for _, pod := range w.pods {
		if slices.Contains(scopesOf(pod), scope) && !retained(step, pod) {
			victims = append(victims, pod)
		}
	}
	if err := r.deletePods(ctx, w, victims); err != nil {
		return err
	}
	return r.conclude(ctx, w, step, transition{cause: c, debts: []debt{owed}})
}

// sync creates and updates pods and PodGroup according to the spec. If the machine leads to another phase before that, sync only enters
// that phase: for example, a failed job needs no more pods.
func (r *jobs) sync(ctx context.Context, w *world, step statemachines.Step, c cause) error {
	if w.job.Status.State.Phase != "" {
		out, err := r.machine.Next(step, w.facts())
		if err != nil {
			return r.rowError(w, err)
		}
		if out.Changed {
			if err := r.write(ctx, w, transition{outcome: out, cause: c}); err != nil {
				return err
			}
			w.rec.answered(c)
			return nil
		}
	}
	wait, failed := r.bringAbout(ctx, w)
	if failed != nil && !isRefusal(failed) && w.beside == nil { // objects that plugins created are recorded at once
		return failed
	}
	if failed != nil && wait != nil {
		wait.message += r.announce(w.rec, failed)
	}
	if err := r.conclude(ctx, w, step, transition{cause: c, wait: wait, failed: failed}); err != nil {
		return err
	}
	return failed
}

// conclude asks the machine for the phase after the effect, and writes the status.
func (r *jobs) conclude(ctx context.Context, w *world, step statemachines.Step, t transition) error {
	out, err := r.machine.Next(step, w.facts())
	if err != nil {
		return r.rowError(w, err)
	}
	t.outcome, t.tried, t.failed = out, true, errors.Join(w.trimmed, t.failed)
	if err := r.write(ctx, w, t); err != nil {
		return err
	}
	w.rec.answered(t.cause)
	return nil
}

// bringAbout creates what the spec requests, as far as the job's queue and PodGroup permit. It returns why the job waits, or nil.
func (r *jobs) bringAbout(ctx context.Context, w *world) (*waiting, error) {
	if wait := r.outOfBounds(w.job); wait != nil {
		return wait, nil
	}
	w.dependents = objects.DependentTasks(w.job, slices.DeleteFunc(slices.Clone(w.pods), w.goes))
	if w.group == nil {
		if wait, err := r.cannotBegin(ctx, w); wait != nil || err != nil {
			return wait, err
		}
		if why := r.leftOut(objects.PodGroup(w.job, w.dependents, r.priorityOf(ctx))); why != nil { // its correction wakes the job
			return &waiting{string(batchv1alpha1.PodGroupError), fmt.Sprintf("its PodGroup cannot be decoded: %s", why), true}, nil
		}
	}
	if err := r.ensureGroup(ctx, w); err != nil {
		return &waiting{reason: string(batchv1alpha1.PodGroupError), message: err.Error()}, err
	}
	if err := r.forward(ctx, w); err != nil {
		return nil, err
	}
	// Finished pods of an earlier version are deleted only here. If the machine leads to a final phase instead, they stay with their logs.
	if err := r.deletePods(ctx, w, w.podsThat(w.left)); err != nil {
		return nil, err
	}
	if objects.Admitted(w.group) {
		if wait, err := r.bringPods(ctx, w); wait != nil || err != nil {
			return wait, err
		}
	}
	switch {
	case r.waits(w.job):
		if wait := r.withoutScheduler(w); wait != nil {
			return wait, nil
		}
		return w.waitsFor(r.options.SchedulerNames), nil
	case w.dependents.Waiting() != "":
		stuck := objects.StuckContainer(w.pods)
		return &waiting{tasksWait, stuck.Before(w.dependents.Waiting()), stuck != ""}, nil
	}
	return nil, nil
}

// bringPods creates the objects of the job's plugins, and then the missing pods.
func (r *jobs) bringPods(ctx context.Context, w *world) (*waiting, error) {
	complete := true
	for range missingPods(w) {
		complete = false
		break
	}
	beside := besides{r, w}
	current := beside.current()
	if complete && (current || besideIsVolcanos(w.job)) {
		return nil, nil
	}
	plugins, wait := r.pluginsOf(w)
	if wait != nil {
		return wait, nil
	}
	if !current {
		if err := beside.bring(ctx, plugins); err != nil {
			return w.pluginsFailed(err)
		}
	}
	var failed *waiting
	pods := func(yield func(*corev1.Pod) bool) {
		for plan := range missingPods(w) {
			plan.SchedulerName, plan.Plugins = r.options.SchedulerNames[0], plugins
			pod, err := objects.Pod(w.job, plan)
			if err != nil {
				failed = &waiting{pluginError, err.Error(), true}
				return
			}
			if !yield(pod) {
				return
			}
		}
	}
	if err := r.createPods(ctx, w, pods); err != nil {
		return &waiting{reason: failedCreate, message: err.Error()}, err
	}
	return failed, nil
}

// podsThat lists the pods for which is reports true.
func (w *world) podsThat(is func(*corev1.Pod) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range w.pods {
		if is(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// ensureGroup creates or updates the job's PodGroup.
func (r *jobs) ensureGroup(ctx context.Context, w *world) error {
	if w.group != nil {
		old := w.group.DeepCopy()
		group := w.group.DeepCopy()
		if !objects.FillPodGroup(group, w.job, w.dependents, r.priorityOf(ctx)) {
			return nil
		}
		if err := r.client.Patch(ctx, group, client.MergeFrom(old), client.FieldOwner(fieldManager)); err != nil {
			return r.groupError(w, fmt.Errorf("update PodGroup %s: %w", group.Name, err))
		}
		w.group = group
		return nil
	}
	group := objects.PodGroup(w.job, w.dependents, r.priorityOf(ctx))
	err := r.client.Create(ctx, group, client.FieldOwner(fieldManager))
	if err == nil {
		w.group = group
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return r.groupError(w, fmt.Errorf("make PodGroup %s: %w", group.Name, err))
	}
	found := &schedulingv1beta1.PodGroup{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(group), found); err != nil {
		return fmt.Errorf("read PodGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	if !metav1.IsControlledBy(found, w.job) {
		return r.groupError(w, fmt.Errorf("PodGroup %s %w", group.Name, errForeign))
	}
	return errBehind
}

func (r *jobs) groupError(w *world, err error) error {
	r.event(w.job, corev1.EventTypeWarning, string(batchv1alpha1.PodGroupError), "SyncPodGroup", "%s", err)
	return err
}

// deleteGroup deletes the job's PodGroup if it exists.
func (r *jobs) deleteGroup(ctx context.Context, w *world) error {
	if w.group == nil || w.group.DeletionTimestamp != nil {
		return nil
	}
	uid := w.group.UID
	err := r.client.Delete(ctx, w.group, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete PodGroup %s/%s: %w", w.group.Namespace, w.group.Name, err)
	}
	w.rec.group = uid
	w.group = nil
	return nil
}

// forward marks a job whose queue forwards its jobs to other clusters.
func (r *jobs) forward(ctx context.Context, w *world) error {
	if !forwarded(w.queue) || w.job.Annotations[batchv1alpha1.JobForwardingKey] == objects.ForwardedValue {
		return nil
	}
	job := w.job.DeepCopy()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, batchv1alpha1.JobForwardingKey, objects.ForwardedValue)
	if err := r.client.Patch(ctx, job, client.MergeFrom(w.job), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("mark job %s/%s for other clusters: %w", job.Namespace, job.Name, ofGone(err))
	}
	w.job = job
	w.rec.version = job.ResourceVersion
	return nil
}

func forwarded(queue *schedulingv1beta1.Queue) bool {
	return queue != nil && len(queue.Spec.ExtendClusters) > 0
}

// missingPods returns plans of the pods that the spec requests and that do not exist. Tasks that wait for other tasks are skipped. Each pod
// is planned only when the iteration reaches it.
func missingPods(w *world) iter.Seq[objects.PodPlan] {
	there := make(map[string]bool, len(w.pods))
	for _, pod := range w.pods {
		there[pod.Name] = true
	}
	return func(yield func(objects.PodPlan) bool) {
		for i := range w.job.Spec.Tasks {
			task := &w.job.Spec.Tasks[i]
			if w.dependents[task.Name].Waits != "" {
				continue
			}
			for n := range int(task.Replicas) {
				if there[objects.PodName(w.job.Name, task.Name, n)] {
					continue
				}
				if !yield(objects.PodPlan{Task: task, Index: n, Group: w.group.Name, Forwarded: forwarded(w.queue)}) {
					return
				}
			}
		}
	}
}

// createPods creates one pod first, and then doubles the number of parallel requests. If the first request is refused, the others would be
// refused, too.
func (r *jobs) createPods(ctx context.Context, w *world, pods iter.Seq[*corev1.Pod]) error {
	next, stop := iter.Pull(pods)
	defer stop()
	var made []*corev1.Pod
	var failed error
	for batchSize := 1; failed == nil; batchSize = min(2*batchSize, atOnce) {
		batch := take(next, batchSize)
		if len(batch) == 0 {
			break
		}
		errs := inParallel(batch, func(pod *corev1.Pod) error { return r.createPod(ctx, w, pod) })
		for i, err := range errs {
			if err == nil {
				made = append(made, batch[i])
			}
		}
		failed = joined(errs)
		if len(made) >= inTurn {
			w.more = true
			break
		}
	}
	for _, pod := range made {
		w.rec.created[pod.Name] = created{pod, w.now}
		w.pods = append(w.pods, pod)
	}
	w.awaitCreated()
	sortPods(w.job, w.pods)
	r.metrics.pods.WithLabelValues("created").Add(float64(len(made)))
	if len(made) > 0 {
		r.event(w.job, corev1.EventTypeNormal, "SuccessfulCreate", "CreatePods", "made %s", podList(made))
	}
	if failed != nil {
		r.metrics.pods.WithLabelValues("createFailed").Inc()
		r.event(w.job, corev1.EventTypeWarning, failedCreate, "CreatePods", "%s", failed)
	}
	return failed
}

// take returns at most the given number of next elements.
func take[T any](next func() (T, bool), most int) []T {
	var out []T
	for len(out) < most {
		item, ok := next()
		if !ok {
			break
		}
		out = append(out, item)
	}
	return out
}

// createPod creates a pod. It accepts an existing pod of that name that belongs to the job.
func (r *jobs) createPod(ctx context.Context, w *world, pod *corev1.Pod) error {
	name := pod.Name
	err := r.client.Create(ctx, pod, client.FieldOwner(fieldManager))
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return refusalText(r.refusals, pod, objects.JobDemand(w.job, w.pods), err)
	}
	found := &corev1.Pod{}
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, found); err != nil {
		if apierrors.IsNotFound(err) {
			return errBehind
		}
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if !metav1.IsControlledBy(found, w.job) {
		return fmt.Errorf("make pod %s: a pod of that name %w", name, errForeign)
	}
	*pod = *found
	return nil
}

// deletePods deletes those of the pods that still exist, at most as many as one reconcile may delete. The next reconcile sees the others.
// It tries all of them and joins the errors.
func (r *jobs) deletePods(ctx context.Context, w *world, pods []*corev1.Pod) error {
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return deleting(pod) || w.gone[pod.UID] })
	if len(pods) == 0 {
		return nil
	}
	if len(pods) > inTurn {
		pods, w.more = pods[:inTurn], true
	}
	errs := inParallel(pods, func(pod *corev1.Pod) error {
		uid := pod.UID
		err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
			client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
		return nil
	})
	var deleted []*corev1.Pod
	for i, err := range errs {
		if err == nil {
			deleted = append(deleted, pods[i])
			w.gone[pods[i].UID] = true
			delete(w.rec.counted, pods[i].UID)
			delete(w.rec.created, pods[i].Name)
		}
	}
	r.metrics.pods.WithLabelValues("deleted").Add(float64(len(deleted)))
	if len(deleted) > 0 {
		r.event(w.job, corev1.EventTypeNormal, "SuccessfulDelete", "DeletePods", "deleted %s", podList(deleted))
	}
	err := joined(errs)
	if err != nil {
		r.metrics.pods.WithLabelValues("deleteFailed").Add(float64(len(pods) - len(deleted)))
		r.event(w.job, corev1.EventTypeWarning, "FailedDelete", "DeletePods", "%s", err)
	}
	return err
}

// inParallel calls do for each pod, with a limited number of parallel calls, and returns the errors in the order of the pods.
func inParallel(pods []*corev1.Pod, do func(*corev1.Pod) error) []error {
	errs := make([]error, len(pods))
	var failed atomic.Pointer[recovery.Panic]
	room := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range pods {
		room <- struct{}{}
		wg.Go(func() {
			if p := recovery.Catch(recovery.Reconciler, func() { errs[i] = do(pods[i]) }); p != nil {
				failed.Store(p)
			}
			<-room
		})
	}
	wg.Wait()
	failed.Load().Again()
	return errs
}

// joined joins errors. It keeps only the first few of many errors.
func joined(errs []error) error {
	const most = 3
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if n := len(errs) - most; n > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", n))
	}
	return errors.Join(errs...)
}

// podList formats the names of pods as one short text.
func podList(pods []*corev1.Pod) string {
	switch len(pods) {
	case 1:
		return "pod " + pods[0].Name
	case 2:
		return "pods " + pods[0].Name + " and " + pods[1].Name
	default:
		return fmt.Sprintf("%d pods: %s … %s", len(pods), pods[0].Name, pods[len(pods)-1].Name)
	}
}
