package model

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// pinning returns the Numatopology of a node with two NUMA nodes of four CPUs each.
func pinning(free string) *nodeinfov1alpha1.Numatopology {
	o := &nodeinfov1alpha1.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	o.Spec.Policies = map[nodeinfov1alpha1.PolicyName]string{
		nodeinfov1alpha1.CPUManagerPolicy: "static", nodeinfov1alpha1.TopologyManagerPolicy: "single-numa-node",
	}
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: free}}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range 8 {
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{NUMANodeID: cpu / 4, SocketID: cpu / 4, CoreID: cpu / 2}
	}
	return o
}

// TestCPUsOfTasks checks that CPUs follow placements, and that the record and the annotations of a binding contain them for the next
// leader.
func TestCPUsOfTasks(t *testing.T) {
	guaranteed := func(name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: "u"}, Spec: corev1.PodSpec{SchedulerName: "volcano"}}
		asks := list("cpu=3 memory=1")
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}
		return p
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: list("cpu=8 memory=8 pods=8")}}
	p := guaranteed("p")
	c := cluster(t, pinning("0-7"), n, p)
	task, row := c.Tasks["a/p"], c.Nodes.Index["n"]
	free := func(c *Cluster, want string) {
		t.Helper()
		check(t, c)
		if got := FreeCPUs(&c.Nodes, c.Nodes.Index["n"]); got.String() != want {
			t.Errorf("%s are free, want %s", got, want)
		}
	}
	x := c.Begin()
	x.Allocate(task, row, nil)
	free(c, "3-7")
	x.Rollback(0)
	free(c, "0-7")
	x.Allocate(task, row, nil)
	x.Bind(task)
	x.Commit()
	wrote := BindAnnotations(&c.Nodes, task, &Bind{Node: "n", CPUs: task.CPUs.String()}, task.CreatedAt)
	if got := wrote[v1beta1.TopologyDecisionAnnotation]; got != `{"numa":{"0":{"cpu":"3"}}}` {
		t.Error(got)
	}
	bound := guaranteed("p")
	bound.Spec.NodeName = "n"
	bound.Annotations = map[string]string{RecordAnnotation: task.Record().String()}
	next := cluster(t, bound, n, pinning("0-7"))
	free(next, "3-7")
	if errs := next.Apply(Delta{Object: pinning("0-99999")}); fmt.Sprint(errs) != "[Numatopology n: spec.numares[cpu].allocatable: "+
		`"0-99999" names the CPU 99999; numbers are below 8192]` {
		t.Error(errs)
	}
	free(next, "")
	next.Apply(Delta{Op: Delete, Object: pinning("")})
	if next.Nodes.Rows[next.Nodes.Index["n"]].Numa != nil {
		t.Error("what was told of the node is there still")
	}
}
