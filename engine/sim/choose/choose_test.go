package choose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// policyText returns a SchedulingPolicy. spec contains its fields except tiers.
func policyText(meta, spec string) string {
	return fmt.Sprintf("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {%s}\n"+
		"spec: {%s, tiers: [{name: first, tables: [{name: predicates}]}]}\n", meta, spec)
}

// TestPoliciesOfAClusterWithMistakesAreLeftOut shows that a policy with mistakes stops a simulation only if a user wrote it for the
// simulation or named it.
func TestPoliciesOfAClusterWithMistakesAreLeftOut(t *testing.T) {
	t.Parallel()
	const works, fails = "pipeline: [enqueue, allocate]", "pipeline: [enqueue, alocate]"
	const team = `queues: "queue.name == 'team'", `
	for _, test := range []struct {
		title  string
		texts  []string
		named  string
		want   string // the policy that decides; "": an error
		leaves string // the policy that is left out
	}{
		{"the only one", []string{policyText("name: a, uid: u", fails)}, "", "default", "a"},
		{"the only one is named", []string{policyText("name: a, uid: u", fails)}, "a", "", ""},
		{"the only one, by hand", []string{policyText("name: a", fails)}, "", "", ""},
		{"one of two", []string{policyText("name: a, uid: u", works), policyText("name: b, uid: v", fails)}, "", "a", "b"},
		{"one of queues", []string{policyText("name: a, uid: u", works), policyText("name: b, uid: v", team+fails)}, "", "a", "b"},
		{"one of queues, by hand", []string{policyText("name: a, uid: u", works), policyText("name: b", team+fails)}, "", "", ""},
		{"one that is not used", []string{policyText("name: a, uid: u", works), policyText("name: b, uid: v", fails)}, "a", "a", ""},
	} {
		objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "f", Data: []byte(strings.Join(test.texts, "---\n"))})
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		var named *manifest.Uncompiled
		for i := range objects.Policies {
			if objects.Policies[i].Name == test.named {
				named = &objects.Policies[i]
			}
		}
		chosen, issues, err := Policy(objects.Policies, named)
		if err != nil || (issues.Err() != nil) != (test.want == "") {
			t.Errorf("%s: %v, %v", test.title, err, issues)
			continue
		}
		if test.want != "" && chosen.Policy.Name != test.want {
			t.Errorf("%s: policy %s decides", test.title, chosen.Policy.Name)
		}
		warnings := ""
		for _, i := range issues.Warnings() {
			warnings += i.Message + "\n"
		}
		if want := "SchedulingPolicy " + test.leaves + " is left out: unknown action"; test.leaves != "" && !strings.HasPrefix(warnings, want) {
			t.Errorf("%s: warnings %q, want %q", test.title, warnings, want)
		}
	}
}

// TestPoliciesThatDoNotJoinAreLeftOut has a policy that serves its own queues and cannot be joined with the chosen policy. If the policy
// was read from a cluster, it is left out. If a user wrote it for the simulation, it is a mistake.
func TestPoliciesThatDoNotJoinAreLeftOut(t *testing.T) {
	t.Parallel()
	const base = `{apiVersion: scheduling.celsius.dev/v1alpha1, kind: SchedulingPolicy,
  metadata: {name: base, uid: u}, spec: {pipeline: [allocate],
  tiers: [{name: t, tables: [{name: own, inline: {jobReady: [{name: r, expression: "true"}],
    attributes: [{name: servedBy, on: queue, settle: cycle, expression: "'me'"}]}}]}]}}
`
	for meta, stored := range map[string]bool{"name: part, uid: v": true, "name: part": false} {
		part := policyText(meta, `queues: "queue.name == 'team'", pipeline: [allocate]`)
		objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "f", Data: []byte(base + "---\n" + part)})
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		chosen, issues, err := Policy(objects.Policies, nil)
		if err != nil || (issues.Err() == nil) != stored {
			t.Errorf("%s: %v, %v", meta, err, issues)
		}
		if !stored {
			continue
		}
		if chosen.Policy == nil || chosen.Policy.Name != "base" || len(chosen.Policy.Joined()) > 0 {
			t.Errorf("policy %+v decides", chosen.Policy)
		}
		if text := issues.Error(); !strings.Contains(text, "SchedulingPolicy part is left out: ") {
			t.Errorf("the issues are %s", text)
		}
	}
}
