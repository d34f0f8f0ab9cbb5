// Package strip removes from objects the fields that no decision reads, before an informer stores them.
package strip

import (
	"bytes"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// maxTemplates is the maximum number of different pod specs in the cache. Similar pods come together or soon after each other.
const maxTemplates = 2000

// Stripper removes from objects the fields that no decision reads. It limits amounts that are too large to be added up. Similar pods, such
// as those of a job, share one spec, which is the largest part of a pod. Any goroutine may use it.
type Stripper struct {
	own Own
	mu  sync.Mutex
	// templates is keyed by the encoded spec without the node. older contains specs that were not used since templates was last half full.
	templates, older map[string]*corev1.PodSpec
	encoded          []byte
	// vouched are the field managers of a PodGroup whose phase a scheduler wrote. All such groups share this list.
	vouched []metav1.ManagedFieldsEntry
}

// Own contains names that belong to the scheduler.
type Own struct {
	Manager    string // the field manager of its status writes
	Annotation string // an annotation of pods that the scheduler writes but does not read
}

// New returns a stripper with an empty cache.
func New(own Own) *Stripper {
	return &Stripper{
		own: own, templates: map[string]*corev1.PodSpec{},
		vouched: []metav1.ManagedFieldsEntry{{Manager: own.Manager, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)}},
	}
}

// Strip is a transform of an informer.
func (s *Stripper) Strip(o any) (any, error) {
	object, ok := o.(metav1.Object)
	if !ok {
		return o, nil
	}
	switch o := o.(type) {
	case *v1beta1.Queue: // its field managers are read later
	case *v1beta1.PodGroup:
		s.stripGroup(o)
	default:
		object.SetManagedFields(nil)
	}
	delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	delete(object.GetAnnotations(), s.own.Annotation)
	switch o := o.(type) {
	case *corev1.Pod:
		model.TamePod(&o.Spec)
		stripPod(o)
		s.share(&o.Spec)
	case *corev1.Node:
		stripNode(o)
	case *corev1.PersistentVolumeClaim:
		model.Tame(o.Spec.Resources.Requests, o.Spec.Resources.Limits)
	case *v1beta1.PodGroup:
		if o.Spec.MinResources != nil {
			model.Tame(*o.Spec.MinResources)
		}
	case *v1beta1.Queue:
		model.Tame(o.Spec.Capability, o.Spec.Deserved, o.Spec.Guarantee.Resource)
	case *batchv1alpha1.Job:
		s.stripJob(o)
	}
	return o, nil
}

// volcanoManager is the field manager of Volcano's scheduler. Jobs that it admitted stay admitted.
const volcanoManager = "vc-scheduler"

// stripGroup removes a phase beyond Pending that no scheduler wrote. If a scheduler wrote it, only this fact is kept of the field managers,
// because an informer may strip an object more than once.
func (s *Stripper) stripGroup(g *v1beta1.PodGroup) {
	switch {
	case g.Status.Phase == "" || g.Status.Phase == v1beta1.PodGroupPending:
		g.ManagedFields = nil
	case s.letIn(g):
		g.ManagedFields = s.vouched
	default:
		g.ManagedFields, g.Status.Phase = nil, ""
	}
}

// letIn reports whether a scheduler wrote a phase beyond Pending. A PodGroup has no status subresource, so every user who may write the
// group may write its phase. The field managers name the writer, and deploy/guard keeps users from writing under a scheduler's name. A
// group that no scheduler admitted is admitted like any other.
func (s *Stripper) letIn(g *v1beta1.PodGroup) bool {
	for _, by := range g.ManagedFields {
		if (by.Manager == s.own.Manager || by.Manager == volcanoManager) && by.FieldsV1 != nil &&
			bytes.Contains(by.FieldsV1.GetRawBytes(), []byte(`"f:phase"`)) {
			return true
		}
	}
	return false
}

// share replaces a pod's spec by an equal one from the cache.
func (s *Stripper) share(p *corev1.PodSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := p.NodeName
	p.NodeName = ""
	size := p.Size()
	s.encoded = slices.Grow(s.encoded[:0], size)[:size]
	if _, err := p.MarshalToSizedBuffer(s.encoded); err != nil {
		p.NodeName = node
		return // impossible; otherwise the pod would keep its own spec
	}
	template := s.templates[string(s.encoded)]
	if template == nil {
		if template = s.older[string(s.encoded)]; template == nil {
			spec := *p
			template = &spec
		}
		if len(s.templates) >= maxTemplates/2 {
			s.templates, s.older = map[string]*corev1.PodSpec{}, s.templates
		}
		s.templates[string(s.encoded)] = template
	}
	*p = *template
	p.NodeName = node
}

// stripJob keeps a Job's scheduler and, for each task, the number of pods and their requests. These are known before the pods exist.
// Similar Jobs share this data.
func (s *Stripper) stripJob(o *batchv1alpha1.Job) {
	o.Labels, o.Annotations = nil, nil
	tasks := o.Spec.Tasks
	o.Spec = batchv1alpha1.JobSpec{SchedulerName: o.Spec.SchedulerName}
	o.Status = batchv1alpha1.JobStatus{State: batchv1alpha1.JobState{Phase: o.Status.State.Phase}}
	if !model.MakesPods(o.Status.State.Phase) {
		return
	}
	requests := func(list []corev1.Container, named bool) []corev1.Container {
		var out []corev1.Container
		for i := range list {
			c := corev1.Container{Resources: list[i].Resources, RestartPolicy: list[i].RestartPolicy}
			if named {
				c.Name = list[i].Name
			}
			out = append(out, c)
		}
		return out
	}
	for i := range tasks {
		from := &tasks[i].Template.Spec
		task := batchv1alpha1.TaskSpec{Name: tasks[i].Name, Replicas: tasks[i].Replicas}
		task.Template.Spec = corev1.PodSpec{
			Containers:     requests(from.Containers, false),
			InitContainers: requests(from.InitContainers, true), // messages name an init container that fits no node
			Overhead:       from.Overhead, Resources: from.Resources,
		}
		s.share(&task.Template.Spec)
		o.Spec.Tasks = append(o.Spec.Tasks, task)
	}
}

// stripPod keeps what a node must provide for a pod: resources, ports and images of containers, and volumes that are not local to the
// kubelet. Of the status it keeps when the pod was scheduled, and resources that differ from its spec.
func stripPod(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	p.Spec.Volumes = filter(p.Spec.Volumes, func(v *corev1.Volume) bool {
		return v.Projected == nil && v.Secret == nil && v.ConfigMap == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.HostPath == nil
	})
	p.Spec.EphemeralContainers, p.Spec.SecurityContext, p.Spec.ImagePullSecrets, p.Spec.DNSConfig, p.Spec.HostAliases = nil, nil, nil, nil, nil
	p.Spec.Hostname = ""
	p.Status = corev1.PodStatus{
		Phase: p.Status.Phase, Resources: p.Status.Resources, AllocatedResources: p.Status.AllocatedResources,
		NominatedNodeName: p.Status.NominatedNodeName, StartTime: p.Status.StartTime,
		Conditions: filter(p.Status.Conditions, func(c *corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled || c.Type == corev1.PodResizePending || c.Type == corev1.DisruptionTarget
		}),
		ContainerStatuses:     resized(p.Status.ContainerStatuses, p.Spec.Containers),
		InitContainerStatuses: resized(p.Status.InitContainerStatuses, p.Spec.InitContainers),
	}
}

// resized keeps the containers whose resources differ from their spec, as during a resize. Resources that the kubelet has not released are
// not free, and resources that it will never provide are not used.
func resized(statuses []corev1.ContainerStatus, ctrs []corev1.Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range statuses {
		st := &statuses[i]
		at := slices.IndexFunc(ctrs, func(c corev1.Container) bool { return c.Name == st.Name })
		if at < 0 {
			continue
		}
		asked := ctrs[at].Resources.Requests
		if otherwise(st.AllocatedResources, asked) || st.Resources != nil && otherwise(st.Resources.Requests, asked) {
			out = append(out, corev1.ContainerStatus{Name: st.Name, AllocatedResources: st.AllocatedResources, Resources: st.Resources})
		}
	}
	return out
}

func otherwise(granted, asked corev1.ResourceList) bool {
	for name, q := range granted {
		if a, ok := asked[name]; !ok || a.Cmp(q) != 0 {
			return true
		}
	}
	return false
}

// stripNode keeps a node's resources, images and readiness in its status.
func stripNode(n *corev1.Node) {
	n.Status = corev1.NodeStatus{
		Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable, Images: n.Status.Images,
		Conditions: filter(n.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }),
	}
}

// filter returns a list of the elements that keep accepts, without spare capacity; nil: none.
func filter[T any](list []T, keep func(*T) bool) []T {
	var out []T
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}
