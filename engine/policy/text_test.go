package policy

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// aPolicy is the text of a policy with one tier of one table of its own, named mine.
func aPolicy(table string) string {
	return "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n  pipeline: [allocate]\n" +
		"  tiers:\n  - name: only\n    tables:\n    - name: mine\n      inline:\n        " +
		strings.ReplaceAll(strings.Trim(table, "\n"), "\n", "\n        ") + "\n"
}

// compiled compiles a text that has no mistake.
func compiled(t testing.TB, text string) *Policy {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if len(docs) != 1 || issues.Err() != nil {
		t.Fatalf("%d documents: %v\n%s", len(docs), issues, text)
	}
	p, issues := Load(docs[0])
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	return p
}
