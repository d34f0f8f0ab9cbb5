package facts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/tables"
)

// written returns the facts of each row, as `celsius policy facts` prints them.
func written(p *policy.Policy) string {
	var b strings.Builder
	for _, f := range facts.Of(p) {
		cost := fmt.Sprint(f.Cost)
		if !f.Bounded {
			cost = "unbounded"
		}
		fmt.Fprintf(&b, "%s %s/%s: %s, cost %s\n  reads %s\n  holds %s\n", f.Site, f.Table, f.Name, f.Type, cost, strings.Join(f.Reads, ", "),
			f.Cache)
	}
	return b.String()
}

// The facts of the default policy are a file. So a review shows changes of the reads, the cost or the caching of built-in rows. UPDATE=1
// rewrites it.
func TestFactsOfTheDefaultPolicy(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	golden(t, "testdata/facts-default.txt", written(p))
}

// golden compares a text with a file, or writes the file if UPDATE=1.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// aPolicy is the beginning of a policy with one table, whose body must be appended.
const aPolicy = "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n" +
	"  pipeline: [allocate]\n  tiers:\n  - name: only\n    tables:\n    - name: mine\n      inline:\n        "

func loaded(t *testing.T, text string) *policy.Policy {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if len(docs) != 1 || issues.Err() != nil {
		t.Fatalf("%d documents: %v\n%s", len(docs), issues, text)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	return p
}

// How long a row's value is valid, based on its reads (docs/rule-language.md, What a row reads).
func TestCacheFacts(t *testing.T) {
	for _, test := range []struct{ name, table, want string }{
		{"constant", "taskFeasible: [{name: r, expression: \"true\"}]", "per class"},
		{"the task alone", "predicates: [{name: r, expression: task.priority > 1}]", "per class"},
		{
			"static fields of the node", "predicates: [{name: r, expression: \"'x' in node.labels && task.gated\"}]",
			"per class and node, until the node's object changes",
		},
		{
			"dynamic fields of the node", "predicates: [{name: r, expression: node.taskCount > 1}]",
			"per class and node, until the node changes in any way",
		},
		{
			"the jobs of a node's tasks", "predicates: [{name: r, expression: \"node.tasks.all(t, t.job.priority > 1)\"}]",
			"never: it reads what any step changes",
		},
		{"the cluster's use", "predicates: [{name: r, expression: cluster.used.cpu > 1.0}]", "never: it reads what any step changes"},
		{
			"the cluster's size", "predicates: [{name: r, expression: cluster.nodeCount > 1 && node.ready}]",
			"per class and node, until the node's object changes",
		},
		{
			"counters of the job", "predicates: [{name: r, expression: job.readyTasks > node.taskCount}]",
			"per class and node, until the node changes in any way; a class holds for a moment only, as it reads what moves within a cycle",
		},
		{
			"time of day", "predicates: [{name: r, expression: now.getHours() > 6 && node.ready}]",
			"per class and node, until the node's object changes; until now.getHours() > 6 changes",
		},
		{
			"time and more", "predicates: [{name: r, expression: \"now - task.createdAt > duration('1h') && node.ready\"}]",
			"per class and node, until the node's object changes; once a cycle, as it mixes now with other things",
		},
		{
			"the pods around", "predicates: [{name: r, expression: task.affinityFits(node)}]",
			"per class and node, until the node's object, or who is in its topology domains, changes",
		},
		{
			"the pods around and on it", "predicates: [{name: r, expression: task.spreadFits(node) && node.taskCount > 1}]",
			"per class and node, until the node, or who is in its topology domains, changes",
		},
		{
			"the group", "scores: [{name: r, expression: task.spreadScore(node)}]",
			"per class and node, until the node's object, or who is in its topology domains and which nodes are chosen from, changes",
		},
		{
			"images", "scores: [{name: r, expression: node.imageLocality(task)}]",
			"per class and node, until the node's object, or how many nodes have an image, changes",
		},
		{"an order", "jobOrder: [{name: r, by: job.priority}]", "per job, until what it reads changes"},
		{"time alone", "jobOrder: [{name: r, by: now.getHours()}]", "per cycle, until what it reads changes; until now.getHours() changes"},
		{"nothing", "jobOrder: [{name: r, by: \"1\"}]", "for ever"},
		{"through a variable", "variables: [{name: v, on: node, expression: node.taskCount}]\npredicates: [{name: r, expression: variables.v " +
			"> 1}]", "per class and node, until the node changes in any way"},
		{
			"through an attribute", "attributes: [{on: node, name: a, expression: node.taskCount}]\npredicates: [{name: r, expression: node.a > 1}]",
			"per class and node, until the node changes in any way",
		},
		{"through a settled attribute", "attributes: [{on: node, name: a, settle: cycle, expression: node.taskCount}]\npredicates: [{name: r, " +
			"expression: node.a > 1}]", "per class and node, until the node changes in any way"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := facts.Of(loaded(t, aPolicy+strings.ReplaceAll(test.table, "\n", "\n        ")))
			if got := all[len(all)-1].Cache; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A resolved policy compiles, decides by the same rows, and has nothing left to include.
func TestResolve(t *testing.T) {
	own := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: x}\nspec:\n  pipeline: [mine, " +
		"backfill]\n  actions:\n  - {name: mine, steps: [{verb: place, turn: all}]}\n  tiers:\n  - name: t\n    tables:\n    - {name: tight, " +
		"table: overcommit, params: {factor: 1.5}}\n    - {name: gang, without: [preemptable]}\n    - name: mine-too\n      params: {w: 3}\n  " +
		"    inline:\n        params: {w: {type: int, default: 1}}\n        scores: [{name: r, expression: node.taskCount, weight: params.w}]\n"
	for name, text := range map[string]string{"default": shippedPolicy(t), "own": own} {
		t.Run(name, func(t *testing.T) {
			docs, issues := source.Parse(name, []byte(text))
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			p := loaded(t, text)
			once, issues := policytext.Resolve(docs[0], nil)
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			again, issues := source.Parse(name, once)
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			q := loaded(t, string(once))
			if diff := cmp.Diff(written(p), written(q)); diff != "" {
				t.Errorf("the rows differ (-as written +resolved):\n%s", diff)
			}
			if diff := cmp.Diff(fmt.Sprint(p.Pipeline, p.Mode, p.Tiers), fmt.Sprint(q.Pipeline, q.Mode, q.Tiers)); diff != "" {
				t.Error(diff)
			}
			twice, issues := policytext.Resolve(again[0], nil)
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			if diff := cmp.Diff(string(once), string(twice)); diff != "" {
				t.Errorf("resolved twice (-once +twice):\n%s", diff)
			}
			shown, issues := policytext.Show(again[0])
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			if diff := cmp.Diff(string(once), string(shown)); diff != "" {
				t.Errorf("what is resolved shows as itself (-resolved +shown):\n%s", diff)
			}
		})
	}
}

func shippedPolicy(t *testing.T) string {
	t.Helper()
	data, err := tables.FS.ReadFile("default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A table under another name decides the same. The test of renaming relies on rename.
func TestResolveRenames(t *testing.T) {
	docs, _ := source.Parse("default", []byte(shippedPolicy(t)))
	out, issues := policytext.Resolve(docs[0], func(table string) string { return "renamed-" + table })
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	q := loaded(t, string(out))
	p, _ := policy.Default()
	if diff := cmp.Diff(written(p), strings.ReplaceAll(written(q), " renamed-", " ")); diff != "" {
		t.Errorf("(-shipped +renamed):\n%s", diff)
	}
}
