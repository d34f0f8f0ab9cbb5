package policy

import (
	"testing"

	"github.com/celsius-scheduler/celsius/rules/source"
)

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
