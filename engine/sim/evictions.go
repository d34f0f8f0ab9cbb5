package sim

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// afresh contains the pods that must still be created, and those that are created again after they are gone.
type afresh struct {
	unmade map[manifest.ID]bool // Jobs whose pods must be created: true: all missing pods; false: only those in again
	again  map[manifest.ID]bool // pods that are created again
	// written contains the pods of short-format jobs as they were written, because no controller of these jobs could create them again.
	written map[manifest.ID]*corev1.Pod
	// withheld contains pods of short-format jobs that a LimitRange or a ResourceQuota restricts. A pod is created when its job is admitted
	// and the restrictions permit the pod.
	withheld map[manifest.ID]manifest.Item
	// refusals state for jobs why the API server refuses pods that they lack.
	refusals map[manifest.ID]string
	machine  *statemachines.Machine // the lifecycle of Jobs; nil until it is first used
}

func newAfresh() afresh {
	return afresh{
		unmade: map[manifest.ID]bool{}, again: map[manifest.ID]bool{}, written: map[manifest.ID]*corev1.Pod{},
		withheld: map[manifest.ID]manifest.Item{}, refusals: map[manifest.ID]string{},
	}
}

// anew returns the pod of a short-format job that replaces an evicted pod which is gone; nil: none.
func (a *afresh) anew(id manifest.ID, now metav1.Time) *corev1.Pod {
	was := a.written[id]
	if was == nil || !a.again[id] {
		return nil
	}
	delete(a.again, id)
	p := was.DeepCopy()
	p.CreationTimestamp, p.DeletionTimestamp = now, nil
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	model.ForgetDevices(p.Annotations)
	delete(p.Annotations, model.RecordAnnotation)
	return p
}

// groupID returns the PodGroup of a pod.
func groupID(p *corev1.Pod) manifest.ID {
	return manifest.ID{Kind: "PodGroup", Namespace: p.Namespace, Name: objects.GroupOf(p)}
}

// lifecycle returns the built-in state machine of Jobs.
func (a *afresh) lifecycle() (*statemachines.Machine, error) {
	if a.machine == nil {
		m, issues := statemachines.Default("job")
		if issues.Err() != nil {
			return nil, issues
		}
		a.machine = m
	}
	return a.machine, nil
}

// groupAlone returns the PodGroup that was created for a single bare pod, and is deleted with it.
func (s *store) groupAlone(p *corev1.Pod) (manifest.ID, bool) {
	id := groupID(p)
	o, there := s.objects[id]
	if !there {
		return id, false
	}
	owner := metav1.GetControllerOfNoCopy(o)
	return id, owner != nil && owner.Kind == "Pod" && owner.Name == p.Name
}

// keeper does the work of one Job's controller that evictions need.
type keeper struct {
	*World
	job *batchv1alpha1.Job
}

// evict deletes a pod, with its grace period. A pod of a Job, or of a short-format job, is created again when it is gone, unless the Job's
// policies state otherwise. Any other pod is gone permanently.
func (w *World) evict(e *model.Evict) error {
	p, err := w.pod(e.Task)
	if err != nil {
		return err
	}
	w.history.evicted(manifest.IDOf(p), e, w.now)
	if p, err = w.marked(p); err != nil {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner != nil {
		if job, ok := w.objects[manifest.ID{Kind: "Job", Namespace: p.Namespace, Name: owner.Name}].(*batchv1alpha1.Job); ok {
			return keeper{w, job}.evicted(p)
		}
	}
	w.again[manifest.IDOf(p)] = w.written[manifest.IDOf(p)] != nil
	return w.Delete(e.Task)
}

// marked writes the condition of an evicted pod, as the scheduler does before it requests the eviction.
func (w *World) marked(p *corev1.Pod) (*corev1.Pod, error) {
	p = p.DeepCopy()
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	})
	return p, w.put(p)
}

// evicted applies the consequences of an eviction of one of the Job's pods.
func (k keeper) evicted(p *corev1.Pod) error {
	if err := k.leave(p); err != nil {
		return err
	}
	m, err := k.lifecycle()
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(p.Annotations[batchv1alpha1.JobVersion])
	d := m.Action(statemachines.Request{
		Event: string(batchv1alpha1.PodEvictedEvent), Task: p.Annotations[batchv1alpha1.TaskSpecKey], Pod: p.Name,
		Version: int32(version), HasVersion: err == nil,
	}, k.policies())
	if d.Action == m.Otherwise() || d.After > 0 { // the simulation does not wait to see whether it lasts
		return nil
	}
	step, err := m.Step(k.phase(), d.Action, k.facts())
	if err != nil {
		return err
	}
	for _, other := range k.pods() {
		finished := other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed
		if !aims(step.Of, p, other) || step.Retain == "finished" && finished {
			continue
		}
		if err := k.leave(other); err != nil {
			return err
		}
	}
	if g := newCompletion(k.World, nil).groupOf(k.job); step.Effect == "kill" && g != nil {
		k.remove(manifest.IDOf(g))
	}
	return k.move(m, step)
}

// leave deletes a pod. It is created again if the Job's phase allows it.
func (k keeper) leave(p *corev1.Pod) error {
	if _, there := k.unmade[manifest.IDOf(k.job)]; !there {
		k.unmade[manifest.IDOf(k.job)] = false
	}
	k.again[manifest.IDOf(p)] = true
	return k.Delete(objectKey(p))
}

// aims reports whether an action for one pod of a Job also applies to another pod.
func aims(of string, p, other *corev1.Pod) bool {
	same := func(key string) bool { return p.Labels[key] == other.Labels[key] }
	switch of {
	case "pod":
		return p.Name == other.Name
	case "task":
		return same(batchv1alpha1.TaskSpecKey)
	case "partition":
		return same(batchv1alpha1.TaskSpecKey) && same(batchv1alpha1.TaskPartitionID)
	}
	return true
}

// move moves the Job to the phase to which a step leads.
func (k keeper) move(m *statemachines.Machine, step statemachines.Step) error {
	next, err := m.Next(step, k.facts())
	if err != nil {
		return err
	}
	j := k.job.DeepCopy()
	if !k.waits() { // otherwise the message also states why the next phase begins
		j.Status.State.Reason, j.Status.State.Message = "", ""
	}
	j.Status.State.Phase = batchv1alpha1.JobPhase(next.Phase)
	j.Status.RetryCount += int32(next.Counters["retryCount"])
	if step.Effect != "sync" {
		j.Status.Version++
	}
	return k.put(j)
}

// settle moves the Job on from a phase in which it waits for the end of its pods, and returns the updated Job.
func (k keeper) settle() (*batchv1alpha1.Job, error) {
	if k.waits() {
		m, err := k.lifecycle()
		if err != nil {
			return nil, err
		}
		step, err := m.Step(k.phase(), m.Otherwise(), k.facts())
		if err != nil {
			return nil, err
		}
		if err := k.move(m, step); err != nil {
			return nil, err
		}
	}
	return k.objects[manifest.IDOf(k.job)].(*batchv1alpha1.Job), nil
}

// waits reports whether the Job's phase ends when its pods are gone.
func (k keeper) waits() bool {
	switch k.job.Status.State.Phase {
	case batchv1alpha1.Restarting, batchv1alpha1.Aborting, batchv1alpha1.Completing, batchv1alpha1.Terminating:
		return true
	default:
		return false
	}
}

func (k keeper) phase() string {
	if k.job.Status.State.Phase == "" {
		return string(batchv1alpha1.Pending)
	}
	return string(k.job.Status.State.Phase)
}

// pods returns the existing pods of the Job, by name.
func (k keeper) pods() []*corev1.Pod {
	var out []*corev1.Pod
	for id, o := range k.objects {
		if p, ok := o.(*corev1.Pod); ok && id.Namespace == k.job.Namespace && metav1.IsControlledBy(p, k.job) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return manifest.CompareIDs(manifest.IDOf(a), manifest.IDOf(b)) })
	return out
}

// facts returns the Job as the rows of its lifecycle read it.
func (k keeper) facts() statemachines.Facts {
	j := &statemachines.Job{
		Name: k.job.Name, Namespace: k.job.Namespace, UID: string(k.job.UID), Queue: k.job.Spec.Queue, Labels: k.job.Labels,
		Annotations: k.job.Annotations, CreatedAt: k.job.CreationTimestamp.Time, MinAvailable: k.job.Spec.MinAvailable,
		MinSuccess: k.job.Spec.MinSuccess, MaxRetry: k.job.Spec.MaxRetry,
	}
	if j.MaxRetry == 0 {
		j.MaxRetry = 3 // the default that admission sets
	}
	j.Status = statemachines.JobStatus{
		MinAvailable: k.job.Spec.MinAvailable, RetryCount: k.job.Status.RetryCount, Version: k.job.Status.Version,
		ResumeCount: objects.Resumes(&k.job.Status),
	}
	for i := range k.job.Spec.Tasks {
		t := &k.job.Spec.Tasks[i]
		j.Tasks = append(j.Tasks, statemachines.Task{Name: t.Name, Replicas: t.Replicas, MinAvailable: t.MinAvailable, MaxRetry: t.MaxRetry})
	}
	for _, p := range k.pods() {
		if p.DeletionTimestamp != nil {
			j.Status.Terminating++
			continue
		}
		switch p.Status.Phase {
		case corev1.PodRunning:
			j.Status.Running++
		case corev1.PodSucceeded:
			j.Status.Succeeded++
		case corev1.PodFailed:
			j.Status.Failed++
		default:
			j.Status.Pending++
		}
	}
	return statemachines.Facts{Job: j, Now: k.now}
}

// policies returns the Job's policies.
func (k keeper) policies() statemachines.Policies {
	out := statemachines.Policies{UID: string(k.job.UID), Version: k.job.Status.Version, Job: policiesOf(k.job.Spec.Policies)}
	for i := range k.job.Spec.Tasks {
		t := &k.job.Spec.Tasks[i]
		out.Tasks = append(out.Tasks, statemachines.TaskPolicies{Name: t.Name, Policies: policiesOf(t.Policies)})
	}
	return out
}

func policiesOf(list []batchv1alpha1.LifecyclePolicy) []statemachines.Policy {
	var out []statemachines.Policy
	for i := range list {
		p := statemachines.Policy{Action: string(list[i].Action), ExitCode: list[i].ExitCode}
		if list[i].Event != "" {
			p.Events = append(p.Events, string(list[i].Event))
		}
		for _, e := range list[i].Events {
			p.Events = append(p.Events, string(e))
		}
		if list[i].Timeout != nil {
			p.Timeout = &list[i].Timeout.Duration
		}
		out = append(out, p)
	}
	return out
}
