package action

import (
	"slices"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestEachVerbIsRun checks that each verb of the language has a function, and that each function belongs to a verb.
func TestEachVerbIsRun(t *testing.T) {
	t.Parallel()
	var declared, run []string
	for _, v := range policy.Verbs() {
		declared = append(declared, v.Name)
	}
	for _, v := range verbs() {
		run = append(run, v.name)
	}
	if !slices.Equal(declared, run) {
		t.Errorf("the language has the verbs %v, and these are run: %v", declared, run)
	}
}
