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

// MinResources returns what the first minAvailable pods of a job need, counted as in Kubernetes' quotas. Tasks with a higher priority come
// first, and tasks of equal priority are in the job's order. If the job's minAvailable is at least the sum of the tasks' minimums, the
// minAvailable of each task that sets it is taken first, and then the rest of the tasks. Otherwise whole tasks are taken in their order.
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

// firstPods returns the sum of what count pods need. It first takes minimum pods of each task, and then the rest.
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

// addTimes adds a list to another, multiplied by times.
func addTimes(to, add corev1.ResourceList, times int64) {
	for name, amount := range add {
		product := amount.DeepCopy()
		product.Mul(times)
		product.Add(to[name])
		to[name] = product
	}
}

// podNeeds returns what one pod adds to minResources: podUsage, and the devices that its annotations request. A ResourceQuota does not
// count annotations. Therefore the devices have no name that a quota uses.
func podNeeds(meta *metav1.ObjectMeta, spec *corev1.PodSpec) corev1.ResourceList {
	needs := podUsage(*spec)
	maps.Copy(needs, model.DeviceRequests(&corev1.Pod{ObjectMeta: *meta, Spec: *spec}, false))
	return needs
}

// podUsage returns what one pod uses of a ResourceQuota: cpu, memory, requests.*, limits.*, pods, count/pods. Quotas name extended
// resources requests.<name>. The result also contains them under their own name, which the scheduler uses.
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

// quotaUsage returns what Kubernetes' quotas count for a pod that has not ended. It does the same as PodUsageFunc of
// k8s.io/kubernetes/pkg/quota/v1/evaluator/core. That package is not used because it links a client of the API server with the types of all
// its APIs.
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

// deviceClassPrefix is the prefix of resources that stand for a class of devices. It equals resourcev1.ResourceDeviceClassPrefix, whose
// package would link the types of its API.
const deviceClassPrefix = "deviceclass.resource.kubernetes.io/"

// isExtended reports whether a resource is not one of Kubernetes' own, and can be counted by a quota.
func isExtended(name corev1.ResourceName) bool {
	if strings.HasPrefix(string(name), deviceClassPrefix) {
		return true
	}
	text := string(name)
	own := !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix)
	return !own && !strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}
