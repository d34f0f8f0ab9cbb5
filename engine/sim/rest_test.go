package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// takers contains policies by which jobs reclaim resources: tables by tier.
var takers = map[string][]string{
	"shipped": {
		"{name: priority}, {name: gang}, {name: conformance}",
		"{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}",
	},
	"as Volcano's own": {
		"{name: priority}, {name: gang, params: {protect: tier}}, {name: conformance}",
		"{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}",
	},
	"one tier":   {"{name: priority}, {name: gang}, {name: drf}, {name: predicates}, {name: proportion}"},
	"capacities": {"{name: priority}, {name: gang}, {name: predicates}, {name: capacity}"},
	"shares":     {"{name: gang}, {name: drf}, {name: predicates}, {name: proportion}"},
}

func takerPolicy(t *testing.T, tiers []string) *policy.Policy {
	t.Helper()
	return takerPolicyOf(t, "[enqueue, allocate, preempt, reclaim, backfill]", tiers)
}

func takerPolicyOf(t *testing.T, pipeline string, tiers []string) *policy.Policy {
	t.Helper()
	text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: taker}\nspec:\n" +
		"  pipeline: " + pipeline + "\n  tiers:\n"
	for i, tables := range tiers {
		text += fmt.Sprintf("  - name: tier-%d\n    tables: [%s]\n", i+1, tables)
	}
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return p
}

// drawCrowd draws a world of up to 4 nodes, 3 queues and 6 jobs of up to 3 pods. Some jobs fill the nodes, some wait, some are created
// later, and none ends.
func drawCrowd(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\npriorityClasses: {low: 1, high: 5}\nnodes:\n")
	room := make([]int, rapid.IntRange(1, 4).Draw(t, "nodes"))
	for i := range room {
		room[i] = rapid.IntRange(1, 4).Draw(t, "cpu")
		fmt.Fprintf(&b, "- {name: n%d, cpu: %d}\n", i+1, room[i])
	}
	b.WriteString("queues:\n")
	queues := rapid.IntRange(1, 3).Draw(t, "queues")
	for i := range queues {
		more := ""
		if rapid.IntRange(0, 3).Draw(t, "reclaimable") == 0 {
			more = ", reclaimable: false"
		}
		fmt.Fprintf(&b, "- {name: q%d, weight: %d, deserved: {cpu: %d}%s}\n", i+1, rapid.IntRange(1, 3).Draw(t, "weight"),
			rapid.IntRange(0, 3).Draw(t, "deserved"), more)
	}
	b.WriteString("jobs:\n")
	for i := range rapid.IntRange(2, 6).Draw(t, "jobs") {
		replicas, cpu := rapid.IntRange(1, 3).Draw(t, "replicas"), rapid.IntRange(1, 2).Draw(t, "cpu of a pod")
		where := rapid.SampledFrom([]string{"", "comes: 5s", "comes: 31s", "comes: 3m"}).Draw(t, "comes")
		if node := rapid.IntRange(0, 2*len(room)-1).Draw(t, "node"); node < len(room) && room[node] >= replicas*cpu {
			room[node] -= replicas * cpu
			where = fmt.Sprintf("node: n%d", node+1)
		}
		more := ""
		for _, s := range []string{where, rapid.SampledFrom([]string{"", "priority: low", "priority: high"}).Draw(t, "class")} {
			if s != "" {
				more += ", " + s
			}
		}
		fmt.Fprintf(&b, "- {name: j%d, queue: q%d, replicas: %d, min: %d, cpu: %d%s}\n", i+1,
			rapid.IntRange(1, queues).Draw(t, "queue"), replicas, rapid.IntRange(0, replicas).Draw(t, "min"), cpu, more)
	}
	return b.String()
}

// TestTakingBackComesToRest checks that evictions end. In a world without new objects, no pod is evicted after a while, although evicted
// pods are created again. Each eviction before that is as its plan states.
func TestTakingBackComesToRest(t *testing.T) {
	t.Parallel()
	var worlds, evicted atomic.Int64
	t.Cleanup(func() {
		n, of := evicted.Load(), worlds.Load()
		if t.Logf("in %d of %d worlds somebody is evicted", n, of); of >= 400 && n < of/50 {
			t.Error("these are too few")
		}
	})
	for name, tiers := range takers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := takerPolicy(t, tiers)
			rapid.Check(t, func(t *rapid.T) {
				world := drawCrowd(t)
				var wrong []string
				decide := new(proof.Run).Checked(new(engine.Decider).Decide, func(_ *model.Plan, found []proof.Violation) {
					for _, v := range found {
						if v.Kind != proof.AtEnd && v.Kind != proof.Lost {
							wrong = append(wrong, v.String())
						}
					}
				})
				report := runCrowd(t, world, p, decide)
				worlds.Add(1)
				if slices.ContainsFunc(report.Plans, func(p *model.Plan) bool { return len(p.Evicts) > 0 }) {
					evicted.Add(1)
				}
				var late []string
				for _, plan := range report.Plans {
					for _, e := range plan.Evicts {
						if plan.Now.Sub(report.Timeline.From) > 20*time.Minute {
							late = append(late, fmt.Sprintf("%v: %s for %s", plan.Now.Sub(report.Timeline.From), e.Task, e.For))
						}
					}
				}
				if len(wrong)+len(late) > 0 {
					t.Fatalf("%s\nnot as told: %s\nstill evicted after 20 minutes: %s", world, strings.Join(wrong, "\n"), strings.Join(late, "\n"))
				}
			})
		})
	}
}

func runCrowd(t *rapid.T, world string, p *policy.Policy, decide engine.DecideFunc) *Report {
	w := NewWorld(Options{Volumes: volume.New, Decide: decide})
	w.Policy = p
	if _, issues := w.Load(manifest.Source{Name: "world.yaml", Data: []byte(world)}); issues.Err() != nil {
		t.Fatalf("%s\n%v", world, issues)
	}
	report, err := w.RunFor(RunOptions{Until: w.Now().Add(25 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
