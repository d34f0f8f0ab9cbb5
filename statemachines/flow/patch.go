package flow

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// Patched merges the patch of a flow into the spec of a template. Tasks are merged by name. Fields of their pod templates are merged with
// the keys that Kubernetes defines: for example, containers by name. Other lists replace the lists of the template. Fields that a patch
// omits, and zero values, change nothing.
func Patched(spec, patch *batchv1alpha1.JobSpec) (*batchv1alpha1.JobSpec, error) {
	base, err := asMap(spec)
	if err != nil {
		return nil, err
	}
	over, err := asMap(patch)
	if err != nil {
		return nil, err
	}
	tasks, err := mergeTasks(listOf(base["tasks"]), listOf(over["tasks"]))
	if err != nil {
		return nil, err
	}
	delete(over, "tasks")
	mergeMaps(base, over)
	if len(tasks) > 0 {
		base["tasks"] = tasks
	}
	return asJobSpec(base)
}

func asMap(spec *batchv1alpha1.JobSpec) (map[string]any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write a Job's spec: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read a Job's spec: %w", err)
	}
	return out, nil
}

func asJobSpec(fields map[string]any) (*batchv1alpha1.JobSpec, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write a Job's spec: %w", err)
	}
	out := &batchv1alpha1.JobSpec{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("read a Job's spec: %w", err)
	}
	return out, nil
}

func listOf(v any) []any { list, _ := v.([]any); return list }

func mapOf(v any) map[string]any { fields, _ := v.(map[string]any); return fields }

// mergeTasks merges each task of a patch into the task with the same name. Tasks that the template does not have are added.
func mergeTasks(tasks, patches []any) ([]any, error) {
	byName := make(map[any]map[string]any, len(tasks))
	for _, t := range tasks {
		byName[mapOf(t)["name"]] = mapOf(t)
	}
	for _, p := range patches {
		patch := mapOf(p)
		into := byName[patch["name"]]
		if into == nil {
			tasks, byName[patch["name"]] = append(tasks, patch), patch
			continue
		}
		template, err := mergeTemplates(mapOf(into["template"]), mapOf(patch["template"]))
		if err != nil {
			return nil, fmt.Errorf("task %v: %w", patch["name"], err)
		}
		delete(patch, "template")
		mergeMaps(into, patch)
		into["template"] = template
	}
	return tasks, nil
}

// mergeTemplates merges pod templates. A null in the patch is a field that its author omitted, and deletes nothing.
func mergeTemplates(template, patch map[string]any) (map[string]any, error) {
	withoutNullFields(patch)
	if template == nil {
		template = map[string]any{}
	}
	out, err := strategicpatch.StrategicMergeMapPatch(template, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return out, nil
}

func withoutNullFields(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if below == nil {
				delete(v, key)
			}
			withoutNullFields(below)
		}
	case []any:
		for _, below := range v {
			withoutNullFields(below)
		}
	}
}

// mergeMaps writes the fields of from into into.
func mergeMaps(into, from map[string]any) {
	for key, v := range from {
		below, deep := v.(map[string]any)
		if there := mapOf(into[key]); deep && there != nil {
			mergeMaps(there, below)
			continue
		}
		into[key] = v
	}
}
