package model

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func columnsNode(i int, more ...string) *corev1.Node {
	offers := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	for _, name := range more {
		offers[corev1.ResourceName(name)] = resource.MustParse("4")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)},
		Status: corev1.NodeStatus{
			Allocatable: offers, Capacity: offers, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func columnsPod(name string, asks ...string) *corev1.Pod {
	list := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for _, ask := range asks {
		list[corev1.ResourceName(ask)] = resource.MustParse("1")
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: "u"},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano",
			Containers:    []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}},
		},
	}
}

func mustApply(t *testing.T, c *Cluster, deltas ...Delta) {
	t.Helper()
	if errs := c.Apply(deltas...); len(errs) > 0 {
		t.Fatal(errs[0])
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestInventedNamesHaveNoColumns checks that resource names that only pods use cost no memory per node.
func TestInventedNamesHaveNoColumns(t *testing.T) {
	const nodes, names, each = 2000, 10_000, 100
	c := NewCluster(Options{Limits: Limits{Resources: names}})
	var deltas []Delta
	for i := range nodes {
		deltas = append(deltas, Delta{Object: columnsNode(i)})
	}
	mustApply(t, c, deltas...)
	before := heap()
	for first := 0; first < names; first += each {
		var asks []string
		for i := first; i < first+each; i++ {
			asks = append(asks, fmt.Sprintf("example.com/r%d", i))
		}
		pod := Delta{Object: columnsPod(fmt.Sprintf("p%d", first), asks...)}
		if errs := c.Apply(pod, Delta{Object: pod.Object, Op: Delete}); len(errs) > 0 {
			t.Fatal(errs[0])
		}
	}
	grown := heap() - before
	if got := c.Dims.Len(); got != names+Pods+1 {
		t.Fatalf("%d names are known", got)
	}
	if got := len(c.Nodes.Columns()); got != Pods+1 {
		t.Errorf("%d dimensions have columns of their own", got)
	}
	// The names themselves remain, and the amounts of the last pods' templates, which have an entry for each name.
	if most := int64(names) * 2048; grown > most {
		t.Errorf("%d names took %d bytes, want %d at most", names, grown, most)
	}
	runtime.KeepAlive(c)
}

// TestColumnsComeAndGo checks that a dimension has columns of its own while a node offers it, or a task on a node requests it.
func TestColumnsComeAndGo(t *testing.T) {
	c := NewCluster(Options{})
	const foo = "example.kubernetes.io/foo"
	own := func(want bool, when string) {
		t.Helper()
		dim, ok := c.Dims.Find(foo)
		if got := ok && c.Nodes.columns.owns[dim]; got != want {
			t.Errorf("%s: columns of its own %t, want %t", when, got, want)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	pod, running := columnsPod("p", foo), columnsPod("p", foo)
	running.Spec.NodeName = "n0001"
	mustApply(t, c, Delta{Object: columnsNode(0)}, Delta{Object: columnsNode(1)}, Delta{Object: pod})
	own(false, "a pod waits")
	row := c.Nodes.Index["n0000"]
	if idle := c.Nodes.Idle(c.Dims.Intern(foo), row); idle != 0 ||
		!c.Nodes.IdleOf(row).Equal(c.Dims.Resources(columnsNode(0).Status.Allocatable)) {
		t.Errorf("idle is %g, %s", idle, c.Dims.Text(c.Nodes.IdleOf(row)))
	}
	mustApply(t, c, Delta{Object: columnsNode(0, foo)})
	own(true, "a node offers it")
	mustApply(t, c, Delta{Object: columnsNode(2)})
	mustApply(t, c, Delta{Object: columnsNode(0)})
	own(false, "no node offers it any more")
	mustApply(t, c, Delta{Object: running})
	own(true, "a pod has it")
	if used := c.Nodes.UsedOf(c.Nodes.Index["n0001"]); used.Get(c.Dims.Intern(foo)) != 1000 {
		t.Errorf("used is %s", c.Dims.Text(used))
	}
	mustApply(t, c, Delta{Object: columnsNode(3)}, Delta{Object: columnsNode(1), Op: Delete})
	own(false, "its node is gone")
	mustApply(t, c, Delta{Object: columnsNode(1)})
	own(true, "its node is back")
	mustApply(t, c, Delta{Object: running, Op: Delete})
	own(false, "the pod is gone")

	mustApply(t, c, Delta{Object: pod})
	x := c.Begin()
	x.Pipeline(c.Tasks["a/p"], row, nil)
	own(true, "it is promised")
	x.Rollback(0)
	own(true, "the promise is undone") // a cycle undoes what it tries, and tries again
	mustApply(t, c, Delta{Object: columnsNode(3)})
	own(false, "the cycle is over")
}
