package session

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestRowsAreAskedOnceForClassesThatAreAlike checks that a row is evaluated once per node for all classes for which it reads the same. If
// it reads only amounts of nodes, it is evaluated once for equal nodes, until these change. An error occurs for each class and node.
func TestRowsAreAskedOnceForClassesThatAreAlike(t *testing.T) {
	c := aCluster(t, aNode("n1", "cpu=9 pods=9", labelled("rack", "r")), aNode("n2", "cpu=9 pods=9", labelled("rack", "r")), aQueue("q"),
		aGroup("g", "q"),
		aPod("a", "cpu=1", inZone("x")), aPod("b", "cpu=2", inZone("x")), aPod("c", "cpu=3", inZone("y")), aPod("d", "cpu=1", inZone("y")))
	s := begun(t, c, `
predicates:
- {name: of-object, expression: "!node.unschedulable"}
- {name: of-node, expression: node.taskCount < 5}
- {name: of-zone, when: "task.labels['zone'] != ''", expression: "node.labels['rack'] != task.labels['zone']"}
- {name: errs, onError: skip, expression: "node.labels['none'] == ''"}
scores:
- {name: of-request, expression: "node.idle.cpu - task.request.cpu"}
- {name: count, expression: double(node.taskCount), normalize: max}
- {name: size, expression: "double(node.labels.size())"}
- {name: around, expression: task.spreadScore(node)}
`)
	asked := func(when string, want map[string]uint64) {
		t.Helper()
		for _, site := range []string{policy.Predicates, policy.Scores} {
			for _, r := range s.p.Rules(site) {
				if got := s.Evaluated(r); got != want[r.Name] {
					t.Errorf("%s: %s was asked %d times, want %d", when, r.Name, got, want[r.Name])
				}
			}
		}
	}
	choose := func(names ...string) {
		for _, name := range names {
			s.Class(c.Tasks["a/"+name]).Choose()
		}
	}
	choose("a")
	asked("by one class", map[string]uint64{
		"of-object": 2, "of-node": 1, "of-zone": 2, "errs": 2, "of-request": 1, "count": 1, "size": 2,
		"around": 2,
	})
	choose("b", "c", "d", "a")
	asked("by four", map[string]uint64{
		"of-object": 2, "of-node": 1, "of-zone": 4, "errs": 8, "of-request": 3, "count": 1, "size": 2,
		"around": 2,
	})
	c.Begin().Allocate(c.Tasks["a/a"], 0, nil)
	choose("b", "c", "d")
	asked("after a placement", map[string]uint64{
		"of-object": 2, "of-node": 2, "of-zone": 4, "errs": 8, "of-request": 6, "count": 2, "size": 2,
		"around": 3,
	})
	if f := s.Faults(); len(f) != 1 || f[0].Count != 8 || f[0].Object != "a/a on n1" {
		t.Errorf("errors are counted for each class: %+v", f)
	}
	if errs := c.Apply(model.Delta{Object: aNode("n1", "cpu=9 pods=9")}); errs != nil {
		t.Fatal(errs)
	}
	choose("b", "c")
	if got := s.Evaluated(s.p.Rules(policy.Predicates)[0]); got != 3 {
		t.Errorf("after a change of the node's object: of-object was asked %d times, want 3", got)
	}
}

// TestRowResultsAreForgotten checks that results that no class reads any more are dropped.
func TestRowResultsAreForgotten(t *testing.T) {
	c := aCluster(t, aNode("n1", "cpu=9 pods=9"), aQueue("q"), aGroup("g", "q"), aPod("a", "cpu=1", inZone("x")),
		aPod("b", "cpu=1", inZone("y")))
	s := begun(t, c, `
predicates: [{name: of-node, expression: node.taskCount < 5}, {name: of-zone, expression: "task.labels['zone'] != ''"}]
scores: [{name: none, expression: "0.0"}]
`)
	for range 5 {
		s.Class(c.Tasks["a/a"])
		s.Begin(noon())
	}
	s.Class(c.Tasks["a/b"])
	if got := len(s.verdicts.Results.Opinions.By); got != 3 {
		t.Errorf("%d columns of predicates, want 3", got)
	}
	for range 4 {
		s.Class(c.Tasks["a/b"])
		s.Begin(noon())
	}
	if o, v := len(s.verdicts.Results.Opinions.By), len(s.verdicts.Results.Values.By); o != 2 || v != 1 {
		t.Errorf("%d columns of predicates and %d of scores are kept, want 2 and 1", o, v)
	}
	s.verdicts.Classes.Entries = 0
	s.Class(c.Tasks["a/a"])
	s.Class(c.Tasks["a/b"])
	if got := len(s.verdicts.Classes.ByKey); got != 1 {
		t.Errorf("%d classes where there is room for one", got)
	}
}

func inZone(zone string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["zone"] = zone } }

// TestRowsThatReadTheClusterAreAskedAgain checks that a row that reads the cluster is evaluated again when the cluster changes, although
// the node did not change. This is also true if another predicate distinguishes all tasks, so that no class is stored.
func TestRowsThatReadTheClusterAreAskedAgain(t *testing.T) {
	for name, apart := range map[string]string{
		"classes are stored":        "task.labels['zone'] != 'none'",
		"every task is a class":     "!task.name.endsWith('z')",
		"a row errs for some tasks": "!task.name.endsWith('z') || task.labels['absent'] == node.name",
	} {
		t.Run(name, func(t *testing.T) {
			c := aCluster(t, aNode("n1", "cpu=64 pods=110"), aNode("n2", "cpu=64 pods=110"), aQueue("q"), aGroup("g", "q"),
				aPod("large", "cpu=48", inZone("x")), aPod("next", "cpu=1", inZone("x")))
			s := begun(t, c, `
predicates:
- {name: apart, expression: "`+apart+`"}
- {name: half-full, expression: cluster.used.cpu < 32.0 || node.taskCount > 0}
`)
			if _, found := s.Class(c.Tasks["a/next"]).Choose(); !found {
				t.Fatal("no node is found while the cluster is empty")
			}
			txn := c.Begin()
			start := txn.Mark()
			txn.Allocate(c.Tasks["a/large"], c.Nodes.Index["n1"], nil)
			choice, found := s.Class(c.Tasks["a/next"]).Choose()
			if !found || choice.Row != c.Nodes.Index["n1"] || choice.Feasible != 1 {
				t.Errorf("with 48 CPU used: %+v, %t, want only n1", choice, found)
			}
			txn.Rollback(start)
			if choice, found := s.Class(c.Tasks["a/next"]).Choose(); !found || choice.Feasible != 2 {
				t.Errorf("after the rollback: %+v, %t, want both nodes", choice, found)
			}
		})
	}
}
