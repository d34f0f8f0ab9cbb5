package session

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// columnExpressions contains everything that has a form by column of its own.
func columnExpressions() []string {
	list := []string{
		"task.matchesNodeAffinity(node)", "task.toleratesAll(node)", "task.portsFree(node)", "task.nodeAffinityScore(node)",
		"double(task.intolerablePreferNoSchedule(node))",
		"task.firstUntolerated(node) != ''", "!node.unschedulable || task.toleratesUnschedulable()", "node.name < 'n3'",
		"node.ready && node.revocableZone == ''",
		"node.leastAllocated(task, ['cpu', 'memory'])", "node.mostAllocated(task, ['memory', 'none', 'nvidia.com/gpu'])",
		"node.balanced(task, ['cpu', 'memory', 'nvidia.com/gpu'])",
		"node.leastAllocated(task, [task.queue.name])", "node.binpack(task, 2.0, 1.0, ['pods', 'none'], {'pods': 0.5})",
		"node.binpack(task, double(node.taskCount), 1.0, [], {})", countedArgument,
		"node.strategyFit(task, {'cpu': 'MostAllocated'}, {'cpu': 2.0, 'm*': 1.0}, 'LeastAllocated')", "node.imageLocality(task)",
		"node.taskCount < node.maxTasks", "node.gpuFree >= task.gpuMilli * task.gpuCount && node.gpuCapacity % 7 != 1",
		"node.gpuModel in task.gpuModels",
		"10 / (node.taskCount - 1) > 3 || node.labels['zone'] == 'east'", "node.taskCount > 0 ? 5 / node.taskCount : -node.maxTasks",
		"-(node.taskCount - 9223372036854775807) - 3",
		"node.labels['zone'] == task.labels['zone']", "'zone' in node.labels && node.labels['zone'] == 'west' && node.labels['rank'] != 'none'",
		"node.labels[?'rank'].orValue('0') < node.labels[?'zone'].orValue('')",
		"has(node.labels.zone) ? node.labels.zone == 'east' : node.taints.exists(t, t.key == 'k')",
		"double(int(node.labels['rank'])) / node.idle.cpu",
		"task.request.within(node.allocatable, task.request)", "node.used.within(node.allocatable, task.initRequest)",
		"task.request.within(node.idle, node.used)",
	}
	for _, a := range language.NodeAmounts() {
		list = append(list, "task.request.fits(node."+a.Name+")", "node."+a.Name+".cpu + node."+a.Name+"['pods']",
			"node."+a.Name+"['none'] + node."+a.Name+".memory > 1.0",
			"node."+a.Name+".within(node.futureIdle, task.request)")
	}
	return list
}

// countedArgument is a call by column with a metered argument.
const countedArgument = "lists.range(int(task.request.cpu) + 1).map(i, task.request)[0].fits(node.idle)"

// columnForms returns these expressions, compiled.
func columnForms(t *testing.T, scope *rules.Scope) []*eval.Expr {
	t.Helper()
	var list []*eval.Expr
	for _, text := range columnExpressions() {
		e, issues := eval.Compile(scope, source.NewText(text), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		list = append(list, e)
	}
	return list
}

// TestFormsByColumn checks that forms by column give the same values as cel-go.
func TestFormsByColumn(t *testing.T) {
	t.Parallel()
	scope, p := kernelFixture(t)
	list := columnForms(t, scope)
	rapid.Check(t, func(t *rapid.T) { agreesInWorlds(t, p, list...) })
}

// TestManyValues checks labels with many values. A label is not evaluated by value if it has as many values as there are nodes. The same is
// true if it first has few values and later many.
func TestManyValues(t *testing.T) {
	scope, _ := kernelFixture(t)
	e, issues := eval.Compile(scope, source.NewText("int(node.labels['host']) > 90"), rules.Bool())
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	host := func(i, of int) any {
		return aNode(fmt.Sprintf("n%03d", i), "cpu=1", func(n *corev1.Node) { n.Labels["host"] = fmt.Sprint(i % of) })
	}
	objects := []any{aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1")}
	for i := range 200 {
		objects = append(objects, host(i, 3))
	}
	c := aCluster(t, objects...)
	s := New(c, loaded(t, policyText("jobOrder: []")))
	var batch eval.Batch
	holding := func() (holds int) {
		s.Begin(noon())
		f := s.ask.Frame().OfTask(c.Tasks["a/p"])
		defer s.ask.Done()
		out := make([]bool, len(c.Nodes.ByOrder()))
		if failed := e.HoldsEach(&batch, f, c.Nodes.ByOrder(), out); len(failed) > 0 {
			t.Errorf("%d nodes were given up", len(failed))
		}
		for _, x := range out {
			if x {
				holds++
			}
		}
		return holds
	}
	for _, step := range []struct {
		hosts, holds int
		few          bool
	}{{3, 0, true}, {200, 109, false}, {100, 18, false}, {50, 0, true}} {
		for i := range 200 {
			apply(t, c, host(i, step.hosts))
		}
		for range language.FewValues {
			s.Begin(noon()) // until it is evaluated again
		}
		if got, few := holding(), !s.ByLabel("host").Many; got != step.holds || few != step.few {
			t.Errorf("of %d hosts %d nodes are above 90, want %d; that values are few is said to be %t", step.hosts, got, step.holds, few)
		}
	}
}
