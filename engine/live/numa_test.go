package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const numaPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: numa}
spec:
  mode: Active
  pipeline: [enqueue, allocate]
  tiers:
  - name: only
    tables: [{name: gang}, {name: predicates}, {name: numaaware}]
`

// noTopology is the reason for a pod that needs exclusive CPUs if no node has a Numatopology.
const noTopology = "whose kubelet gives no pod CPUs of its own, or that have no Numatopology"

// numaRig returns a rig with the table numaaware and a node with eight CPUs on two NUMA nodes. topology returns a Numatopology with these
// free CPUs.
func numaRig(t *testing.T) (r *rig, topology func(free string) *nodeinfov1alpha1.Numatopology) {
	t.Helper()
	docs, issues := source.Parse("numa.yaml", []byte(numaPolicy))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	topology = func(free string) *nodeinfov1alpha1.Numatopology {
		o := &nodeinfov1alpha1.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
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
	return recorded(t, newRigOf(newFakeServer(t), p)), topology
}

// aligned returns a pod whose CPUs must be on one NUMA node.
func aligned(name, group, cpu string) *corev1.Pod {
	p := testPod(name, group, cpu)
	p.Annotations[v1beta1.NumaPolicyKey] = "single-numa-node"
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	return p
}

// waits fails unless a pod is not bound for this reason.
func (r *rig) waits(t *testing.T, pod, why string) {
	t.Helper()
	r.settle(2)
	p := r.server.pods["default/"+pod]
	if p.Spec.NodeName != "" {
		t.Fatalf("%s is bound to %s", pod, p.Spec.NodeName)
	}
	if text := fmt.Sprint(p.Status.Conditions); !strings.Contains(text, why) {
		t.Errorf("%s says %s, want %s", pod, text, why)
	}
}

// bound fails unless a pod is bound.
func (r *rig) bound(t *testing.T, pod string) {
	t.Helper()
	r.settle(2)
	if p := r.server.pods["default/"+pod]; p.Spec.NodeName == "" {
		t.Fatalf("%s is not bound: %v", pod, p.Status.Conditions)
	}
}

// A Numatopology counts while it exists. After its deletion, a pod that waits for CPUs has the reason that none are available.
func TestADeletedNumatopologyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, topology := numaRig(t)
		f := r.server
		f.put(testNode("n1", "8"), testQueue("default"), topology("0-7"), testGroup("g", 1), aligned("p", "g", "3"))
		r.bound(t, "p")
		if got := f.pods["default/p"].Annotations[v1beta1.TopologyDecisionAnnotation]; got != `{"numa":{"0":{"cpu":"3"}}}` {
			t.Errorf("was given %s", got)
		}
		f.put(testGroup("h", 1), aligned("q", "h", "5"))
		r.waits(t, "q", "with these on too many NUMA nodes")
		f.drop(topology("0-7"))
		r.waits(t, "q", noTopology)
		f.put(testGroup("i", 1), aligned("s", "i", "4"))
		r.waits(t, "s", noTopology)
		f.put(topology("0-7"))
		r.bound(t, "s")
		r.waits(t, "q", "with these on too many NUMA nodes")
	})
}

// A node's Numatopology is forgotten with the node. A new node with the same name has none until it is written again. A Numatopology that
// still exists counts when its node appears, as for a scheduler that starts then.
func TestWithANodeGoesItsNumatopology(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, topology := numaRig(t)
		f := r.server
		f.put(testNode("n1", "8"), testNode("n2", "8"), testQueue("default"), topology("0-7"))
		r.settle(1)
		f.drop(f.nodes["n1"])
		f.put(testGroup("g", 1), aligned("p", "g", "3"))
		r.waits(t, "p", "0/1 nodes are available: 1 node(s) "+noTopology)
		if len(r.cluster.Numas) > 0 {
			t.Errorf("known of a node that is gone: %v", r.cluster.Numas)
		}
		f.put(testNode("n1", "8"))
		r.bound(t, "p")

		f.drop(f.nodes["n1"])
		f.drop(topology("0-7"))
		f.put(testNode("n1", "8"), testGroup("h", 1), aligned("q", "h", "3"))
		r.waits(t, "q", "0/2 nodes are available: 2 node(s) "+noTopology)
		f.put(topology("0-7"))
		r.bound(t, "q")
	})
}

// The feed gets the deletion of a Numatopology even if its last state was not seen. It ignores an update without changes.
func TestNumatopologiesInTheFeed(t *testing.T) {
	_, topology := numaRig(t)
	f := newFeed()
	h := handler([]string{"celsius"}, f)
	h.OnAdd(topology("0-7"), false)
	h.OnUpdate(topology("0-7"), topology("0-7"))
	h.OnUpdate(topology("0-7"), topology("0-3"))
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n1", Obj: topology("0-3")})
	changes := f.drain()
	if len(changes) != 3 || !changes[1].urgent || !changes[2].urgent {
		t.Fatalf("fed %v", changes)
	}
	in := newIntake([]string{"celsius"}, &nodeBook{}, func(string) string { return "" })
	for _, c := range changes {
		in.object(nil, c, time.Now())
	}
	if len(in.numas.told) > 0 {
		t.Errorf("%v is kept", in.numas.told)
	}
}
