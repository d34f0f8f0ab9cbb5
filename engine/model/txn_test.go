package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRollbackRestoresWhatWas(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), gpuNode("n"), pod("run", "cpu=1", on("n")),
		pod("a", "cpu=2 nvidia.com/gpu=1"), pod("b", "cpu=1"), pod("c", ""))
	row, g := c.Nodes.Index["n"], c.Jobs["a/g"]
	a, b, run := c.Tasks["a/a"], c.Tasks["a/b"], c.Tasks["a/run"]
	x := c.Begin()
	start := dump(c)
	x.Admit(g, time.Time{})
	x.Allocate(a, row, []int{1})
	middle, saved := dump(c), x.Mark()
	x.Bind(a)
	x.Evict(run)
	x.Pipeline(b, row, nil)
	x.Unplace(b)
	x.Allocate(b, row, nil)
	check(t, c)
	if g.PlacedNow != 2 || g.Phase != PhaseInqueue || !g.AdmittedNow || c.Queues["q"].Phases[PhaseInqueue] != 1 {
		t.Errorf("placed %d, phase %s, admitted %t", g.PlacedNow, g.Phase, g.AdmittedNow)
	}
	version, cursor := c.Nodes.Version[row], c.Nodes.Log.End()
	x.Rollback(saved)
	check(t, c)
	if diff := cmp.Diff(middle, dump(c)); diff != "" {
		t.Errorf("rolled back to the middle (-then +now):\n%s", diff)
	}
	if entries, _ := cursor.Read(&c.Nodes.Log); c.Nodes.Version[row] == version || !slices.Contains(entries, row) {
		t.Error("a rollback is no change of its node")
	}
	x.Rollback(0)
	check(t, c)
	if diff := cmp.Diff(start, dump(c)); diff != "" {
		t.Errorf("rolled back to the start (-then +now):\n%s", diff)
	}
}

func TestCommitForgets(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), node("n", "cpu=4 pods=9"), pod("p", "cpu=1"))
	x, p := c.Begin(), c.Tasks["a/p"]
	x.Allocate(p, c.Nodes.Index["n"], nil)
	x.Commit()
	x.Rollback(0)
	if p.Status != Allocated || x.Mark() != 0 {
		t.Errorf("after a commit a rollback left %s", p.Status)
	}
}

func TestCloseCycle(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), group("idle", "q"), node("n", "cpu=4 pods=9"), pod("p", "cpu=1"))
	x, g := c.Begin(), c.Jobs["a/g"]
	x.Admit(g, time.Time{})
	x.Allocate(c.Tasks["a/p"], c.Nodes.Index["n"], nil)
	x.Commit()
	c.SetRoleFailed(g, "", true)
	c.SetRoleFailed(g, "no such role", true)
	if !g.Roles[0].Failed {
		t.Error("the role did not fail")
	}
	idle, version := c.Jobs["a/idle"].Version, g.Version
	c.CloseCycle()
	check(t, c)
	if g.AdmittedNow || g.PlacedNow != 0 || g.Roles[0].Failed || g.Phase != PhaseInqueue {
		t.Errorf("after the cycle: admitted %t, placed %d, failed %t, phase %s", g.AdmittedNow, g.PlacedNow, g.Roles[0].Failed, g.Phase)
	}
	if g.Version == version || c.Jobs["a/idle"].Version != idle {
		t.Error("the end of a cycle changed a job that had nothing to end, or not the one that had")
	}
	version = g.Version
	c.CloseCycle()
	if g.Version != version {
		t.Error("a second end changed something")
	}
}

func TestBrokenPromisesAreReported(t *testing.T) {
	tests := []struct {
		name string
		step func(c *Cluster, x *Txn)
		want string
	}{
		{"bind what is not allocated", func(c *Cluster, x *Txn) { x.Bind(c.Tasks["a/p"]) }, "bind task a/p, which is Pending"},
		{"unplace what has no place", func(c *Cluster, x *Txn) { x.Unplace(c.Tasks["a/run"]) }, "unplace task a/run, which is Running"},
		{"evict what waits", func(c *Cluster, x *Txn) { x.Evict(c.Tasks["a/p"]) }, "evict task a/p, which is Pending"},
		{"allocate what runs", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/run"], 0, nil) }, "allocate task a/run, which is Running"},
		{"allocate nowhere", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/p"], 9, nil) }, "goes to a node that is there"},
		{"pipeline nowhere", func(c *Cluster, x *Txn) { x.Pipeline(c.Tasks["a/p"], NoNode, nil) }, "goes to a node that is there"},
		{"allocate too much", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/big"], 0, nil) }, "fits what its node has idle"},
		{"a device for who wants none", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/p"], 0, []int{0}) }, "gets devices that it wants"},
		{"a device that is held", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/share"], 0, []int{0}) }, "gets devices that it wants"},
		{"two devices for one", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/share"], 0, []int{1, 2}) }, "gets devices that it wants"},
		{"a device that is not there", func(c *Cluster, x *Txn) { x.Allocate(c.Tasks["a/share"], 0, []int{4}) }, "gets devices that it wants"},
		{
			"admit twice", func(c *Cluster, x *Txn) { x.Admit(c.Jobs["a/g"], time.Time{}); x.Admit(c.Jobs["a/g"], time.Time{}) },
			"admit job a/g: its phase is Inqueue",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, queue("q"), group("g", "q"), gpuNode("n"), pod("p", "cpu=1"), pod("big", "cpu=65"),
				pod("share", "", annotated(GPUMilliAnnotation, "500")), pod("run", "nvidia.com/gpu=1", on("n")))
			tt.step(c, c.Begin())
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestCheckSees checks that Check finds states that no function allows. Otherwise the other tests would show nothing.
func TestCheckSees(t *testing.T) {
	tests := map[string]func(c *Cluster){
		"used":            func(c *Cluster) { c.Nodes.Used[CPU][0]++ },
		"releasing":       func(c *Cluster) { c.Nodes.Releasing[CPU][0]++ },
		"pipelined":       func(c *Cluster) { c.Nodes.Pipelined[CPU][0]++ },
		"task count":      func(c *Cluster) { c.Nodes.TaskCount[0]++ },
		"unasked":         func(c *Cluster) { c.Nodes.Unasked[Memory][0]++ },
		"tasks of a node": func(c *Cluster) { c.Nodes.Tasks[0] = nil },
		"devices":         func(c *Cluster) { c.Nodes.GPUs[0][3].Free-- },
		"order":           func(c *Cluster) { c.Nodes.Order[0] = 1 },
		"node index":      func(c *Cluster) { c.Nodes.Index["x"] = 0 },
		"row":             func(c *Cluster) { c.Nodes.Rows[0].Row = 3 },
		"short column":    func(c *Cluster) { c.Nodes.Version = nil },
		"free row":        func(c *Cluster) { c.Nodes.Slots.Leave(0) },
		"lost slot":       func(c *Cluster) { c.Slots.Tasks.Take() },
		"slot of two":     func(c *Cluster) { c.Tasks["a/p"].Slot = c.Tasks["a/run"].Slot },
		"no slot of jobs": func(c *Cluster) { c.Jobs["a/g"].Slot = 0 },
		"total":           func(c *Cluster) { c.Total[CPU]++ },
		"cluster used":    func(c *Cluster) { c.Used[CPU]++ },
		"ready nodes":     func(c *Cluster) { c.ReadyNodes++ },
		"job counts":      func(c *Cluster) { c.Jobs["a/g"].Counts[Running]++ },
		"best effort":     func(c *Cluster) { c.Jobs["a/g"].PendingBestEffort++ },
		"job allocated":   func(c *Cluster) { c.Jobs["a/g"].Allocated[CPU]++ },
		"job request":     func(c *Cluster) { c.Jobs["a/g"].Request.Set(Pods, 0) },
		"job gated":       func(c *Cluster) { c.Jobs["a/g"].GatedRequest[CPU]++ },
		"job tasks":       func(c *Cluster) { c.Jobs["a/g"].Tasks = nil },
		"job key":         func(c *Cluster) { c.Jobs["a/x"] = c.Jobs["a/g"] },
		"placed":          func(c *Cluster) { c.Jobs["a/g"].PlacedNow = -1 },
		"role":            func(c *Cluster) { c.Jobs["a/g"].Roles[0].Min = 1 },
		"queue phases":    func(c *Cluster) { c.Queues["q"].Phases["Running"] = 1 },
		"queue jobs":      func(c *Cluster) { delete(c.Queues["q"].Jobs, "a/g") },
		"queue allocated": func(c *Cluster) { c.Queues["q"].Allocated[CPU]++ },
		"queue of a job":  func(c *Cluster) { c.Jobs["a/g"].Queue = nil },
		"task key":        func(c *Cluster) { c.Tasks["a/x"] = c.Tasks["a/run"] },
		"task spot":       func(c *Cluster) { c.Tasks["a/p"].NodeName = "n" },
		"task's job":      func(c *Cluster) { c.Tasks["a/p"].Job = &Job{} },
		"task's role":     func(c *Cluster) { c.Tasks["a/p"].role = &Role{} },
		"task's group":    func(c *Cluster) { c.Tasks["a/p"].group = "a/other" },
		"lost":            func(c *Cluster) { c.books.lost.put("x", "a/p", c.Tasks["a/p"], true) },
		"groupless":       func(c *Cluster) { c.books.groupless.put("x", "a/p", c.Tasks["a/p"], true) },
		"queueless":       func(c *Cluster) { c.books.queueless.put("x", "a/g", c.Jobs["a/g"], true) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, queue("q"), group("g", "q"), gpuNode("n"), pod("p", ""), pod("run", "cpu=1 nvidia.com/gpu=1", on("n")))
			damage(c)
			if err := c.Check(); err == nil {
				t.Error("Check saw nothing")
			}
		})
	}
}

func TestAStepIsLogged(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), node("n", "cpu=4 pods=9"), pod("p", "cpu=1"))
	nodes, jobs, queues, clock, objects := c.Nodes.Log.End(), c.JobLog.End(), c.QueueLog.End(), c.Clock, c.ObjectClock
	row := c.Nodes.Index["n"]
	c.Begin().Allocate(c.Tasks["a/p"], row, nil)
	if got, ok := nodes.Read(&c.Nodes.Log); !ok || !slices.Equal(got, []int32{row}) {
		t.Errorf("nodes touched: %v, %t", got, ok)
	}
	if got, ok := jobs.Read(&c.JobLog); !ok || !slices.Equal(got, []*Job{c.Jobs["a/g"]}) {
		t.Errorf("%d jobs touched, %t", len(got), ok)
	}
	if got, ok := queues.Read(&c.QueueLog); !ok || !slices.Equal(got, []*Queue{c.Queues["q"]}) {
		t.Errorf("%d queues touched, %t", len(got), ok)
	}
	if c.Clock == clock || c.ObjectClock != objects {
		t.Errorf("clocks %d -> %d and %d -> %d; want the first one only to move", clock, c.Clock, objects, c.ObjectClock)
	}
}

// TestContent checks that Content returns to its old value when steps are undone, and has a new value after every other change.
func TestContent(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), node("n", "cpu=4 pods=9"), pod("p", "cpu=1"), pod("r", "cpu=1"))
	x, row, first := c.Begin(), c.Nodes.Index["n"], c.Content()
	x.Allocate(c.Tasks["a/p"], row, nil)
	second := c.Content()
	mark := x.Mark()
	x.Allocate(c.Tasks["a/r"], row, nil)
	c.SetRoleFailed(c.Jobs["a/g"], "", true)
	c.SetRoleFailed(c.Jobs["a/g"], "", false)
	third := c.Content()
	x.Rollback(mark)
	if first == second || second == third || c.Content() != second {
		t.Errorf("content %d, with a step %d, with another %d, without that %d", first, second, third, c.Content())
	}
	x.Rollback(0)
	if c.Content() != first {
		t.Errorf("content %d, all undone %d", first, c.Content())
	}
	c.Apply(Delta{Object: pod("p", "cpu=2")})
	if c.Content() == first {
		t.Error("a pod asks for more, and the content is the same")
	}
}
