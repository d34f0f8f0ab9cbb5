package proof_test

import (
	"testing"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/proof"
)

// TestProgress checks that the checker finds an eviction against a table's own order: the table lets go a victim that comes first by what
// it compares.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, action, rows, want string }{
		{"along the order", "preempt", `jobOrder: [{name: o, by: job.priority, descending: true}]`, ""},
		{"against the order", "preempt", `jobOrder: [{name: o, by: job.priority}]`, "progress"},
		{"by something else", "preempt", `jobOrder: [{name: o, by: job.pipelinedTasks}]`, ""},
		{"against the order, as gangs", "gangpreempt", `jobOrder: [{name: o, by: job.priority}]`, "progress"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, p := newWorld(t, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [`+tt.action+`]
  tiers:
  - name: first
    tables:
    - {name: predicates}
    - name: house
      inline:
        jobStarving: [{name: any, expression: "true"}]
        preemptable: [{name: lower, expression: victim.job.priority < preemptor.job.priority}]
        evictable: [{name: lower, expression: victim.job.priority < job.priority}]
        `+tt.rows+`
`, `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 2}]
queues: [{name: q}]
priorityClasses: {high: 5}
jobs:
- {name: low, queue: q, replicas: 2, min: 0, cpu: 1, node: n1}
- {name: new, queue: q, priority: high, cpu: 1, phase: Inqueue}
`)
			cycle := new(proof.Run).Begin(c, p, now())
			plan := new(engine.Decider).Decide(c, p, now())
			if len(plan.Evicts) != 1 {
				t.Fatalf("not as meant: %+v", plan.Evicts)
			}
			if got := kindsOf(cycle.Check(plan)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestTakenBeyondDue checks that the checker finds a promise of room by force to a queue that already holds its due.
func TestTakenBeyondDue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ may, want string }{{"true", ""}, {"false", "progress"}} {
		c, p := newWorld(t, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [reclaim]
  tiers:
  - name: first
    tables:
    - {name: predicates}
    - name: house
      inline: {reclaimable: [{name: any, expression: "true"}], preemptive: [{name: due, expression: "`+tt.may+`"}]}
`, `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 1}]
queues: [{name: q}, {name: lent}]
jobs: [{name: low, queue: lent, min: 0, cpu: 1, node: n1}, {name: new, queue: q, cpu: 1, phase: Inqueue}]
`)
		cycle := new(proof.Run).Begin(c, p, now())
		h := hand{c, c.Begin(), &model.Plan{Now: now()}}
		h.evict("new-0", "low-0")
		e := &h.plan.Evicts[0]
		e.Action, e.Rows, e.Reason.Table, e.Reason.Rule = "reclaim", []string{"house/any"}, "house", "any"
		h.promise("new-0", "n1")
		h.plan.Pipelines[0].Action = "reclaim"
		if got := kindsOf(cycle.Check(h.plan)); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.may, got, tt.want)
		}
	}
}

// TestBeyondDueFalls checks the rows of beyondDue in a table that allows an eviction. The eviction must reduce what is held beyond due by
// these rows. The checker finds an eviction that does not.
func TestBeyondDueFalls(t *testing.T) {
	t.Parallel()
	const (
		lower  = "[{name: lower, expression: victim.job.priority < preemptor.job.priority}]"
		falls  = `beyondDue: [{name: due, expression: "queue.name == 'lent' ? queue.allocated.cpu : 0.0"}]`
		stays  = `beyondDue: [{name: due, expression: queue.allocated.cpu}]`
		others = "reclaimable: " + lower
	)
	for _, tt := range []struct{ name, action, rows, want string }{
		{"falls", "reclaim", others + ", " + falls, ""},
		{"stays", "reclaim", others + ", " + stays, "progress"},
		{"stays, as gangs", "gangreclaim", "evictable: [{name: lower, expression: victim.job.priority < job.priority}], " + stays, "progress"},
		{"of a table that does not let it go", "reclaim", stays, ""},
		{"inside a queue", "preempt", "preemptable: " + lower + ", " + stays, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := "lent"
			if tt.action == "preempt" {
				from = "q"
			}
			c, p := newWorld(t, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [`+tt.action+`]
  tiers:
  - name: first
    tables:
    - {name: predicates}
    - {name: house, inline: {jobStarving: [{name: any, expression: "true"}], `+tt.rows+`}}
    - {name: others, inline: {`+others+`}}
`, `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 1}]
queues: [{name: q, deserved: {cpu: 1}}, {name: lent}]
priorityClasses: {high: 5}
jobs: [{name: low, queue: `+from+`, min: 0, cpu: 1, node: n1}, {name: new, queue: q, priority: high, cpu: 1, phase: Inqueue}]
`)
			cycle := new(proof.Run).Begin(c, p, now())
			plan := new(engine.Decider).Decide(c, p, now())
			if len(plan.Evicts) != 1 {
				t.Fatalf("not as meant: %+v", plan.Evicts)
			}
			if got := kindsOf(cycle.Check(plan)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func kindsOf(wrong []proof.Violation) (kinds string) {
	for _, v := range wrong {
		kinds += string(v.Kind)
	}
	return kinds
}
