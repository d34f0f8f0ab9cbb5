package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// arrivals returns the objects that arrive before each cycle of a recording.
func arrivals() []string {
	node := func(name, cpu string) string {
		return `
apiVersion: v1
kind: Node
metadata: {name: ` + name + `}
status:
  allocatable: {cpu: "` + cpu + `", pods: "10"}
  conditions: [{type: Ready, status: "True"}]
---
`
	}
	job := func(name, cpu string) string {
		return `
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: ` + name + `, namespace: default}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `-0, namespace: default, annotations: {scheduling.k8s.io/group-name: ` + name + `}}
spec:
  schedulerName: celsius
  containers: [{name: main, image: main, resources: {requests: {cpu: "` + cpu + `"}}}]
---
`
	}
	const queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\nspec: {weight: 1}\n---\n"
	return []string{
		node("n1", "4") + node("n2", "8") + queue + job("small", "2"),
		job("large", "7"), "", job("huge", "16"),
	}
}

// recordCycles records the cycles of arrivals. The shipped policy decides them.
func recordCycles(t *testing.T) (folder string) {
	t.Helper()
	names := []string{"celsius"}
	return recordOf(t, len(arrivals()), func(n int, now time.Time, _ *model.Plan) []model.Delta {
		text := arrivals()[n]
		objects, issues := manifest.Load(manifest.Options{Now: now, SchedulerNames: names}, manifest.Source{Name: "arrivals", Data: []byte(text)})
		if text != "" && issues.Err() != nil {
			t.Fatal(issues)
		}
		var deltas []model.Delta
		for _, i := range objects.Items {
			deltas = append(deltas, model.Delta{Object: i.Object})
		}
		return deltas
	})
}

// recordOf records this number of cycles, one second apart. The shipped policy decides them. arrivals returns the objects that arrive
// before a cycle. Its argument last is the plan of the cycle before.
func recordOf(t testing.TB, cycles int, arrivals func(n int, now time.Time, last *model.Plan) []model.Delta) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "cycles")
	names := []string{"celsius"}
	r := recording.New(recording.Options{Folder: folder}, names, logr.Discard())
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	c := model.NewCluster(model.Options{Volumes: volume.New, SchedulerNames: names})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	d, now, plan := engine.Decider{}, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), &model.Plan{}
	for n := range cycles {
		deltas := arrivals(n, now, plan)
		if errs := c.Apply(deltas...); len(errs) > 0 {
			t.Fatal(errs)
		}
		r.Applied(deltas)
		plan = d.Decide(c, p, now)
		r.Decided(uint64(n)+1, c, p, plan) //nolint:gosec // it counts to some thousands
		now = now.Add(time.Second)
	}
	stop()
	r.Run(ctx)
	return folder
}

// tightest is a policy that places pods on the node with the least idle CPU.
const tightest = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: tightest}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables:
    - {name: gang}
    - {name: predicates}
    - name: tightest
      inline:
        scores:
        - {name: least-cpu, expression: "-node.idle.cpu"}
`

// TestReplay decides recorded cycles again, and explains one cycle.
func TestReplay(t *testing.T) {
	folder := recordCycles(t)
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"replay " + folder, exitOK, []string{
			"4 cycles in 1 file, 2026-01-31T12:00:00Z to 2026-01-31T12:00:03Z: 1 binding, 0 evictions\neach is decided as it was, byte for byte\n",
		}},
		{"replay " + folder + " --explain huge", exitOK, []string{"cycle 4, 2026-01-31T12:00:03Z\n", "job default/huge"}},
		{"replay " + folder + " --explain large --cycle 2", exitOK, []string{"cycle 2, 2026-01-31T12:00:01Z\n", "n2"}},
		{"replay " + folder + " --explain huge --cycle 2", exitMistakes, []string{"in cycle 2: ", "huge"}},
		{"replay " + folder + " --explain huge --cycle 9", exitMistakes, []string{"cycle 9 is not recorded: the last is 4"}},
		{"replay " + folder + " --cycle 2", exitUsage, []string{"--cycle says which cycle to explain: give --explain NAME as well"}},
		{"replay", exitUsage, []string{"name at least one file"}},
		{"replay " + t.TempDir(), exitMistakes, []string{"there is no recording in"}},
		{"replay main.go", exitMistakes, []string{"main.go is no recording"}},
	} {
		code, out, errs := command(t, strings.Fields(c.args)...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("celsius %s: code %d, printed %q and %q; want %d and %q", c.args, code, out, errs, c.code, want)
			}
		}
	}
}

// TestPolicyDiff compares recorded decisions with the decisions of another policy. It also writes the smallest world that shows a
// difference, as a scenario that passes.
func TestPolicyDiff(t *testing.T) {
	folder := recordCycles(t)
	file := filepath.Join(t.TempDir(), "tightest.yaml")
	world := filepath.Join(t.TempDir(), "world.yaml")
	kept := filepath.Join(t.TempDir(), "kept.txtar")
	for name, text := range map[string]string{file: tightest, world: arrivals()[0]} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"policy diff recorded default --recording " + folder, exitOK, []string{
			"4 cycles, 2026-01-31T12:00:00Z to 2026-01-31T12:00:03Z: in 0 of them default decides otherwise than recorded\nno job is affected\n",
		}},
		{"policy diff recorded " + file + " --keep " + kept + " --recording " + folder, exitOK, []string{
			"in 1 of them " + file + " decides otherwise than recorded\n",
			"1 job is affected: 0 later or not, 0 sooner; 1 pod elsewhere; +0 evictions\n",
			"the smallest world that was found in which they do is in " + kept,
		}},
		{"simulate " + kept, exitOK, []string{"small-0"}},
		{"policy diff default " + file + " --now 2026-01-31T12:00:00Z --cycles 4 -o json " + world, exitOK, []string{
			`"cycles": 4`, `"job": "default/small"`,
		}},
		{"policy diff default " + file + " --within 0 --now 2026-01-31T12:00:00Z --cycles 4 " + world, exitOK, []string{"default/small"}},
		{"policy diff default", exitUsage, []string{"name two policies: celsius policy diff OLD NEW FILE..."}},
		{"policy diff default " + file, exitUsage, []string{"decide of what?"}},
		{"policy diff recorded default " + world, exitUsage, []string{`"recorded" is the old policy of a --recording`}},
		{"policy diff recorded default --recording " + t.TempDir(), exitMistakes, []string{"there is no recording in"}},
		{"policy diff default " + world + " " + world, exitUsage, []string{"documents; one is wanted"}},
	} {
		code, out, errs := command(t, strings.Fields(c.args)...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("celsius %s: code %d, printed %q and %q; want %d and %q", c.args, code, out, errs, c.code, want)
			}
		}
	}
}
