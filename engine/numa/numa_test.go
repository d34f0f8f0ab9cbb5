package numa

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	_ "github.com/celsius-scheduler/celsius/engine/seeds" // the properties draw their seeds from it
)

// machine makes a Numatopology with these numbers: sockets, NUMA nodes per socket, and cores per NUMA node. Each core has two CPUs.
func machine(policy, free string, sockets, numas, cores int) *nodeinfov1alpha1.Numatopology {
	const threads = 2
	o := &nodeinfov1alpha1.Numatopology{}
	o.Spec.Policies = map[nodeinfov1alpha1.PolicyName]string{
		nodeinfov1alpha1.CPUManagerPolicy: Static, nodeinfov1alpha1.TopologyManagerPolicy: policy,
	}
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: free}}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range sockets * numas * cores * threads {
		core := cpu / threads
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{
			CoreID: core, NUMANodeID: core / cores, SocketID: core / cores / numas,
		}
	}
	return o
}

func read(t interface {
	Helper()
	Fatal(...any)
}, o *nodeinfov1alpha1.Numatopology,
) *Node {
	t.Helper()
	n, wrong := Read(o)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return n
}

func parse(t testing.TB, text string) Set {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anySet(most int) *rapid.Generator[Set] {
	return rapid.Custom(func(t *rapid.T) Set { return Of(rapid.SliceOf(rapid.IntRange(0, most)).Draw(t, "cpus")...) })
}

// TestSet checks that a Set behaves like a set of the cpuset library.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySet(150).Draw(t, "a"), anySet(150).Draw(t, "b")
		x, y := cpuset.New(a.list()...), cpuset.New(b.list()...)
		for name, c := range map[string]struct {
			got  Set
			want cpuset.CPUSet
		}{
			"and": {a.And(b), x.Intersection(y)}, "or": {a.Or(b), x.Union(y)}, "without": {a.Without(b), x.Difference(y)},
		} {
			if c.got.String() != c.want.String() || c.got.Len() != c.want.Size() || c.got.Empty() != c.want.IsEmpty() {
				t.Errorf("%s %s %s is %s, want %s", a, name, b, c.got, c.want)
			}
		}
		if a.Equal(b) != x.Equals(y) || a.within(b) != x.IsSubsetOf(y) || a.shared(b) != x.Intersection(y).Size() {
			t.Errorf("%s and %s compare otherwise", a, b)
		}
		if again, err := Parse(a.String()); err != nil || !again.Equal(a) {
			t.Errorf("%s is read as %s: %v", a, again, err)
		}
	})
}

// FuzzParse checks that any text for a list of CPUs takes little time and memory, or is a mistake.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0,2-4", "4-2", "0-99999999999999999999", "0-4000000000", "-1", "a", ",", "8191", "8192", "0-", "１"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || !again.Equal(s) || s.Len() > mostCPUs {
			t.Errorf("%q is %s, and that %s: %v", text, s, again, err)
		}
	})
}

// TestHint checks that the hint is the best one of all masks of NUMA nodes.
func TestHint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sockets := rapid.IntRange(1, 3).Draw(t, "sockets")
		numas, cores := rapid.IntRange(1, 2).Draw(t, "numas"), rapid.IntRange(1, 3).Draw(t, "cores")
		o := machine(Restricted, "", sockets, numas, cores)
		delete(o.Spec.CPUDetail, fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "lost"))) // one NUMA node is smaller
		n, _ := Read(o)
		free, wish := anySet(sockets*numas*cores*2).Draw(t, "free").And(n.all), rapid.IntRange(1, 20).Draw(t, "wish")
		smallest, best := 0, 0
		for mask := 1; mask < 1<<len(n.numas); mask++ {
			var here Set
			for i, numa := range n.numas {
				if mask&(1<<i) != 0 {
					here = here.Or(numa.cpus)
				}
			}
			size := bits.OnesCount(uint(mask))
			if here.Len() >= wish && (smallest == 0 || size < smallest) {
				smallest = size
			}
			if here.And(free).Len() >= wish && (best == 0 || size < bits.OnesCount(uint(best))) {
				best = mask // masks come in ascending order
			}
		}
		got, preferred := n.hint(free, wish)
		mask := 0
		for _, i := range got {
			mask |= 1 << i
		}
		if mask != best || preferred != (best > 0 && bits.OnesCount(uint(best)) == smallest) {
			t.Errorf("%d of %s: the hint is %b, preferred: %t; want %b, of %d at least", wish, free, mask, preferred, best, smallest)
		}
	})
}

// TestChoose checks the chosen CPUs. They are free, and as many as the wish if enough are free. If the policy gives a hint, they come from
// the nodes of the hint.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]string{None, BestEffort, Restricted, SingleNUMA}).Draw(t, "policy")
		n := read(t, machine(policy, "", 2, 2, 2))
		free, wish := anySet(15).Draw(t, "free"), rapid.IntRange(1, 16).Draw(t, "wish")
		got := n.Choose(free, []int{wish})
		nodes, preferred := n.hint(free, wish)
		if !got.CPUs.within(free) || got.CPUs.Len() != min(wish, free.Len()) {
			t.Errorf("%d of %s are %s", wish, free, got.CPUs)
		}
		admitted := policy == None || policy == BestEffort && wish <= free.Len() || preferred && (policy == Restricted || len(nodes) == 1)
		if got.Admitted != admitted || policy != None && nodes != nil && got.Nodes != len(nodes) {
			t.Errorf("%d of %s: %+v, want as on %d NUMA nodes, preferred: %t", wish, free, got, len(nodes), preferred)
		}
	})
}

func TestChooseByHand(t *testing.T) {
	for _, c := range []struct {
		name, policy, free string
		wishes             []int
		want               string
		nodes              int
		admitted           bool
	}{
		{"a core is not parted", SingleNUMA, "0-15", []int{2}, "0-1", 1, true},
		{"a NUMA node as a whole", SingleNUMA, "0-15", []int{8}, "0-7", 1, true},
		{"more than one has", SingleNUMA, "0-15", []int{9}, "0-8", 2, false},
		{"more than one has, and two are as few as it takes", Restricted, "0-15", []int{9}, "0-8", 2, true},
		{"on two where one would do", Restricted, "0-3,8-11", []int{6}, "0-3,8-9", 2, false},
		{"the same without a claim", BestEffort, "0-3,8-11", []int{6}, "0-3,8-9", 2, true},
		{"where they fit, though others come first", SingleNUMA, "0-3,8-15", []int{6}, "8-13", 1, true},
		{"what was parted already is taken first", SingleNUMA, "0-2,4-7", []int{1}, "2", 1, true},
		{"container by container", SingleNUMA, "0-15", []int{5, 4}, "0-4,8-11", 2, true},
		{"too few", BestEffort, "0-1", []int{4}, "0-1", 1, false},
		{"too few without a policy", None, "0-1", []int{4}, "0-1", 1, true},
		{"too few for a claim", Restricted, "0-1", []int{4}, "0-1", 1, false},
		{"nobody asks", SingleNUMA, "0-15", nil, "", 0, true},
	} {
		n := read(t, machine(c.policy, "", 2, 1, 4))
		got := n.Choose(parse(t, c.free), c.wishes)
		if got.CPUs.String() != c.want || got.Nodes != c.nodes || got.Admitted != c.admitted {
			t.Errorf("%s: %s on %d, admitted: %t", c.name, got.CPUs, got.Nodes, got.Admitted)
		}
	}
	n := read(t, machine(SingleNUMA, "", 2, 1, 4))
	if got := n.Decision(parse(t, "6-9")); got != `{"numa":{"0":{"cpu":"2"},"1":{"cpu":"2"}}}` {
		t.Error(got)
	}
}

func TestFree(t *testing.T) {
	o := machine(SingleNUMA, "4-15", 2, 1, 4)
	o.Spec.ResReserved = map[string]string{"cpu": "1500m"}
	o.Spec.PodAllocations = []nodeinfov1alpha1.PodAllocation{
		{UID: "u1", Namespace: "a", Name: "p1", ContainerAllocations: []nodeinfov1alpha1.ContainerAllocation{
			{Allocations: map[string]string{"cpu": "2"}}, {Allocations: map[string]string{"cpu": "3"}},
		}},
		{Namespace: "a", Name: "p2"},
	}
	n := read(t, o)
	for _, c := range []struct {
		name, want string
		on         []Holder
	}{
		{"who is listed and gone has nothing", "2-15", nil},
		{"who is listed has what the kubelet says", "4-15", []Holder{{"u1", "a/p1", Of(8)}}},
		{"by name", "2-15", []Holder{{"", "a/p2", Set{}}}},
		{"another of that name has what was chosen", "2-7,9-15", []Holder{{"u2", "a/p2", Of(8)}}},
		{"what was chosen and is another's is taken elsewhere", "6-15", []Holder{{"u1", "a/p1", Set{}}, {"u3", "a/p3", Of(2, 3)}}},
		{"nothing was chosen", "2-15", []Holder{{"u3", "a/p3", Set{}}}},
	} {
		if got := n.Free(slices.Values(c.on)); got.String() != c.want {
			t.Errorf("%s: %s are free, want %s", c.name, got, c.want)
		}
	}
}

// TestReadMistakes checks that an error names its field, and that the wrong field counts as empty.
func TestReadMistakes(t *testing.T) {
	o := machine("strict", "0-3x", 1, 1, 2)
	o.Spec.ResReserved = map[string]string{"cpu": "-1"}
	o.Spec.CPUDetail["9000"], o.Spec.CPUDetail["01"] = nodeinfov1alpha1.CPUInfo{}, nodeinfov1alpha1.CPUInfo{}
	o.Spec.PodAllocations = []nodeinfov1alpha1.PodAllocation{{
		ContainerAllocations: []nodeinfov1alpha1.ContainerAllocation{{Allocations: map[string]string{"cpu": "0-999999"}}},
	}}
	n, wrong := Read(o)
	var told []string
	for _, m := range wrong {
		told = append(told, m.Field+": "+m.Text)
	}
	want := `spec.policies[TopologyManagerPolicy]: "strict" is none of none, best-effort, restricted, single-numa-node
spec.cpuDetail[01]: "01" is no number of a CPU, from 0 to 8191
spec.cpuDetail[9000]: "9000" is no number of a CPU, from 0 to 8191
spec.numares[cpu].allocatable: "0-3x" is no list of CPUs such as 0,2-4
spec.podAllocations[0].containerAllocations[0].allocations[cpu]: "0-999999" names the CPU 999999; numbers are below 8192
spec.resReserved[cpu]: "-1" is no quantity such as 500m`
	if got := strings.Join(told, "\n"); got != want || !n.Free(slices.Values([]Holder{})).Empty() || n.Policy != None {
		t.Errorf("%s\n%+v", got, n)
	}
	if _, wrong = Read(machine(None, "2-6", 1, 1, 2)); len(wrong) != 1 || wrong[0].Field != "spec.cpuDetail" {
		t.Error(wrong)
	}
}

func TestWishes(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	asks := func(cpu string) corev1.ResourceRequirements {
		amounts := corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		return corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	}
	got := Wishes(&corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: asks("7")}, {Resources: asks("1"), RestartPolicy: &always}},
		Containers: []corev1.Container{
			{Resources: asks("2")}, {Resources: asks("1500m")}, {Resources: asks("0")}, {}, {Resources: asks("1e30")}, {Resources: asks("3000m")},
		},
	})
	if !slices.Equal(got, []int{1, 2, 3}) {
		t.Error(got)
	}
}
