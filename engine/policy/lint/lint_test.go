package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// policyWith returns a policy with one inline table, whose body begins in line 10.
func policyWith(body string) string {
	return `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [allocate]
  tiers:
  - name: a
    tables:
    - {name: own, inline: {
` + body + `
    }}
`
}

func parsed(t *testing.T, text string) *source.Document {
	t.Helper()
	docs, issues := source.Parse("p.yaml", []byte(text))
	if issues.Err() != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v\n%s", len(docs), issues, text)
	}
	return docs[0]
}

// found returns the findings of a table as "line:column: message; hint".
func found(t *testing.T, text string) string {
	t.Helper()
	issues, mistakes := Policy(parsed(t, text))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	var lines []string
	for _, i := range issues {
		if i.Severity != source.Warning || i.File != "p.yaml" || i.Path == "" {
			t.Errorf("%#v", i)
		}
		lines = append(lines, fmt.Sprintf("%d:%d: %s; %s", i.Line, i.Column, i.Message, i.Hint))
	}
	return strings.Join(lines, "\n")
}

// A when of a table or a tier is reported once, regardless of its rows, and does not hide rows without effect.
func TestConditions(t *testing.T) {
	t.Parallel()
	const rows = "jobOrder: [{name: x, by: job.priority}, {name: y, by: job.taskCount, when: job.priority > 9}]"
	for _, c := range []struct{ name, tier, table, want string }{
		{"nothing to tell of", "job.priority > 1", "job.taskCount > 2", ""},
		{"never", "true", "1 > 2", "11:18: no row of the table is ever asked: its when is always false; remove the table, or its when"},
		{
			"a tier never", "1 > 2 && true", "true",
			"8:11: no row of the tier is ever asked: its when is always false; remove the tier, or its when",
		},
		{
			"what excludes itself", "true", "job.priority == 1 && job.priority == 2",
			"8:11: job.priority == 1 and job.priority == 2 never hold together; write || between them, or remove one",
		},
		{
			"what excludes the row", "job.priority < 5", "true",
			"8:11: job.priority < 5 and job.priority > 9 never hold together; write || between them, or remove one",
		},
	} {
		text := strings.Replace(strings.Replace(policyWith(rows), "- name: a\n", "- name: a\n    when: "+c.tier+"\n", 1), "{name: own, inline",
			"{name: own,\n           when: "+c.table+", inline", 1)
		if got := found(t, text); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	row := func(site, rows string) string { return site + ": [" + rows + "]" }
	for _, c := range []struct{ name, body, want string }{
		{
			"always true", row("predicates", "{name: x, expression: 1 < 2}"),
			"10:36: is always true, and so says nothing; remove the row, or have it read what it is asked about",
		},
		{
			"always false", row("predicates", `{name: x, expression: "false"}`),
			"10:37: is always false; remove the row, or have it read what it is asked about",
		},
		{"a refusal where something holds", row("predicates", `{name: x, when: node.taskCount > 3, expression: "false"}`), ""},
		{"all may go", row("preemptable", `{name: x, expression: "true"}`), ""},
		{
			"a veto that keeps nobody", row("preemptable", `{name: x, veto: true, expression: "true"}`),
			"10:50: is always true, and so says nothing; remove the row, or have it read what it is asked about",
		},
		{"a switch by a param", "params: {on: {type: bool, default: true}}, " + row("predicates", "{name: x, expression: params.on}"), ""},
		{
			"no order", row("jobOrder", "{name: x, by: 1 + 1}"),
			"10:26: puts nothing in order: it is the same for all; remove the row, or have it read what it is asked about",
		},
		{
			"no score", row("scores", "{name: x, expression: 2 * 3.0}"),
			"10:32: is the same score for all; remove the row, or have it read what it is asked about",
		},
		{"a cost each", row("victimCost", "{name: x, expression: 1.0}"), ""},
		{
			"a weight of 0", row("scores", "{name: x, expression: node.idle.cpu, weight: 0}"),
			"10:32: the score counts nothing: its weight is 0; give it a weight, or remove it",
		},
		{
			"a weight by a param", "params: {w: {type: double, default: 0}}, " +
				row("scores", "{name: x, expression: node.idle.cpu, weight: params.w}"), "",
		},
		{
			"never asked", row("scores", "{name: x, when: 1 > 2, expression: node.idle.cpu}"),
			`10:26: the row "x" is never asked: its when is always false; remove the row, or its when`,
		},
		{"switched off by a param", "params: {on: {type: bool, default: false}}, " +
			row("scores", "{name: x, when: params.on, expression: node.idle.cpu}"), ""},
		{
			"an order twice", row("jobOrder", "{name: x, by: job.priority}, {name: y, descending: true, by: job.priority}"),
			`10:73: the row "x" of the table own says the same, and is asked before; remove one of the two rows`,
		},
		{
			"a predicate twice", row("predicates", "{name: x, expression: node.taskCount<3}, {name: y, expression: node.taskCount < 3}"),
			`10:77: the row "x" of the table own says the same, and is asked before; remove one of the two rows`,
		},
		{
			"the same under another guard", row("predicates", "{name: x, expression: node.taskCount < 3}, "+
				"{name: y, when: task.gpuCount > 0, expression: node.taskCount < 3}"), "",
		},
		{
			"rows that must both hold", row("predicates", "{name: x, expression: node.taskCount < 3}, {name: y, expression: node.taskCount > 5}"),
			`10:79: node.taskCount > 5 never holds together with node.taskCount < 3 of the row "x", and both must; ` +
				"join what may hold with || in one row, or give the rows a when",
		},
		{
			"rows of which one is enough",
			row("overused", "{name: x, expression: queue.priority < 3}, {name: y, expression: queue.priority > 5}"), "",
		},
		{
			"a guard that leaves nothing", row("predicates", "{name: x, when: node.gpuCapacity > 0, expression: node.gpuCapacity == 0}"),
			"10:64: node.gpuCapacity == 0 never holds where when holds: node.gpuCapacity > 0; " +
				`compare another value, or write expression: "false" if that is meant`,
		},
		{
			"a guard that leaves no doubt", row("predicates", "{name: x, when: node.gpuCapacity > 2, expression: node.gpuCapacity >= 1}"),
			"10:64: node.gpuCapacity >= 1 always holds where when holds: node.gpuCapacity > 2; the row says nothing; " +
				"compare another value, or remove the row",
		},
	} {
		if diff := cmp.Diff(c.want, found(t, policyWith(c.body))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// Conditions in a row of predicates that exclude each other.
func TestClash(t *testing.T) {
	t.Parallel()
	never := func(a, b string) string { return a + " and " + b + " never hold together" }
	always := func(a, b string) string { return a + " or " + b + " always holds" }
	for _, c := range []struct{ expression, want string }{
		{`job.name == 'a' && job.name == 'b'`, never(`job.name == "a"`, `job.name == "b"`)},
		{`job.name == 'a' && task.gpuCount > 0 && 'b' == job.name`, never(`job.name == "a"`, `"b" == job.name`)},
		{`job.name == 'a' || job.name == 'b'`, ""},
		{`job.name != 'a' || job.name != 'b'`, always(`job.name != "a"`, `job.name != "b"`)},
		{`job.name != 'a' && job.name != 'b'`, ""},
		{`!(job.name == 'a' || job.name == 'b') && job.name == 'a'`, never(`job.name == "a"`, `job.name == "a"`)},
		{`job.name in ['a', 'b'] && job.name in ['c']`, never(`job.name in ["a", "b"]`, `job.name in ["c"]`)},
		{`job.name in ['a', 'b'] && job.name in ['c', 'b']`, ""},
		{`job.name in ['a', 'b'] && !(job.name in ['b'])`, ""},
		{`job.priority > 5 && job.priority < 5`, never("job.priority > 5", "job.priority < 5")},
		{`job.priority >= 5 && 5 >= job.priority`, ""},
		{`job.priority >= 5.5 && 5 >= job.priority`, never("job.priority >= 5.5", "5 >= job.priority")},
		{`job.priority < 5 || job.priority >= 5`, always("job.priority < 5", "job.priority >= 5")},
		{`job.priority < 5 || job.priority > 5`, ""},
		{`job.priority == 3 && job.priority > 3`, never("job.priority == 3", "job.priority > 3")},
		{`job.priority == 3 && job.priority != 4`, ""},
		{`node.unschedulable && task.gpuCount > 0 && !node.unschedulable`, never("node.unschedulable", "node.unschedulable")},
		{`task.gpuCount > 0 ? job.name == 'a' && job.name == 'b' : true`, never(`job.name == "a"`, `job.name == "b"`)},
		{`job.roles.exists(r, r.name == 'a' && r.name == 'b')`, never(`r.name == "a"`, `r.name == "b"`)},
		{`job.priority == job.priority`, "job.priority is compared with itself"},
		{`job.priority > 3 || job.name == 'a' || job.priority > 3`, "job.priority > 3 stands twice in the same condition"},
		{`job.priority > 3 || job.name == 'a' && job.priority > 3`, ""},
		{`job.priority > task.priority && job.priority < task.priority`, ""},
	} {
		got := found(t, policyWith(fmt.Sprintf("predicates: [{name: x, expression: %q}]", c.expression)))
		if got != "" {
			_, got, _ = strings.Cut(got, ": ")
			got = got[:strings.LastIndex(got, "; ")]
		}
		if got != c.want {
			t.Errorf("%s: found %q, want %q", c.expression, got, c.want)
		}
	}
}

// Names that nothing reads, and rows that are switched off.
func TestUnread(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("pipeline: [allocate]", "pipeline: [allocate]\n  actions: [{name: spare, steps: [{verb: place}]}]",
		"{name: own,", "{name: own, without: [scores],").Replace(policyWith(
		`params: {used: {type: int, default: 1}, left: {type: int, default: 1}},
variables: [{name: read, expression: params.used}, {name: unread, expression: "params.used + 1"}],
attributes: [{name: seen, on: job, expression: "job.priority"}, {name: lone, on: queue, expression: "1"},
  {name: deserved, on: queue, expression: "resources()"}],
jobOrder: [{name: o, by: job.seen + variables.read}],
scores: [{name: off, expression: node.idle.cpu}]`))
	want := `6:20: the action "spare" never runs: the pipeline does not name it; add it to pipeline, or remove it
11:47: nothing reads the param "left"; remove it, or read it as params.left
12:59: nothing reads the variable "unread"; remove it, or read it as variables.unread
13:72: nothing reads the attribute "lone"; remove it, or read it as queue.lone
16:17: the row "off" is never asked: without names scores; take scores out of without, or remove the row`
	if diff := cmp.Diff(want, found(t, text)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A policy with mistakes only has those as findings.
func TestMistakes(t *testing.T) {
	t.Parallel()
	found, mistakes := Policy(parsed(t, policyWith("predicates: [{name: x, expression: nod.taskCount > 1}]")))
	if len(found) > 0 || len(mistakes) != 1 {
		t.Errorf("found %v, mistakes %v", found, mistakes)
	}
}

// The built-in tables and the samples have no findings.
func TestNothingInWhatShips(t *testing.T) {
	t.Parallel()
	names := append(policy.ShippedNames(), "every action")
	for _, name := range names {
		table := name
		pipeline := "allocate"
		if name == "every action" {
			actions, issues := policy.ShippedActions()
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			// Each action that displaces pods needs a table whose rows permit victims.
			table, pipeline = "priority}\n    - {name: capacity", strings.Join(actions, ", ")
		}
		text := strings.NewReplacer("[allocate]", "["+pipeline+"]", "{name: own, inline: {\n\n    }}", "{name: "+table+"}").Replace(
			policyWith(""))
		resolved, issues := policytext.Resolve(parsed(t, text), nil)
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		if got := found(t, string(resolved)); got != "" {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	err := filepath.WalkDir("../../../samples/policies", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got := found(t, strings.TrimSpace(string(data))+"\n"); got != "" {
			t.Errorf("%s:\n%s", path, got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLintIsLinear counts the allocations of the comparisons between rows. Twice as many rows need at most 2.5 times as many allocations.
func TestLintIsLinear(t *testing.T) {
	cost := func(rows int) float64 {
		var body strings.Builder
		body.WriteString("predicates: [\n")
		for i := range rows {
			fmt.Fprintf(&body, "{name: pool-%[1]d, when: 'job.namespace == \"lab-%[1]d\" && task.priority > %[1]d', "+
				"expression: 'node.labels[?\"example.com/pool\"].orValue(\"\") == \"pool-%[1]d\"'},\n", i)
		}
		doc := parsed(t, policyWith(body.String()+"]"))
		return testing.AllocsPerRun(1, func() {
			if issues, mistakes := Policy(doc); len(issues)+len(mistakes) > 0 {
				t.Fatal(issues, mistakes)
			}
		})
	}
	if few, many := cost(200), cost(400); many > 2.5*few {
		t.Errorf("200 rows take %.0f allocations, and 400 rows take %.0f", few, many)
	}
}
