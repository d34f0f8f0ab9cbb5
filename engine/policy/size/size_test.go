package size

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// list writes n items in one line of YAML; # stands for the number of an item.
func list(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// TestLimits checks a specification of exactly the size of each limit, and one that is larger by one.
func TestLimits(t *testing.T) {
	inline := func(body string) string { return "tiers: [{name: t, tables: [{name: own, inline: {" + body + "}}]}]" }
	for _, test := range []struct {
		name  string
		limit int
		spec  func(n int) string
		path  string
		want  string
	}{
		{
			"pipeline", Pipeline, func(n int) string { return "pipeline: " + list(n, "allocate") },
			"spec.pipeline[64]", "more than 64 actions in the pipeline",
		},
		{
			"actions", Actions, func(n int) string { return "actions: " + list(n, "{name: a#, steps: [{verb: place}]}") },
			"spec.actions[64]", "more than 64 actions",
		},
		{
			"steps of one action", Steps, func(n int) string { return "actions: [{name: a, steps: " + list(n, "{verb: place}") + "}]" },
			"spec.actions[0].steps[256]", "more than 256 steps in all actions",
		},
		{
			"steps of two actions", Steps, func(n int) string {
				return "actions: [{name: a, steps: " + list(200, "{verb: place}") + "}, {name: b, steps: " + list(n-200, "{verb: place}") + "}]"
			},
			"spec.actions[1].steps[56]", "more than 256 steps in all actions",
		},
		{
			"tiers", Tiers, func(n int) string { return "tiers: " + list(n, "{name: t#, tables: [{name: gang}]}") },
			"spec.tiers[64]", "more than 64 tiers",
		},
		{
			"tables", Tables, func(n int) string {
				return "tiers: [{name: t, tables: " + list(100, "{name: t#, table: gang}") + "}, {name: u, tables: " +
					list(n-100, "{name: u#, table: gang}") + "}]"
			},
			"spec.tiers[1].tables[28]", "more than 128 tables in all tiers",
		},
		{
			"rows", Rows, func(n int) string { return inline("predicates: " + list(n, "{name: r#, expression: 'true'}")) },
			"spec.tiers[0].tables[0].inline.predicates[2000]", "more than 2000 rows, attributes, variables and params in all inline tables",
		},
		{
			"rows of all sections", Rows, func(n int) string {
				return inline("params: {a: {type: int, default: 1}, b: {type: int, default: 1}}, variables: [{name: v, expression: '1'}], " +
					"attributes: [{name: a, on: job, expression: '1'}], predicates: [{name: p, expression: 'true'}], jobValid: " +
					list(n-5, "{name: r#, expression: 'true'}"))
			},
			"spec.tiers[0].tables[0].inline.jobValid[1995]", "more than 2000 rows, attributes, variables and params in all inline tables",
		},
		{
			"an expression", Text, func(n int) string {
				return inline("predicates: [{name: r, expression: '" + strings.Repeat("é", n) + "'}]")
			},
			"spec.tiers[0].tables[0].inline.predicates[0].expression", "more than 16000 characters in one text",
		},
		{
			"a condition of a step", Text, func(n int) string {
				return "actions: [{name: a, steps: [{verb: place, jobs: '" + strings.Repeat("x", n) + "'}]}]"
			},
			"spec.actions[0].steps[0].jobs", "more than 16000 characters in one text",
		},
		{
			"all texts", Texts, func(n int) string {
				text := strings.Repeat("x", 10_000-1)
				return inline("scores: " + list(n/10_000-1, "{name: r, expression: "+text+"}") + ", predicates: [{name: " +
					strings.Repeat("x", 10_000-len("townpf")+1) + ", when: p, expression: " + strings.Repeat("f", n%10_000) + "}]")
			},
			"spec.tiers[0].tables[0].inline.predicates[0].expression", "more than 400000 characters in all texts",
		},
		{
			"expressions in messages", Parts, func(n int) string {
				return inline("predicates: [{name: r, message: '" + strings.Repeat("{{1}}", 3000) + "'}, {name: s, message: '" +
					strings.Repeat("{{1}}", n-3000) + "'}]")
			},
			"spec.tiers[0].tables[0].inline.predicates[1].message", "more than 4000 expressions in messages",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if issues := check(t, test.spec(test.limit)); issues != nil {
				t.Errorf("at the limit: %v", issues)
			}
			issues := check(t, test.spec(test.limit+1))
			if len(issues) != 1 || issues[0].Path != test.path || !strings.Contains(issues[0].Message, test.want) || issues[0].Line == 0 {
				t.Errorf("beyond the limit: %+v\nwant %s: %s", issues, test.path, test.want)
			}
		})
	}
}

// check parses a policy with a specification.
func check(t *testing.T, spec string) source.Issues {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte("spec: {"+spec+"}"))
	if issues.Err() != nil || len(docs) != 1 {
		t.Fatalf("%d documents: %v", len(docs), issues)
	}
	return Check(docs[0].Root.Get("spec"))
}

// TestAliases checks that the content of an alias counts each time that it is compiled.
func TestAliases(t *testing.T) {
	docs, issues := source.Parse("policy.yaml", []byte("a: &a "+list(100, "{name: r#, expression: 'true'}")+
		"\nspec: {tiers: [{name: t, tables: "+list(21, "{name: t#, inline: {predicates: *a}}")+"}]}\n"))
	if issues.Err() != nil || len(docs) != 1 {
		t.Fatalf("%d documents: %v", len(docs), issues)
	}
	got := Check(docs[0].Root.Get("spec"))
	if len(got) != 1 || got[0].Path != "spec.tiers[0].tables[20].inline.predicates[0]" || got[0].Line == 0 {
		t.Errorf("%v", got)
	}
}

// TestMistakesOfForm checks that values that are not a list or a mapping are left to the compiler.
func TestMistakesOfForm(t *testing.T) {
	for _, spec := range []string{
		"pipeline: allocate", "actions: {a: 1}", "actions: [1]", "tiers: 3", "tiers: [{tables: {}}]", "tiers: [{tables: [{inline: []}]}]",
		"tiers:",
	} {
		if issues := check(t, spec); issues != nil {
			t.Errorf("%s: %v", spec, issues)
		}
	}
}
