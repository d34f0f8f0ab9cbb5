package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/celsius-scheduler/celsius/engine/digest"
	"github.com/celsius-scheduler/celsius/engine/digest/sums"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
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

// changed returns a copy of smallCase with one text replaced.
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
		{`"name": "gang"`, `"name": "device-fit-after-eviction"`, "custom plugin device-fit-after-eviction"},
		{`"name": "gang"`, `"name": "fake"`, ""},           // it is a separate table
		{`"name": "gang"`, `"name": "numa-aware"`, ""},     // it exists
		{`"name": "gang"`, `"name": "no-such-plugin"`, ""}, // likewise
		{`"actions": ["allocate"]`, `"actions": ["no-such-action"]`, ""},
		{`"name": "gang"`, `"name": "gang", "arguments": {"depth": 3}`, ""},       // it cannot be converted, and fails
		{`"name": "gang"`, `"name": "network-topology-aware"`, ""},                // it has no effect without HyperNodes
		{`"actions": ["allocate"]`, `"actions": ["allocate", "gangpreempt"]`, ""}, // it exists
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

// The gang of two waits as a whole. Without the gang table one pod is bound, as in the derived case.
func TestRunPasses(t *testing.T) {
	report := runner(t).Run(smallCases(t))
	report.Stale = nil // the built-in list names cases of the corpus
	for _, r := range report.Results {
		if r.Skip != "" || len(r.Differences) > 0 {
			t.Errorf("%s: skipped %q, differs %q", r.Case.ID, r.Skip, r.Differences)
		}
	}
	if got := report.Verdict(); got != "conformance: 2 passed, 0 failed, 0 skipped of 2" {
		t.Error(got)
	}
}

// A plugin that exists only in a recorded test becomes a table of the policy.
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

// A different outcome is reported.
func TestRunFails(t *testing.T) {
	c := changed(t, `"binds": {}`, `"binds": {"ns/p1": "n1", "ns/p2": "n1"}`)
	want := []string{"bind ns/p1: -, Volcano n1", "bind ns/p2: -, Volcano n1"}
	if diff := cmp.Diff(want, runner(t).replay(c).Differences); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A case with invalid data fails, and does not stop the others.
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

func TestDecisionLinesHaveEvictions(t *testing.T) {
	got := decisionLines(&model.Plan{
		Pipelines: []model.Bind{{Task: "ns/a", Node: "n", Action: "reclaim"}},
		Evicts:    []model.Evict{{Task: "ns/b", Node: "n", Action: "reclaim"}},
	})
	if diff := cmp.Diff([]string{"pipeline ns/a -> n (reclaim)", "evict ns/b (reclaim)"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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

// allRecorded returns all recorded cases.
func allRecorded(t *testing.T) []*Case {
	t.Helper()
	cases, err := Load(corpus.Dir(t, "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// All recorded cases that can be replayed here pass, and no other is skipped for a feature that exists.
func TestCorpus(t *testing.T) {
	cases := allRecorded(t)
	r := runner(t)
	report := r.Run(cases)
	var out bytes.Buffer
	if err := report.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"": true}
	for _, result := range report.Results {
		if seen[result.Skip] {
			continue
		}
		seen[result.Skip] = true
		if there, err := namesWhatExists(r, result.Skip); err != nil || there {
			t.Errorf("case %s is skipped for %q, which exists: %t, %v", result.Case.ID, result.Skip, there, err)
		}
	}
	if !report.OK() {
		t.Error(out.String())
	}
}

// On every recorded case that runs, the engine's decisions equal those of the reference byte by byte, and match testdata/decisions.txt.
func TestCorpusByReference(t *testing.T) {
	fast, plain := runner(t), runner(t)
	plain.Decider = (&reference.Run{}).Decide
	ran := 0
	inputs := fnv.New64a()
	sum, err := digest.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range allRecorded(t) {
		_, _ = fmt.Fprintln(inputs, c.ID)
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
			if r != fast {
				continue
			}
			if err := sum.Add(plan); err != nil {
				t.Fatal(err)
			}
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
	const file = "testdata/decisions.txt"
	name := fmt.Sprintf("corpus %016x", inputs.Sum64())
	if known, err := os.ReadFile(file); !*update && (err != nil || !bytes.Contains(known, []byte(name))) {
		t.Logf("%s does not know these cases", file)
		return
	}
	sums.Check(t, file, *update, map[string]*digest.Sum{name: sum})
}

var update = flag.Bool("update", false, "write the digests of what recorded cases decide")

// Every recorded configuration is converted to a policy that compiles, with both ways of reading flags. Exceptions are configurations with
// plugins of Volcano's tests, and those with two owners of one quota.
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

// TestVictims checks which pods are evicted when a zone closes: by name if Volcano's runs agree, else the number per job.
func TestVictims(t *testing.T) {
	text := func(s string) json.RawMessage { return json.RawMessage(s) }
	asked := func(result string, variants ...string) *Case {
		c := changed(t, `"name": "gang", "enableJobReady": true, "enableJobPipelined": true`, `"name": "fake", "enabledVictim": true`)
		c.Mode, c.Config.Actions = "calls", nil
		c.Observed.TestCalls = []Call{{Fn: victimTasks, Result: text(result)}}
		for _, v := range variants {
			c.Observed.TestCallVariants = append(c.Observed.TestCallVariants, struct{ Calls []Call }{[]Call{{Fn: victimTasks, Result: text(v)}}})
		}
		for i, p := range c.Input.Pods {
			p.Spec.NodeName, p.Status.Phase = c.Input.Nodes[0].Name, "Running"
			priority := int32(10 - i) // the first one has priority 10
			p.Spec.Priority = &priority
		}
		return c
	}
	for _, test := range []struct {
		name string
		c    *Case
		want []string
	}{
		{"the one of priority 10", asked(`["ns/p1"]`), nil},
		{"another one", asked(`["ns/p2"]`), []string{"VictimTasks: ns/p1, Volcano ns/p2"}},
		{"as many of its job", asked(`["ns/p2"]`, `["ns/p2"]`, `["ns/p1"]`), nil},
		{
			"fewer of its job", asked(`["ns/p2", "ns/p1"]`, `["ns/p2", "ns/p1"]`, `["ns/p1"]`),
			[]string{"VictimTasks: 1 of ns/pg, Volcano 2 of ns/pg"},
		},
	} {
		result := runner(t).replay(test.c)
		if diff := cmp.Diff(test.want, result.Differences); diff != "" || result.Skip != "" {
			t.Errorf("%s: skipped %q (-want +got)\n%s", test.name, result.Skip, diff)
		}
	}
}

// TestAges checks that usage samples keep the age that they had when their case ran.
func TestAges(t *testing.T) {
	recorded := time.Date(2026, 11, 21, 7, 27, 42, 0, time.UTC)
	in := func(pkg string, ages ...time.Duration) *Case {
		c := &Case{Observed: Observed{NodeUsage: map[string]NodeUsage{"never": {}}}}
		c.Origin.Package, c.Origin.RecordedAt = pkg, recorded
		for i, age := range ages {
			name := fmt.Sprintf("n%d", i)
			n := &corev1.Node{}
			n.Name = name
			c.Input.Nodes = append(c.Input.Nodes, n)
			c.Observed.NodeUsage[name] = NodeUsage{CPU: map[string]float64{"10m": 50}, MetricsTime: recorded.Add(-age)}
		}
		return c
	}
	const minute = time.Minute
	for _, test := range []struct {
		name    string
		cases   []*Case
		want    []time.Duration // the ages of the samples of the first case
		assumed bool
	}{
		{"fresh enough to be read: as recorded", []*Case{in("usage", 2*minute, 7*minute)}, []time.Duration{2 * minute, 7 * minute}, false},
		{"all too old by the time of the record", []*Case{in("usage", 9*minute, 15*minute)}, []time.Duration{0, 6 * minute}, true},
		{
			"another case of the package has the newest",
			[]*Case{in("usage", 15*minute), in("usage", 9*minute)},
			[]time.Duration{6 * minute},
			true,
		},
		{
			"another package says nothing",
			[]*Case{in("usage", 15*minute), in("nodeorder", 9*minute)},
			[]time.Duration{0},
			true,
		},
		{"older than a run can last", []*Case{in("usage", 48*time.Hour)}, []time.Duration{48 * time.Hour}, false},
		{"never measured", []*Case{in("usage")}, nil, false},
	} {
		setClocks(test.cases)
		c := test.cases[0]
		var got []time.Duration
		c.addMeasures(func(o any) { got = append(got, recorded.Sub(o.(*metricsv1beta1.NodeMetrics).Timestamp.Time)) })
		if _, assumed := c.clock(); !slices.Equal(got, test.want) || (assumed != "") != test.assumed {
			t.Errorf("%s: ages %v, want %v; assumed %q", test.name, got, test.want, assumed)
		}
	}
}

// existing returns, for each type of skip reason, a function that reports whether the named feature exists; nil: the reason names no
// feature.
func existing(r *Runner) map[string]func(found []string) bool {
	table := func(found []string) bool { return r.tables[found[1]] != nil }
	topology := func([]string) bool { return r.tables["network-topology-aware"] != nil }
	return map[string]func(found []string) bool{
		`^session dump: objects that only the cache had are missing$`: nil,
		`^nothing was asked: the session was only opened$`:            nil,
		`^call of nothing: it names no object$`:                       nil,
		`^two plugins own one quota, which is refused$`:               nil,
		`^HyperNodes are not there yet$`:                              topology,
		`^resource claims \(DRA\) are not scheduled$`: func([]string) bool {
			return volcano.Takes(r.tables["predicates"], "predicate.DynamicResourceAllocationEnable")
		},
		`^shards are not there yet$`:            func([]string) bool { return r.tables["sharding"] != nil },
		`^custom plugin (.*)$`:                  func(found []string) bool { return r.stubs[found[1]] != "" },
		`^plugin (.*) is not there yet$`:        table,
		`^action (.*) is not there yet$`:        func(found []string) bool { return slices.Contains(r.actions, found[1]) },
		`^call (HyperNode.*) is not there yet$`: topology,
		`^call (.*) is not there yet$`: func(found []string) bool {
			_, ok := reflect.TypeFor[*session.Session]().MethodByName(strings.TrimSuffix(found[1], "Fn"))
			return ok || answerable(found[1])
		},
		`^(.*): what (.*) is about is not there yet$`: func(found []string) bool { return volcano.Takes(r.tables[found[1]], found[2]) },
		`^(.*): (.*) is not there yet$`:               func(found []string) bool { return volcano.Takes(r.tables[found[1]], found[2]) },
	}
}

// namesWhatExists reports whether a reason names a feature that exists. It returns an error for an unknown type of reason.
func namesWhatExists(r *Runner, reason string) (bool, error) {
	kinds := existing(r)
	for _, pattern := range slices.Sorted(maps.Keys(kinds)) {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(reason); found != nil {
			return kinds[pattern] != nil && kinds[pattern](found), nil
		}
	}
	return false, fmt.Errorf("nothing shows whether %q names a feature that exists; add a pattern", reason)
}

// TestSkipsNameNoFeatureThatExists tests the check of reasons. TestCorpus applies the check to the recorded cases.
func TestSkipsNameNoFeatureThatExists(t *testing.T) {
	r := runner(t)
	for reason, want := range map[string]bool{
		"plugin tdm is not there yet": true, "action shuffle is not there yet": true, "call VictimTasks is not there yet": true,
		"call Allocatable is not there yet": true, "custom plugin fake": true, "plugin no-such-plugin is not there yet": false,
	} {
		if there, err := namesWhatExists(r, reason); err != nil || there != want {
			t.Errorf("%q: %t %v, want %t", reason, there, err, want)
		}
	}
}
