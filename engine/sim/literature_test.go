package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// studied runs a world of samples/literature under a policy of samples/policies/literature. edit may change the policy's text.
func studied(t *testing.T, world, policyName string, o RunOptions, now time.Time, edit func(string) string) *Report {
	t.Helper()
	w := NewWorld(Options{Volumes: volume.New, Now: now})
	sources, err := manifest.Read(nil, samplesDir+"/literature/"+world+".yaml", samplesDir+"/policies/literature/"+policyName+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		sources[1].Data = []byte(edit(string(sources[1].Data)))
	}
	policies, issues := w.Load(sources...)
	if len(issues) > 0 || len(policies) != 1 {
		t.Fatalf("%d policies, issues %v", len(policies), issues)
	}
	p, issues := policy.Load(policies[0].Doc)
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	w.Policy = p
	r, err := w.RunFor(o)
	if err != nil {
		t.Fatal(err)
	}
	check(t, w)
	return r
}

// placements returns the bound pods in the order of their bindings, each with its node.
func placements(r *Report) string {
	var out []string
	for _, p := range r.Plans {
		for _, b := range p.Binds {
			out = append(out, strings.TrimPrefix(b.Task, "default/")+" "+b.Node)
		}
	}
	return strings.Join(out, ", ")
}

// finishes returns when each job ended, since the start.
func finishes(r *Report) map[string]string {
	out := map[string]string{}
	for _, j := range r.Timeline.Jobs {
		out[strings.TrimPrefix(j.Job, "default/")] = r.since(j.Finished)
	}
	return out
}

func starts(r *Report) map[string]string {
	out := map[string]string{}
	for _, j := range r.Timeline.Jobs {
		out[strings.TrimPrefix(j.Job, "default/")] = r.since(j.Started)
	}
	return out
}

// TestLiteratureDRF replays the example of NSDI 2011, in which three tasks of A and two of B start in the order of the paper.
func TestLiteratureDRF(t *testing.T) {
	t.Parallel()
	r := studied(t, "drf", "drf", RunOptions{}, time.Time{}, nil)
	if got, want := placements(r), "b-0 n1, a-0 n1, a-1 n1, b-1 n1, a-2 n1"; got != want {
		t.Errorf("bound %s, want %s", got, want)
	}
}

// TestLiteratureHDRF checks groups of a tree. A group whose parts want different resources is rescaled. A part that can get no more does
// not delay the other.
func TestLiteratureHDRF(t *testing.T) {
	t.Parallel()
	for world, want := range map[string]map[string]int64{
		"hdrf":         {"science": 5, "development": 5, "production": 5},
		"hdrf-blocked": {"q1": 10, "q2": 10, "q31": 10, "q32": 15, "q4": 15},
	} {
		got := map[string]int64{}
		for _, q := range studied(t, world, "hdrf", RunOptions{}, time.Time{}, nil).Summary.Queues {
			if q.Placed > 0 {
				got[q.Queue] = q.Placed
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", world, diff)
		}
	}
}

// TestLiteratureTetris replays the example of SIGCOMM 2014: all jobs end at 6t under DRF, and at 2t, 3t and 4t if tasks are packed.
func TestLiteratureTetris(t *testing.T) {
	t.Parallel()
	idle := RunOptions{Idle: true}
	if diff := cmp.Diff(map[string]string{"a": "6m", "b": "6m", "c": "6m"},
		finishes(studied(t, "tetris", "tetris-drf", idle, time.Time{}, nil))); diff != "" {
		t.Errorf("DRF (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "2m", "c": "3m", "a": "4m"},
		finishes(studied(t, "tetris", "tetris", idle, time.Time{}, nil))); diff != "" {
		t.Errorf("packing (-want +got)\n%s", diff)
	}
}

// TestLiteratureAging checks that a job without priority waits until its age outweighs the priority of new jobs. Without aging it is last.
func TestLiteratureAging(t *testing.T) {
	t.Parallel()
	r := studied(t, "aging", "aging", RunOptions{Idle: true}, time.Time{}, nil)
	if got := starts(r)["patient"]; got != "40m" {
		t.Errorf("the patient job starts at %s, want 40m", got)
	}
	never := func(text string) string { return strings.Replace(text, "default: 10m", "default: 10000h", 1) }
	r = studied(t, "aging", "aging", RunOptions{Idle: true}, time.Time{}, never)
	if got := starts(r)["patient"]; got != "1h" {
		t.Errorf("without aging the patient job starts at %s, want 1h, after all others", got)
	}
}

// TestLiteratureDecayedFairShare checks that the half-life decides: old usage counts little, or almost fully.
func TestLiteratureDecayedFairShare(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for halfLife, want := range map[string]string{"24h": "of-alpha-0 n1", "240h": "of-beta-0 n1"} {
		r := studied(t, "decayed-fair-share", "decayed-fair-share", RunOptions{}, now, func(text string) string {
			return strings.Replace(text, "default: 24h", "default: "+halfLife, 1)
		})
		if got := placements(r); got != want {
			t.Errorf("half-life %s: bound %s, want %s", halfLife, got, want)
		}
	}
}

// TestLiteratureSpreadAndPack checks the placement of pods by the time of day, and by the usage of the cluster.
func TestLiteratureSpreadAndPack(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r := studied(t, "spread-by-day", "spread-by-day", RunOptions{Until: noon.Add(12 * time.Hour)}, noon, nil)
	want := "by-day-0 n1, by-day-1 n2, by-day-2 n3, by-day-3 n4, by-night-0 n1, by-night-1 n1, by-night-2 n1, by-night-3 n1"
	if got := placements(r); got != want {
		t.Errorf("bound %s, want %s", got, want)
	}
	r = studied(t, "spread-then-pack", "spread-then-pack", RunOptions{}, noon, nil)
	want = "j-0 n1, j-1 n2, j-2 n3, j-3 n4, j-4 n1, j-5 n2, j-6 n3, j-7 n4, j-8 n1, j-9 n1, j-10 n1, j-11 n2"
	if got := placements(r); got != want {
		t.Errorf("bound %s, want %s", got, want)
	}
}
