package model

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/celsius-scheduler/celsius/engine/podspec"
)

// Template is what the pods of one template have in common, parsed once. The tasks of a role share it as long as
// their pods say the same, so that a pod of a large job costs neither the memory nor the work again. It is never changed.
type Template struct {
	PriorityClassName string

	// What Kubernetes' own rules read. Equal keys mean equal terms.
	NodeAffinity    nodeaffinity.RequiredNodeAffinity
	NodeAffinityKey string // canonical text of nodeSelector and required affinity
	// NodeAffinityLabels are the labels of a node that nodeSelector and required affinity read, NodeAffinityFields says that
	// they read its fields as well.
	NodeAffinityLabels []string
	NodeAffinityFields bool
	PreferredNodes     *nodeaffinity.PreferredSchedulingTerms // nil if none
	PreferredKey       string
	Tolerations        []corev1.Toleration
	TolerationsKey     string
	HostPorts          []HostPort
	HostPortsKey       string
	PodTerms           *PodTerms // nil if none
	HasAffinity        bool      // inter-pod affinity, anti-affinity or topology spread terms
	Images             []string  // of containers, init containers and volumes, normalised
	Containers         int       // init containers included

	pod     *corev1.Pod // of which it was read
	faulty  bool        // there was a mistake in that pod: it is told again of each other
	request Resources   // of its containers
}

// share gives a task the template of its role where its pod says the same; else the role gets the task's.
func (t *Task) share(r *Role) {
	t.role = r
	if x := r.template; x != t.Template && x.suits(t.Object) {
		t.take(x)
		return
	}
	r.template = t.Template
}

// take gives a task a template, and the template's copy of what it requests, where that is equal.
func (t *Task) take(x *Template) {
	t.Template = x
	if t.containers.Equal(x.request) {
		t.containers = x.request
	}
	if t.Request.Equal(x.request) {
		t.Request = x.request
	}
}

// mostTemplates is how many templates are known by their image.
const mostTemplates = 1024

// templateOf is a template that is known and suits the pod: that of its role, of an older version of its task, or of the pod of
// another job that came last with the same image. nil: none.
func (c *Cluster) templateOf(o *corev1.Pod, t, old *Task) *Template {
	if j := c.Jobs[t.group]; j != nil && t.group != "" {
		if i, ok := j.findRole(t.Role); ok && j.Roles[i].template.suits(o) {
			return j.Roles[i].template
		}
	}
	if old != nil {
		if x := old.Template; x.suits(o) {
			return x
		}
	}
	if x := c.books.templates[firstImage(o)]; x.suits(o) {
		return x
	}
	return nil
}

// know keeps a template for pods of other jobs.
func (c *Cluster) know(x *Template) {
	if len(c.books.templates) >= mostTemplates {
		clear(c.books.templates)
	}
	c.books.templates[firstImage(x.pod)] = x
}

// firstImage is that of a pod's first container.
func firstImage(o *corev1.Pod) string {
	if len(o.Spec.Containers) == 0 {
		return ""
	}
	return o.Spec.Containers[0].Image
}

// suits says whether reading the pod would give the same template. A nil one suits no pod.
func (x *Template) suits(o *corev1.Pod) bool {
	if x == nil || x.faulty {
		return false
	}
	if x.pod == o {
		return true
	}
	a, b := &x.pod.Spec, &o.Spec
	return a.PriorityClassName == b.PriorityClassName &&
		maps.Equal(a.NodeSelector, b.NodeSelector) &&
		slices.EqualFunc(a.Tolerations, b.Tolerations, podspec.SameToleration) &&
		slices.EqualFunc(a.Containers, b.Containers, podspec.SameContainer) &&
		slices.EqualFunc(a.InitContainers, b.InitContainers, podspec.SameContainer) &&
		slices.Equal(podspec.Images(a), podspec.Images(b)) &&
		x.samePlacement(o)
}

// samePlacement compares what pods ask of nodes and of each other. Such terms may read the pod's own labels, and
// its namespace.
func (x *Template) samePlacement(o *corev1.Pod) bool {
	a, b := &x.pod.Spec, &o.Spec
	if (a.Affinity != nil || b.Affinity != nil) && !equality.Semantic.DeepEqual(a.Affinity, b.Affinity) {
		return false
	}
	if len(a.TopologySpreadConstraints)+len(b.TopologySpreadConstraints) > 0 &&
		!equality.Semantic.DeepEqual(a.TopologySpreadConstraints, b.TopologySpreadConstraints) {
		return false
	}
	return x.PodTerms == nil || x.pod.Namespace == o.Namespace && maps.Equal(x.pod.Labels, o.Labels)
}

// sameRequests says whether a pod that the template suits requests what the template's pod does. Of pods whose kubelet tells
// what it granted it is not said.
func (x *Template) sameRequests(o *corev1.Pod) bool {
	a, b := &x.pod.Spec, &o.Spec
	return a.Resources == nil && b.Resources == nil && !podspec.TellsResources(&x.pod.Status) && !podspec.TellsResources(&o.Status) &&
		sameAmounts(a.Overhead, b.Overhead) &&
		slices.EqualFunc(a.Containers, b.Containers, sameResources) &&
		slices.EqualFunc(a.InitContainers, b.InitContainers, sameResources)
}

func sameResources(a, b corev1.Container) bool {
	return sameAmounts(a.Resources.Requests, b.Resources.Requests) && sameAmounts(a.Resources.Limits, b.Resources.Limits)
}

func sameAmounts(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if w, ok := b[name]; !ok || !sameAmount(v, w) {
			return false
		}
	}
	return true
}

func sameAmount(a, b resource.Quantity) bool {
	if beyond(a) || beyond(b) { // they are read as Most: it takes too long to compare them
		return beyond(a) && beyond(b) && a.Sign() == b.Sign()
	}
	return a.Cmp(b) == 0
}
