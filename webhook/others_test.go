package webhook

import (
	"slices"
	"strings"
	"testing"
)

// TestJobsOfOthersPass checks that Jobs of other schedulers get a warning. They are accepted, even if they contain mistakes.
func TestJobsOfOthersPass(t *testing.T) {
	h := handlerFor(t)
	for name, c := range map[string]struct{ job, warning string }{
		"a misspelt scheduler": {
			`{"spec": {"schedulerName": "volcanoo", "tasks": [` +
				`{"replicas": 8, "template": {"spec": {"containers": [{"name": "main", "image": "train"}]}}}]}}`,
			"spec.schedulerName: is volcanoo (did you mean volcano?), so Celsius, which serves volcano, does not take the job",
		},
		"mistakes": {
			`{"spec": {"schedulerName": "training-operator", "minAvailable": 9, "tasks": []}}`,
			"spec.schedulerName: is training-operator, so Celsius",
		},
		"what cannot be decoded": {`{"spec": {"schedulerName": "training-operator", "policies": [{"timeout": "banana"}]}}`, ""},
	} {
		got := h.warn(t.Context(), requestFor("CREATE", []byte(c.job), nil))
		if !got.Allowed {
			t.Errorf("%s: refused: %v", name, got.Result)
		}
		if !slices.ContainsFunc(got.Warnings, func(said string) bool { return strings.Contains(said, c.warning) }) && c.warning != "" {
			t.Errorf("%s: warnings %q, want %q", name, got.Warnings, c.warning)
		}
	}
}
