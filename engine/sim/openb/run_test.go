package openb

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/digest"
	"github.com/celsius-scheduler/celsius/engine/digest/sums"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// samples returns the sample policies.
func samples(t testing.TB) []*Heuristic {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "samples", "policies", "openb", "*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%v: found %v", err, files)
	}
	var out []*Heuristic
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h, err := NewHeuristic(file, data)
		if err != nil {
			t.Fatal(err)
		}
		if h.Published == "" {
			t.Errorf("%s lacks the annotation %s", file, PublishedAnnotation)
		}
		out = append(out, h)
	}
	return out
}

// readSample returns the text of a sample policy.
func readSample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "samples", "policies", "openb", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Two runs of the sample policies give the same results, in the order of the arguments. They fill a cluster if the demand exceeds its
// resources.
func TestRunAll(t *testing.T) {
	policies, seeds := samples(t), []int64{3, 1, 2}
	var traces []*Trace
	for _, nodes := range []string{smallNodes, smallNodes + "c,64000,1024,4,T4\n"} {
		trace, err := Load(small(t, nodes, smallPods), "default")
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, trace)
	}
	first, err := RunAll(traces, policies, seeds)
	if err != nil {
		t.Fatal(err)
	}
	second, err := RunAll(traces, policies, seeds)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range first {
		if r.Heuristic != policies[i/3%len(policies)] || r.Seed != seeds[i%3] {
			t.Errorf("result %d is of %s, seed %d", i, r.Heuristic.Name, r.Seed)
		}
		if larger := i >= len(first)/2; larger != (r.Arrived > first[i%3].Arrived) {
			t.Errorf("result %d has %d arrivals, which are not of its trace", i, r.Arrived)
		}
		if r.Placed == 0 || r.Placed > r.Arrived {
			t.Errorf("%s, seed %d: %d of %d placed", r.Heuristic.Name, r.Seed, r.Placed, r.Arrived)
		}
		if r.Placed != second[i].Placed || fmt.Sprint(r.Curve) != fmt.Sprint(second[i].Curve) { // as text: a column may be NaN
			t.Errorf("%s, seed %d: two runs differ", r.Heuristic.Name, r.Seed)
		}
	}
}

func TestRunTellsARuleThatErrs(t *testing.T) {
	trace, err := Load(small(t, smallNodes, smallPods), "default")
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHeuristic("errs.yaml", []byte(strings.Replace(readSample(t, "bestfit"), "expression: -double(gpu.free)",
		"expression: double(1 / (gpu.free - gpu.free))", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = RunAll([]*Trace{trace}, []*Heuristic{h}, []int64{1})
	if err == nil || !strings.Contains(err.Error(), "policy openb-bestfit, workload default, seed 1: openb-bestfit/tightest erred") {
		t.Errorf("got %v", err)
	}
}

func TestNewHeuristicRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no document", "# nothing\n", "found 0 documents"},
		{"another kind", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "SchedulingPolicy"},
		{"no YAML", "a: [\n", "policy.yaml:"},
		{"another comparison", strings.Replace(readSample(t, "random"), "compared: mean", "compared: median", 1), `unknown comparison "median"`},
	} {
		if _, err := NewHeuristic("policy.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// A plan that cannot be carried out is refused.
func TestAudit(t *testing.T) {
	trace := &Trace{Nodes: []Node{{"n", 1000, 100, 1, "T4"}}}
	run := replay{pods: []Pod{
		{Name: "a", CPUMilli: 600, GPUs: 1, GPUMilli: 600},
		{Name: "b", CPUMilli: 500},
		{Name: "c", GPUs: 1, GPUMilli: 500},
	}}
	bind := func(pod, node string, gpus ...int) model.Bind {
		return model.Bind{Task: namespace + "/" + pod, Node: node, GPUs: gpus}
	}
	for _, test := range []struct {
		name  string
		binds []model.Bind
		want  string
	}{
		{"fits", []model.Bind{bind("a", "n", 0)}, ""},
		{"cpu", []model.Bind{bind("a", "n", 0), bind("b", "n")}, "the plan binds openb/b to n, where it does not fit"},
		{"a device", []model.Bind{bind("a", "n", 0), bind("c", "n", 0)}, "the plan binds openb/c to n, where it does not fit"},
		{"no device", []model.Bind{bind("a", "n")}, "with devices [], it asks for 1"},
		{"a device that is not there", []model.Bind{bind("a", "n", 1)}, "where it does not fit"},
		{"twice", []model.Bind{bind("a", "n", 0), bind("a", "n", 0)}, "bound before"},
		{"no such node", []model.Bind{bind("a", "m", 0)}, "no such node"},
		{"no such pod", []model.Bind{bind("d", "n")}, "no such pod"},
	} {
		placed, err := trace.audit(run, &model.Plan{Binds: test.binds})
		switch {
		case test.want == "":
			if err != nil || !placed[0] {
				t.Errorf("%s: %v %v", test.name, placed, err)
			}
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// The sample policies compare with the published runs as they state: one seed of one workload here, all of them in make openb.
func TestSamplesMakeThePublishedRuns(t *testing.T) {
	dir := traceDir(t)
	trace, err := Load(dir, "default")
	if err != nil {
		t.Fatal(err)
	}
	published, err := LoadPublished(dir)
	if err != nil {
		t.Fatal(err)
	}
	results, err := RunAll([]*Trace{trace}, samples(t), []int64{42})
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := Summarise(results, published)
	if err != nil {
		t.Fatal(err)
	}
	if line, ok := Verdict(summaries); !ok {
		t.Error(line)
	}
}

// The decisions for one seed under the sample policies match testdata/decisions.txt.
func TestDecisionsOfOneSeed(t *testing.T) {
	trace, err := Load(traceDir(t), "default")
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]*digest.Sum{}
	for _, h := range samples(t) {
		o := trace.opening(42)
		c, err := o.cluster()
		if err != nil {
			t.Fatal(err)
		}
		if decided["seed 42, "+h.Name], err = digest.New(engine.Decide(c, h.Policy, o.end())); err != nil {
			t.Fatal(err)
		}
	}
	sums.Check(t, "testdata/decisions.txt", *update, decided)
}

var update = flag.Bool("update", false, "write the digests of what a seed decides")

// A part of a run, on every eighth node and with the first arrivals, equals the result of the reference byte by byte.
func TestAPartOfARunByReference(t *testing.T) {
	trace, err := Load(traceDir(t), "default")
	if err != nil {
		t.Fatal(err)
	}
	part := *trace
	part.Nodes = nil
	for i := 0; i < len(trace.Nodes); i += 8 {
		part.Nodes = append(part.Nodes, trace.Nodes[i])
	}
	o := part.opening(42)
	const arrivals = 300
	o.replay.pods, o.deltas = o.replay.pods[:arrivals], o.deltas[:1+len(part.Nodes)+2*arrivals]
	for _, h := range samples(t) {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			var texts []string
			for _, decide := range []engine.DecideFunc{(&reference.Run{}).Decide, engine.Decide} {
				c, err := o.cluster()
				if err != nil {
					t.Fatal(err)
				}
				text, err := report.Written(decide(c, h.Policy, o.end()))
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, text)
			}
			if texts[0] != texts[1] {
				t.Errorf("-reference +engine:\n%s", cmp.Diff(texts[0], texts[1]))
			}
		})
	}
}
