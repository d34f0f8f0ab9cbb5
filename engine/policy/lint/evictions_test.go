package lint

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestEvictions checks that there are warnings for actions that cannot evict what they seem to evict, and none if each row has an effect.
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
				"conformance/not-critical only protect); remove the action from the pipeline, or add rows of preemptable, such as those of table " +
				"priority or drf",
		},
		{
			"no job starves", "allocate, reclaim", "{name: conformance}", "{name: capacity}",
			"5:24: the action reclaim can evict no pod: no row of the policy permits it in jobStarving; remove the action from the " +
				"pipeline, or add rows of jobStarving, such as those of table gang or priority",
		},
		{
			"the rows that permit apply in another scope", "allocate, gangreclaim",
			"{name: own, inline: {jobStarving: [{name: few, expression: \"job.readyTasks < job.minMember\"}]}}, {name: conformance}",
			"{name: proportion}",
			"5:24: the action gangreclaim can evict no pod: no row of the policy permits it in evictable (conformance/not-critical, " +
				"proportion/queue-over-deserved only protect); remove the action from the pipeline, or add rows of evictable, such as " +
				"those of table priority or gang",
		},
		{
			"rows of two scopes", "allocate, gangpreempt, gangreclaim", "{name: priority}", "{name: capacity}",
			"11:14: capacity/valid-tree, capacity/guarantee-kept, capacity/over-deserved protect no pod in action gangreclaim where an earlier " +
				"tier permits a victim: tier first decides by priority/reclaim-is-not-about-priority; move table capacity to tier first",
		},
		{
			"a protection of one's own", "allocate, preempt", "{name: priority}, {name: gang}",
			"{name: contracts, inline: {preemptable: [{name: not-paid-for, expression: \"!('paid' in victim.labels)\"}]}}",
			"11:14: contracts/not-paid-for protect no pod in action preempt where an earlier tier permits a victim: tier first decides by " +
				"priority/strictly-lower; write veto: true in the rows of table contracts, or move the table to tier first",
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

// TestRemediesOfActionsThatCannotEvict carries out the remedies of each warning, word for word. Afterwards the linter must not report the
// warning.
func TestRemediesOfActionsThatCannotEvict(t *testing.T) {
	t.Parallel()
	warns := func(action string, tables ...string) (hint string) {
		text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  pipeline: [allocate, " +
			action + "]\n  tiers:\n  - name: t\n    tables:\n    - name: " + strings.Join(tables, "\n    - name: ") + "\n"
		doc := parsed(t, text)
		p, issues := policy.Load(doc)
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		for _, i := range Evictions(doc, p) {
			if strings.Contains(i.Message, "can evict no pod") {
				return i.Hint
			}
		}
		return ""
	}
	tried := 0
	for _, action := range []string{"preempt", "reclaim", "gangpreempt", "gangreclaim"} {
		hint := warns(action, "conformance")
		groups := regexp.MustCompile(`such as those of table (\w+) or (\w+)`).FindAllStringSubmatch(hint, -1)
		if len(groups) != 2 {
			t.Errorf("%s: the remedy is %q, want tables for jobStarving and for victims", action, hint)
			continue
		}
		for _, one := range groups[0][1:] {
			for _, other := range groups[1][1:] {
				tables := []string{"conformance", one}
				if other != one {
					tables = append(tables, other)
				}
				if tried++; warns(action, tables...) != "" {
					t.Errorf("%s still evicts no pod with tables %s: %s", action, tables, warns(action, tables...))
				}
			}
		}
	}
	if tried != 16 {
		t.Errorf("%d remedies are tried, want 16", tried)
	}
}
