package lsp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const top = "../../../"

func newCore(t testing.TB) *Core {
	t.Helper()
	core, err := NewCore()
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// files reads the files that match the patterns. The patterns start at the top of the sources.
func files(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(top + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s names no file (%v)", pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimPrefix(name, top)] = string(data)
		}
	}
	return out
}

// TestCheckOfPolicies checks that an editor receives the same issues that `celsius policy check` prints.
func TestCheckOfPolicies(t *testing.T) {
	core, mistakes := newCore(t), 0
	for name, text := range files(t, "samples/policies/*.yaml", "samples/policies/*/*.yaml",
		"samples/invalid/policy-*.yaml", "samples/quickstart/policy.yaml") {
		docs, want := source.Parse(name, []byte(text))
		for _, d := range docs {
			_, found := policy.Load(d)
			want = append(want, found...)
		}
		mistakes += len(want.Errors())
		if diff := cmp.Diff(want, core.Check(name, text)); diff != "" {
			t.Errorf("%s (-policy check +lsp):\n%s", name, diff)
		}
	}
	if mistakes == 0 {
		t.Error("no sample has a mistake")
	}
}

// TestCheckOfShipped checks that all shipped files of all kinds have no issues, and that each kind is known.
func TestCheckOfShipped(t *testing.T) {
	core, known := newCore(t), map[string]bool{}
	for name, text := range files(t, "rules/tables/*.yaml", "rules/jobplugins/*.yaml", "rules/admission/command.yaml", "statemachines/*.yaml",
		"samples/jobplugins/*.yaml", "samples/admission/*.yaml", "samples/operators/*.yaml") {
		if issues := core.Check(name, text); len(issues) > 0 {
			t.Errorf("%s: %v", name, issues.Error())
		}
		docs, _ := source.Parse(name, []byte(text+"\nnonsense: {a: 1}\n"))
		kind, _ := docs[0].Root.Get("kind").Any().(string)
		ours := core.checkerOf(docs[0]) != nil
		if known[kind] {
			continue
		}
		known[kind] = true
		if got := core.Check(name, text+"\nnonsense: {a: 1}\n"); ours != (len(got) > 0) {
			t.Errorf("%s: a field of kind %s that is not there gives %v", name, kind, got)
		}
	}
}

// TestCheck checks which files are read, and the places of issues.
func TestCheck(t *testing.T) {
	core := newCore(t)
	for name, c := range map[string]struct{ text, want string }{
		"another kind":        {"apiVersion: apps/v1\nkind: Deployment\nspec: 3\n", ""},
		"a kind of that name": {"apiVersion: other.dev/v1\nkind: SchedulingPolicy\nspec: 3\n", ""},
		"no YAML, of others":  {"kind: Deployment\n a: b\n", ""},
		"no YAML, of ours":    {"apiVersion: rules.celsius.dev/v1alpha1\nkind: RuleTable\n a: b\n", "3:3: is not YAML"},
		"a policy without a version": {
			"kind: SchedulingPolicy\nmetadata: {name: p}\nspec: {pipeline: [], tiers: []}\n", "1:1: apiVersion is missing",
		},
		"a policy behind another": {
			"kind: Deployment\nx: 1\n---\napiVersion: scheduling.celsius.dev/v1\nkind: SchedulingPolicy\n", `4:13: apiVersion: apiVersion is`,
		},
		"a table": {
			"apiVersion: rules.celsius.dev/v1alpha1\nkind: RuleTable\nmetadata: {name: x}\nscores:\n" +
				"- name: s\n  expression: >-\n    task.gpuCount\n    + node.idel.cpu\n",
			`8:12: scores[0].expression: Node has no field "idel"`,
		},
		"a job plugin": {
			"apiVersion: rules.celsius.dev/v1alpha1\nkind: JobPlugin\nmetadata: {name: x}\ndescription: d\nneeds: [nobody]\n",
			`3:18: metadata.name: it needs the plugin "nobody"`,
		},
		"a state machine": {
			"apiVersion: rules.celsius.dev/v1alpha1\nkind: StateMachine\nmachine: jop\n", `3:10: machine: there is no machine "jop"`,
		},
		"rules of admission": {
			"apiVersion: rules.celsius.dev/v1alpha1\nkind: AdmissionRules\nmetadata: {name: x}\nof: Job\nvalidations:\n" +
				"- {name: a, fieldPath: spec, message: m, expression: object.spec.quue == ''}\n", `"quue"`,
		},
	} {
		got := core.Check("f.yaml", c.text)
		if c.want == "" && len(got) > 0 || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
	}
}
