package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// ForwardedValue is the value of JobForwardingKey if the queue forwards jobs to other clusters.
const ForwardedValue = "true"

// jobOwner returns the owner reference of objects that a controller creates for the job.
func jobOwner(job *batchv1alpha1.Job) metav1.OwnerReference {
	return *metav1.NewControllerRef(job, batchv1alpha1.GroupVersion.WithKind("Job"))
}

// PodName returns the name of a pod of a job.
func PodName(job, task string, index int) string { return fmt.Sprintf("%s-%s-%d", job, task, index) }

// PodPlan contains what is needed to create a pod, in addition to its job.
type PodPlan struct {
	Task          *batchv1alpha1.TaskSpec
	Index         int
	Group         string // the name of the PodGroup
	SchedulerName string // for a pod without a scheduler name in its template and its job
	Forwarded     bool   // the queue forwards its jobs to other clusters
	Plugins       *jobplugin.Run
}

// Pod returns the pod with one index of a task. An error is that of a row of a plugin.
func Pod(job *batchv1alpha1.Job, p PodPlan) (*corev1.Pod, error) {
	template := p.Task.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            PodName(job.Name, p.Task.Name, p.Index),
			Namespace:       job.Namespace,
			OwnerReferences: []metav1.OwnerReference{jobOwner(job)},
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Spec.SchedulerName = cmp.Or(pod.Spec.SchedulerName, job.Spec.SchedulerName, p.SchedulerName)
	pod.Spec.PriorityClassName = cmp.Or(pod.Spec.PriorityClassName, job.Spec.PriorityClassName)
	mountVolumes(job, &pod.Spec)
	markPod(job, p, pod)
	return pod, p.Plugins.Pod(p.Task, p.Index, pod)
}

// markPod writes the labels and annotations through which pods and jobs find each other.
func markPod(job *batchv1alpha1.Job, p PodPlan, pod *corev1.Pod) {
	index := strconv.Itoa(p.Index)
	maps.Copy(pod.Annotations, map[string]string{
		batchv1alpha1.TaskIndex:                      index,
		batchv1alpha1.TaskSpecKey:                    p.Task.Name,
		schedulingv1beta1.KubeGroupNameAnnotationKey: p.Group,
		batchv1alpha1.JobNameKey:                     job.Name,
		batchv1alpha1.QueueNameKey:                   job.Spec.Queue,
		batchv1alpha1.JobVersion:                     strconv.Itoa(int(job.Status.Version)),
		batchv1alpha1.JobRetryCountKey:               strconv.Itoa(int(job.Status.RetryCount)),
		batchv1alpha1.PodTemplateKey:                 job.Name + "-" + p.Task.Name,
	})
	maps.Copy(pod.Labels, map[string]string{
		batchv1alpha1.TaskIndex:       index,
		batchv1alpha1.JobNameKey:      job.Name,
		batchv1alpha1.TaskSpecKey:     p.Task.Name,
		batchv1alpha1.JobNamespaceKey: job.Namespace,
		batchv1alpha1.QueueNameKey:    job.Spec.Queue,
	})
	if p.Task.TopologyPolicy != "" {
		pod.Annotations[schedulingv1beta1.NumaPolicyKey] = string(p.Task.TopologyPolicy)
	}
	if part := p.Task.PartitionPolicy; part != nil {
		pod.Labels[batchv1alpha1.TaskPartitionID] = strconv.Itoa(partition(p.Index, int(part.PartitionSize)))
	}
	copyKeys(job.Annotations, pod.Annotations, schedulingv1beta1.PodPreemptable, schedulingv1beta1.CooldownTime,
		schedulingv1beta1.RevocableZone)
	copyFirst(job.Annotations, pod.Annotations, schedulingv1beta1.JDBMinAvailable, schedulingv1beta1.JDBMaxUnavailable)
	copyKeys(job.Labels, pod.Labels, schedulingv1beta1.PodPreemptable, schedulingv1beta1.CooldownTime)
	if p.Forwarded {
		pod.Annotations[batchv1alpha1.JobForwardingKey] = ForwardedValue
		pod.Labels[batchv1alpha1.JobForwardingKey] = ForwardedValue
	}
}

// partition returns the number of the partition that contains an index, or 0 if the size is not positive.
func partition(index, size int) int {
	if size <= 0 {
		return 0
	}
	return index / size
}

// copyKeys copies those of the keys that exist.
func copyKeys(from, to map[string]string, keys ...string) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}

// copyFirst copies the first of the keys that exists, because the keys exclude each other.
func copyFirst(from, to map[string]string, keys ...string) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
			return
		}
	}
}

// mountVolumes mounts the job's claims into every container of a pod, except its init containers. A repeated path is mounted once.
func mountVolumes(job *batchv1alpha1.Job, spec *corev1.PodSpec) {
	seen := map[string]bool{}
	for _, v := range job.Spec.Volumes {
		if v.VolumeClaimName == "" || seen[v.MountPath] {
			continue
		}
		seen[v.MountPath] = true
		name := volumeName(job, v.MountPath)
		spec.Volumes = append(spec.Volumes, corev1.Volume{
			Name: name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.VolumeClaimName},
			},
		})
		for i := range spec.Containers {
			spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: v.MountPath})
		}
	}
}

// volumeName returns the name of a pod's volume. It is the job's name and twelve characters, as in Volcano. The characters are derived from
// the path and are not random, so that a pod that is created again is equal. A volume's name is a DNS label. Therefore a long name of a job
// is cut.
func volumeName(job *batchv1alpha1.Job, path string) string { return drawn(job, path, "") }

// drawn returns a DNS label with a job's name, a word, and twelve characters that are derived from the job and a path.
func drawn(job *batchv1alpha1.Job, path, word string) string {
	const suffix, longest = 12, 63
	sum := sha256.Sum256([]byte(string(job.UID) + path))
	name := strings.ReplaceAll(job.Name, ".", "-")
	name = name[:min(len(name), longest-suffix-1-len(word))]
	return name + word + "-" + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:suffix])
}

// Claim returns the claim that a job creates for a volume. Its name is the volume's claim name or, if it is empty, a derived name. It
// belongs to the job.
func Claim(job *batchv1alpha1.Job, v *batchv1alpha1.VolumeSpec) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: cmp.Or(v.VolumeClaimName, drawn(job, v.MountPath, "-pvc")), Namespace: job.Namespace,
			OwnerReferences: []metav1.OwnerReference{jobOwner(job)},
		},
		Spec: *v.VolumeClaim.DeepCopy(),
	}
}
