package session

import (
	"fmt"
	"math"
	"syscall"
	"testing"

	celtypes "github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// benchRow is a row of a policy, and Go code that does the same with the same arrays.
type benchRow struct {
	name, expression string
	fits             func(n *model.Nodes, t *model.Task, row int32) bool
	score            func(n *model.Nodes, t *model.Task, row int32) float64
}

func benchRows() []benchRow {
	const cpu, memory = model.CPU, model.Memory
	least := func(n *model.Nodes, t *model.Task, row int32) float64 {
		sum := 0.0
		for dim := cpu; dim <= memory; dim++ {
			all := n.Allocatable[dim][row]
			use := n.Used[dim][row]
			use += []float64{language.DefaultMilliCPU, language.DefaultMemoryBytes}[dim] * float64(n.Unasked[dim][row])
			sum += math.Trunc((all - min(use+t.Request[dim], all)) * 100 / all)
		}
		return math.Trunc(sum / 2)
	}
	binpack := func(n *model.Nodes, t *model.Task, row int32) float64 {
		score := 0.0
		for dim, weight := range []float64{cpu: 5, memory: 1} {
			all, use := n.Allocatable[dim][row], n.Used[dim][row]+t.Request[dim]
			if use > all {
				return 0
			}
			score += weight * use / all
		}
		return 100 * (score / 6)
	}
	return []benchRow{
		{name: "fits", expression: "task.request.fits(node.idle)", fits: func(n *model.Nodes, t *model.Task, row int32) bool {
			for dim, want := range t.Request {
				if want > n.Allocatable[dim][row]-n.Used[dim][row]+model.Slack {
					return false
				}
			}
			return true
		}},
		{
			name: "fits-by-field", expression: "task.request.cpu <= node.idle.cpu && task.request.memory <= node.idle.memory",
			fits: func(n *model.Nodes, t *model.Task, row int32) bool {
				return t.Request[cpu]/1000 <= (n.Allocatable[cpu][row]-n.Used[cpu][row])/1000 &&
					t.Request[memory] <= n.Allocatable[memory][row]-n.Used[memory][row]
			},
		},
		{name: "least-requested", expression: "node.leastAllocated(task, ['cpu', 'memory'])", score: least},
		{
			name: "least-by-field", expression: "50.0 * ((node.idle.cpu - task.request.cpu) / node.allocatable.cpu + (node.idle.memory - " +
				"task.request.memory) / node.allocatable.memory)",
			score: func(n *model.Nodes, t *model.Task, row int32) float64 {
				of := func(dim int, unit float64) float64 {
					return ((n.Allocatable[dim][row]-n.Used[dim][row])/unit - t.Request[dim]/unit) / (n.Allocatable[dim][row] / unit)
				}
				return 50 * (of(cpu, 1000) + of(memory, 1))
			},
		},
		{name: "binpack", expression: "100.0 * node.binpack(task, 5.0, 1.0, [], {'cpu': 1.0})", score: binpack},
		{name: "binpack-by-field", expression: "node.used.cpu + task.request.cpu > node.allocatable.cpu || node.used.memory + " +
			"task.request.memory > node.allocatable.memory ? 0.0 : 100.0 * ((5.0 * (node.used.cpu + task.request.cpu) / node.allocatable.cpu + " +
			"(node.used.memory + task.request.memory) / node.allocatable.memory) / 6.0)", score: binpack},
		{
			name: "zone", expression: "node.labels[?'zone'].orValue('') in ['z1', 'z2', 'z3']",
			fits: func(n *model.Nodes, _ *model.Task, row int32) bool {
				zone := n.Rows[row].Labels["zone"]
				return zone == "z1" || zone == "z2" || zone == "z3"
			},
		},
	}
}

// benchWorld returns 5,000 nodes, half full, and a task.
func benchWorld(b testing.TB) (*Session, *model.Task) {
	objects := []any{aQueue("q"), aGroup("g", "q"), aPod("waits", "cpu=2 memory=4Gi")}
	for i := range 5000 {
		name := fmt.Sprintf("n%04d", i)
		objects = append(objects, aNode(name, "cpu=32 memory=256Gi pods=110", func(n *corev1.Node) { n.Labels["zone"] = fmt.Sprint("z", i%10) }),
			aPod("a"+name, fmt.Sprintf("cpu=%d memory=%dGi", 1+i%20, 1+i%100), runningOn(name)),
			aPod("b"+name, fmt.Sprintf("cpu=%d memory=8Gi", 1+i%13), runningOn(name)))
	}
	c := aCluster(b, objects...)
	s := New(c, loaded(b, policyText("jobOrder: []")))
	s.Begin(noon())
	return s, c.Tasks["a/waits"]
}

// BenchmarkRow measures the cost of a row of a policy for a task and a node: in hand-written Go, by column, as closures, and interpreted by
// cel-go.
func BenchmarkRow(b *testing.B) {
	s, task := benchWorld(b)
	scope, _ := kernelFixture(b)
	n := &s.c.Nodes
	rows := n.ByOrder()
	f := s.ask.Frame().OfTask(task)
	defer s.ask.Done()
	bools, numbers := make([]bool, len(rows)), make([]float64, len(rows))
	for _, x := range benchRows() {
		e, issues := eval.Compile(scope, source.NewText(x.expression), rules.Anything())
		if issues.Err() != nil {
			b.Fatal(issues)
		}
		var batch eval.Batch
		byHand := func() {
			for i, row := range rows {
				if x.fits != nil {
					bools[i] = x.fits(n, task, row)
				} else {
					numbers[i] = x.score(n, task, row)
				}
			}
		}
		one := func(int32) {
			if x.fits != nil {
				_, _ = e.Holds(f)
			} else {
				_, _ = e.Number(f)
			}
		}
		all := func(of func(row int32)) func() {
			return func() {
				for _, row := range rows {
					f.Point(row)
					of(row)
				}
			}
		}
		for _, variant := range []struct {
			name string
			run  func()
		}{
			{"go", byHand},
			{"columns", func() {
				failed := []int32(nil)
				if x.fits != nil {
					failed = e.HoldsEach(&batch, f, rows, bools)
				} else {
					failed = e.NumberEach(&batch, f, rows, numbers)
				}
				if len(failed) > 0 {
					b.Fatalf("%d nodes were given up", len(failed))
				}
			}},
			{"closures", all(one)},
			{"cel-go", all(func(int32) { _ = e.Interpret(f) })},
		} {
			b.Run(x.name+"/"+variant.name, func(b *testing.B) {
				b.ReportAllocs()
				began := spentCPU(b)
				for b.Loop() {
					variant.run()
				}
				b.ReportMetric(float64(spentCPU(b)-began)/float64(b.N*len(rows)), "cpu-ns/pair")
			})
		}
	}
}

// spentCPU returns the CPU time of the process, in nanoseconds.
func spentCPU(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// TestRowsByHand checks that the Go code of the benchmark gives the same results as the rows, and that rows are computed by column
// completely.
func TestRowsByHand(t *testing.T) {
	s, task := benchWorld(t)
	scope, _ := kernelFixture(t)
	n := &s.c.Nodes
	rows := n.ByOrder()
	f := s.ask.Frame().OfTask(task)
	defer s.ask.Done()
	for _, x := range benchRows() {
		e, issues := eval.Compile(scope, source.NewText(x.expression), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		if e.ByRow != "" {
			t.Errorf("%s: by row: %s", x.name, e.ByRow)
		}
		var batch eval.Batch
		bools, numbers := make([]bool, len(rows)), make([]float64, len(rows))
		var failed []int32
		if x.fits != nil {
			failed = e.HoldsEach(&batch, f, rows, bools)
		} else {
			failed = e.NumberEach(&batch, f, rows, numbers)
		}
		if len(failed) > 0 {
			t.Errorf("%s: %d nodes were given up", x.name, len(failed))
		}
		for i, row := range rows {
			f.Point(row)
			if x.fits != nil && (bools[i] != x.fits(n, task, row) || e.Interpret(f) != celtypes.Bool(bools[i])) {
				t.Fatalf("%s on %s: by hand %t, by column %t", x.name, n.Rows[row].Name, x.fits(n, task, row), bools[i])
			}
			if x.score != nil && math.Abs(numbers[i]-x.score(n, task, row)) > 1e-9 {
				t.Fatalf("%s on %s: by hand %v, by column %v", x.name, n.Rows[row].Name, x.score(n, task, row), numbers[i])
			}
		}
	}
}
