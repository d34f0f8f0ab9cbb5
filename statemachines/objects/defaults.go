package objects

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Default does what of admission's defaults of a Job matters to its PodGroup and its pods.
func Default(j *batchv1alpha1.Job) {
	j.Spec.Queue = QueueName(j.Spec.Queue)
	sum := int32(0)
	for i := range j.Spec.Tasks {
		t := &j.Spec.Tasks[i]
		least := TaskMinAvailable(t)
		t.MinAvailable = &least
		sum += least
	}
	if j.Spec.MinAvailable == 0 {
		j.Spec.MinAvailable = sum
	}
}

// PodDefaults fills in what an API server would: limits stand for requests that are
// not said, host networking for host ports, and a pod is Pending until it is more.
func PodDefaults(p *corev1.Pod) {
	if p.Status.Phase == "" {
		p.Status.Phase = corev1.PodPending
	}
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
			defaultPorts(containers[i].Ports, p.Spec.HostNetwork)
		}
	}
	defaultPodLevel(p)
}

// defaultPodLevel completes what a pod states of its resources as a whole, after its containers were completed. It does what
// defaultHugePagePodLimits and defaultPodRequests of k8s.io/kubernetes/pkg/apis/core/v1 do: an amount that is not stated is what the
// containers request together, and the pod's limit where they request none.
func defaultPodLevel(p *corev1.Pod) {
	r := p.Spec.Resources
	if r == nil || len(r.Limits)+len(r.Requests) == 0 {
		return
	}
	hugePages := func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	}
	whole := &corev1.Pod{Spec: *p.Spec.DeepCopy()}
	model.TamePod(&whole.Spec) // a sum of monstrous amounts takes for ever
	for name, q := range podresource.AggregateContainerLimits(whole, podresource.PodResourcesOptions{}) {
		if _, requested := r.Requests[name]; hugePages(name) && !requested {
			r.Limits = withDefault(r.Limits, name, q)
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	for name, q := range podresource.AggregateContainerRequests(whole, podresource.PodResourcesOptions{}) {
		if podresource.IsSupportedPodLevelResource(name) && !hugePages(name) {
			r.Requests = withDefault(r.Requests, name, q)
		}
	}
	for name, q := range r.Limits {
		if podresource.IsSupportedPodLevelResource(name) {
			r.Requests = withDefault(r.Requests, name, q)
		}
	}
}

// withDefault adds an amount that is not there.
func withDefault(to corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	if _, there := to[name]; there {
		return to
	}
	if to == nil {
		to = corev1.ResourceList{}
	}
	to[name] = q.DeepCopy()
	return to
}

// defaultRequests does what the API server will: who has a limit and no request asks for its limit.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, q := range r.Limits {
		if _, said := r.Requests[name]; said {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = q
	}
}

func defaultPorts(ports []corev1.ContainerPort, hostNetwork bool) {
	for i := range ports {
		if ports[i].Protocol == "" {
			ports[i].Protocol = corev1.ProtocolTCP
		}
		if hostNetwork && ports[i].HostPort == 0 {
			ports[i].HostPort = ports[i].ContainerPort
		}
	}
}
