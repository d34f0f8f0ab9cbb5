package objects

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// Dependents are the tasks of a Job that depend on others, by name.
type Dependents map[string]Dependent

// Dependent is a task that depends on others.
type Dependent struct {
	// Waits states for which tasks it waits, and how many of their pods exist. If it is "", the task's pods may be created.
	Waits string
	// Started states that the minimum number of its pods has a node. From then on the task belongs to the gang.
	Started bool
}

// DependentTasks returns the state of the tasks that depend on others. A task waits until the minimum number of pods of those other tasks
// is ready or has succeeded. pods must not contain pods that are being deleted or belong to an earlier version of the job.
func DependentTasks(job *batchv1alpha1.Job, pods []*corev1.Pod) Dependents {
	if !slices.ContainsFunc(job.Spec.Tasks, func(t batchv1alpha1.TaskSpec) bool { return t.DependsOn != nil && len(t.DependsOn.Name) > 0 }) {
		return nil
	}
	placed, ready := map[string]int32{}, map[string]int32{}
	for _, pod := range pods {
		task := pod.Annotations[batchv1alpha1.TaskSpecKey]
		if pod.Spec.NodeName != "" {
			placed[task]++
		}
		if isReady(pod) {
			ready[task]++
		}
	}
	least := map[string]int32{}
	for i := range job.Spec.Tasks {
		least[job.Spec.Tasks[i].Name] = TaskMinAvailable(&job.Spec.Tasks[i])
	}
	out := Dependents{}
	for i := range job.Spec.Tasks {
		if task := &job.Spec.Tasks[i]; task.DependsOn != nil && len(task.DependsOn.Name) > 0 {
			out[task.Name] = Dependent{waitsFor(task.DependsOn, least, ready), placed[task.Name] >= least[task.Name]}
		}
	}
	return out
}

// waitsFor returns what a dependent task still waits for, or "".
func waitsFor(on *batchv1alpha1.DependsOn, least, ready map[string]int32) string {
	var lacks []string
	for _, name := range on.Name {
		switch want, known := least[name]; {
		case !known:
			lacks = append(lacks, fmt.Sprintf("task %s, which the job does not have", name))
		case ready[name] < want:
			lacks = append(lacks, fmt.Sprintf("task %s, of which %d of %d pods are ready", name, ready[name], want))
		}
	}
	if on.Iteration != batchv1alpha1.IterationAny || len(on.Name) == 1 {
		return firstFew(lacks, " and ", "and")
	}
	if len(lacks) < len(on.Name) {
		return ""
	}
	return firstFew(lacks, " or ", "or")
}

// firstFew joins the first texts, and adds the number of the others.
func firstFew(texts []string, by, last string) string {
	const most = 3
	if n := len(texts) - most; n > 0 {
		return fmt.Sprintf("%s, %s %d more", strings.Join(texts[:most], by), last, n)
	}
	return strings.Join(texts, by)
}

// isReady reports whether a pod runs with all its containers ready, or has succeeded.
func isReady(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return pod.Status.Phase == corev1.PodRunning &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready })
}

// gang returns a copy of the job without dependent tasks that have not started yet. They do not belong to the PodGroup, which would
// otherwise wait for pods that wait for it.
func (d Dependents) gang(job *batchv1alpha1.Job) *batchv1alpha1.Job {
	out := *job
	out.Spec.Tasks = nil
	replicas := int32(0)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if depends, known := d[task.Name]; known && !depends.Started {
			out.Spec.MinAvailable -= TaskMinAvailable(task)
			continue
		}
		replicas += task.Replicas
		out.Spec.Tasks = append(out.Spec.Tasks, *task)
	}
	if len(out.Spec.Tasks) == len(job.Spec.Tasks) {
		return job
	}
	out.Spec.MinAvailable = max(out.Spec.MinAvailable, min(1, replicas, job.Spec.MinAvailable))
	return &out
}

// Waiting lists which tasks wait for which others, as a text, or returns "".
func (d Dependents) Waiting() string {
	var lines []string
	for name, depends := range d {
		if depends.Waits != "" {
			lines = append(lines, fmt.Sprintf("task %s waits for %s", name, depends.Waits))
		}
	}
	slices.Sort(lines)
	return firstFew(lines, "; ", "and")
}
