package text_test

import (
	"testing"

	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// A policy with mistakes is neither resolved nor shown.
func TestResolveRefuses(t *testing.T) {
	docs, _ := source.Parse("bad.yaml", []byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: bad}
spec: {pipeline: [allocate], tiers: [{name: first, tables: [{name: own, inline: {jobOrder: [{name: r, by: job.priorty}]}}]}]}
`))
	if out, issues := policytext.Resolve(docs[0], nil); out != nil || issues.Err() == nil {
		t.Errorf("resolved to %q", out)
	}
	if out, issues := policytext.Show(docs[0]); out != nil || issues.Err() == nil {
		t.Errorf("shown as %q", out)
	}
}
