package numa

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
)

// within fails the test if a function takes far too long.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	if do(); time.Since(began) > 2*time.Second {
		t.Errorf("%s took %s", what, time.Since(began))
	}
}

// TestHostileObjects checks that a Numatopology cannot hold up the scheduler by its contents. Anyone may have written it, as each node's
// exporter can.
func TestHostileObjects(t *testing.T) {
	within(t, "a list that names all CPUs again and again", func() {
		if s, err := Parse(strings.Repeat("0-8191,", 150_000) + "0"); err != nil || s.Len() != mostCPUs {
			t.Errorf("%d CPUs, %v", s.Len(), err)
		}
	})
	o := &nodeinfov1alpha1.Numatopology{}
	o.Spec.Policies = map[nodeinfov1alpha1.PolicyName]string{
		nodeinfov1alpha1.CPUManagerPolicy: Static, nodeinfov1alpha1.TopologyManagerPolicy: Restricted,
	}
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: "0-8191"}}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range mostCPUs {
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{NUMANodeID: cpu, SocketID: cpu, CoreID: cpu}
	}
	within(t, "a node with a NUMA node for each CPU", func() {
		n, wrong := Read(o)
		if len(wrong) != 2 || wrong[0].Field != "spec.cpuDetail" || wrong[0].Text != "has 8192 NUMA nodes; kubelets align CPUs on at most 64: "+
			"no pod gets CPUs of its own" {
			t.Errorf("%v", wrong)
		}
		if x := n.Choose(Of(0, 1), []int{2}); x.Admitted || !x.CPUs.Empty() {
			t.Errorf("chose %s", x.CPUs)
		}
	})
	for name := range 5000 {
		o.Spec.CPUDetail[fmt.Sprint("x", name)] = nodeinfov1alpha1.CPUInfo{}
	}
	if _, wrong := Read(o); len(wrong) != mostMistakes+1 || wrong[mostMistakes].Text != "more mistakes: 4992" {
		t.Errorf("told of %d mistakes, the last %v", len(wrong), wrong[len(wrong)-1])
	}
}

// TestManyListed checks that the scheduler finds the pods of a node among very many listed ones.
func TestManyListed(t *testing.T) {
	o := &nodeinfov1alpha1.Numatopology{}
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: "0-7"}}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range 8 {
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{CoreID: cpu}
	}
	for i := range 20_000 {
		o.Spec.PodAllocations = append(o.Spec.PodAllocations, nodeinfov1alpha1.PodAllocation{
			Namespace: "a", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i)),
			ContainerAllocations: []nodeinfov1alpha1.ContainerAllocation{{Allocations: map[string]string{string(corev1.ResourceCPU): "0"}}},
		})
	}
	n, wrong := Read(o)
	if wrong != nil {
		t.Fatal(wrong)
	}
	within(t, "finding 100 pods a hundred times", func() {
		for range 100 {
			free := n.Free(func(yield func(Holder) bool) {
				for i := range 100 {
					if !yield(Holder{UID: "other", Key: fmt.Sprint("a/q", i)}) {
						return
					}
				}
			})
			if free.Len() != 8 {
				t.Fatalf("%s are free", free)
			}
		}
	})
}

// TestLists checks that Parse accepts lists as kubelets write them, and nothing else.
func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "3": "3", "0,2-4": "0,2-4", "4-2": "!", "1-": "!", "-1": "!", "1,,2": "!", "0x1": "!", "+1": "!", "1 ,2": "!", "1-2-3": "!",
		"8191": "8191", "8192": "!", "0-8192": "!", "63-64,127-129": "63-64,127-129", "99999999999999999999": "!", "007": "7",
	} {
		s, err := Parse(text)
		if got := s.String(); want == "!" && err == nil || want != "!" && (err != nil || got != want) {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
}
