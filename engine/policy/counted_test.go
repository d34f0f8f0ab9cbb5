package policy

import (
	"testing"

	"github.com/celsius-scheduler/celsius/rules/eval"
)

// No expression of the default policy is expensive enough to have a budget, except messages, which are written for few objects.
func TestTheDefaultPolicyIsNotCounted(t *testing.T) {
	p, issues := Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	if len(p.All) == 0 {
		t.Fatal("no rows")
	}
	messages := map[*eval.Expr]bool{}
	for _, r := range p.All {
		for _, e := range r.Asked() {
			messages[e] = e != r.When && e != r.Expression
		}
	}
	for _, e := range p.Expressions() {
		if e.Reads.Counted && !messages[e] {
			t.Errorf("%s is counted", e.Text.Value)
		}
	}
}
