package model

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnadmittedPods checks that a pod that names a node without proof always counts on its node. It counts in its queue and in the cluster
// only while the kubelet of that node would admit it.
func TestUnadmittedPods(t *testing.T) {
	const ready, full, lost, gone = "worker-a100-0", "worker-a100-1", "worker-a100-2", "worker-a100-3"
	claims := func(node string, second int) []func(*corev1.Pod) {
		return []func(*corev1.Pod){created(second), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodPending }}
	}
	bound := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	started := func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: time.Unix(9, 0)} }
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	const small, all, huge = "cpu=16 memory=64Gi", "cpu=64 memory=256Gi", "cpu=1000 memory=4Ti"
	for _, tt := range []struct {
		name, node, requests string
		edits                []func(*corev1.Pod)
		status               Status
		counts, inCluster    float64 // cores in the queue, and in the cluster
	}{
		{"fits on a ready node", ready, small, nil, Bound, 16, 16},
		{"is larger than its node", ready, huge, nil, Unknown, 0, 0},
		{"names a full node", full, small, nil, Unknown, 0, 0},
		{"names a node that is not ready", lost, small, nil, Unknown, 0, 0},
		{"names no node of the cluster", gone, small, nil, Unknown, 0, 0},
		{"is of another scheduler, on a node that is not ready", lost, small, []func(*corev1.Pod){foreign}, Unknown, 0, 0},
		{"is being deleted", lost, small, []func(*corev1.Pod){deleting}, Releasing, 0, 0},
		{"was bound to a node that is not ready", lost, small, []func(*corev1.Pod){bound}, Bound, 16, 16},
		{"was bound to a full node", full, small, []func(*corev1.Pod){bound}, Bound, 16, 16},
		{"was bound to a node that was removed", gone, small, []func(*corev1.Pod){bound}, Bound, 16, 0},
		{"was admitted before its node shrank", ready, huge, []func(*corev1.Pod){started}, Bound, 1000, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			notReady := func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			}
			const offers = "cpu=64 memory=256Gi pods=110"
			c := cluster(t, node(ready, offers), node(full, offers), node(lost, offers, notReady), queue("q"), group("g", "q"),
				pod("train-0", all, on(full), foreign), pod("claim-0", tt.requests, append(claims(tt.node, 5), tt.edits...)...))
			task := c.Tasks["a/claim-0"]
			if task.Status != tt.status {
				t.Errorf("it is %s, want %s", task.Status, tt.status)
			}
			cores := tt.counts * 1000
			q := c.Queues["q"]
			if q.Occupied.Get(CPU) != cores || q.Allocated.Get(CPU) != cores {
				t.Errorf("its queue counts %s, and %s as allocated, want %g cores", words(c.Dims, q.Occupied), words(c.Dims, q.Allocated), tt.counts)
			}
			if got := c.Used.Get(CPU) + c.UsedElsewhere.Get(CPU) - 64000; got != tt.inCluster*1000 {
				t.Errorf("the cluster counts %g milli cores, want %g cores", got, tt.inCluster)
			}
			if row := task.Node; row != NoNode && c.Nodes.Used[CPU][row] < task.Request.Get(CPU) {
				t.Errorf("its node counts %g", c.Nodes.Used[CPU][row])
			}
			if may := tt.status != Unknown && tt.status != Releasing; task.MayGo() != may {
				t.Errorf("may be a victim: %t", !may)
			}
			if held := c.Jobs["a/g"].Ready() > 0; !task.Foreign && held != (tt.status == Bound) {
				t.Errorf("counts for its gang: %t", held)
			}
		})
	}
}

// TestClaimsFollowTheNode checks that the model judges claimants in the order of their creation, and again after a change of their node.
func TestClaimsFollowTheNode(t *testing.T) {
	claim := func(name string, second int) *corev1.Pod {
		return pod(name, "cpu=24 memory=96Gi", created(second), func(p *corev1.Pod) { p.Spec.NodeName = "worker-0" })
	}
	const offers = "cpu=64 memory=256Gi pods=110"
	first, second, third := claim("z", 1), claim("y", 2), claim("x", 3)
	c := cluster(t, queue("q"), group("g", "q"), third, second, first)
	counts := func(cores float64, when string) {
		t.Helper()
		if got := c.Queues["q"].Occupied.Get(CPU) / 1000; got != cores {
			t.Errorf("%s: the queue counts %g cores, want %g", when, got, cores)
		}
	}
	counts(0, "no node")
	apply(t, c, upserts(node("worker-0", offers))...)
	counts(48, "two of three fit")
	if c.Tasks["a/x"].Status != Unknown || c.Tasks["a/z"].Status != Bound {
		t.Errorf("the oldest is %s, the youngest %s", c.Tasks["a/z"].Status, c.Tasks["a/x"].Status)
	}
	apply(t, c, Delta{Object: first, Op: Delete})
	counts(48, "the third takes the place of the first")
	apply(t, c, upserts(pod("daemon", "cpu=40 memory=8Gi", on("worker-0"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))...)
	counts(24, "a pod with proof comes first")
	apply(t, c, upserts(node("worker-0", offers, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}))...)
	counts(0, "the node is not ready")
	started := claim("y", 2)
	started.Status.Phase = corev1.PodRunning
	apply(t, c, upserts(started)...)
	counts(24, "the kubelet had started one")
}

// TestOwnBindingsNeedNoProof checks that a pod that this process bound counts at once. This is so even if its status does not show the
// binding yet, and even if its node changes.
func TestOwnBindingsNeedNoProof(t *testing.T) {
	const offers = "cpu=64 memory=256Gi pods=110"
	waits := pod("train-0", "cpu=64 memory=256Gi")
	c := cluster(t, node("worker-0", offers), queue("q"), group("g", "q"), waits)
	x := c.Begin()
	x.Allocate(c.Tasks["a/train-0"], c.Nodes.Index["worker-0"], nil)
	x.Bind(c.Tasks["a/train-0"])
	x.Commit()
	bound := waits.DeepCopy()
	bound.Spec.NodeName = "worker-0"
	apply(t, c, upserts(bound, node("worker-0", "cpu=32 memory=128Gi pods=110"))...)
	labeled := bound.DeepCopy()
	labeled.Labels["team"] = "vision"
	apply(t, c, append(upserts(labeled), Delta{Op: Delete, Object: node("worker-0", offers)})...)
	if got := c.Tasks["a/train-0"]; got.Status != Bound || c.Queues["q"].Allocated.Get(CPU) != 64000 {
		t.Errorf("it is %s, and its queue counts %s", got.Status, words(c.Dims, c.Queues["q"].Allocated))
	}
}

// TestResourcesThatTheNodeDoesNotList checks that extended resources count neither as used nor as allocated until the node lists them.
func TestResourcesThatTheNodeDoesNotList(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	p := pod("miner", "cpu=1m nvidia.com/gpu=1000 hugepages-2Mi=4Mi", on("worker-cpu-0"))
	c := cluster(t, node("worker-cpu-0", "cpu=64 pods=110"), node("worker-gpu-0", "cpu=64 pods=110 nvidia.com/gpu=8"),
		queue("q"), group("g", "q"), p)
	counts := func(want float64, when string) {
		t.Helper()
		if j, dim := c.Jobs["a/g"], c.Dims.Intern(gpu); j.Request.Get(dim) != 1000e3 || j.GatedRequest.Get(dim) != 1000e3-want {
			t.Errorf("%s: the job requests %s, and is not granted %s", when, words(c.Dims, j.Request), words(c.Dims, j.GatedRequest))
		}
		dim, _ := c.Dims.Find(gpu)
		q, n := c.Queues["q"], c.Nodes.UsedOf(c.Tasks["a/miner"].Node)
		for of, sum := range map[string]Resources{
			"allocated": q.Allocated, "occupied": q.Occupied, "the cluster": c.Used, "the node": n,
		} {
			if sum.Get(dim) != want {
				t.Errorf("%s: %s counts %s", when, of, words(c.Dims, sum))
			}
		}
	}
	counts(0, "the node has no such device")
	if pages, _ := c.Dims.Find("hugepages-2Mi"); c.Queues["q"].Allocated.Get(pages) == 0 {
		t.Error("huge pages are no extended resource, and count")
	}
	apply(t, c, upserts(node("worker-cpu-0", "cpu=64 pods=110 nvidia.com/gpu=0"))...)
	counts(1000e3, "it lists the resource")
	apply(t, c, upserts(node("worker-cpu-0", "cpu=64 pods=110"), p)...)
	counts(0, "it lists it no more")
}
