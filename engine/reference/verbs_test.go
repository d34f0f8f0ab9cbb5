package reference

import (
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestEachVerbIsRun checks that the reference runs every verb of the language.
func TestEachVerbIsRun(t *testing.T) {
	t.Parallel()
	for _, v := range policy.Verbs() {
		if verbs()[v.Name] == nil {
			t.Errorf("the reference does not run %s", v.Name)
		}
	}
	if len(verbs()) != len(policy.Verbs()) {
		t.Errorf("the reference runs %d verbs, the language has %d", len(verbs()), len(policy.Verbs()))
	}
}
