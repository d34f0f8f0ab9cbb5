package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestEvictions warns of actions that cannot evict what they seem to evict, and is silent where each row has its effect.
func TestEvictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pipeline, first, second, want string }{
		{"no action evicts", "allocate", "{name: priority}, {name: gang, params: {protect: tier}}", "{name: capacity}", ""},
		{
			"gang permits first and hides capacity", "allocate, reclaim",
			"{name: priority}, {name: gang, params: {protect: tier}}, {name: conformance}", "{name: capacity}",
			"11:14: capacity/valid-tree, capacity/shares-a-dimension, capacity/guarantee-kept, capacity/over-deserved protect no pod in " +
				"action reclaim where an earlier tier permits a victim: tier first decides by gang/keep-gang-whole; remove the param " +
				"protect: tier of table gang, so that its row is a veto, or move table capacity to tier first",
		},
		{"gang is a veto", "allocate, reclaim", "{name: priority}, {name: gang}, {name: conformance}", "{name: capacity}", ""},
		{"one tier", "allocate, reclaim", "{name: gang, params: {protect: tier}}, {name: capacity}", "{name: predicates}", ""},
		{
			"only vetoes", "allocate, preempt", "{name: gang}, {name: conformance}", "{name: drf, without: [preemptable]}",
			"5:24: the action preempt can evict no pod: no row of the policy permits it in preemptable (gang/keep-gang-whole, " +
				"conformance/not-critical only protect); remove the action from the pipeline, or add a table whose rows permit victims, " +
				"such as priority for preempt or capacity for reclaim",
		},
	} {
		text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  pipeline: [" + c.pipeline +
			"]\n  tiers:\n  - name: first\n    tables: [" + c.first + "]\n  - name: second\n    tables:\n    - " + c.second + "\n"
		doc := parsed(t, text)
		p, issues := policy.Load(doc)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", c.name, issues)
		}
		var got []string
		for _, i := range Evictions(doc, p) {
			got = append(got, fmt.Sprintf("%d:%d: %s; %s", i.Line, i.Column, i.Message, i.Hint))
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}
