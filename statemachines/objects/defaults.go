package objects

import (
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
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
	if p.Spec.Resources != nil {
		defaultRequests(p.Spec.Resources)
	}
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
