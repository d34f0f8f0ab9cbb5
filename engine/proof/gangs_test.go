package proof_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/proof"
)

// fullOfGangs is a world with two gangs. The gang low must go as a whole for two pods of new. The gang elastic can spare two pods for the
// third pod.
const fullOfGangs = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: "n[1-2]", cpu: 2}, {name: n3, cpu: 4}]
priorityClasses: {high: 5, middle: 2}
jobs:
- {name: low, replicas: 4, cpu: 1, node: "n[1-2]"}
- {name: elastic, priority: middle, replicas: 4, min: 2, cpu: 1, node: n3}
- {name: peer, priority: high, replicas: 1, node: n3}
- {name: new, priority: high, replicas: 3, cpu: 2, phase: Inqueue}
`

// TestWrongPlansForGangs checks that the checker finds one mistake in a plan that is otherwise right.
func TestWrongPlansForGangs(t *testing.T) {
	t.Parallel()
	of := func(plan *model.Plan, victim string) *model.Evict {
		return &plan.Evicts[slices.IndexFunc(plan.Evicts, func(e model.Evict) bool { return e.Task == "default/"+victim })]
	}
	stay := func(c *model.Cluster, plan *model.Plan, victim string) { // as if the eviction were forgotten
		txn := c.Begin()
		txn.Leave(c.Tasks["default/"+victim])
		txn.Return(c.Tasks["default/"+victim], model.Running)
		txn.Commit()
		plan.Evicts = slices.DeleteFunc(plan.Evicts, func(e model.Evict) bool { return e.Task == "default/"+victim })
	}
	for _, test := range []struct {
		name   string
		change func(c *model.Cluster, plan *model.Plan)
		want   string
	}{
		{"right", func(*model.Cluster, *model.Plan) {}, ""},
		{"part of a gang stays", func(c *model.Cluster, plan *model.Plan) { stay(c, plan, "low-3") }, "gang low-0, gang low-1, gang low-2, lost"},
		{"not said what would refuse", func(_ *model.Cluster, plan *model.Plan) {
			for _, v := range []string{"low-0", "low-1", "low-2", "low-3"} {
				of(plan, v).Needed = model.Reason{}
			}
		}, "certificate low-3"},
		{"said otherwise of one", func(_ *model.Cluster, plan *model.Plan) { of(plan, "low-0").Needed.Text = "?" }, "certificate low-0"},
		{"no rows", func(_ *model.Cluster, plan *model.Plan) { of(plan, "low-0").Rows = nil }, "certificate low-0"},
		{"a row that there is not", func(_ *model.Cluster, plan *model.Plan) { of(plan, "low-0").Rows[1] = "gang/no-such" }, "row low-0"},
		{"one promise less", func(_ *model.Cluster, plan *model.Plan) {
			plan.Pipelines = slices.DeleteFunc(plan.Pipelines, func(b model.Bind) bool { return b.Task == "default/new-2" })
		}, "certificate elastic-2, certificate elastic-3, fit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, p := newWorld(t, strings.Replace(preempting, "[preempt]", "[gangpreempt]", 1), fullOfGangs)
			cycle := new(proof.Run).Begin(c, p, now())
			plan := new(engine.Decider).Decide(c, p, now())
			if len(plan.Evicts) != 6 || !of(plan, "low-0").Whole || of(plan, "elastic-2").Whole {
				t.Fatalf("not as meant: %+v", plan.Evicts)
			}
			test.change(c, plan)
			got := map[string]bool{}
			wrong := cycle.Check(plan)
			for _, v := range wrong {
				got[strings.TrimSpace(string(v.Kind)+" "+strings.TrimPrefix(v.Victim, "default/"))] = true
			}
			if kinds := strings.Join(slices.Sorted(maps.Keys(got)), ", "); kinds != test.want {
				t.Errorf("found %q, want %q:\n%v", kinds, test.want, wrong)
			}
		})
	}
}

// TestIdleRoomForGangs checks that the checker finds an eviction for a gang that had room without it.
func TestIdleRoomForGangs(t *testing.T) {
	t.Parallel()
	c, p := newWorld(t, strings.Replace(preempting, "[preempt]", "[gangpreempt]", 1), fullOfGangs)
	cycle := new(proof.Run).Begin(c, p, now())
	plan := new(engine.Decider).Decide(c, p, now())
	n := c.Nodes.Rows[c.Nodes.Index["n1"]].Object.DeepCopy()
	n.Name, n.UID = "n4", "n4"
	n.Labels = nil
	n.Status.Allocatable["cpu"] = resource.MustParse("9")
	c.Apply(model.Delta{Object: n})
	var kinds []proof.Kind
	for _, v := range cycle.Check(plan) {
		kinds = append(kinds, v.Kind)
	}
	if !slices.Contains(kinds, proof.Idle) {
		t.Errorf("found %v, want %s", kinds, proof.Idle)
	}
}
