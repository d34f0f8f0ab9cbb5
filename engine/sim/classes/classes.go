// Package classes contains the PriorityClasses of a world: their values, and the pods that the API server refuses because their class is
// missing.
package classes

import (
	"cmp"
	"fmt"
	"iter"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Classes are the PriorityClasses of a world, by name.
type Classes map[string]*schedulingv1.PriorityClass

// Of returns the PriorityClasses among objects. If two have the same name, it returns the later one.
func Of(all iter.Seq[metav1.Object]) Classes {
	out := Classes{}
	for o := range all {
		if class, ok := o.(*schedulingv1.PriorityClass); ok {
			out[class.Name] = class
		}
	}
	return out
}

// Value returns the value of a class. "" stands for the default class; its value is 0 if no class is the default.
func (c Classes) Value(name string) (int32, bool) {
	switch name {
	case "system-cluster-critical":
		return 2_000_000_000, true
	case "system-node-critical":
		return 2_000_001_000, true
	case "":
		return c.byDefault(), true
	}
	if class, ok := c[name]; ok {
		return class.Value, true
	}
	return 0, false
}

// byDefault returns the lowest value of the classes that are global defaults, as the API server does. It returns 0 if there is none.
func (c Classes) byDefault() int32 {
	value, found := int32(0), false
	for _, class := range c {
		if class.GlobalDefault && (!found || class.Value < value) {
			value, found = class.Value, true
		}
	}
	return value
}

// Missing returns the PriorityClass that the pods of a task name if it does not exist. It returns "" if the class exists, or if the files
// contain no class at all. Every cluster has classes, so such files do not show which classes exist.
func (c Classes) Missing(j *batchv1alpha1.Job, task *batchv1alpha1.TaskSpec) string {
	name := cmp.Or(task.Template.Spec.PriorityClassName, j.Spec.PriorityClassName)
	if _, ok := c.Value(name); ok || len(c) == 0 {
		return ""
	}
	return name
}

// Refused states why the API server refuses the pods that a Job lacks; "": it does not.
func (c Classes) Refused(j *batchv1alpha1.Job, exists func(pod string) bool) string {
	for t := range j.Spec.Tasks {
		task := &j.Spec.Tasks[t]
		class := c.Missing(j, task)
		for n := 0; class != "" && n < int(task.Replicas); n++ {
			if name := objects.PodName(j.Name, task.Name, n); !exists(name) {
				return fmt.Sprintf(objects.NoPriorityClass+" (pod %s)", class, name)
			}
		}
	}
	return ""
}

// Warnings returns a warning for each PriorityClass of a Job that is not in the files. near returns a hint with the nearest name.
func (c Classes) Warnings(i manifest.Item, j *batchv1alpha1.Job, near func(name string) string) (out source.Issues) {
	if !model.MakesPods(j.Status.State.Phase) {
		return nil
	}
	for t := range j.Spec.Tasks {
		task := &j.Spec.Tasks[t]
		name := cmp.Or(task.Template.Spec.PriorityClassName, j.Spec.PriorityClassName)
		if _, ok := c.Value(name); ok {
			continue
		}
		place := manifest.Deepest(i.Value, "spec", "tasks", t, "template", "spec", "priorityClassName")
		if task.Template.Spec.PriorityClassName == "" {
			place = manifest.Deepest(i.Value, "spec", "priorityClassName")
		}
		if len(c) == 0 {
			out = append(out, place.Issuef("", "%s, task %s: PriorityClass %q is not in the files, and no other is: it is not known whether the "+
				"cluster has it; it counts as none", i.ID(), task.Name, name))
			continue
		}
		out = append(out, place.Issuef(near(name), "%s, task %s: "+objects.NoPriorityClass, i.ID(), task.Name, name))
	}
	return out
}
