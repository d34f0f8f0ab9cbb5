package objects

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	podresource "k8s.io/component-helpers/resource"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// MinResources is what the first minAvailable pods of a job need, counted as Kubernetes' quotas
// count. Which pods are first: where the job's minAvailable holds all of the tasks' own, each task's
// minAvailable, then the rest of the tasks; else the tasks as they are. Tasks of a greater priority
// go before others, those of one priority in the job's order.
func MinResources(job *batchv1alpha1.Job, priorityOf func(class string) int32) corev1.ResourceList {
	tasks := make([]*batchv1alpha1.TaskSpec, 0, len(job.Spec.Tasks))
	minima := int64(0)
	for i := range job.Spec.Tasks {
		tasks = append(tasks, &job.Spec.Tasks[i])
		minima += int64(TaskMinAvailable(&job.Spec.Tasks[i]))
	}
	slices.SortStableFunc(tasks, func(a, b *batchv1alpha1.TaskSpec) int {
		return cmp.Compare(priorityOf(b.Template.Spec.PriorityClassName), priorityOf(a.Template.Spec.PriorityClassName))
	})
	count := int64(job.Spec.MinAvailable)
	if count < minima {
		return firstPods(tasks, count, func(*batchv1alpha1.TaskSpec) int64 { return 0 })
	}
	return firstPods(tasks, count, func(t *batchv1alpha1.TaskSpec) int64 {
		if t.MinAvailable == nil {
			return 0
		}
		return int64(*t.MinAvailable)
	})
}

// firstPods sums what count pods need: of each task first as many as minimum says, then the rest.
func firstPods(tasks []*batchv1alpha1.TaskSpec, count int64, minimum func(*batchv1alpha1.TaskSpec) int64) corev1.ResourceList {
	total := corev1.ResourceList{}
	take := func(task *batchv1alpha1.TaskSpec, pods int64) {
		pods = max(0, min(pods, count))
		count -= pods
		if pods > 0 {
			addTimes(total, podNeeds(&task.Template.ObjectMeta, &task.Template.Spec), pods)
		}
	}
	for _, t := range tasks {
		take(t, minimum(t))
	}
	for _, t := range tasks {
		take(t, int64(t.Replicas)-minimum(t))
	}
	return total
}

// addTimes adds a list to another, times over.
func addTimes(to, add corev1.ResourceList, times int64) {
	for name, amount := range add {
		product := amount.DeepCopy()
		product.Mul(times)
		product.Add(to[name])
		to[name] = product
	}
}

// podNeeds is what one pod counts for in minResources: podUsage, and the devices that its annotations ask for. A ResourceQuota counts no
// annotation, so these have no name that a quota uses.
func podNeeds(meta *metav1.ObjectMeta, spec *corev1.PodSpec) corev1.ResourceList {
	needs := podUsage(*spec)
	maps.Copy(needs, model.DeviceRequests(&corev1.Pod{ObjectMeta: *meta, Spec: *spec}, false))
	return needs
}

// podUsage is what one pod counts for in a ResourceQuota: cpu, memory, requests.*, limits.*, pods,
// count/pods. Extended resources, which quotas know as requests.<name>, stand under their own name as
// well, as the scheduler knows them.
func podUsage(spec corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	model.TamePod(&pod.Spec)
	for i := range pod.Spec.Containers {
		defaultRequests(&pod.Spec.Containers[i].Resources)
	}
	for i := range pod.Spec.InitContainers {
		defaultRequests(&pod.Spec.InitContainers[i].Resources)
	}
	defaultPodLevel(pod)
	usage := quotaUsage(pod)
	for name, amount := range usage {
		own, ok := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
		if ok && strings.Contains(own, "/") {
			usage[corev1.ResourceName(own)] = amount
		}
	}
	return usage
}

// quotaUsage is what Kubernetes' quotas count of a pod that has not ended, as PodUsageFunc of k8s.io/kubernetes/pkg/quota/v1/evaluator/core
// does. That package links a client of the API server, with the types of all its APIs.
func quotaUsage(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	usage := corev1.ResourceList{"count/pods": one, corev1.ResourcePods: one}
	for name, amount := range podresource.PodRequests(pod, podresource.PodResourcesOptions{}) {
		own := name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if own {
			usage[name] = amount
		}
		if own || isExtended(name) {
			usage[corev1.DefaultResourceRequestsPrefix+name] = amount
		}
	}
	for name, amount := range podresource.PodLimits(pod, podresource.PodResourcesOptions{}) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
			usage["limits."+name] = amount
		}
	}
	return usage
}

// deviceClassPrefix is that of resources which stand for a class of devices, resourcev1.ResourceDeviceClassPrefix: that package brings the
// types of its API along.
const deviceClassPrefix = "deviceclass.resource.kubernetes.io/"

// isExtended says whether a resource is none of Kubernetes' own, and can be counted by a quota.
func isExtended(name corev1.ResourceName) bool {
	if strings.HasPrefix(string(name), deviceClassPrefix) {
		return true
	}
	text := string(name)
	own := !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix)
	return !own && !strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}
