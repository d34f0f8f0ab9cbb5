package session

import (
	"fmt"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// erringTable has rows that fail on some nodes: in guards and expressions, with static and changing inputs, with every value of onError,
// and by values that are no scores.
const erringTable = `
variables:
- {name: marked, on: node, expression: "node.labels[?'host'].orValue('') == 'none'"}
predicates:
- {name: zone, expression: "node.labels['zone'] != 'west'"}
- {name: guarded, when: "node.labels['rank'] != '3'", expression: "node.taskCount < 3", onError: allow}
- {name: divided, expression: "10 / (node.taskCount - 1) > -100", onError: skip}
- {name: own, when: "task.labels['zone'] == 'east'", expression: "task.toleratesAll(node) && !node.unschedulable"}
- {name: interpreted, expression: "node.labels['rank'].matches('[0-9]') && !variables.marked"}
- {name: either, expression: "node.labels['host'] == 'n3' || int(node.labels['rank']) / (node.taskCount - 2) < 9"}
scores:
- {name: rank, expression: "double(node.labels['rank'])"}
- {name: endless, expression: "1.0 / node.used.cpu", normalize: max}
- {name: when, when: "int(node.labels['rank']) > 1", expression: "node.idle.cpu"}
- {name: sided, expression: "node.taskCount > 1 ? node.idle['memory'] : double(node.labels['rank'])", normalize: minMax}
`

// seen contains the observable results of a session that evaluated tasks.
type seen struct {
	Placements any
	Faults     []model.RuleError
	Asked      map[string]uint64
}

func whatIsSeen(x *side) seen {
	out := seen{Placements: placements(x), Asked: map[string]uint64{}}
	out.Faults = x.s.Faults()
	for _, r := range x.s.p.All {
		out.Asked[r.Name] = x.s.Evaluated(r)
	}
	return out
}

// TestManyNodesAreAsEach checks that an evaluation of many nodes at once, row by row of the policy, has the same results as node by node.
// It compares verdicts, scores, and faults with their order. The number of evaluations is the same, or smaller for equal nodes. An
// evaluation by several goroutines also has the same results.
func TestManyNodesAreAsEach(t *testing.T) {
	t.Parallel()
	p := loaded(t, policyText(erringTable))
	rapid.Check(t, func(t *rapid.T) {
		many, each := erringWorlds(t, p)
		many.s.Spread(Split{Cores: rapid.IntRange(1, 3).Draw(t, "cores"), From: 1})
		each.s.verdicts.Pipeline.Few = math.MaxInt
		compareSeen(t, "at first", many, each)
		// Then some nodes change: on one side all of them before the next evaluation, on the other with an evaluation after each.
		many.s.Begin(noon())
		each.s.Begin(noon())
		before := [2]map[string]uint64{whatIsSeen(many).Asked, whatIsSeen(each).Asked}
		for i := range rapid.IntRange(1, 8).Draw(t, "changes") {
			node := model.Delta{Object: erringNode(t, 2*i)}
			for _, x := range []*side{many, each} {
				if err := x.c.Apply(node); err != nil {
					t.Fatal(err)
				}
			}
			for _, task := range each.c.TasksByKey() {
				if task.Status == model.Pending {
					each.s.Class(task)
				}
			}
		}
		a, b := whatIsSeen(many), whatIsSeen(each)
		for name := range a.Asked {
			a.Asked[name] -= before[0][name]
			b.Asked[name] -= before[1][name]
		}
		if diff := gocmp.Diff(b, a); diff != "" {
			t.Fatalf("after changes (-node by node +many):\n%s", diff)
		}
	})
}

func compareSeen(t *rapid.T, when string, many, each *side) {
	a, b := whatIsSeen(many), whatIsSeen(each)
	if diff := gocmp.Diff(b, a, cmpopts.IgnoreFields(seen{}, "Asked")); diff != "" {
		t.Fatalf("%s (-node by node +many):\n%s", when, diff)
	}
	for name, n := range a.Asked {
		if n > b.Asked[name] {
			t.Fatalf("%s: %s was asked %d times for many nodes, %d times node by node", when, name, n, b.Asked[name])
		}
	}
}

// erringNode returns the i-th node, with labels that may be missing or no numbers.
func erringNode(t *rapid.T, i int) *corev1.Node {
	return aNode(fmt.Sprintf("n%02d", i), drawOf(t, "allocatable", "cpu=4 memory=8Gi pods=5", "cpu=2 memory=4Gi pods=9"),
		func(n *corev1.Node) {
			for _, label := range []string{"zone", "rank", "host"} {
				if v := drawOf(t, label, "", "1", "3", "none", "west"); v != "" {
					n.Labels[label] = v
				}
			}
			n.Spec.Unschedulable = drawOf(t, "cordoned", false, false, true)
		})
}

// erringWorlds returns two equal clusters of 16 nodes, some with pods, and a waiting task.
func erringWorlds(t *rapid.T, p *policy.Policy) (many, each *side) {
	var deltas []model.Delta
	add := func(o any) { deltas = append(deltas, model.Delta{Object: o}) }
	add(aQueue("q"))
	add(aGroup("g", "q"))
	for i := range 16 {
		node := erringNode(t, i)
		add(node)
		for k := range drawOf(t, "pods", 0, 1, 2, 3) {
			add(aPod(fmt.Sprintf("r%02d-%d", i, k), "cpu=500m memory=1Gi", runningOn(node.Name), inGroup("g")))
		}
	}
	add(aPod("w1", "cpu=1", inGroup("g"), func(p *corev1.Pod) {
		if v := drawOf(t, "wants", "", "east", "any"); v != "" {
			p.Labels["zone"] = v
		}
	}))
	sides := [2]*side{{}, {}}
	for _, x := range sides {
		x.c = model.NewCluster(model.Options{Volumes: volume.New})
		if err := x.c.Apply(deltas...); err != nil {
			t.Fatal(err)
		}
		x.s = New(x.c, p)
		x.s.Begin(noon())
	}
	return sides[0], sides[1]
}
