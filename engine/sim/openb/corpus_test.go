package openb

import (
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
)

// traceDir returns the directory of the trace.
func traceDir(t testing.TB) string { return corpus.Dir(t, "traces/openb") }

// A replay without the engine has the arrivals, copies, ties and metric of the published runs.
func TestReplayByHandIsThePublishedRun(t *testing.T) {
	dir := traceDir(t)
	published, err := LoadPublished(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		workload, name string
		seed           int64
		score          heuristic
	}{
		{"default", "05-BestFit", 42, bestFit},
		{"gpuspec10", "02-DotProd", 47, dotProd},
	} {
		trace, err := Load(dir, test.workload)
		if err != nil {
			t.Fatal(err)
		}
		want, err := published.Curve(test.workload, test.name, test.seed)
		if err != nil {
			t.Fatal(err)
		}
		pods, placed := trace.byHand(test.seed, test.score)
		got := trace.curve(pods, placed)
		if d := got.Compare(want); d.Beyond(Tolerance) {
			t.Errorf("%s %s seed %d: %.3f points off at %d%%: %.2f, published %.2f",
				test.workload, test.name, test.seed, d.Points, d.Percent, got[d.Percent], want[d.Percent])
		}
	}
}

// The corpus documents how many pods arrive in the run with seed 42.
func TestArrivals(t *testing.T) {
	trace, err := Load(traceDir(t), "default")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(trace.Nodes); got != 1213 {
		t.Errorf("nodes: %d, want 1213", got)
	}
	if trace.devices != 6212*wholeDevice {
		t.Errorf("thousandths of a device: %d, want 6212000", trace.devices)
	}
	run := trace.replay(42)
	if got := len(run.pods); got != 10866 {
		t.Errorf("arrivals: %d, want 10866", got)
	}
	names := map[string]bool{}
	for _, p := range run.pods {
		if names[p.Name] {
			t.Fatalf("two arrivals are named %s", p.Name)
		}
		names[p.Name] = true
	}
}
