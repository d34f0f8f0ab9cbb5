package session

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// expensiveTable has a row for each way in which rows are computed.
const expensiveTable = `
attributes:
- {name: typical, on: cluster, settle: cycle, typicalTasks: {cover: 1}}
scores:
- {name: interpreted, expression: "node.name.matches('^n[0-9]+[02468]$') && node.idle.cpu > task.request.cpu ? 1.0 : 0.0"}
- {name: loop, expression: "node.tasks.all(t, t.request.cpu < 8.0 || t.priority > task.priority) ? 1.0 : 0.0"}
- {name: fragments, expression: "fragGain(task, node, cluster.typical)"}
- name: columns
  expression: "(node.idle.cpu - task.request.cpu) / node.allocatable.cpu +
    (node.idle.memory - task.request.memory) / node.allocatable.memory"
- {name: least-allocated, expression: "node.leastAllocated(task, ['cpu', 'memory'])"}
`

// expensiveWorld returns nodes with devices, two pods on each, and a waiting task.
func expensiveWorld(b testing.TB, nodes int) (*Session, *model.Task) {
	b.Helper()
	objects := []any{aQueue("q"), aGroup("g", "q"), aPod("waits", "cpu=2 memory=4Gi", annotated(model.GPUMilliAnnotation, "300"))}
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		objects = append(objects, aNode(name, "cpu=32 memory=256Gi pods=110",
			func(n *corev1.Node) { n.Annotations[model.NodeGPUsAnnotation] = "8" }),
			aPod("a"+name, fmt.Sprintf("cpu=%d memory=%dGi", 1+i%20, 1+i%100), runningOn(name)),
			aPod("b"+name, fmt.Sprintf("cpu=%d memory=8Gi", 1+i%13), runningOn(name)))
	}
	c := aCluster(b, objects...)
	for i := range int64(30) { // of as many sizes as in a trace
		c.Workload = append(c.Workload, model.Shape{CPU: float64(1000 * (1 + i%7)), GPUCount: i % 3, GPUMilli: 100 * (1 + i%10), Tasks: 1 + i})
	}
	s := New(c, loaded(b, policyText(expensiveTable)))
	s.Begin(noon())
	return s, c.Tasks["a/waits"]
}

// BenchmarkManyCores evaluates one row for all nodes, as for a new class. Run it with -cpu 1,2: ns/op is wall-clock time, and least-us the
// shortest time, for machines with other work.
func BenchmarkManyCores(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 10000} {
		s, task := expensiveWorld(b, nodes)
		rows := s.c.Nodes.ByOrder()
		f := s.ask.Frame().OfTask(task)
		out := make([]float64, len(rows))
		for _, r := range s.verdicts.Plan.Scores {
			b.Run(fmt.Sprintf("row=%s/nodes=%d", r.Name, nodes), func(b *testing.B) {
				b.ReportAllocs()
				began, least := spentCPU(b), time.Hour
				for b.Loop() {
					at := time.Now()
					if failed := s.ask.NumberEach(&r.Query, f, rows, out); len(failed) > 0 {
						b.Fatalf("%d nodes were given up", len(failed))
					}
					least = min(least, time.Since(at))
				}
				b.ReportMetric(float64(least.Nanoseconds())/1e3, "least-us")
				b.ReportMetric(float64(spentCPU(b)-began)/float64(b.N*len(rows)), "cpu-ns/pair")
			})
		}
		s.ask.Done()
	}
}
