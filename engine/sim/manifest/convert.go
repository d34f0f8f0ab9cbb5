package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// world converts a document in the short format to objects. They are processed like objects written in full. An entry with a mistake
// creates none.
func (l *loader) world(v source.Value) {
	if _, version := HeadOf(v); version != WorldVersion {
		l.report(v.Get("apiVersion").Issuef("write "+WorldVersion, "%s is not of %q", worldKind, version))
		return
	}
	var w ShortWorld
	if !l.shape.decode(v, &w) {
		return
	}
	c := &converter{loader: l, classes: w.PriorityClasses}
	for i := range w.Nodes {
		c.each(At(v, "nodes", i), w.Nodes[i].Name, func(place source.Value, name string) { c.node(place, name, &w.Nodes[i]) })
	}
	for i := range w.Queues {
		c.each(At(v, "queues", i), w.Queues[i].Name, func(place source.Value, name string) { c.queue(place, name, &w.Queues[i]) })
	}
	for i := range w.Quotas {
		c.each(At(v, "quotas", i), w.Quotas[i].Name, func(place source.Value, name string) { c.quota(place, name, &w.Quotas[i]) })
	}
	for i := range w.StorageClasses {
		c.each(At(v, "storageClasses", i), w.StorageClasses[i].Name, func(place source.Value, name string) {
			c.storageClass(place, name, &w.StorageClasses[i])
		})
	}
	for i := range w.Volumes {
		c.each(At(v, "volumes", i), w.Volumes[i].Name, func(place source.Value, name string) { c.volume(place, name, &w.Volumes[i]) })
	}
	for i := range w.Claims {
		c.each(At(v, "claims", i), w.Claims[i].Name, func(place source.Value, name string) { c.claim(place, name, &w.Claims[i]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.PriorityClasses)) {
		class := &schedulingv1.PriorityClass{Value: w.PriorityClasses[name]}
		class.Name = name
		c.emit("PriorityClass", At(v, "priorityClasses", name), class)
	}
	for i := range w.Jobs {
		c.each(At(v, "jobs", i), w.Jobs[i].Name, func(place source.Value, name string) { c.job(place, name, &w.Jobs[i]) })
	}
	for i := range w.Pods {
		c.each(At(v, "pods", i), w.Pods[i].Name, func(place source.Value, name string) { c.barePod(place, name, &w.Pods[i]) })
	}
}

// converter creates the objects of one document in the short format.
type converter struct {
	*loader
	full  bool      // too many objects were reported
	comes time.Time // when the entry's objects are created; zero: at once
	// classes are the values of the document's priority classes.
	classes map[string]int32
	// nth is the index, from 0, of the current name among the entry's names. names is their number.
	nth, names int
}

// each calls f for every name that an entry stands for.
func (c *converter) each(v source.Value, name string, f func(source.Value, string)) {
	if name == "" {
		c.report(v.Issuef("", "lacks a name"))
		return
	}
	names, err := ExpandName(name)
	if err != nil {
		c.report(v.Get("name").Issuef("a range is written n[1-3]", "%v", err))
		return
	}
	c.names = len(names)
	for i, n := range names {
		c.nth = i
		if before := len(c.issues); c.full || !c.fine(f, v, n, before) {
			return // the other names of the range would repeat the same issue
		}
	}
}

func (c *converter) fine(f func(source.Value, string), v source.Value, name string, before int) bool {
	f(v, name)
	return len(c.issues) == before
}

// emit checks an object like one that was written in full, and adds it.
func (c *converter) emit(kindName string, v source.Value, object metav1.Object) {
	if c.full {
		return
	}
	if c.made++; c.made > c.limit {
		c.full = true
		c.report(v.Issuef("", "all documents of kind World stand for more than %d objects", c.limit))
		return
	}
	k, _, _ := findKind("", kindName)
	before := len(c.issues)
	c.named(k, v, object)
	if len(c.issues) == before {
		c.out.Items = append(c.out.Items, Item{Kind: kindName, Object: object, Value: v, Comes: c.comes})
	}
}

// when reads the field `created` of an entry.
func (c *converter) when(v source.Value, text string) time.Time {
	t, err := parseWhen(text, c.now)
	if err != nil {
		c.report(v.Get("created").Issuef("", "%v", err))
	}
	return t
}

// creation returns the creation time of an entry's objects: `comes`, or `created`.
func (c *converter) creation(v source.Value, created string, comes *metav1.Duration) metav1.Time {
	c.comes = time.Time{}
	switch {
	case comes == nil:
		return metav1.NewTime(c.when(v, created))
	case comes.Duration < 0:
		c.report(v.Get("comes").Issuef("what was there before says so in `created`", "must not be negative, found %s", comes.Duration))
	case created != "":
		c.report(v.Get("created").Issuef("leave one of them out", "says when it was made, and `comes` when it will be"))
	}
	c.comes = c.now.Add(comes.Duration)
	return metav1.NewTime(c.comes)
}

func (c *converter) node(v source.Value, name string, s *ShortNode) {
	n := &corev1.Node{}
	n.Name = name
	n.Labels = map[string]string{corev1.LabelHostname: name}
	maps.Copy(n.Labels, s.Labels)
	n.Annotations = maps.Clone(s.Annotations)
	n.Spec.Unschedulable = s.Unschedulable
	for i, text := range s.Taints {
		taint, err := parseTaint(text)
		if err != nil {
			c.report(At(v, "taints", i).Issuef("a taint is written key=value:Effect", "%v", err))
		}
		n.Spec.Taints = append(n.Spec.Taints, taint)
	}
	for _, image := range slices.Sorted(maps.Keys(s.Images)) {
		size := s.Images[image]
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: model.Bytes(size)})
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:    either(s.CPU, "8"),
		corev1.ResourceMemory: either(s.Memory, "32Gi"),
		corev1.ResourcePods:   either(s.Pods, "110"),
	}
	for name, q := range s.Extended {
		list[corev1.ResourceName(name)] = q
	}
	c.notNegative(At(v, "gpus"), int64(s.GPUs))
	if s.GPUs > 0 {
		list[model.GPUResource] = *resource.NewQuantity(int64(s.GPUs), resource.DecimalSI)
	}
	if s.GPUModel != "" {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, model.GPUModelAnnotation, s.GPUModel)
	}
	if s.GPUMemory != nil {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, model.GPUMemoryAnnotation, s.GPUMemory.String())
	}
	n.Status.Capacity, n.Status.Allocatable = list, list.DeepCopy()
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	if s.Ready != nil && !*s.Ready {
		ready.Status = corev1.ConditionFalse
	}
	n.Status.Conditions = []corev1.NodeCondition{ready}
	c.emit("Node", v, n)
	c.attachLimits(v, name, s.AttachLimits)
}

func either(q *resource.Quantity, otherwise string) resource.Quantity {
	if q != nil {
		return *q
	}
	return resource.MustParse(otherwise)
}

// list returns amounts by name; nil if the map is nil.
func list(amounts map[string]resource.Quantity) corev1.ResourceList {
	if amounts == nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name, q := range amounts {
		out[corev1.ResourceName(name)] = q
	}
	return out
}

func (c *converter) queue(v source.Value, name string, s *ShortQueue) {
	q := &schedulingv1beta1.Queue{}
	q.Name, q.Labels, q.Annotations = name, maps.Clone(s.Labels), maps.Clone(s.Annotations)
	q.CreationTimestamp = metav1.NewTime(c.when(v, s.Created))
	q.Spec.Weight = 1
	if s.Weight != nil {
		c.notNegative(At(v, "weight"), int64(*s.Weight))
		q.Spec.Weight = *s.Weight
	}
	q.Spec.Priority, q.Spec.Parent, q.Spec.Reclaimable = s.Priority, s.Parent, s.Reclaimable
	q.Spec.Capability, q.Spec.Deserved, q.Spec.Guarantee.Resource = list(s.Capability), list(s.Deserved), list(s.Guarantee)
	c.oneOf(At(v, "dequeueStrategy"), s.DequeueStrategy, dequeueStrategies())
	q.Spec.DequeueStrategy = schedulingv1beta1.DequeueStrategy(s.DequeueStrategy)
	if g := s.NodeGroups; g != nil {
		q.Spec.Affinity = &schedulingv1beta1.Affinity{
			NodeGroupAffinity: &schedulingv1beta1.NodeGroupAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: g.Required, PreferredDuringSchedulingIgnoredDuringExecution: g.Preferred,
			},
			NodeGroupAntiAffinity: &schedulingv1beta1.NodeGroupAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: g.AntiRequired, PreferredDuringSchedulingIgnoredDuringExecution: g.AntiPreferred,
			},
		}
	}
	c.oneOf(At(v, "state"), s.State, queueStates())
	q.Status.State = schedulingv1beta1.QueueState(s.State)
	if s.Parent == name {
		c.report(At(v, "parent").Issuef("", "a queue is not its own parent"))
	}
	c.emit("Queue", v, q)
}

func (c *converter) quota(v source.Value, name string, s *ShortQuota) {
	q := &corev1.ResourceQuota{}
	q.Name, q.Namespace = name, s.Namespace
	q.Spec.Hard, q.Status.Used = list(s.Hard), list(s.Used)
	c.emit("ResourceQuota", v, q)
}

// job creates a PodGroup and its pods as the controllers create them for a Volcano Job with the same tasks. There is no Job: no object has
// an owner, the PodGroup has the job's own name, and it reserves only what the entry states.
func (c *converter) job(v source.Value, name string, s *ShortJob) {
	g := &schedulingv1beta1.PodGroup{}
	g.Name, g.Namespace = name, s.Namespace
	g.Labels, g.Annotations = maps.Clone(s.Labels), maps.Clone(s.Annotations)
	g.CreationTimestamp = c.creation(v, s.Created, s.Comes)
	c.oneOf(At(v, "phase"), s.Phase, GroupPhases())
	g.Status.Phase = schedulingv1beta1.PodGroupPhase(s.Phase)
	job := &batchv1alpha1.Job{ObjectMeta: *g.ObjectMeta.DeepCopy()}
	job.Spec.Queue, job.Spec.PriorityClassName = objects.QueueName(s.Queue), s.Priority
	pods, members := c.members(v, s, job)
	job.Spec.MinAvailable = int32(min(members, 1<<31-1))
	if s.Min != nil {
		c.notNegative(At(v, "min"), int64(*s.Min))
		job.Spec.MinAvailable = *s.Min
	}
	objects.FillPodGroup(g, job, nil, func(class string) int32 { return c.classes[class] })
	g.Spec.Queue = s.Queue // if it is empty, the namespace's queue is used
	if len(s.Tasks) == 0 {
		g.Spec.MinTaskMember = nil // the only task has no name
	}
	if !s.AutoMinResources {
		g.Spec.MinResources = nil
	}
	if s.MinResources != nil && !s.AutoMinResources {
		resources := list(s.MinResources)
		g.Spec.MinResources = &resources
	}
	if s.Phase == "" && slices.ContainsFunc(pods, func(p member) bool { return p.Spec.NodeName != "" }) {
		g.Status.Phase = schedulingv1beta1.PodGroupRunning
	}
	c.emit("PodGroup", v, g)
	for _, p := range pods {
		before := len(c.out.Items)
		c.emit("Pod", p.place, p.Pod)
		for i := range c.out.Items[before:] {
			c.out.Items[before+i].OfJob = true
		}
	}
}

// member is a pod of a job, and the entry that it comes from.
type member struct {
	*corev1.Pod
	place source.Value
}

// members creates the tasks of a job and their pods. It returns how many of them must start together if the job does not state it.
func (c *converter) members(v source.Value, s *ShortJob, job *batchv1alpha1.Job) (pods []member, members int64) {
	if len(s.Tasks) == 0 {
		pods = c.replicas(v, &ShortTask{Replicas: s.Replicas, ShortSpec: s.ShortSpec}, job)
		return pods, int64(len(pods))
	}
	if s.Replicas != nil {
		c.report(At(v, "replicas").Issuef("write it with the tasks", "a job that lists its tasks has no replicas of its own"))
	}
	for i := range s.Tasks {
		t, place := &s.Tasks[i], At(v, "tasks", i)
		if t.Name == "" {
			t.Name = fmt.Sprintf("task%d", i)
		}
		more := c.replicas(place, t, job)
		if len(more) > 0 {
			c.lifeContent(At(place, "annotations", LifeAnnotation), t.Annotations, more[0].Spec.Containers)
		}
		pods = append(pods, more...)
		least := int64(len(more))
		if t.Min != nil {
			c.notNegative(At(place, "min"), int64(*t.Min))
			least = int64(*t.Min)
		}
		members += least
	}
	return pods, members
}

// replicas creates one task of a job and its pods. A task without a name is the only one of its job, and its pods are <job>-<index>.
func (c *converter) replicas(v source.Value, t *ShortTask, job *batchv1alpha1.Job) []member {
	count := int32(1)
	if t.Replicas != nil {
		c.notNegative(At(v, "replicas"), int64(*t.Replicas))
		count = *t.Replicas
	}
	if c.made+int(count) > c.limit {
		c.report(Deepest(v, "replicas").Issuef("", "all documents of kind World stand for more than %d objects", c.limit))
		return nil
	}
	proto, nodes := c.podOf(v, &t.ShortSpec, "task", int(count))
	if proto == nil {
		return nil
	}
	task := batchv1alpha1.TaskSpec{Name: t.Name, Replicas: count, MinAvailable: t.Min}
	task.Template.Spec = proto.Spec
	task.Template.Spec.PriorityClassName = t.Priority
	task.Template.Labels, task.Template.Annotations = maps.Clone(t.Labels), proto.Annotations
	for k, value := range t.Annotations {
		metav1.SetMetaDataAnnotation(&task.Template.ObjectMeta, k, value)
	}
	job.Spec.Tasks = append(job.Spec.Tasks, task)
	var out []member
	for i := range int(count) {
		p, err := objects.Pod(job, objects.PodPlan{Task: &task, Index: i, Group: job.Name, SchedulerName: c.scheduler})
		if err != nil {
			c.report(v.Issuef("", "%v", err))
			return nil
		}
		if t.Name == "" {
			p.Name = job.Name + "-" + strconv.Itoa(i)
			delete(p.Annotations, batchv1alpha1.PodTemplateKey)
			delete(p.Annotations, batchv1alpha1.TaskSpecKey)
			delete(p.Labels, batchv1alpha1.TaskSpecKey)
		}
		p.OwnerReferences = nil
		p.CreationTimestamp, p.DeletionTimestamp, p.Status = job.CreationTimestamp, proto.DeletionTimestamp, *proto.Status.DeepCopy()
		settle(p, nodes, i)
		out = append(out, member{p, v})
	}
	return out
}

func (c *converter) barePod(v source.Value, name string, s *ShortPod) {
	p, nodes := c.podOf(v, &s.ShortSpec, "entry", c.names)
	if p == nil {
		return
	}
	p.Name, p.Namespace = name, s.Namespace
	p.CreationTimestamp = c.creation(v, s.Created, s.Comes)
	p.Spec.PriorityClassName = s.Priority
	p.Labels = maps.Clone(s.Labels)
	for k, value := range s.Annotations {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, k, value)
	}
	c.lifeContent(At(v, "annotations", LifeAnnotation), s.Annotations, p.Spec.Containers)
	if s.Scheduler != "" {
		p.Spec.SchedulerName = s.Scheduler
	}
	if s.Queue != "" {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, schedulingv1beta1.QueueNameAnnotationKey, s.Queue)
	}
	settle(p, nodes, c.nth)
	c.emit("Pod", v, p)
}
