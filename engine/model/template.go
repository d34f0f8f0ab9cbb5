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

// Template contains the fields that the pods of one template have in common, parsed once. The tasks of a role share it if their pods state
// the same. So each pod of a large job costs little memory and work. A Template never changes.
type Template struct {
	PriorityClassName string

	// Input of Kubernetes' own rules. Equal keys mean equal terms.
	NodeAffinity    nodeaffinity.RequiredNodeAffinity
	NodeAffinityKey string // canonical text of nodeSelector and required affinity
	// NodeAffinityLabels are the node labels that nodeSelector and required affinity read. NodeAffinityFields states that they also read
	// fields.
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

	pod     *corev1.Pod // from which it was read
	faulty  bool        // that pod has a mistake, which must be reported again for each other pod
	request Resources   // of its containers
}

// share gives a task the template of its role if its pod states the same. Otherwise the role gets the template of the task.
func (t *Task) share(r *Role) {
	t.role = r
	if x := r.template; x != t.Template && x.suits(t.Object) {
		t.take(x)
		return
	}
	r.template = t.Template
}

// take sets the template of a task. If the requests are equal, the task also shares the template's copy of them.
func (t *Task) take(x *Template) {
	t.Template = x
	if t.containers.Equal(x.request) {
		t.containers = x.request
	}
	if t.Request.Equal(x.request) {
		t.Request = x.request
	}
}

// mostTemplates is the maximum number of templates that are known by image.
const mostTemplates = 1024

// templateOf returns a known template that suits the pod: of its role, of the older version of its task, or of the last pod of another job
// with the same image. nil: there is none.
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

// know stores a template for pods of other jobs.
func (c *Cluster) know(x *Template) {
	if len(c.books.templates) >= mostTemplates {
		clear(c.books.templates)
	}
	c.books.templates[firstImage(x.pod)] = x
}

// firstImage returns the image of a pod's first container.
func firstImage(o *corev1.Pod) string {
	if len(o.Spec.Containers) == 0 {
		return ""
	}
	return o.Spec.Containers[0].Image
}

// suits reports whether reading the pod would give the same template. nil suits no pod.
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

// samePlacement compares the terms of pods about nodes and about each other. Such terms may read the pod's own labels and its namespace.
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

// sameRequests reports whether a pod that the template suits has the same requests as the template's pod. It is false if the kubelet of one
// of them states the resources that it granted.
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
	if beyond(a) || beyond(b) { // such an amount is read as Most: a comparison would take too long
		return beyond(a) && beyond(b) && a.Sign() == b.Sign()
	}
	return a.Cmp(b) == 0
}
