package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/engine/policy/size"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// manyRows returns a policy with n realistic rows: a guard, a condition over labels and resources, a reason and a message.
func manyRows(n int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: pools}\nspec:\n" +
		"  pipeline: [allocate]\n  tiers:\n  - name: t\n    tables:\n    - name: pools\n      inline:\n        predicates:\n")
	for i := range n {
		fmt.Fprintf(&b, "        - name: pool-%[1]d\n          when: 'task.labels[?\"example.com/pool\"].orValue(\"\") == \"pool-%[1]d\"'\n"+
			"          expression: 'node.labels[?\"example.com/pool\"].orValue(\"\") == \"pool-%[1]d\"'\n          reason: WrongPool\n"+
			"          message: 'node {{node.name}} is not in pool %[1]d'\n", i)
	}
	return []byte(b.String())
}

// TestOversized checks that policies that are too large are refused within 2 seconds, with a place: as files, and as admission receives
// them.
func TestOversized(t *testing.T) {
	list := func(n int, item string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return out
	}
	policyOf := func(spec string) []byte {
		return []byte("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: large}\nspec:\n" + spec)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"rows": {manyRows(9_000), "inline.predicates[2000]"},
		"actions": {policyOf("  tiers: []\n  pipeline: [allocate]\n  actions:\n" +
			strings.Join(list(9_000, "  - {name: a#, steps: [{verb: place, jobs: 'job.name != \"a#\"'}]}\n"), "")), "spec.actions[64]"},
		"steps": {policyOf("  tiers: []\n  pipeline: [a]\n  actions:\n  - name: a\n    steps:\n" +
			strings.Join(list(9_000, "    - {verb: place, jobs: 'job.name != \"a#\"'}\n"), "")), "spec.actions[0].steps[256]"},
		"pipeline": {policyOf("  tiers: []\n  pipeline: [" + strings.Join(list(9_000, "preempt"), ", ") + "]\n"), "spec.pipeline[64]"},
		"tables": {policyOf("  pipeline: [allocate]\n  tiers:\n  - name: t\n    tables:\n" +
			strings.Join(list(9_000, "    - {name: t#, table: proportion}\n"), "")), "spec.tiers[0].tables[128]"},
	} {
		t.Run(name, func(t *testing.T) {
			docs, issues := source.Parse("policy.yaml", test.data)
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			start := time.Now()
			p, issues := Load(docs[0])
			if p != nil || len(issues) != 1 || !strings.HasSuffix(issues[0].Path, test.want) || issues[0].Line == 0 {
				t.Errorf("a file: %v", issues)
			}
			stored, err := yaml.YAMLToJSON(test.data)
			if err != nil || !json.Valid(stored) {
				t.Fatal(err)
			}
			if p, issues = LoadStored(stored); p != nil || len(issues) != 1 || !strings.HasSuffix(issues[0].Path, test.want) {
				t.Errorf("a stored object: %v", issues)
			}
			if took := time.Since(start); took > 4*time.Second { // 2 seconds each; they take 0.1
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestLimitsOfAPI checks that the manifest of the API has the same limits of lists as the compiler.
func TestLimitsOfAPI(t *testing.T) {
	data, err := os.ReadFile("../../crds/manifests/scheduling.celsius.dev_schedulingpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	get := func(at any, path string) any {
		for key := range strings.SplitSeq(path, ".") {
			at = at.(map[string]any)[key]
		}
		return at
	}
	spec := get(get(crd, "spec.versions").([]any)[0], "schema.openAPIV3Schema.properties.spec.properties")
	for path, want := range map[string]int{
		"pipeline": size.Pipeline, "actions": size.Actions, "actions.items.properties.steps": size.Steps, "tiers": size.Tiers,
		"tiers.items.properties.tables": size.Tables,
	} {
		if got := get(spec, path+".maxItems"); got != float64(want) {
			t.Errorf("%s has at most %v items, want %d", path, got, want)
		}
	}
}

// BenchmarkThousandRows checks a policy of 1,000 rows, as admission does: at most 1 second on one processor.
func BenchmarkThousandRows(b *testing.B) {
	stored, err := yaml.YAMLToJSON(manyRows(1000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if p, issues := LoadStored(stored); p == nil || len(p.All) != 1000 {
			b.Fatal(issues)
		}
	}
}

// TestRepeatedExpressions checks that rows with the same expression compile with few allocations. Each row still has its own expression
// with its place in the file, because a session finds the budget of an expression by its pointer.
func TestRepeatedExpressions(t *testing.T) {
	rows := func(n int, when string) *source.Document {
		text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: maintenance}\nspec:\n" +
			"  pipeline: [allocate]\n  tiers:\n  - name: t\n    tables:\n    - name: maintenance\n      inline:\n        predicates:\n"
		for i := range n {
			text += fmt.Sprintf("        - {name: row-%d, when: '%s', expression: 'node.ready', message: 'node {{node.name}} is drained'}\n", i,
				strings.ReplaceAll(when, "#", fmt.Sprint(i)))
		}
		docs, issues := source.Parse("policy.yaml", []byte(text))
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		return docs[0]
	}
	load := func(doc *source.Document) (p *Policy) {
		p, issues := Load(doc)
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		return p
	}
	const long = `now - job.createdAt > duration("2h") && node.labels[?"rack"].orValue("") == "r#"`
	same, different := rows(200, strings.ReplaceAll(long, "#", "")), rows(200, long)
	few := testing.AllocsPerRun(1, func() { load(same) })
	many := testing.AllocsPerRun(1, func() { load(different) })
	if few > many/3 {
		t.Errorf("200 equal rows take %.0f allocations, 200 different rows %.0f", few, many)
	}
	all := load(same).All
	a, b := all[0].When, all[1].When
	if a == b || len(a.NowParts) != 1 || len(b.NowParts) != 1 || a.NowParts[0] == b.NowParts[0] {
		t.Errorf("two rows share an expression: %p with %v, %p with %v", a, a.NowParts, b, b.NowParts)
	}
	if first, second := a.Text.Issue(0, 1, "", "").Line, b.Text.Issue(0, 1, "", "").Line; first != 12 || second != 13 {
		t.Errorf("the expressions are in lines %d and %d, want 12 and 13", first, second)
	}
}
