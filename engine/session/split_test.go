package session

import (
	"fmt"
	"slices"
	"testing"

	celtypes "github.com/google/cel-go/common/types"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// answered returns the values of an expression for many nodes, "given up" if it has no value.
func answered[T any](rows, failed []int32, out []T) []string {
	var list []string
	for i, row := range rows {
		if slices.Contains(failed, row) {
			list = append(list, "given up")
		} else {
			list = append(list, fmt.Sprintf("%v", out[i]))
		}
	}
	return list
}

// toldBy evaluates an expression in a new session.
func toldBy(c *model.Cluster, p *policy.Policy, by Split, e *eval.Expr, task *model.Task) []string {
	s := New(c, p)
	s.Spread(by)
	s.Begin(noon())
	f := s.ask.Frame().OfTask(task)
	defer s.ask.Done()
	q, rows := verdict.QueryOf(e), c.Nodes.ByOrder()
	if e.Type.Kind() == celtypes.BoolKind {
		out := make([]bool, len(rows))
		return answered(rows, s.ask.HoldsEach(&q, f, rows, out), out)
	}
	out := make([]float64, len(rows))
	return answered(rows, s.ask.NumberEach(&q, f, rows, out), out)
}

// spreadAgrees compares the results of several goroutines for an expression with those of one, in a random world. Run it with the race
// detector.
func spreadAgrees(t *rapid.T, p *policy.Policy, list ...*eval.Expr) {
	w := newTwins(p, nil)
	deltas := []model.Delta{{Object: aQueue("q1")}, {Object: aQueue("q2")}}
	for i := range 12 {
		deltas = append(deltas, model.Delta{Object: aNode(fmt.Sprintf("m%02d", i), "cpu=8 memory=8Gi pods=5", func(n *corev1.Node) {
			n.Labels["zone"], n.Labels["rank"] = drawOf(t, "zone", "east", "west"), fmt.Sprint(i)
			n.Annotations[model.NodeGPUsAnnotation] = "2"
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: drawOf(t, "taint", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}}
		})})
	}
	for range 3 {
		deltas = append(deltas, model.Delta{Object: twinNode(t)}, model.Delta{Object: twinGroup(t)}, model.Delta{Object: w.twinPod(t)},
			model.Delta{Object: w.twinPod(t)})
	}
	w.apply(t, deltas...)
	c := w.remembers.c
	for _, task := range c.TasksByKey() {
		for _, e := range list {
			alone := toldBy(c, p, Split{Cores: 1}, e, task)
			for _, cores := range []int{2, 3, 8} {
				if diff := gocmp.Diff(alone, toldBy(c, p, Split{Cores: cores, From: 1}, e, task)); diff != "" {
					t.Fatalf("%s for %s (-by one +by %d)\n%s", e.Text.Value, task.Key, cores, diff)
				}
			}
		}
	}
}

// TestSpreadIsAsOne checks that several goroutines give the same results as one for any expression, and that they change nothing that
// another one reads.
func TestSpreadIsAsOne(t *testing.T) {
	t.Parallel()
	scope, p := kernelFixture(t)
	rapid.Check(t, func(t *rapid.T) {
		format := drawOf(t, "format", "%s", "'a'.matches(task.name) ? %s : %s") // the second is left to cel-go
		e := newGrammar().compiled(t, scope, drawOf(t, "gives", "bool", "int", "double"), format)
		spreadAgrees(t, p, e)
	})
}

// TestFormsSpreadAreAsOne checks the same as TestSpreadIsAsOne, for everything that has a form by column of its own.
func TestFormsSpreadAreAsOne(t *testing.T) {
	t.Parallel()
	scope, p := kernelFixture(t)
	list := columnForms(t, scope)
	rapid.Check(t, func(t *rapid.T) { spreadAgrees(t, p, drawOf(t, "expression", list...)) })
}

// TestWhatIsSpread checks that a row is split if it is expensive, evaluated for many nodes, and reads only values of one node.
func TestWhatIsSpread(t *testing.T) {
	scope, p := kernelFixture(t)
	const expensive, loop = "node.name.matches('^n[0-9]+$')", "node.tasks.all(t, t.priority > 1 && t.labels[?'app'].orValue('') != 'x')"
	for _, test := range []struct {
		expression string
		nodes      int
		by         Split
		want       int
	}{
		{expensive, 10_000, Split{Cores: 2}, 2},
		{expensive, 10_000, Split{Cores: 8}, 8},
		{expensive, 800, Split{Cores: 8}, 2}, // as many as have work
		{expensive, 600, Split{Cores: 2}, 1},
		{expensive, 600, Split{Cores: 2, From: 600}, 2},
		{expensive, 599, Split{Cores: 2, From: 600}, 1},
		{expensive, 10_000, Split{Cores: 1}, 1},
		{loop, 10_000, Split{Cores: 2}, 2},
		{"node.idle.cpu > task.request.cpu", 10_000, Split{Cores: 2}, 1},                        // as fast as memory
		{"node.labels['zone'].split('-')[0] == 'a'", 100_000, Split{Cores: 2}, 1},               // evaluated once per zone
		{expensive + " && task.affinityFits(node)", 10_000, Split{Cores: 2}, 1},                 // tasks in the domains are counted again
		{expensive + " && node.tasks.exists(t, t.job == task.job)", 10_000, Split{Cores: 2}, 1}, // jobs have tasks on several nodes
		{expensive + " && (task.node == null || task.node.name != node.name)", 10_000, Split{Cores: 2}, 1},
		{expensive + " && now > task.createdAt", 10_000, Split{Cores: 2}, 1}, // the time until which it is valid is recorded
	} {
		e, issues := eval.Compile(scope, source.NewText(test.expression), rules.Bool())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		s, q := New(model.NewCluster(model.Options{Volumes: volume.New}), p), verdict.QueryOf(e)
		s.Spread(test.by)
		if got := s.ask.cores(&q, test.nodes); got != test.want {
			t.Errorf("%s on %d nodes with %+v: spread over %d, want %d", test.expression, test.nodes, test.by, got, test.want)
		}
	}
}

// TestExpensiveRowsSpreadAreAsOne checks that several goroutines give a class the same results as one, with as many evaluations.
func TestExpensiveRowsSpreadAreAsOne(t *testing.T) {
	see := func(by Split) (scores [][]float64, asked []uint64) {
		s, task := expensiveWorld(t, 50)
		s.Spread(by)
		c := s.Class(task)
		for _, r := range s.p.Rules(policy.Scores) {
			asked = append(asked, s.Evaluated(r))
		}
		return c.Rows.Raw, asked
	}
	want, evaluated := see(Split{Cores: 1})
	for _, cores := range []int{2, 3, 8} {
		got, asked := see(Split{Cores: cores, From: 1})
		if diff := gocmp.Diff(want, got) + gocmp.Diff(evaluated, asked); diff != "" {
			t.Errorf("-by one +by %d\n%s", cores, diff)
		}
	}
}
