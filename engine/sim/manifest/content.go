package manifest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// maxObjects is the default of Options.MaxObjects. It is far beyond any cluster, and small enough for the memory.
const maxObjects = 200_000

// content checks an object for mistakes that its own text shows.
func (l *loader) content(v source.Value, object metav1.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		l.podContent(v, o)
	case *corev1.Node:
		for i, taint := range o.Spec.Taints {
			l.oneOf(At(v, "spec", "taints", i, "effect"), string(taint.Effect), taintEffects())
		}
	case *schedulingv1beta1.PodGroup:
		l.oneOf(At(v, "status", "phase"), string(o.Status.Phase), GroupPhases())
		l.notNegative(At(v, "spec", "minMember"), int64(o.Spec.MinMember))
		l.noneNegative(At(v, "spec", "minTaskMember"), o.Spec.MinTaskMember)
	case *schedulingv1beta1.Queue:
		l.oneOf(At(v, "status", "state"), string(o.Status.State), queueStates())
		l.notNegative(At(v, "spec", "weight"), int64(o.Spec.Weight))
		if o.Spec.Parent == o.Name {
			l.report(At(v, "spec", "parent").Issuef("", "a queue is not its own parent"))
		}
	case *batchv1alpha1.Job:
		l.jobContent(v, o)
	}
}

// GroupPhases lists the phases of a PodGroup.
func GroupPhases() []string {
	return []string{"Pending", "Inqueue", "Running", "Unknown", "Completed"}
}

func queueStates() []string { return []string{"Open", "Closed", "Closing", "Unknown"} }

func dequeueStrategies() []string { return []string{"fifo", "traverse"} }

func podPhases() []string {
	return []string{"Pending", "Running", "Succeeded", "Failed", "Unknown"}
}

func taintEffects() []string { return []string{"NoSchedule", "PreferNoSchedule", "NoExecute"} }

func (l *loader) podContent(v source.Value, p *corev1.Pod) {
	l.oneOf(At(v, "status", "phase"), string(p.Status.Phase), podPhases())
	if p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == "" {
		l.report(At(v, "status", "phase").Issuef("set spec.nodeName, or leave the phase out", "a pod that is Running has a node"))
	}
	if len(p.Spec.Containers) == 0 {
		l.report(Deepest(v, "spec", "containers").Issuef("", "a pod has at least one container"))
	}
	l.lifeContent(At(v, "metadata", "annotations", LifeAnnotation), p.Annotations, p.Spec.Containers)
	names := map[string]bool{}
	for i, c := range p.Spec.Containers {
		if c.Name != "" && names[c.Name] {
			l.report(At(v, "spec", "containers", i, "name").Issuef("", "two containers are called %q", c.Name))
		}
		names[c.Name] = true
	}
}

func (l *loader) jobContent(v source.Value, j *batchv1alpha1.Job) {
	if len(j.Spec.Tasks) == 0 {
		l.report(Deepest(v, "spec", "tasks").Issuef("", "a Job has at least one task"))
		return
	}
	names, total := map[string]bool{}, int64(0)
	for i := range j.Spec.Tasks {
		t := &j.Spec.Tasks[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("default%d", i)
		}
		if names[t.Name] {
			l.report(At(v, "spec", "tasks", i, "name").Issuef("", "two tasks are called %q", t.Name))
		}
		names[t.Name] = true
		total += int64(max(t.Replicas, 0))
		l.taskContent(v, i, t)
	}
	l.notNegative(At(v, "spec", "minAvailable"), int64(j.Spec.MinAvailable))
	if int64(j.Spec.MinAvailable) > total {
		l.report(At(v, "spec", "minAvailable").Issuef("", "must not be above %d, the sum of the tasks' replicas, found %d", total,
			j.Spec.MinAvailable))
	}
	if l.tooLarge(j) {
		l.report(At(v, "spec", "tasks").Issuef("lower the replicas of its tasks", "%d pods are more than can be simulated, %d", total, l.limit))
	}
}

func (l *loader) taskContent(v source.Value, i int, t *batchv1alpha1.TaskSpec) {
	l.notNegative(At(v, "spec", "tasks", i, "replicas"), int64(t.Replicas))
	if len(t.Template.Spec.Containers) == 0 {
		l.report(Deepest(v, "spec", "tasks", i, "template", "spec", "containers").Issuef("", "a task's template has at least one container"))
	}
	l.lifeContent(At(v, "spec", "tasks", i, "template", "metadata", "annotations", LifeAnnotation), t.Template.Annotations,
		t.Template.Spec.Containers)
	if t.MinAvailable == nil {
		return
	}
	place := At(v, "spec", "tasks", i, "minAvailable")
	l.notNegative(place, int64(*t.MinAvailable))
	if *t.MinAvailable > t.Replicas {
		l.report(place.Issuef("", "must not be above the task's replicas, %d, found %d", t.Replicas, *t.MinAvailable))
	}
}

// lifeContent checks the annotation with a pod's life.
func (l *loader) lifeContent(v source.Value, annotations map[string]string, containers []corev1.Container) {
	_, mistakes := ReadLife(annotations[LifeAnnotation], containerNames(containers))
	for i, m := range mistakes {
		if i == mostOfOne { // all are at the same place, and finding it takes time for each
			l.report(v.Issuef("", "and %d more mistakes", len(mistakes)-i))
			return
		}
		l.report(v.Issuef("", "%v", m))
	}
}

// mostOfOne is the maximum number of reported mistakes of one annotation.
const mostOfOne = 20

func (l *loader) oneOf(v source.Value, word string, words []string) {
	for _, w := range words {
		if w == word || word == "" {
			return
		}
	}
	hint := ""
	if near := source.Nearest(word, words); near != "" {
		hint = "did you mean " + near + "?"
	}
	l.report(v.Issuef(hint, "must be one of %s, found %q", strings.Join(words, ", "), word))
}

func (l *loader) notNegative(v source.Value, n int64) {
	if n < 0 {
		l.report(v.Issuef("", "must not be negative, found %d", n))
	}
}

// noneNegative checks numbers by name. It iterates over the names in the order of the source. Looking up each name would search all of
// them, and a user can write any number of names.
func (l *loader) noneNegative(v source.Value, numbers map[string]int32) {
	var ignored source.Issues
	for _, f := range v.Fields(nil, &ignored) {
		l.notNegative(f.Value, int64(numbers[f.Name]))
	}
}

// At follows field names and list indices from v. If the place does not exist, the result is absent.
func At(v source.Value, path ...any) source.Value {
	for _, step := range path {
		v = down(v, step)
	}
	return v
}

// Deepest is At, but stops at the last place that exists.
func Deepest(v source.Value, path ...any) source.Value {
	for _, step := range path {
		next := down(v, step)
		if !next.Exists() {
			return v
		}
		v = next
	}
	return v
}

func down(v source.Value, step any) source.Value {
	switch s := step.(type) {
	case string:
		return v.Get(s)
	case int:
		return v.Item(s)
	}
	return source.Value{}
}

// Blame returns the place of a field that the model reports, such as metadata.annotations[celsius.dev/gpu-milli]. whole is false if only a
// part of the path exists.
func Blame(v source.Value, field string) (place source.Value, whole bool) {
	var path []any
	for field != "" {
		var step string
		if rest, ok := strings.CutPrefix(field, "["); ok {
			step, field, _ = strings.Cut(rest, "]")
		} else {
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			step, field = field[:end], field[end:]
		}
		field = strings.TrimPrefix(field, ".")
		var index int
		if _, err := fmt.Sscanf(step, "%d", &index); err == nil && fmt.Sprint(index) == step {
			path = append(path, index)
			continue
		}
		path = append(path, step)
	}
	return Deepest(v, path...), At(v, path...).Exists()
}
