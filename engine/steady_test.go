package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestIdleCycleAllocatesAPlan checks the allocations of a cycle that finds nothing changed. It makes its plan, a value of the present
// moment for rows that read the time, and keys for jobs whose keys are due. No key is due here.
func TestIdleCycleAllocatesAPlan(t *testing.T) {
	for _, p := range steadyPolicies(t) {
		for _, w := range []steady{{nodes: 100}, {100, 50, 1}, {100, 5, 20}} {
			most := 1.0
			if p.ReadsTime() {
				most++
			}
			t.Run(w.String()+"/policy="+p.Name, func(t *testing.T) {
				x := newScene(t, p, w.objects())
				x.settle()
				x.cycle()
				now := x.now
				if n := testing.AllocsPerRun(100, func() {
					now = now.Add(time.Nanosecond)
					x.now = now
					x.cycle()
				}); n > most {
					t.Errorf("%v allocations, want %v at most", n, most)
				}
				if !x.plan.Same {
					t.Error("the cycle was not idle")
				}
			})
		}
	}
}

// TestPlacingAndUndoingAllocatesNothing checks that placing and undoing a known gang allocates nothing, wherever it is placed.
func TestPlacingAndUndoingAllocatesNothing(t *testing.T) {
	w := workload{100, 4, 20, "shapes"}
	x := newScene(t, defaultPolicy(t), w.objects())
	s := x.d.Session()
	s.Begin(x.now)
	c := s.Cluster()
	var tasks []*model.Task
	for _, j := range c.Jobs {
		tasks = append(tasks, j.Tasks...)
	}
	slices.SortFunc(tasks, func(a, b *model.Task) int { return int(a.Index - b.Index) })
	txn := c.Begin()
	placed := 0
	n := testing.AllocsPerRun(300, func() {
		start := txn.Mark()
		placed = 0
		for _, task := range tasks {
			choice, ok := s.Class(task).Choose()
			if !ok || !s.Allocatable(task).Yes || !s.Feasible(task).Yes {
				t.Fatal("there is room")
			}
			txn.Allocate(task, choice.Row, nil)
			if s.IsReady(task.Job) {
				txn.Bind(task)
			}
			placed++
		}
		txn.Rollback(start)
	})
	if placed != len(tasks) || len(tasks) != 80 {
		t.Errorf("%d of %d tasks were placed", placed, len(tasks))
	}
	// Rows allocate the sums of amounts in batches, and logs are cut now and then.
	if each := n / float64(len(tasks)); each > 0.1 {
		t.Errorf("%.2f allocations a task", each)
	}
}
