package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/refuse"
	"github.com/celsius-scheduler/celsius/engine/sim/classes"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// completion turns the objects that users wrote into those that a cluster would contain. It adds the defaults of the API server. It also
// adds the objects that controllers create at once: the PodGroup of a Job or of a bare pod. It processes new items on top of the objects of
// the world.
type completion struct {
	world  *World
	items  []manifest.Item
	byID   map[manifest.ID]manifest.Item
	issues source.Issues

	samples []manifest.Item // one pod of each task of the new Jobs, to check whether it can be read
	classes classes.Classes // of the new items and of the world; nil until the first use
	// namespaces restrict the pods that controllers create; an admitted pod counts at once.
	namespaces map[string]*refuse.Namespace
	hints      source.Hints
	secured    []string // namespaces of which warnPodSecurity has warned
}

func newCompletion(w *World, items []manifest.Item) *completion {
	c := &completion{world: w, byID: map[manifest.ID]manifest.Item{}}
	for _, i := range items {
		c.add(i)
	}
	return c
}

func (c *completion) add(i manifest.Item) {
	c.items = append(c.items, i)
	c.byID[i.ID()] = i
}

// find searches the new items first, then the world; nil: none.
func (c *completion) find(kindName, namespace, name string) metav1.Object {
	id := manifest.ID{Kind: kindName, Namespace: namespace, Name: name}
	if i, ok := c.byID[id]; ok {
		return i.Object
	}
	return c.world.objects[id]
}

func (c *completion) run() ([]manifest.Item, source.Issues) {
	c.houseQueues()
	for _, i := range c.items { // the range is fixed before submitted adds to the list
		if job, ok := i.Object.(*batchv1alpha1.Job); ok {
			c.submitted(i, job)
		}
	}
	for _, i := range c.items {
		c.complete(i)
	}
	c.contradictions()
	return c.items, c.issues
}

// houseQueues adds the queues that always exist.
func (c *completion) houseQueues() {
	for _, name := range []string{schedulingv1beta1.RootQueue, schedulingv1beta1.DefaultQueue} {
		if c.find("Queue", "", name) == nil {
			q := &schedulingv1beta1.Queue{}
			q.Name = name
			c.add(manifest.Item{Kind: "Queue", Object: q})
		}
	}
}

// born sets the fields that the API server sets at creation. It uses times and names in place of random values.
func (c *completion) born(o metav1.Object) {
	if created := o.GetCreationTimestamp(); created.IsZero() {
		at := c.world.now
		if g, ok := o.(*schedulingv1beta1.PodGroup); ok && g.Status.Phase == schedulingv1beta1.PodGroupRunning {
			at = at.Add(-runningSince)
		}
		o.SetCreationTimestamp(metav1.NewTime(at))
	}
	if o.GetUID() == "" {
		o.SetUID(types.UID(objectKey(o)))
	}
}

// objectKey returns namespace/name, or the name of an object without a namespace.
func objectKey(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return model.Key(o.GetNamespace(), o.GetName())
}

// runningSince is the assumed age of a PodGroup that is already Running when it is submitted and has no creation time. The pods of such a
// group exist by then, so its minResources reserve nothing beyond them.
const runningSince = time.Hour

func (c *completion) complete(i manifest.Item) {
	written := i.Object.GetUID() == "" // the user wrote it; it was not read from a cluster
	c.born(i.Object)
	c.completeStorage(i.Object)
	switch o := i.Object.(type) {
	case *corev1.Node:
		completeNode(o)
	case *schedulingv1beta1.Queue:
		o.Spec.Weight = cmp.Or(o.Spec.Weight, 1)
		o.Status.State = cmp.Or(o.Status.State, schedulingv1beta1.QueueStateOpen)
	case *schedulingv1beta1.PodGroup:
		o.Spec.Queue = c.queueOf(o.Namespace, o.Spec.Queue)
		o.Status.Phase = cmp.Or(o.Status.Phase, schedulingv1beta1.PodGroupPending)
	case *corev1.ResourceQuota, *corev1.LimitRange:
		c.completeRestriction(i)
	case *metricsv1beta1.NodeMetrics:
		if o.Timestamp.IsZero() {
			o.Timestamp = metav1.NewTime(c.world.now)
		}
	case *extender.Answer:
		if o.At.IsZero() {
			o.At = metav1.NewTime(c.world.now)
		}
	case *corev1.Pod:
		objects.PodDefaults(o)
		c.priority(o)
		if c.ours(o) && objects.GroupOf(o) == "" {
			c.group(i, o)
		}
		if written && o.Spec.NodeName != "" && model.AsBound(o) != nil {
			delete(o.Annotations, model.RecordAnnotation) // the world reports the error when it takes in the pod
		}
	}
}

// completeNode sets missing allocatable resources to the capacity, and a missing pod limit to the default.
func completeNode(n *corev1.Node) {
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = corev1.ResourceList{}
	}
	if _, ok := n.Status.Allocatable[corev1.ResourcePods]; !ok {
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	}
}

// queueOf returns the queue of a PodGroup: its own, else its namespace's, else default.
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

// priority sets the priority as admission does: from the class that the pod names, else from the default class.
func (c *completion) priority(p *corev1.Pod) {
	if p.Spec.Priority != nil {
		return
	}
	if value, ok := c.classValue(p.Spec.PriorityClassName); ok {
		p.Spec.Priority = &value
	}
}

// classValue returns the value of a priority class. "" means the default class, or 0 if there is none.
func (c *completion) classValue(name string) (int32, bool) { return c.knownClasses().Value(name) }

// knownClasses returns the PriorityClasses of the new items and of the world. No class is added while the items are completed.
func (c *completion) knownClasses() classes.Classes {
	if c.classes == nil {
		c.classes = classes.Of(func(yield func(metav1.Object) bool) {
			for _, o := range c.world.objects {
				yield(o)
			}
			for _, i := range c.byID {
				yield(i.Object)
			}
		})
	}
	return c.classes
}

// group adds the PodGroup of one of our bare pods, as the controllers do.
func (c *completion) group(i manifest.Item, p *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner != nil && owner.UID == "" { // derived from its name, so that the pods of one owner are one job
		owner.UID = types.UID(strings.ToLower(owner.Kind) + "-" + owner.Name)
	}
	name := objects.BareGroupName(p)
	alone := owner == nil && string(p.UID) == objectKey(p) // with the UID that born set; no name can contain a slash
	if alone {
		name = batchv1alpha1.PodgroupNamePrefix + p.Name
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GroupAnnotation, name)
	if c.find("PodGroup", p.Namespace, name) != nil {
		return
	}
	g, wrong := objects.BareGroup(p, name, nil)
	for _, err := range wrong {
		place := manifest.Deepest(i.Value, "metadata", "annotations")
		c.report(p, place.Issuef("", "%s: %v", i.ID(), err))
	}
	if alone {
		metav1.GetControllerOfNoCopy(g).UID = types.UID(p.Name)
	}
	g.CreationTimestamp = p.CreationTimestamp
	g.Spec.Queue = c.queueOf(p.Namespace, g.Spec.Queue)
	if p.Spec.NodeName != "" {
		g.Status.Phase = schedulingv1beta1.PodGroupRunning
	}
	c.born(g)
	c.add(manifest.Item{Kind: "PodGroup", Object: g, Value: i.Value, Comes: i.Comes})
}
