package values

import (
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestEveryAccountingFunctionIsDefined checks that this package defines every accounting function of the language, and nothing else.
func TestEveryAccountingFunctionIsDefined(t *testing.T) {
	functions := policy.Shape().Functions
	for _, f := range functions {
		if accounting()[f.Name] == nil {
			t.Errorf("the reference does not say what %s gives", f.Name)
		}
	}
	if got, want := len(accounting()), len(functions); got != want {
		t.Errorf("the reference defines %d accounting functions, there are %d", got, want)
	}
}
