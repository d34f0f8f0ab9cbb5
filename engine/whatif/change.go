package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/refuse"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Change describes a hypothetical change. The zero value changes nothing.
type Change struct {
	// Add are Jobs, PodGroups, Pods, Queues and Nodes. Each replaces the object with the same name. For a Job, a PodGroup or a Pod, this is
	// like a deletion first. For a Queue or a Node, it is like an update.
	Add []metav1.Object
	// Delete contains the names of jobs, as namespace/name: of a Job, a PodGroup, or a pod without a PodGroup.
	Delete []string
	// Copies are new nodes that equal existing ones.
	Copies []Copies
	// Policy replaces the policy that decides, or that of its queues if it names them; nil: the policies stay.
	Policy *policy.Policy
	// LimitRanges are those of the cluster, because the model does not contain them. nil: they are unknown, and restrict nothing.
	LimitRanges []*corev1.LimitRange
}

// Copies are empty new nodes that equal an existing one.
type Copies struct {
	Count int    `json:"count"`
	Like  string `json:"like"`
}

// mostCopies is the maximum number of nodes that one question may add.
const mostCopies = 10_000

// mostPods is the maximum number of pods of the Jobs of one question.
const mostPods = 20_000

// arrival applies a change to a cluster.
type arrival struct {
	c     *model.Cluster
	trial *model.Trial
	now   time.Time
	next  []any    // objects that are added together
	jobs  []string // keys of the new jobs, in the order of the change
	gone  []string // keys of the removed jobs
	open  []*batchv1alpha1.Job

	limits []*corev1.LimitRange
	// restricted are the namespaces for which a pod was created. refused states for jobs, by name, why pods of them are not created.
	restricted map[string]*refuse.Namespace
	refused    map[string]refusals
	// created are the pods of jobs in restricted namespaces, by the name of the job.
	created map[string][]*corev1.Pod
}

// refusals are the pods of a job that the API server refuses.
type refusals struct {
	pods int
	why  string // of the first pod
}

// into applies the change.
func (x *Change) into(c *model.Cluster, trial *model.Trial, now time.Time) (*arrival, error) {
	a := &arrival{
		c: c, trial: trial, now: now, limits: x.LimitRanges, restricted: map[string]*refuse.Namespace{}, refused: map[string]refusals{},
		created: map[string][]*corev1.Pod{},
	}
	for _, name := range x.Delete {
		if err := a.remove(name); err != nil {
			return nil, err
		}
	}
	for _, n := range x.Copies {
		if err := a.copies(n); err != nil {
			return nil, err
		}
	}
	pods := 0
	for _, o := range x.Add {
		a.replace(o)
		if job, ok := o.(*batchv1alpha1.Job); ok {
			for i := range job.Spec.Tasks {
				pods += int(max(job.Spec.Tasks[i].Replicas, 0))
			}
		}
		if pods > mostPods {
			return nil, fmt.Errorf("the Jobs have more than %d pods; ask about fewer at once", mostPods)
		}
		if err := a.object(o); err != nil {
			return nil, err
		}
	}
	return a, a.add()
}

// remove removes a job.
func (a *arrival) remove(name string) error {
	j, err := jobOf(a.c, name)
	if err == nil {
		a.trial.Remove(j)
		a.gone = append(a.gone, j.Key)
		return nil
	}
	if removed, found := a.trial.RemoveOwned(name); found { // a Job that has no PodGroup yet
		for _, j := range removed {
			a.gone = append(a.gone, j.Key)
		}
		return nil
	}
	return err
}

// replace removes the objects that an arriving object replaces.
func (a *arrival) replace(o metav1.Object) {
	key := model.Key(o.GetNamespace(), o.GetName())
	var replaced []*model.Job
	switch o := o.(type) {
	case *batchv1alpha1.Job:
		replaced, _ = a.trial.RemoveOwned(key)
	case *v1beta1.PodGroup:
		if j := a.c.Jobs[key]; j != nil && !j.Orphan {
			a.trial.Remove(j)
			replaced = append(replaced, j)
		}
	case *corev1.Pod:
		switch t := a.c.Tasks[key]; {
		case t == nil:
		case len(t.Job.Tasks) == 1 && objects.GroupOf(o) == "": // with the PodGroup that was created for it
			a.trial.Remove(t.Job)
			replaced = append(replaced, t.Job)
		default:
			a.trial.RemoveTask(t)
		}
	}
	for _, j := range replaced {
		a.gone = append(a.gone, j.Key)
	}
}

// jobOf finds a job by a name that users know.
func jobOf(c *model.Cluster, name string) (*model.Job, error) {
	if j := c.Jobs[name]; j != nil {
		return j, nil
	}
	if t := c.Tasks[name]; t != nil && len(t.Job.Tasks) == 1 {
		return t.Job, nil
	}
	var known []string
	for _, j := range c.JobsByKey() {
		if j.Title == name {
			return j, nil
		}
		known = append(known, j.Title)
	}
	namespace, _, _ := strings.Cut(name, "/")
	known = slices.DeleteFunc(known, func(k string) bool { return !strings.HasPrefix(k, namespace+"/") })
	slices.Sort(known)
	return nil, &explain.UnknownError{Kind: explain.Job, Name: name, Near: source.Nearest(name, known)}
}

// copies adds nodes that equal another.
func (a *arrival) copies(n Copies) error {
	row, ok := a.c.Nodes.Index[n.Like]
	switch {
	case !ok:
		known := slices.Sorted(maps.Keys(a.c.Nodes.Index))
		return &explain.UnknownError{Kind: explain.Node, Name: n.Like, Near: source.Nearest(n.Like, known)}
	case n.Count < 1 || n.Count > mostCopies:
		return fmt.Errorf("%d nodes like %s: write a number from 1 to %d", n.Count, n.Like, mostCopies)
	}
	like := a.c.Nodes.Rows[row].Object
	for i := range n.Count {
		a.c.Breathe()
		more := like.DeepCopy()
		more.Name = fmt.Sprintf("%s-more-%d", n.Like, i+1)
		more.UID = types.UID(more.Name)
		if _, named := more.Labels[corev1.LabelHostname]; named {
			more.Labels[corev1.LabelHostname] = more.Name
		}
		a.next = append(a.next, more)
	}
	return nil
}

// add adds the queued objects to the cluster.
func (a *arrival) add() error {
	wrong := a.trial.Add(a.next...)
	a.next = nil
	if len(wrong) > 0 {
		return wrong[0] //nolint:wrapcheck // it names the object and the field
	}
	return nil
}

// object adds an object, and what a cluster immediately creates for it.
func (a *arrival) object(o metav1.Object) error {
	if of, ok := o.(runtime.Object); ok {
		o, _ = of.DeepCopyObject().(metav1.Object)
	}
	a.like(o)
	if o.GetUID() == "" {
		o.SetUID(types.UID("what-if-" + o.GetName()))
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(a.now))
	}
	switch o := o.(type) {
	case *batchv1alpha1.Job:
		objects.Default(o)
		o.Status = batchv1alpha1.JobStatus{}
		group := objects.PodGroup(o, objects.DependentTasks(o, nil), a.classValue)
		group.CreationTimestamp = o.CreationTimestamp
		a.open = append(a.open, o)
		a.jobs = append(a.jobs, model.Key(group.Namespace, group.Name))
		a.next = append(a.next, o, group)
	case *v1beta1.PodGroup:
		o.Spec.Queue = objects.QueueName(o.Spec.Queue)
		o.Status = v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupPending}
		a.jobs = append(a.jobs, model.Key(o.Namespace, o.Name))
		a.next = append(a.next, o)
	case *corev1.Pod:
		o.Spec.NodeName, o.Status = "", corev1.PodStatus{}
		return a.podOfUser(o)
	case *v1beta1.Queue:
		o.Status = v1beta1.QueueStatus{State: v1beta1.QueueStateOpen}
		if q := a.c.Queues[o.Name]; q != nil {
			if old, known := q.Object.(*v1beta1.Queue); known && old.Status.State != "" {
				o.Status.State = old.Status.State
			}
		}
		a.next = append(a.next, o)
	case *corev1.Node:
		if row, known := a.c.Nodes.Index[o.Name]; known && o.Status.Allocatable == nil {
			o.Status = *a.c.Nodes.Rows[row].Object.Status.DeepCopy() // a file without allocatable resources keeps the status of the Node
		}
		a.next = append(a.next, o)
	default:
		return fmt.Errorf("%T %s: a question is about Jobs, PodGroups, Pods, Queues and Nodes", o, o.GetName())
	}
	return nil
}

// like copies to a Queue or a Node the fields of the replaced object that its file may leave out.
func (a *arrival) like(o metav1.Object) {
	var old metav1.Object
	switch o := o.(type) {
	case *v1beta1.Queue:
		if q := a.c.Queues[o.Name]; q != nil {
			old, _ = q.Object.(*v1beta1.Queue)
		}
	case *corev1.Node:
		if row, known := a.c.Nodes.Index[o.Name]; known {
			old = a.c.Nodes.Rows[row].Object
		}
	}
	if old == nil {
		return
	}
	if o.GetUID() == "" {
		o.SetUID(old.GetUID())
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	if _, isNode := o.(*corev1.Node); isNode && o.GetLabels() == nil {
		o.SetLabels(maps.Clone(old.GetLabels()))
	}
}

func (a *arrival) classValue(class string) int32 { return int32(a.c.ClassValue(class)) }

// pod adds a pod. A pod that names no PodGroup gets its own.
func (a *arrival) pod(p *corev1.Pod) error {
	objects.PodDefaults(p)
	if p.Spec.Priority == nil {
		value := a.classValue(p.Spec.PriorityClassName)
		p.Spec.Priority = &value
	}
	if objects.GroupOf(p) == "" && slices.Contains(a.c.SchedulerNames, p.Spec.SchedulerName) {
		group, wrong := objects.BareGroup(p, objects.BareGroupName(p), nil)
		if len(wrong) > 0 {
			return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, wrong[0])
		}
		group.Spec.Queue = objects.QueueName(group.Spec.Queue)
		group.CreationTimestamp = p.CreationTimestamp
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1beta1.KubeGroupNameAnnotationKey, group.Name)
		a.jobs = append(a.jobs, model.Key(group.Namespace, group.Name))
		a.next = append(a.next, group)
	}
	a.next = append(a.next, p)
	return nil
}

// follow adds the pods of the admitted Jobs, and reports whether there were any.
func (a *arrival) follow() (made bool, err error) {
	var open []*batchv1alpha1.Job
	for _, job := range a.open {
		group := objects.GroupName(job)
		if a.c.Jobs[model.Key(job.Namespace, group)].Phase == model.PhasePending {
			open = append(open, job)
			continue
		}
		if err := a.podsOf(job, group); err != nil {
			return false, err
		}
		made = true
	}
	a.open = open
	return made, a.add()
}

// podsOf adds the pods of a Job, except those of tasks that wait for others.
func (a *arrival) podsOf(job *batchv1alpha1.Job, group string) error {
	plugins, err := pluginsOf(job)
	if err != nil {
		return err
	}
	dependents := objects.DependentTasks(job, nil)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if dependents[task.Name].Waits != "" {
			continue
		}
		for n := range int(task.Replicas) {
			a.c.Breathe()
			pod, err := objects.Pod(job, objects.PodPlan{
				Task: task, Index: n, Group: group, SchedulerName: a.c.SchedulerNames[0], Plugins: plugins,
			})
			if err != nil {
				return fmt.Errorf("job %s/%s: %w", job.Namespace, job.Name, err)
			}
			pod.UID, pod.CreationTimestamp = types.UID("what-if-"+pod.Name), job.CreationTimestamp
			if a.isRefused(model.Key(job.Namespace, job.Name), pod) {
				continue
			}
			if err := a.pod(pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// podOfUser adds a pod of the change itself. A pod of a job that comes with it is restricted as a pod of a Job.
func (a *arrival) podOfUser(p *corev1.Pod) error {
	if group := model.Key(p.Namespace, objects.GroupOf(p)); slices.Contains(a.jobs, group) && a.isRefused(group, p) {
		return nil
	}
	return a.pod(p)
}

// isRefused reports whether the API server refuses a pod of a job. If so, it records the reason.
func (a *arrival) isRefused(job string, p *corev1.Pod) bool {
	n := a.restricted[p.Namespace]
	if n == nil {
		n = &refuse.Namespace{}
		for _, r := range a.limits {
			if r.Namespace == p.Namespace {
				n.Ranges = append(n.Ranges, r.DeepCopy())
			}
		}
		for _, q := range a.c.Quotas[p.Namespace] {
			left := q.Object.DeepCopy()
			for t := range a.trial.Removed() {
				if t.Object.Namespace == p.Namespace {
					refuse.Release(left, t.Object)
				}
			}
			n.Quotas = append(n.Quotas, left)
		}
		a.restricted[p.Namespace] = n
	}
	if len(n.Ranges)+len(n.Quotas) == 0 {
		return false
	}
	objects.PodDefaults(p)
	err := n.Admit(p)
	if err == nil {
		a.created[job] = append(a.created[job], p)
		return false
	}
	r := a.refused[job]
	if r.pods++; r.why == "" {
		r.why = objects.NewRefusals().Reported(p, a.demand(job), err)
	}
	a.refused[job] = r
	return true
}

// demand returns what a job of the question needs of a quota.
func (a *arrival) demand(job string) objects.Demand {
	for _, j := range a.open {
		if model.Key(j.Namespace, j.Name) == job {
			return objects.JobDemand(j, a.created[job])
		}
	}
	return objects.Demand{Pods: a.created[job]}
}

// pluginsOf returns the plugins of a Job that Celsius knows. It leaves out others, which a cluster has added.
func pluginsOf(job *batchv1alpha1.Job) (*jobplugin.Run, error) {
	set, issues := jobplugin.Default()
	if set == nil {
		return nil, issues.Err()
	}
	known := job.DeepCopy()
	maps.DeleteFunc(known.Spec.Plugins, func(name string, _ []string) bool { return set.Plugin(name) == nil })
	run, err := set.For(known)
	if err != nil {
		return nil, fmt.Errorf("job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return run, nil
}
