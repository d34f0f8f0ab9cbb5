package conformance

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
	"github.com/celsius-scheduler/celsius/engine/volcano"
	"github.com/celsius-scheduler/celsius/rules/source"
)

func runner(t *testing.T) *Runner {
	t.Helper()
	r, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changed reads a copy of smallCase in which one text is another.
func changed(t *testing.T, old, replacement string) *Case {
	t.Helper()
	text := strings.Replace(smallCase, old, replacement, 1)
	if text == smallCase {
		t.Fatalf("the case does not have %q", old)
	}
	c := &Case{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhyNot(t *testing.T) {
	r := runner(t)
	for _, test := range []struct{ old, replacement, want string }{
		{`"small.gang"`, `"small.other"`, ""},
		{`"mode": "actions"`, `"mode": "session-dump"`, "session dump: objects that only the cache had are missing"},
		{`"mode": "actions"`, `"mode": "open-only"`, "nothing was asked: the session was only opened"},
		{`"nodes": [`, `"hyperNodes": [{}], "nodes": [`, "HyperNodes are not there yet"},
		{`"nodes": [`, `"hyperNodeInfo": {"s0": {}}, "nodes": [`, "HyperNodes are not there yet"},
		{`"nodes": [`, `"resourceClaims": [{}], "nodes": [`, "resource claims (DRA) are not scheduled"},
		{`"nodes": [`, `"sharding": {"mode": "hard"}, "nodes": [`, "shards are not there yet"},
		{`"shardingMode": "none"`, `"shardingMode": "soft"`, "shards are not there yet"},
		{`"name": "gang"`, `"name": "fake"`, "custom plugin fake"},
		{`"name": "gang"`, `"name": "numa-aware"`, ""},     // it is there
		{`"name": "gang"`, `"name": "no-such-plugin"`, ""}, // likewise
		{`"actions": ["allocate"]`, `"actions": ["no-such-action"]`, ""},
		{`"name": "gang"`, `"name": "gang", "arguments": {"depth": 3}`, ""},       // it cannot be converted, and fails
		{`"name": "gang"`, `"name": "network-topology-aware"`, ""},                // it says nothing where there are no HyperNodes
		{`"actions": ["allocate"]`, `"actions": ["allocate", "gangpreempt"]`, ""}, // it is there
		{`"name": "gang"`, `"name": "gang", "enableHierarchy": true`, "gang: enableHierarchy is not there yet"},
	} {
		if got := r.whyNot(changed(t, test.old, test.replacement)); got != test.want {
			t.Errorf("%s: %q, want %q", test.replacement, got, test.want)
		}
	}
	call := changed(t, `"mode": "actions"`, `"mode": "calls"`)
	call.Observed.TestCalls = []Call{{Fn: "HyperNodeOrderMapFn", Job: "ns/pg"}}
	if got := r.whyNot(call); got != "call HyperNodeOrderMapFn is not there yet" {
		t.Errorf("a call that is not there: %q", got)
	}
	call.Observed.TestCalls = []Call{{Fn: "JobOrderFn"}}
	if got := r.whyNot(call); got != "call of nothing: it names no object" {
		t.Errorf("a call of nothing: %q", got)
	}
}

// The gang of two waits as a whole; without the gang table one pod is bound, as the derived case has it.
func TestRunPasses(t *testing.T) {
	report := runner(t).Run(smallCases(t))
	report.Stale = nil // the shipped list names cases of the corpus
	for _, r := range report.Results {
		if r.Skip != "" || len(r.Differences) > 0 {
			t.Errorf("%s: skipped %q, differs %q", r.Case.ID, r.Skip, r.Differences)
		}
	}
	if got := report.Verdict(); got != "conformance: 2 passed, 0 failed, 0 skipped of 2" {
		t.Error(got)
	}
}

// A plugin that only a recorded test has is a table of the policy's own.
func TestStub(t *testing.T) {
	for _, test := range []struct{ job, want string }{{"pg", "true"}, {"pgA", "false"}} {
		c := changed(t, `"name": "gang", "enableJobReady": true, "enableJobPipelined": true`,
			`"name": "test-rejecter", "enableJobEnqueued": true`)
		c.Mode = "calls"
		c.Input.PodGroups[0].Name = test.job
		c.Observed.TestCalls = []Call{{Fn: "JobEnqueueable", Job: "ns/" + test.job, Result: json.RawMessage(test.want)}}
		if diff := runner(t).replay(c).Differences; diff != nil {
			t.Errorf("%s: %q", test.job, diff)
		}
	}
}

// What was observed otherwise is told, not passed over.
func TestRunFails(t *testing.T) {
	c := changed(t, `"binds": {}`, `"binds": {"ns/p1": "n1", "ns/p2": "n1"}`)
	want := []string{"bind ns/p1: -, Volcano n1", "bind ns/p2: -, Volcano n1"}
	if diff := cmp.Diff(want, runner(t).replay(c).Differences); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A case whose own data is bad fails; it does not pass, and it does not stop the others.
func TestRunTellsBadCases(t *testing.T) {
	for _, test := range []struct{ old, replacement, want string }{
		{`"enableJobReady": true`, `"enableJobRedy": true`, "enableJobRedy"},
		{`"name": "gang"`, `"name": "no-such-plugin"`, `unknown plugin "no-such-plugin"`},
		{`"actions": ["allocate"]`, `"actions": ["no-such-action"]`, `unknown action "no-such-action"`},
		{`{"requests": {"cpu": "1"}}`, `{"requests": {"cpu": "-1"}}`, "objects of the case: "},
	} {
		got := runner(t).replay(changed(t, test.old, test.replacement)).Differences
		if len(got) != 1 || !strings.Contains(got[0], test.want) {
			t.Errorf("%s: got %q", test.replacement, got)
		}
	}
}

func TestCalls(t *testing.T) {
	text := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, test := range []struct {
		name string
		call Call
		want []string
	}{
		{"the earlier pod first", Call{Fn: "TaskOrderFn", L: "ns/p1", R: "ns/p2", Result: text("true")}, nil},
		{
			"the other way round",
			Call{Fn: "TaskOrderFn", L: "ns/p2", R: "ns/p1", Result: text("true")},
			[]string{"TaskOrderFn ns/p2 ns/p1: false, Volcano true"},
		},
		{"nobody is against it", Call{Fn: "JobEnqueueable", Job: "ns/pg", Result: text("true")}, nil},
		{"nobody says overused", Call{Fn: "Overused", Queue: "q", Result: text("true")}, []string{"Overused q: false, Volcano true"}},
		{
			"no such pod",
			Call{Fn: "Allocatable", Queue: "q", Task: "ns/p3", Result: text("true")},
			[]string{"Allocatable q ns/p3: the case has no pod ns/p3, Volcano true"},
		},
	} {
		c := changed(t, `"mode": "actions"`, `"mode": "calls"`)
		c.Observed.TestCalls = []Call{test.call}
		if diff := cmp.Diff(test.want, runner(t).replay(c).Differences); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestSameAnswer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"375", "375.0000004", true},
		{"375", "375.00001", false},
		{"true", "true", true},
		{"fits", "does not fit", false},
		{"1", "true", false},
	} {
		if got := sameAnswer(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: %v", test.a, test.b, got)
		}
	}
}

func TestExplain(t *testing.T) {
	var out bytes.Buffer
	if _, err := runner(t).Explain(&out, smallCases(t), "small.gang"); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"mode actions, plugins gang predicates, actions allocate", "CELSIUS", "VOLCANO",
		`{"kind":"discard","ops":[]}`, "the same",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the explanation lacks %q:\n%s", part, out.String())
		}
	}
	if _, err := runner(t).Explain(&out, smallCases(t), "small.gnag"); err == nil {
		t.Error("a case that is not there was explained")
	}
}

func TestSideBySide(t *testing.T) {
	var b strings.Builder
	sideBySide(&b, []string{"left"}, []string{strings.Repeat("x", columnWidth+3), "y"})
	want := "left" + strings.Repeat(" ", columnWidth-4) + " | " + strings.Repeat("x", columnWidth) + "\n" +
		strings.Repeat(" ", columnWidth) + " |         xxx\n" + strings.Repeat(" ", columnWidth) + " | y\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// allRecorded is all recorded cases.
func allRecorded(t *testing.T) []*Case {
	t.Helper()
	cases, err := Load(corpus.Dir(t, "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// All recorded cases that can be replayed here pass.
func TestCorpus(t *testing.T) {
	cases := allRecorded(t)
	report := runner(t).Run(cases)
	var out bytes.Buffer
	if err := report.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error(out.String())
	}
}

// On every recorded case that runs, the engine decides what the reference decides, to the byte.
func TestCorpusByReference(t *testing.T) {
	fast, plain := runner(t), runner(t)
	plain.Decider = (&reference.Run{}).Decide
	ran := 0
	for _, c := range allRecorded(t) {
		var texts []string
		for _, r := range []*Runner{plain, fast} {
			plan, err := r.Decide(c)
			if err != nil {
				t.Fatal(err)
			}
			if plan == nil {
				continue
			}
			text, err := report.Written(plan)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		if len(texts) < 2 {
			continue
		}
		if ran++; texts[0] != texts[1] {
			t.Errorf("case %s: -reference +engine:\n%s", c.ID, cmp.Diff(texts[0], texts[1]))
		}
	}
	if ran < 100 {
		t.Errorf("only %d cases ran", ran)
	}
}

// Every configuration of the recordings becomes a policy that compiles, read either way; but for those that Volcano's tests
// register a plugin of their own for, and those with two owners of one quota.
func TestEveryConfigurationConverts(t *testing.T) {
	r := runner(t)
	seen := map[string]bool{}
	for _, c := range allRecorded(t) {
		if slices.ContainsFunc(c.plugins(), func(p string) bool { return slices.Contains(customPlugins(), p) }) {
			continue
		}
		conf, err := c.conf()
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		for _, flags := range []volcano.Flags{volcano.FlagsDefault, volcano.FlagsExplicit} {
			converted, err := volcano.Convert(conf, volcano.Options{Flags: flags, Tables: r.tables, Actions: r.actions})
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
				continue
			}
			text := r.withStubs(converted.Policy)
			if seen[string(text)] {
				continue
			}
			seen[string(text)] = true
			docs, issues := source.Parse("converted.yaml", text)
			if _, found := policy.Load(docs[0]); issues.Err() != nil || found.Err() != nil && !ownedTwice(found) {
				t.Errorf("%s: %v %v\n%s", c.ID, issues, found, text)
			}
		}
	}
}
