package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// completion makes of the objects that people wrote those that a cluster would
// hold: with the defaults of the API server, and with what controllers make of
// them (the PodGroup and pods of a Job, the PodGroup of a bare pod). It works on
// new items over what the world has already.
type completion struct {
	world  *World
	items  []item
	byID   map[objectID]item
	issues rules.Issues

	defaultValue *int32 // what pods without a class are worth, once it was asked
}

func newCompletion(w *World, items []item) *completion {
	c := &completion{world: w, byID: map[objectID]item{}}
	for _, i := range items {
		c.add(i)
	}
	return c
}

func (c *completion) add(i item) {
	c.items = append(c.items, i)
	c.byID[i.id()] = i
}

// find looks among the new items first, then in the world; nil if there is none.
func (c *completion) find(kindName, namespace, name string) metav1.Object {
	id := objectID{kindName, namespace, name}
	if i, ok := c.byID[id]; ok {
		return i.object
	}
	return c.world.objects[id]
}

func (c *completion) run() ([]item, rules.Issues) {
	c.houseQueues()
	for _, i := range c.items { // the range is fixed before expand adds to the list
		if job, ok := i.object.(*batchv1alpha1.Job); ok {
			c.born(job)
			c.expand(i, job)
		}
	}
	for _, i := range c.items {
		c.complete(i)
	}
	c.contradictions()
	return c.items, c.issues
}

// houseQueues adds the queues that are always there.
func (c *completion) houseQueues() {
	for _, name := range []string{schedulingv1beta1.RootQueue, schedulingv1beta1.DefaultQueue} {
		if c.find("Queue", "", name) == nil {
			q := &schedulingv1beta1.Queue{}
			q.Name = name
			c.add(item{kind: "Queue", object: q})
		}
	}
}

// born gives an object what the API server gives at its creation. Times and names
// stand in for what would be random.
func (c *completion) born(o metav1.Object) {
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(c.world.now))
	}
	if o.GetUID() == "" {
		o.SetUID(types.UID(objectKey(o)))
	}
}

// objectKey is namespace/name, or name where there is no namespace.
func objectKey(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return model.Key(o.GetNamespace(), o.GetName())
}

func (c *completion) complete(i item) {
	c.born(i.object)
	c.completeStorage(i.object)
	switch o := i.object.(type) {
	case *corev1.Node:
		completeNode(o)
	case *schedulingv1beta1.Queue:
		o.Spec.Weight = cmp.Or(o.Spec.Weight, 1)
		o.Status.State = cmp.Or(o.Status.State, schedulingv1beta1.QueueStateOpen)
	case *schedulingv1beta1.PodGroup:
		o.Spec.Queue = c.queueOf(o.Namespace, o.Spec.Queue)
		o.Status.Phase = cmp.Or(o.Status.Phase, schedulingv1beta1.PodGroupPending)
	case *corev1.ResourceQuota:
		c.completeQuota(i, o)
	case *corev1.Pod:
		defaults(o)
		c.priority(o)
		if c.ours(o) && groupOf(o) == "" {
			c.group(i, o)
		}
	}
}

// completeNode has a node offer what it has, and take the usual number of pods, where it does not say.
func completeNode(n *corev1.Node) {
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = corev1.ResourceList{}
	}
	if _, ok := n.Status.Allocatable[corev1.ResourcePods]; !ok {
		n.Status.Allocatable[corev1.ResourcePods] = either(nil, "110")
	}
}

// queueOf is the queue of a PodGroup: its own, else its namespace's, else default.
func (c *completion) queueOf(namespace, own string) string {
	if own != "" {
		return own
	}
	if n, ok := c.find("Namespace", "", namespace).(*corev1.Namespace); ok {
		return cmp.Or(n.Annotations[schedulingv1beta1.QueueNameAnnotationKey], schedulingv1beta1.DefaultQueue)
	}
	return schedulingv1beta1.DefaultQueue
}

func (c *completion) ours(p *corev1.Pod) bool {
	return slices.Contains(c.world.schedulers, p.Spec.SchedulerName)
}

// groupOf is the name of a pod's PodGroup, or "".
func groupOf(p *corev1.Pod) string {
	return cmp.Or(p.Annotations[model.GroupAnnotation], p.Annotations[model.VolcanoGroupAnnotation])
}

// priority is resolved at admission: from the class that the pod names, else from the default one.
func (c *completion) priority(p *corev1.Pod) {
	if p.Spec.Priority != nil {
		return
	}
	if value, ok := c.classValue(p.Spec.PriorityClassName); ok {
		p.Spec.Priority = &value
	}
}

// classValue is what a priority class is worth; "" is the default class, or 0 where there is none.
func (c *completion) classValue(name string) (int32, bool) {
	switch name {
	case "system-cluster-critical":
		return 2_000_000_000, true
	case "system-node-critical":
		return 2_000_001_000, true
	case "":
		return c.defaultClass(), true
	}
	if class, ok := c.find("PriorityClass", "", name).(*schedulingv1.PriorityClass); ok {
		return class.Value, true
	}
	return 0, false
}

// defaultClass is the lowest value of the classes that are global defaults, as the API server has it.
func (c *completion) defaultClass() int32 {
	if c.defaultValue != nil {
		return *c.defaultValue
	}
	value, found := int32(0), false
	see := func(o metav1.Object) {
		if class, ok := o.(*schedulingv1.PriorityClass); ok && class.GlobalDefault && (!found || class.Value < value) {
			value, found = class.Value, true
		}
	}
	for id, i := range c.byID {
		if id.kind == "PriorityClass" {
			see(i.object)
		}
	}
	for id, o := range c.world.objects {
		if _, replaced := c.byID[id]; id.kind == "PriorityClass" && !replaced {
			see(o)
		}
	}
	c.defaultValue = &value
	return value
}

// group gives a bare pod of ours the PodGroup that Volcano's controller would (behaviour 5.2).
func (c *completion) group(i item, p *corev1.Pod) {
	owner := metav1.GetControllerOf(p)
	suffix := string(p.UID)
	switch {
	case owner != nil && owner.UID != "":
		suffix = string(owner.UID)
	case suffix == objectKey(p): // made up by born; no name may hold a slash
		suffix = p.Name
	}
	name := batchv1alpha1.PodgroupNamePrefix + suffix
	annotate(&p.ObjectMeta, model.GroupAnnotation, name)
	if c.find("PodGroup", p.Namespace, name) != nil {
		return
	}
	g := &schedulingv1beta1.PodGroup{}
	g.Name, g.Namespace, g.CreationTimestamp = name, p.Namespace, p.CreationTimestamp
	if owner == nil {
		owner = metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	g.OwnerReferences = []metav1.OwnerReference{*owner}
	for _, key := range []string{model.PreemptableKey, model.RevocableZoneAnnotation, schedulingv1beta1.CooldownTime, schedulingv1beta1.JDBMinAvailable, schedulingv1beta1.JDBMaxUnavailable} {
		if value, ok := p.Annotations[key]; ok {
			annotate(&g.ObjectMeta, key, value)
		}
	}
	g.Spec.MinMember = 1
	if text, ok := p.Annotations[schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			place := deepest(i.value, "metadata", "annotations", schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey)
			c.issues = append(c.issues, place.Issuef("", "must be a whole number, found %q", text))
		}
		g.Spec.MinMember = int32(max(n, 0))
	}
	g.Spec.Queue = c.queueOf(p.Namespace, p.Annotations[schedulingv1beta1.QueueNameAnnotationKey])
	g.Spec.PriorityClassName = p.Spec.PriorityClassName
	resources := sumRequests([]*corev1.Pod{p})
	g.Spec.MinResources = &resources
	g.Status.Phase = schedulingv1beta1.PodGroupPending
	if p.Spec.NodeName != "" {
		g.Status.Phase = schedulingv1beta1.PodGroupRunning
	}
	c.born(g)
	c.add(item{kind: "PodGroup", object: g, value: i.value, comes: i.comes})
}

// expand makes the PodGroup and the pods that a Job stands for, but for those that
// are there already, as in what kubectl prints of a live cluster (behaviour 3.7, 3.8).
func (c *completion) expand(i item, j *batchv1alpha1.Job) {
	switch j.Status.State.Phase {
	case "", batchv1alpha1.Pending, batchv1alpha1.Running:
	default:
		return // its controller makes no pods now
	}
	pods := c.jobPods(j)
	name, exists := c.groupName(j)
	fresh := make([]*corev1.Pod, 0, len(pods))
	for _, p := range pods {
		annotate(&p.ObjectMeta, model.GroupAnnotation, name)
		if c.find("Pod", p.Namespace, p.Name) == nil {
			fresh = append(fresh, p)
		}
	}
	if !exists {
		c.add(item{kind: "PodGroup", object: c.jobGroup(j, name, pods), value: i.value})
	}
	for _, p := range fresh {
		c.add(item{kind: "Pod", object: p, value: i.value})
	}
}

// jobUID is a Job's uid, or its name where the file has none.
func jobUID(j *batchv1alpha1.Job) string {
	if string(j.UID) == objectKey(j) {
		return j.Name
	}
	return string(j.UID)
}

// groupName is <job>-<uid>, or <job> where a PodGroup of that name is there: older versions named it so.
func (c *completion) groupName(j *batchv1alpha1.Job) (name string, exists bool) {
	name = j.Name + "-" + jobUID(j)
	switch {
	case c.find("PodGroup", j.Namespace, name) != nil:
		return name, true
	case c.find("PodGroup", j.Namespace, j.Name) != nil:
		return j.Name, true
	}
	return name, false
}

// jobPods are the pods of a Job, task by task.
func (c *completion) jobPods(j *batchv1alpha1.Job) []*corev1.Pod {
	var out []*corev1.Pod
	queue := cmp.Or(j.Spec.Queue, schedulingv1beta1.DefaultQueue)
	owner := *metav1.NewControllerRef(j, batchv1alpha1.GroupVersion.WithKind("Job"))
	for t := range j.Spec.Tasks {
		task := &j.Spec.Tasks[t]
		for i := range int(task.Replicas) {
			p := &corev1.Pod{ObjectMeta: *task.Template.ObjectMeta.DeepCopy(), Spec: *task.Template.Spec.DeepCopy()}
			p.Name, p.Namespace = fmt.Sprintf("%s-%s-%d", j.Name, task.Name, i), j.Namespace
			p.CreationTimestamp = j.CreationTimestamp
			p.OwnerReferences = []metav1.OwnerReference{owner}
			p.Spec.SchedulerName = cmp.Or(p.Spec.SchedulerName, j.Spec.SchedulerName, c.world.schedulers[0])
			for key, value := range map[string]string{
				batchv1alpha1.TaskIndex: strconv.Itoa(i), batchv1alpha1.TaskSpecKey: task.Name, batchv1alpha1.JobNameKey: j.Name,
				batchv1alpha1.QueueNameKey: queue, batchv1alpha1.PodTemplateKey: j.Name + "-" + task.Name,
			} {
				annotate(&p.ObjectMeta, key, value)
			}
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			maps.Copy(p.Labels, map[string]string{
				batchv1alpha1.TaskIndex: strconv.Itoa(i), batchv1alpha1.TaskSpecKey: task.Name, batchv1alpha1.JobNameKey: j.Name,
				batchv1alpha1.JobNamespaceKey: j.Namespace, batchv1alpha1.QueueNameKey: queue,
			})
			copyKeys(j, p)
			out = append(out, p)
		}
	}
	return out
}

// copyKeys hands down what a Job says for its pods.
func copyKeys(j *batchv1alpha1.Job, p *corev1.Pod) {
	keys := []string{model.PreemptableKey, schedulingv1beta1.CooldownTime, model.RevocableZoneAnnotation, schedulingv1beta1.JDBMinAvailable}
	if _, ok := j.Annotations[schedulingv1beta1.JDBMinAvailable]; !ok {
		keys = append(keys, schedulingv1beta1.JDBMaxUnavailable)
	}
	for _, key := range keys {
		if value, ok := j.Annotations[key]; ok {
			annotate(&p.ObjectMeta, key, value)
		}
	}
	for _, key := range []string{model.PreemptableKey, schedulingv1beta1.CooldownTime} {
		if value, ok := j.Labels[key]; ok {
			p.Labels[key] = value
		}
	}
}

// jobGroup is the PodGroup of a Job.
func (c *completion) jobGroup(j *batchv1alpha1.Job, name string, pods []*corev1.Pod) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{}
	g.Name, g.Namespace, g.CreationTimestamp = name, j.Namespace, j.CreationTimestamp
	for key, value := range j.Annotations {
		annotate(&g.ObjectMeta, key, value)
	}
	g.Labels = j.Labels
	g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1alpha1.GroupVersion.WithKind("Job"))}
	g.Spec.Queue, g.Spec.PriorityClassName = j.Spec.Queue, j.Spec.PriorityClassName
	g.Spec.MinMember = j.Spec.MinAvailable
	g.Spec.MinTaskMember = map[string]int32{}
	sum := int32(0)
	for i := range j.Spec.Tasks {
		t := &j.Spec.Tasks[i]
		least := t.Replicas
		if t.MinAvailable != nil {
			least = *t.MinAvailable
		}
		g.Spec.MinTaskMember[t.Name] = least
		sum += least
	}
	if g.Spec.MinMember == 0 {
		g.Spec.MinMember = sum
	}
	resources := sumRequests(c.first(pods, int(g.Spec.MinMember)))
	g.Spec.MinResources = &resources
	return g
}

// first is the n pods of the highest priority, in their order.
func (c *completion) first(pods []*corev1.Pod, n int) []*corev1.Pod {
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		x, _ := c.classValue(a.Spec.PriorityClassName)
		y, _ := c.classValue(b.Spec.PriorityClassName)
		return cmp.Compare(y, x)
	})
	for _, p := range sorted {
		defaults(p) // limits stand for requests in the sum
	}
	return sorted[:min(n, len(sorted))]
}
