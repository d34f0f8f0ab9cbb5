package conformance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smallCase is a gang of two pods on a node for one pod. With the plugin gang it waits; without it one pod runs.
const smallCase = `{
 "id": "small.gang", "mode": "actions",
 "origin": {"package": "pkg/scheduler/actions/allocate", "recordedAt": "2026-11-21T07:25:31.172565834Z"},
 "input": {
  "nodes": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
   "status": {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "10"}, "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}}],
  "queues": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1},
   "status": {"state": "Open"}}],
  "podGroups": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "pg", "namespace": "ns"},
   "spec": {"queue": "q", "minMember": 2}, "status": {"phase": "Inqueue"}}],
  "pods": [
   {"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p1", "namespace": "ns", "uid": "u1", "annotations": {"scheduling.k8s.io/group-name": "pg"}},
    "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {"phase": "Pending"}},
   {"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p2", "namespace": "ns", "uid": "u2", "annotations": {"scheduling.k8s.io/group-name": "pg"}},
    "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {"phase": "Pending"}}]
 },
 "config": {"actions": ["allocate"], "tiers": [{"plugins": [
   {"name": "gang", "enableJobReady": true, "enableJobPipelined": true}, {"name": "predicates", "enablePredicate": true}]}],
  "configurations": [], "serverOptions": {"schedulerNames": ["volcano"], "shardingMode": "none"}},
 "check": {"kind": "CheckAll"},
 "observed": {"binds": {}, "evicts": [], "pipelined": {}, "podGroupPhases": {"ns/pg": "Inqueue"},
  "jobs": {"ns/pg": {"phase": "Inqueue", "tasks": {"Pending": {"ns/p1": "", "ns/p2": ""}}, "minAvailable": 2,
   "fitErrors": {"ns/p2": "no"}}},
  "nodes": {"n1": {"idle": "cpu 1000.00, memory 1073741824.00, pods 10.00"}}, "stable": true, "trace": [{"kind": "discard", "ops": []}]}
}`

const (
	smallProfiles = `{"default": {"actions": ["allocate"], "configurations": [], "tiers": [` +
		`{"plugins": [{"name": "predicates", "enablePredicate": true}]}]}}`
	smallDerived = `{"id": "derived.default.small.gang", "mode": "actions", "origin": {"recordedAt": "2026-11-21T07:25:31Z"}, ` +
		`"inputRef": "cases/small.gang.json", "config": {"profile": "default"}, "check": {"kind": "observe"}, ` +
		`"observed": {"binds": {"ns/p1": "n1"}, "podGroupPhases": {"ns/pg": "Inqueue"},` +
		` "jobs": {"ns/pg": {"tasks": {"Binding": {"ns/p1": "n1"}, "Pending": {"ns/p2": ""}}, "minAvailable": 2}}, "stable": true}}` + "\n"
)

// folder writes the files of a corpus.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func smallFiles() map[string]string {
	return map[string]string{
		"cases/small.gang.json": smallCase, "derived/profiles.json": smallProfiles, "derived/default.jsonl": smallDerived,
	}
}

func smallCases(t *testing.T) []*Case {
	t.Helper()
	cases, err := Load(folder(t, smallFiles()))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestLoad(t *testing.T) {
	cases := smallCases(t)
	if len(cases) != 2 {
		t.Fatalf("%d cases, want 2", len(cases))
	}
	derived, base := cases[0], cases[1]
	if derived.ID != "derived.default.small.gang" || base.ID != "small.gang" {
		t.Fatalf("cases out of order: %s, %s", derived.ID, base.ID)
	}
	if len(derived.Input.Pods) != 2 || derived.Input.Pods[0].Name != "p1" {
		t.Error("a derived case must have its base's input")
	}
	if got := derived.plugins(); !cmp.Equal(got, []string{"predicates"}) {
		t.Errorf("a derived case must have its profile's plugins, got %v", got)
	}
	if derived.Package() != "derived/default" || base.Package() != "actions/allocate" {
		t.Errorf("packages %q, %q", derived.Package(), base.Package())
	}
	if want := time.Date(2026, 11, 21, 7, 25, 31, 172565834, time.UTC); !base.Origin.RecordedAt.Equal(want) {
		t.Errorf("recorded at %s, want %s", base.Origin.RecordedAt, want)
	}
	if got := base.Observed.Trace[0].Text; got != `{"kind":"discard","ops":[]}` {
		t.Errorf("trace text %s", got)
	}
}

const smallScores = `{"case":"small.gang","kind":"nodeOrder","plugin":"binpack","arguments":{"binpack.weight":2},"task":"ns/p1",` +
	`"nodeScores":{"n1":0},"first":true}
{"case":"small.gang","kind":"batchNodeOrder","plugin":"binpack","arguments":{"binpack.weight":2},"task":"ns/p1",` +
	`"nodeScores":{"n1":200},"first":true}
{"case":"small.gang","kind":"nodeOrder","plugin":"binpack","arguments":null,"task":"ns/p2","nodeScores":{"n1":99},"first":true}
{"case":"small.gang","kind":"hyperNodeOrder","plugin":"network-topology-aware","arguments":null,"subJob":"ns/pg","nodeScores":{"s0":1}}
`

// The scores of a plugin for single nodes and for all nodes are one case. Rows about other plugins and other pods are separate cases.
func TestScores(t *testing.T) {
	files := smallFiles()
	files["tables/scores.jsonl"] = smallScores
	cases, err := Load(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	r, got := runner(t), map[string]string{}
	for _, c := range cases {
		if c.Mode == scoresMode {
			result := r.replay(c)
			got[c.ID] = strings.Join(append(result.Differences, result.Skip), "; ")
		}
	}
	want := map[string]string{
		"scores.small.gang.binpack.ns/p1":             "",
		"scores.small.gang.binpack.ns/p2":             "score of ns/p2 on n1: 100, Volcano 99; ",
		"scores.small.gang.network-topology-aware..0": "plugin network-topology-aware is not there yet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLoadErrors(t *testing.T) {
	for _, test := range []struct {
		name, file, text, want string
	}{
		{"syntax", "cases/x.json", "{\n \"id\": \"x\",\n}", "cases/x.json: line 3: "},
		{"wrong type", "cases/x.json", "{\"id\": \"x\",\n \"mode\": 7}", "cases/x.json: line 2: "},
		{"no mode", "cases/x.json", `{"id": "x"}`, "cases/x.json: a case needs id and mode"},
		{
			"no such base", "derived/default.jsonl", smallDerived + strings.Replace(smallDerived, "cases/small", "cases/other", 1),
			"default.jsonl:2: case derived.default.small.gang: there is no cases/other.gang.json",
		},
		{
			"a score of no case", "tables/scores.jsonl", strings.Replace(smallScores, "small.gang", "small.gnag", 1),
			"scores.jsonl:1: there is no case small.gnag",
		},
		{
			"no such profile", "derived/default.jsonl", strings.Replace(smallDerived, `"profile": "default"`, `"profile": "x"`, 1),
			`default.jsonl:1: case derived.default.small.gang: profiles.json has no profile "x"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := smallFiles()
			files[test.file] = test.text
			_, err := Load(folder(t, files))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no case in it") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestEffective(t *testing.T) {
	no, yes, score := false, true, 1.0
	for _, test := range []struct {
		name string
		o    Observed
		want bool
	}{
		{"nothing", Observed{Trace: []Decision{
			{Kind: "commit"},
			{Kind: "jobEnqueueable", Vote: 1},
			{Kind: "allocatable", Result: &yes},
			{Kind: "overused", Result: &no},
		}}, false},
		{"bound", Observed{Binds: map[string]string{"p": "n"}}, true},
		{"evicted", Observed{Evicts: []string{"p"}}, true},
		{"pipelined", Observed{Pipelined: map[string]string{"p": "n"}}, true},
		{"asked", Observed{TestCalls: []Call{{Fn: "NodeOrderFn", Score: &score}}}, true},
		{"no node", Observed{Failures: map[string]any{"p": 1}}, true},
		{"a fit error", Observed{Jobs: map[string]Job{"j": {FitErrors: map[string]string{"p": "no"}}}}, true},
		{"scored", Observed{Trace: []Decision{{Kind: "nodeScores"}}}, true},
		{"discarded", Observed{Trace: []Decision{{Kind: "discard"}}}, true},
		{"not let in", Observed{Trace: []Decision{{Kind: "jobEnqueueable", Vote: -1}}}, true},
		{"not allocatable", Observed{Trace: []Decision{{Kind: "allocatable", Result: &no}}}, true},
		{"overused", Observed{Trace: []Decision{{Kind: "overused", Result: &yes}}}, true},
		{"invalid", Observed{Trace: []Decision{{Kind: "jobValid", Pass: &no}}}, true},
	} {
		if got := (&Case{Observed: test.o}).Effective(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
