package objects

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Default applies those of admission's defaults of a Job that affect its PodGroup and its pods.
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

// PodDefaults applies the defaults of an API server. Limits replace missing requests, host ports get host networking, and a pod without a
// phase is Pending.
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

// defaultPodLevel completes the pod-level resources of a pod whose containers are complete. It does the same as defaultHugePagePodLimits
// and defaultPodRequests of k8s.io/kubernetes/pkg/apis/core/v1. A missing amount becomes the sum of the containers' requests, or the pod's
// limit if the containers request none.
func defaultPodLevel(p *corev1.Pod) {
	r := p.Spec.Resources
	if r == nil || len(r.Limits)+len(r.Requests) == 0 {
		return
	}
	hugePages := func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	}
	whole := &corev1.Pod{Spec: *p.Spec.DeepCopy()}
	model.TamePod(&whole.Spec) // the sum of extremely large amounts takes very long
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

// withDefault adds an amount if it is missing.
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

// defaultRequests applies the default of the API server: a missing request equals the limit.
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
