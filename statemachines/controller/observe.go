package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// errBehind states that the caches show less than is known to exist, and will catch up.
var errBehind = errors.New("the cache is behind the API server")

// world is the state that one reconcile of a job uses.
type world struct {
	job   *batchv1alpha1.Job // as it was last read or written
	tasks map[string]*batchv1alpha1.TaskSpec
	pods  []*corev1.Pod
	lost  []*corev1.Pod // pods that the status counts but that no longer exist; if they are unknown, one stand-in for each task
	group *schedulingv1beta1.PodGroup
	queue *schedulingv1beta1.Queue // nil: no queue of that name exists
	debts []debt
	// causes are the entries of the next status with the start of delayed actions' causes. nil means that they do not change.
	causes map[string]string
	gone   map[types.UID]bool // pods that were deleted in this reconcile
	// plain is the effect of the plain action in the job's phase at the beginning of the reconcile.
	plain statemachines.Step
	// more states that more pods must be created or deleted than one reconcile may do.
	more       bool
	dependents objects.Dependents
	making
	rec   *recall
	now   time.Time
	known known
}

// making is what a reconcile has created in addition to a job's pods, and what the limit conditions report.
type making struct {
	timeouts timeouts          // timeouts of policies that are running
	trimmed  error             // why the superfluous pods could not be deleted; nil if they were
	plugins  *jobplugin.Run    // the plugins of the job; nil until they are first used
	beside   map[string]string // entries of the ledger about objects that plugins created; nil: unchanged
	claimed  []string          // names of claims that exist or were just created
	again    time.Duration     // when to check again for changes that cause no event; 0: never
}

// observe reads the state of a job.
func (r *jobs) observe(ctx context.Context, job *batchv1alpha1.Job, rec *recall) (*world, error) {
	w := &world{job: job, rec: rec, now: r.now(), debts: debts(&job.Status), gone: map[types.UID]bool{}}
	w.tasks = make(map[string]*batchv1alpha1.TaskSpec, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		w.tasks[job.Spec.Tasks[i].Name] = &job.Spec.Tasks[i]
	}
	var err error
	if w.pods, err = r.podsOf(ctx, job); err != nil {
		return nil, err
	}
	w.addCreated()
	rec.has(len(w.pods))
	if err := r.findLost(ctx, w); err != nil {
		return nil, err
	}
	if w.group, err = r.groupOf(ctx, job); err != nil {
		return nil, err
	}
	if w.group != nil && w.group.UID == rec.group && rec.group != "" {
		w.group = nil // it was deleted, but the cache still shows it
	}
	queue := &schedulingv1beta1.Queue{}
	switch err := r.client.Get(ctx, types.NamespacedName{Name: objects.QueueName(job.Spec.Queue)}, queue); {
	case err == nil:
		w.queue = queue
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read queue %s: %w", job.Spec.Queue, err)
	}
	return w, nil
}

// podsOf lists a job's pods from the cache, sorted by task and number. The caller must not change them.
func (r *jobs) podsOf(ctx context.Context, job *batchv1alpha1.Job) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{byOwner: string(job.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of job %s/%s: %w", job.Namespace, job.Name, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	sortPods(job, pods)
	return pods, nil
}

func sortPods(job *batchv1alpha1.Job, pods []*corev1.Pod) {
	order := map[string]int{}
	for i := range job.Spec.Tasks {
		order[job.Spec.Tasks[i].Name] = i
	}
	type placed struct {
		pod         *corev1.Pod
		task, index int
	}
	places := make([]placed, len(pods))
	for i, pod := range pods {
		index, _ := podIndex(pod)
		places[i] = placed{pod, order[pod.Annotations[batchv1alpha1.TaskSpecKey]], index}
	}
	slices.SortFunc(places, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.index, b.index), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for i := range places {
		pods[i] = places[i].pod
	}
}

// addCreated adds the pods that this process created and the cache does not show yet.
func (w *world) addCreated() {
	if len(w.rec.created) == 0 {
		return
	}
	for _, pod := range w.pods {
		delete(w.rec.created, pod.Name)
	}
	for name, c := range w.rec.created {
		if w.now.Sub(c.at) > createdFor {
			delete(w.rec.created, name)
			w.rec.counted = nil // ask the API server whether it exists
			continue
		}
		w.pods = append(w.pods, c.pod)
	}
	w.awaitCreated()
	sortPods(w.job, w.pods)
}

// awaitCreated requests a reconcile at the time when created pods that the cache does not show stop counting. Such a pod may have been
// deleted before the cache showed it, and no event reports that.
func (w *world) awaitCreated() {
	for _, c := range w.rec.created {
		w.again = sooner(w.again, c.at.Add(createdFor).Sub(w.now)+time.Millisecond)
	}
}

// findLost finds the pods that the status counts but that no longer exist. If this process wrote the status, it knows these pods. Otherwise
// it compares the numbers, and asks the API server to be sure.
func (r *jobs) findLost(ctx context.Context, w *world) error {
	if w.rec.counted != nil {
		there := make(map[types.UID]bool, len(w.pods))
		for _, pod := range w.pods {
			there[pod.UID] = true
		}
		for id, pod := range w.rec.counted {
			if !there[id] && !w.owed(pod) && w.wanted(pod) {
				w.lost = append(w.lost, pod)
			}
		}
		sortPods(w.job, w.lost)
		return nil
	}
	have := map[string]int32{}
	for _, pod := range w.pods {
		have[pod.Annotations[batchv1alpha1.TaskSpecKey]]++
	}
	if len(w.missing(have)) == 0 {
		return nil
	}
	live, total, err := r.countLive(ctx, w.job)
	if err != nil {
		return err
	}
	if total > len(w.pods) {
		return errBehind
	}
	w.lost = w.missing(live)
	return nil
}

// countLive counts a job's pods by task at the API server, page by page.
func (r *jobs) countLive(ctx context.Context, job *batchv1alpha1.Job) (byTask map[string]int32, total int, err error) {
	const page = 500
	byTask = map[string]int32{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	for {
		err := r.live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1alpha1.JobNameKey: job.Name},
			client.Limit(page), client.Continue(list.Continue))
		if err != nil {
			return nil, 0, fmt.Errorf("list the pods of job %s/%s: %w", job.Namespace, job.Name, err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], job) {
				byTask[list.Items[i].Annotations[batchv1alpha1.TaskSpecKey]]++
				total++
			}
		}
		if list.Continue == "" {
			return byTask, total, nil
		}
	}
}

// missing returns stand-ins for the pods of each task that the status counts but that do not exist. It returns one for each task, because
// every missing pod has the same consequence.
func (w *world) missing(have map[string]int32) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range w.job.Spec.Tasks {
		task := &w.job.Spec.Tasks[i]
		if have[task.Name] >= min(taskTotal(&w.job.Status, task.Name), task.Replicas) {
			continue
		}
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.job.Namespace,
			Annotations: map[string]string{
				batchv1alpha1.TaskSpecKey: task.Name,
				batchv1alpha1.JobVersion:  strconv.Itoa(int(w.job.Status.Version)),
			},
		}})
	}
	return out
}

// wanted reports whether the job's spec asks for a pod: the pod has the name of one of the replicas of its task. No two pods have the same
// name, so a task never has more wanted pods than replicas.
func (w *world) wanted(pod *corev1.Pod) bool {
	i, ok := podIndex(pod)
	task := w.taskOf(pod)
	return ok && task != nil && i < int(task.Replicas) && pod.Name == objects.PodName(w.job.Name, task.Name, i)
}

// superfluous reports whether the controllers delete a pod because the spec does not ask for it: its number is beyond the replicas of its
// task, or the spec no longer has its task. Finished pods stay where the effect of the phase retains them.
func (w *world) superfluous(pod *corev1.Pod) bool {
	i, numbered := podIndex(pod)
	if !numbered || pod.Annotations[batchv1alpha1.TaskSpecKey] == "" || retained(w.plain, pod) {
		return false
	}
	task := w.taskOf(pod)
	return task == nil || i >= int(task.Replicas)
}

func (w *world) taskOf(pod *corev1.Pod) *batchv1alpha1.TaskSpec {
	return w.tasks[pod.Annotations[batchv1alpha1.TaskSpecKey]]
}

// groupOf finds a job's PodGroup. Its name is the job's name, as in older versions of Volcano, or ours.
func (r *jobs) groupOf(ctx context.Context, job *batchv1alpha1.Job) (*schedulingv1beta1.PodGroup, error) {
	for _, name := range []string{job.Name, objects.GroupName(job)} {
		group := &schedulingv1beta1.PodGroup{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, group)
		if err == nil && metav1.IsControlledBy(group, job) {
			return group, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read PodGroup %s/%s: %w", job.Namespace, name, err)
		}
	}
	return nil, nil
}

// owed reports whether the ledger requires the deletion of a pod.
func (w *world) owed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.debts, func(d debt) bool { return d.owes(pod) })
}

// syncing reports whether the job is in a phase that creates pods. Finished pods of an earlier version then hold the names of new ones.
func (w *world) syncing() bool { return w.plain.Effect == effectSync }

// left reports whether a pod ended in an earlier version and holds the name of a pod to create.
func (w *world) left(pod *corev1.Pod) bool {
	return w.syncing() && finished(pod) && podVersion(pod) < w.job.Status.Version
}

// goes reports whether a pod counts as terminating: it is being deleted, or is about to be deleted.
func (w *world) goes(pod *corev1.Pod) bool {
	return deleting(pod) || w.gone[pod.UID] || w.owed(pod) || w.left(pod) || w.superfluous(pod)
}

// facts returns the world in the form that the machine's guards read.
func (w *world) facts() statemachines.Facts {
	return statemachines.Facts{Job: w.jobFacts(), Now: w.now, Since: w.job.Status.State.LastTransitionTime.Time}
}

// known contains the facts of a job and their inputs. The facts are computed again when an input changed. The numbers of pods and of
// deleted pods are sufficient as inputs, because both only grow. The debts change with the job's status.
type known struct {
	facts      *statemachines.Job
	job        *batchv1alpha1.Job
	pods, gone int
	plain      string // the row of the plain action
}

// jobFacts returns the facts of the job. Pods that the spec does not ask for count in no transition, whatever their phase.
func (w *world) jobFacts() *statemachines.Job {
	now := known{w.known.facts, w.job, len(w.pods), len(w.gone), w.plain.Row}
	if now.facts == nil || now != w.known {
		now.facts = jobFacts(w.job, slices.DeleteFunc(slices.Clone(w.pods), func(pod *corev1.Pod) bool { return !w.wanted(pod) }), w.goes)
		w.known = now
	}
	return w.known.facts
}
