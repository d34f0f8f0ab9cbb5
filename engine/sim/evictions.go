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

// afresh is what is still to be made, and what is made anew when it is gone.
type afresh struct {
	unmade map[manifest.ID]bool // Jobs of which pods are to be made: all that they lack, or, false, those alone that come again
	again  map[manifest.ID]bool // pods that come again
	// written are the pods of jobs of the short format, as they were written: their jobs' controllers are not there to be asked.
	written map[manifest.ID]*corev1.Pod
	// withheld are the pods of jobs of the short format that a LimitRange or a ResourceQuota restricts. They are created when their job is
	// admitted, and what restricts them admits them.
	withheld map[manifest.ID]manifest.Item
	// refusals state for jobs why the API server refuses pods that they lack.
	refusals map[manifest.ID]string
	machine  *statemachines.Machine // the lifecycle of Jobs; nil until it is needed
}

func newAfresh() afresh {
	return afresh{
		unmade: map[manifest.ID]bool{}, again: map[manifest.ID]bool{}, written: map[manifest.ID]*corev1.Pod{},
		withheld: map[manifest.ID]manifest.Item{}, refusals: map[manifest.ID]string{},
	}
}

// anew is a pod of a job of the short format in the place of one that was evicted and is gone; nil: none comes.
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

// lifecycle is the state machine of Jobs, as it ships.
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

// groupAlone is the PodGroup that was made for a bare pod alone, and goes with it.
func (s *store) groupAlone(p *corev1.Pod) (manifest.ID, bool) {
	id := groupID(p)
	o, there := s.objects[id]
	if !there {
		return id, false
	}
	owner := metav1.GetControllerOfNoCopy(o)
	return id, owner != nil && owner.Kind == "Pod" && owner.Name == p.Name
}

// keeper plays the controller of one Job, as far as evictions concern it.
type keeper struct {
	*World
	job *batchv1alpha1.Job
}

// evict deletes a pod, with its grace period. A pod of a Job, or of a job of the short format, comes again when it is gone, unless the
// Job's policies say something else; any other pod is gone for good.
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

// marked writes the condition of a pod that is evicted, as the scheduler does before it asks for the eviction.
func (w *World) marked(p *corev1.Pod) (*corev1.Pod, error) {
	p = p.DeepCopy()
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	})
	return p, w.put(p)
}

// evicted does what follows upon the eviction of a pod of the Job.
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
	if d.Action == m.Otherwise() || d.After > 0 { // nobody waits here to see whether it lasts
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

// leave deletes a pod, which comes again where the Job's phase lets it.
func (k keeper) leave(p *corev1.Pod) error {
	if _, there := k.unmade[manifest.IDOf(k.job)]; !there {
		k.unmade[manifest.IDOf(k.job)] = false
	}
	k.again[manifest.IDOf(p)] = true
	return k.Delete(objectKey(p))
}

// aims says whether what is done for a pod of a Job is done to another, too.
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

// move brings the Job to the phase to which a step leads.
func (k keeper) move(m *statemachines.Machine, step statemachines.Step) error {
	next, err := m.Next(step, k.facts())
	if err != nil {
		return err
	}
	j := k.job.DeepCopy()
	if !k.waits() { // else the message also states why the next phase begins
		j.Status.State.Reason, j.Status.State.Message = "", ""
	}
	j.Status.State.Phase = batchv1alpha1.JobPhase(next.Phase)
	j.Status.RetryCount += int32(next.Counters["retryCount"])
	if step.Effect != "sync" {
		j.Status.Version++
	}
	return k.put(j)
}

// settle has the Job go on from a phase in which it waits for its pods to go, and gives it as it is then.
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

// waits says whether the Job is in a phase that ends when its pods are gone.
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

// pods are those of the Job that are there, by name.
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

// facts are the Job as the rows of its lifecycle read it.
func (k keeper) facts() statemachines.Facts {
	j := &statemachines.Job{
		Name: k.job.Name, Namespace: k.job.Namespace, UID: string(k.job.UID), Queue: k.job.Spec.Queue, Labels: k.job.Labels,
		Annotations: k.job.Annotations, CreatedAt: k.job.CreationTimestamp.Time, MinAvailable: k.job.Spec.MinAvailable,
		MinSuccess: k.job.Spec.MinSuccess, MaxRetry: k.job.Spec.MaxRetry,
	}
	if j.MaxRetry == 0 {
		j.MaxRetry = 3 // as admission has it
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

// policies are what the Job says should follow upon what.
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
