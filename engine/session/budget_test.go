package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// overBudget has rows that are not metered, but read metered values: loops whose length depends on the used cpu.
const overBudget = `
attributes:
- {on: cluster, name: loops, settle: start,
    expression: "lists.range(int(cluster.used.cpu * 1000.0)).all(a, lists.range(1000).all(b, a + b >= 0)) ? 1 : 2"}
variables:
- {name: turns, expression: "lists.range(int(cluster.used.cpu * 10.0)).all(a, lists.range(1000).all(b, a + b >= 0)) ? 1 : 2"}
- {name: nodeTurns, on: node, expression: "lists.range(int(node.used.cpu * 10.0)).all(a, lists.range(1000).all(b, a + b >= 0)) ? 1 : 2"}
scores:
- {name: attribute, expression: "double(node.taskCount + cluster.loops)"}
- {name: variable, expression: "double(node.taskCount + variables.turns)"}
- {name: of-node, expression: "double(node.taskCount + variables.nodeTurns)"}
`

// overBudgetWorld returns nodes with one pod each, which together use 20 cpu, and a waiting task.
func overBudgetWorld(t *testing.T) (*Session, *model.Task) {
	t.Helper()
	objects := []any{aQueue("q"), aGroup("g", "q"), aPod("waits", "cpu=1")}
	for i := range 20 {
		name := fmt.Sprintf("n%02d", i)
		objects = append(objects, aNode(name, "cpu=8 memory=8Gi pods=110"), aPod("on-"+name, "cpu=1", runningOn(name)))
	}
	c := aCluster(t, objects...)
	return begun(t, c, overBudget), c.Tasks["a/waits"]
}

// TestWhatIsCountedHasOneOwner checks that a row that reads metered values has the same result with several goroutines as with one. Run it
// with the race detector.
func TestWhatIsCountedHasOneOwner(t *testing.T) {
	for i := range 3 {
		see := func(by Split) (text string, spent bool) {
			s, task := overBudgetWorld(t)
			s.Spread(by)
			r := s.p.Rules(policy.Scores)[i]
			if r.Expression.Metered {
				t.Fatalf("%s is counted itself", r.Name)
			}
			f := s.ask.Frame().OfTask(task)
			defer s.ask.Done()
			rows := s.c.Nodes.ByOrder()
			out := make([]float64, len(rows))
			failed := s.ask.NumberEach(&s.verdicts.Plan.Scores[i].Query, f, rows, out)
			return fmt.Sprint(out, len(failed)), s.Spent()
		}
		one, spent := see(Split{Cores: 1})
		if spent {
			t.Errorf("row %d took all steps of the cycle, as what it reads is computed again for each node", i)
		}
		for _, cores := range []int{2, 8} {
			if several, spent := see(Split{Cores: cores, From: 1}); several != one || spent {
				t.Errorf("row %d: by one %s, by %d %s (all steps taken: %v)", i, one, cores, several, spent)
			}
		}
	}
}

// TestStartOverItsBudget checks a value of the start that exceeds its budget. It is an error for the cycle, and the next cycle computes it
// again.
func TestStartOverItsBudget(t *testing.T) {
	s, _ := overBudgetWorld(t)
	x := s.p.Attributes()[0]
	first := policy.ReadAttribute(x, s.ClusterView)
	if !rules.Exceeded(first) {
		t.Fatalf("got %v", first)
	}
	var gone, back []model.Delta
	for i := range 20 {
		p := aPod(fmt.Sprintf("on-n%02d", i), "cpu=1", runningOn(fmt.Sprintf("n%02d", i)))
		gone, back = append(gone, model.Delta{Op: model.Delete, Object: p}), append(back, model.Delta{Object: p})
	}
	s.c.Apply(gone...)
	if again := policy.ReadAttribute(x, s.ClusterView); again != first {
		t.Errorf("in the same cycle it is %v", again)
	}
	for minute, deltas := range [][]model.Delta{nil, back} {
		s.c.Apply(deltas...)
		s.Begin(noon().Add(time.Duration(1+minute) * time.Minute))
		if diff := gocmp.Diff("1", fmt.Sprint(policy.ReadAttribute(x, s.ClusterView))); diff != "" {
			t.Errorf("minute %d: -want +got\n%s", 1+minute, diff)
		}
	}
}

// TestCountedArgumentsByColumn checks that a metered argument by column has the budget of one evaluation, and that its call does not fail
// for each node.
func TestCountedArgumentsByColumn(t *testing.T) {
	scope, p := kernelFixture(t)
	e, issues := eval.Compile(scope, source.NewText(countedArgument), rules.Bool())
	if issues.Err() != nil || !e.Metered || e.ByRow != "" {
		t.Fatal(issues, "or not counted, or by row: ", e.ByRow, e.Interpreted)
	}
	world, task := overBudgetWorld(t)
	s := New(world.c, p)
	for cycle := range 2 {
		s.Begin(noon())
		f := s.ask.Frame().OfTask(task)
		rows := s.c.Nodes.ByOrder()
		if failed := e.HoldsEach(&s.verdicts.Pipeline.Batch, f, rows, make([]bool, len(rows))); len(failed) > 0 {
			t.Errorf("cycle %d: %d nodes were given up", cycle, len(failed))
		}
		s.ask.Done()
	}
}

// TestMetersAreShared checks that the expressions of one row, of one attribute and of one tree share their budget of a cycle.
func TestMetersAreShared(t *testing.T) {
	const turns = "lists.range(queue.jobCount).size() + "
	s := begun(t, aCluster(t, aQueue("q")), `
attributes:
- {on: queue, name: guarded, when: "`+turns+`now.getMinutes() >= 0", expression: "`+turns+`1"}
- {on: queue, name: added, sum: {over: job, of: "lists.range(job.taskCount).size()", when: "lists.range(job.taskCount).size() > 0"}}
variables: [{name: v, on: queue, expression: "`+turns+`2"}]
overused: [{name: o, when: "`+turns+`1 > 3", expression: "`+turns+`variables.v > 4", message: "{{`+turns+`1}}"}]
`)
	distinct := map[*eval.Meter]int{}
	for _, e := range s.p.Expressions() {
		one := s.meters.of[e]
		if (one != nil) != e.Metered {
			t.Errorf("%s is counted: %v", e.Text.Value, e.Metered)
		}
		if one != nil {
			distinct[one]++
		}
	}
	for _, part := range s.rest.parts {
		if part.Metered && s.meters.of[part] == nil {
			t.Errorf("the part %s has no meter", part.Part)
		}
	}
	var sizes []int
	for _, n := range distinct {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	if diff := gocmp.Diff([]int{1, 2, 2, 3}, sizes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
