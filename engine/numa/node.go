package numa

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/celsius-scheduler/celsius/crds/decode"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
)

// Static is the CPU manager policy that gives containers exclusive CPUs.
const Static = "static"

// Policies of topology managers. Any other value, and an empty one, means None.
const (
	None       = "none"
	BestEffort = "best-effort"
	Restricted = "restricted"
	SingleNUMA = "single-numa-node"
)

// Node contains the Numatopology of a node. It never changes.
type Node struct {
	// CPUManager is the kubelet's policy; Policy is that of its topology manager, None if it states none.
	CPUManager, Policy string

	pool   Set // free CPUs, and those of listed pods
	all    Set // CPUs whose place is known
	listed []listed
	byUID  map[string]int
	byKey  map[string]int // the first one of each name

	said    nodeinfov1alpha1.NumatopoSpec
	places  string
	numas   []group // by number
	sockets []group
	cores   []group
}

// listed is a pod whose CPUs the kubelet lists.
type listed struct {
	key  string
	cpus Set
}

// group contains CPUs that belong together.
type group struct {
	id   [3]int // NUMA node or socket; for a core: socket, NUMA node, core
	cpus Set
}

// Mistake is a mistake in a Numatopology.
type Mistake struct{ Field, Text string }

// Read reads an object. Parts with a mistake count as empty.
func Read(o *nodeinfov1alpha1.Numatopology) (n *Node, wrong []Mistake) {
	n = &Node{
		CPUManager: o.Spec.Policies[nodeinfov1alpha1.CPUManagerPolicy], Policy: o.Spec.Policies[nodeinfov1alpha1.TopologyManagerPolicy],
		byUID: map[string]int{}, byKey: map[string]int{}, said: o.Spec,
	}
	more := 0
	say := func(field, text string, args ...any) {
		if len(wrong) == mostMistakes {
			more++
			return
		}
		wrong = append(wrong, Mistake{field, fmt.Sprintf(text, args...)})
	}
	switch n.Policy {
	case BestEffort, Restricted, SingleNUMA, None:
	case "":
		n.Policy = None
	default:
		say("spec.policies[TopologyManagerPolicy]", "%s is none of %s, %s, %s, %s", quoted(n.Policy), None, BestEffort, Restricted, SingleNUMA)
		n.Policy = None
	}
	set := func(field, text string) Set {
		s, err := Parse(text)
		if err != nil {
			say(field, "%v", err)
		}
		return s
	}
	const cpu = string(corev1.ResourceCPU)
	n.readPlaces(o, say)
	free := set("spec.numares[cpu].allocatable", o.Spec.NumaResMap[cpu].Allocatable)
	if strange := free.Without(n.all); !strange.Empty() {
		say("spec.cpuDetail", "lacks the CPUs %s, which spec.numares lists as free: no pod gets them", strange)
	}
	n.pool = free
	for i, pod := range o.Spec.PodAllocations {
		one := listed{key: pod.Namespace + "/" + pod.Name}
		for k, container := range pod.ContainerAllocations {
			field := fmt.Sprintf("spec.podAllocations[%d].containerAllocations[%d].allocations[cpu]", i, k)
			one.cpus = one.cpus.Or(set(field, container.Allocations[cpu]))
		}
		if _, twice := n.byKey[one.key]; !twice {
			n.byKey[one.key] = len(n.listed)
		}
		if pod.UID != "" {
			n.byUID[string(pod.UID)] = len(n.listed)
		}
		n.listed = append(n.listed, one)
		n.pool = n.pool.Or(one.cpus)
	}
	n.pool = n.pool.And(n.all)
	n.pool = n.pool.Without(n.take(n.all, reserved(o.Spec.ResReserved[cpu], say)))
	if more > 0 {
		wrong = append(wrong, Mistake{"spec", fmt.Sprintf("more mistakes: %d", more)})
	}
	return n, wrong
}

// reserved returns the number of CPUs that are reserved for the system.
func reserved(text string, say func(field, text string, args ...any)) int {
	if text == "" {
		return 0
	}
	q, err := decode.Quantity(text)
	if err != nil || q.Sign() < 0 {
		say("spec.resReserved[cpu]", "%s is no quantity such as 500m", quoted(text))
		return 0
	}
	return int(math.Ceil(min(q.AsApproximateFloat64(), mostCPUs)))
}

// readPlaces reads the NUMA node, socket and core of each CPU.
func (n *Node) readPlaces(o *nodeinfov1alpha1.Numatopology, say func(field, text string, args ...any)) {
	numas, sockets, cores := map[[3]int][]int{}, map[[3]int][]int{}, map[[3]int][]int{}
	var all []int
	for _, name := range slices.Sorted(maps.Keys(o.Spec.CPUDetail)) {
		cpu, err := strconv.Atoi(name)
		x := o.Spec.CPUDetail[name]
		if err != nil || cpu < 0 || cpu >= mostCPUs || strconv.Itoa(cpu) != name {
			say("spec.cpuDetail["+name[:min(len(name), mostShown)]+"]", "%s is no number of a CPU, from 0 to %d", quoted(name), mostCPUs-1)
			continue
		}
		all = append(all, cpu)
		numa, socket, core := [3]int{x.NUMANodeID}, [3]int{x.SocketID}, [3]int{x.SocketID, x.NUMANodeID, x.CoreID}
		numas[numa], sockets[socket], cores[core] = append(numas[numa], cpu), append(sockets[socket], cpu), append(cores[core], cpu)
	}
	if len(numas) > mostNUMAs {
		say("spec.cpuDetail", "has %d NUMA nodes; kubelets align CPUs on at most %d: no pod gets CPUs of its own", len(numas), mostNUMAs)
		return
	}
	n.all, n.numas, n.sockets, n.cores = Of(all...), groupsOf(numas), groupsOf(sockets), groupsOf(cores)
	var places strings.Builder
	for _, core := range n.cores {
		fmt.Fprint(&places, core.id, core.cpus)
	}
	n.places = places.String()
}

func groupsOf(cpus map[[3]int][]int) (out []group) {
	for id, list := range cpus {
		out = append(out, group{id, Of(list...)})
	}
	slices.SortFunc(out, func(a, b group) int { return slices.Compare(a.id[:], b.id[:]) })
	return out
}

// Pins reports whether the kubelet gives containers exclusive CPUs. It is false for a node without a Numatopology.
func (n *Node) Pins() bool { return n != nil && n.CPUManager == Static }

// Equal reports whether both have the same content.
func (n *Node) Equal(o *Node) bool {
	return n == o || n != nil && o != nil && equality.Semantic.DeepEqual(n.said, o.said)
}

// Places returns a text that states the place of each CPU; "" if unknown.
func (n *Node) Places() string {
	if n == nil {
		return ""
	}
	return n.places
}

// Holder is a pod on the node, and the CPUs that were chosen for it.
type Holder struct {
	UID, Key string
	Chosen   Set
}

// has returns the CPUs that the kubelet lists for a pod. A pod for which CPUs were chosen is identified by its UID, because a previous pod
// may have had the same name.
func (n *Node) has(h Holder) (s Set, ok bool) {
	if i, ok := n.byUID[h.UID]; ok {
		return n.listed[i].cpus, true
	}
	i, ok := n.byKey[h.Key]
	if !ok || !h.Chosen.Empty() {
		return Set{}, false
	}
	return n.listed[i].cpus, true
}

// Free returns the CPUs that no pod on the node has. A pod that the kubelet lists has the CPUs of that list. Any other pod has the CPUs
// that were chosen for it. If the kubelet gave some of these to a different pod, as many other free CPUs count as taken. A listed pod that
// is no longer on the node has none.
func (n *Node) Free(holders iter.Seq[Holder]) Set {
	var given, chosen Set
	var unlisted []Holder
	for h := range holders {
		if cpus, ok := n.has(h); ok {
			given = given.Or(cpus)
		} else if !h.Chosen.Empty() {
			unlisted, chosen = append(unlisted, h), chosen.Or(h.Chosen)
		}
	}
	free := n.pool.Without(given).Without(chosen)
	for _, h := range unlisted {
		if lost := h.Chosen.shared(given); lost > 0 {
			free = free.Without(n.take(free, lost))
		}
	}
	return free
}

// take chooses count CPUs that belong together: first whole sockets, then whole cores, then single CPUs, each from where the fewest are
// free. If there are too few, it returns all of them.
func (n *Node) take(from Set, count int) (out Set) {
	for _, whole := range [][]group{n.sockets, n.cores} {
		for _, g := range n.fewestFirst(whole, from) {
			if g.cpus.within(from) && g.cpus.Len() <= count {
				out, from, count = out.Or(g.cpus), from.Without(g.cpus), count-g.cpus.Len()
			}
		}
	}
	for _, core := range n.fewestFirst(n.cores, from) {
		for cpu := range core.cpus.And(from).All() {
			if count == 0 {
				return out
			}
			out, count = out.Or(Of(cpu)), count-1
		}
	}
	return out
}

// fewestFirst sorts groups by the number of free CPUs of their socket, and then by the number of their own free CPUs, the fewest first.
func (n *Node) fewestFirst(groups []group, free Set) []group {
	ofSocket := map[int]int{}
	for _, s := range n.sockets {
		ofSocket[s.id[0]] = s.cpus.shared(free)
	}
	of := func(g group) int { return ofSocket[g.id[0]] }
	out := slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return g.cpus.shared(free) == 0 })
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Or(of(a)-of(b), a.cpus.shared(free)-b.cpus.shared(free))
	})
	return out
}
