package controller

import (
	_ "embed"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

//go:embed notyet.yaml
var notYetText []byte

// feature is a field of a Job that is not supported yet.
type feature struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// features reads the checked-in list.
func features() ([]feature, error) {
	var out []feature
	if err := yaml.UnmarshalStrict(notYetText, &out); err != nil {
		return nil, fmt.Errorf("notyet.yaml: %w", err)
	}
	return out, nil
}

// warnNotYet reports in events which fields of a job are not supported yet.
func (r *jobs) warnNotYet(job *batchv1alpha1.Job) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return // a job that was read can always be converted
	}
	for _, f := range r.notYet {
		if says(object, strings.Split(f.Path, ".")) {
			r.event(job, corev1.EventTypeWarning, notYetHonoured, "Initiate", "%s: %s", f.Path, f.Message)
		}
	}
}

// says reports whether an object has a value at a path.
func says(at any, path []string) bool {
	if len(path) == 0 {
		switch v := at.(type) {
		case map[string]any:
			return len(v) > 0
		case []any:
			return len(v) > 0
		default:
			return v != nil
		}
	}
	object, ok := at.(map[string]any)
	if !ok {
		return false
	}
	name, list := strings.CutSuffix(path[0], "[*]")
	if !list {
		return says(object[name], path[1:])
	}
	items, ok := object[name].([]any)
	if !ok {
		return false
	}
	for _, item := range items {
		if says(item, path[1:]) {
			return true
		}
	}
	return false
}
