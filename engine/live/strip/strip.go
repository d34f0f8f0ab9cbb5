// Package strip takes away from objects what no decision reads, before an informer keeps them.
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

// maxTemplates is how many different pod specs are remembered: pods that are alike come together, or one soon after the other.
const maxTemplates = 2000

// Stripper takes away what no decision reads, before an object is kept, and has amounts that nobody can add up saturate. Pods that are
// alike, as those of a job are, share one spec, which is most of what there is of a pod. It is for any goroutine.
type Stripper struct {
	own Own
	mu  sync.Mutex
	// templates are by their encoding, without the node; older ones are those that were not met since there were half of the most.
	templates, older map[string]*corev1.PodSpec
	encoded          []byte
	// vouched are the field managers of a group whose phase is a scheduler's word. All such groups share them.
	vouched []metav1.ManagedFieldsEntry
}

// Own are names of the scheduler's own.
type Own struct {
	Manager    string // as which it writes fields of statuses
	Annotation string // of pods, that it writes for others only
}

// New is a stripper that knows of no pod yet.
func New(own Own) *Stripper {
	return &Stripper{
		own: own, templates: map[string]*corev1.PodSpec{},
		vouched: []metav1.ManagedFieldsEntry{{Manager: own.Manager, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)}},
	}
}

// Strip is a transformation of an informer.
func (s *Stripper) Strip(o any) (any, error) {
	object, ok := o.(metav1.Object)
	if !ok {
		return o, nil
	}
	switch o := o.(type) {
	case *v1beta1.Queue: // whose field managers are looked at
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

// volcanoManager is under what name Volcano's scheduler writes, whose jobs are taken over as they stand.
const volcanoManager = "vc-scheduler"

// stripGroup takes a phase beyond Pending away that no scheduler wrote. Where one did, that is all that is kept of the field managers: an
// informer may have an object stripped more than once.
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

// share gives a pod the spec that another one like it has.
func (s *Stripper) share(p *corev1.PodSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := p.NodeName
	p.NodeName = ""
	size := p.Size()
	s.encoded = slices.Grow(s.encoded[:0], size)[:size]
	if _, err := p.MarshalToSizedBuffer(s.encoded); err != nil {
		p.NodeName = node
		return // it cannot fail; if it did, the pod would keep a spec of its own
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

// stripJob leaves of a Job which scheduler it is for, and of each task how many pods it is to have and what they request: before they
// are made that is what is known of them. Jobs that are alike share it.
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
			InitContainers: requests(from.InitContainers, true), // the cause names an init container that fits no node
			Overhead:       from.Overhead, Resources: from.Resources,
		}
		s.share(&task.Template.Spec)
		o.Spec.Tasks = append(o.Spec.Tasks, task)
	}
}

// stripPod leaves of containers what is asked of a node: resources, ports and images; of volumes those that are not
// the kubelet's alone; of the status when the pod was scheduled, and what it was granted otherwise than its spec says.
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

// resized leaves the containers that were granted otherwise than their spec says, as while they are resized: what a
// kubelet has not taken back is not free, and what it will never give takes nothing.
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

// stripNode leaves of a node's status what it offers and whether it is ready.
func stripNode(n *corev1.Node) {
	n.Status = corev1.NodeStatus{
		Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable, Images: n.Status.Images,
		Conditions: filter(n.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }),
	}
}

// filter is a list of those that are kept, and no longer than that; nil for none.
func filter[T any](list []T, keep func(*T) bool) []T {
	var out []T
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}
