package numa

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Wishes returns the numbers of exclusive CPUs for the containers of a Guaranteed pod that start with it and keep running: those that
// request whole CPUs.
func Wishes(o *corev1.PodSpec) (out []int) {
	add := func(list []corev1.Container, stays func(*corev1.Container) bool) {
		for i := range list {
			limit, limited := list[i].Resources.Limits[corev1.ResourceCPU]
			q := list[i].Resources.Requests[corev1.ResourceCPU]
			// An exact comparison of very large amounts takes seconds.
			if about := q.AsApproximateFloat64(); about < 1 || about > mostCPUs || limit.AsApproximateFloat64() != about {
				continue
			}
			if !limited || limit.Cmp(q) != 0 {
				continue // the pod is not Guaranteed then
			}
			if n := q.Value(); stays(&list[i]) && n > 0 && n < mostCPUs && q.MilliValue() == 1000*n {
				out = append(out, int(n))
			}
		}
	}
	add(o.InitContainers, func(c *corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	add(o.Containers, func(*corev1.Container) bool { return true })
	return out
}

// Choice is what a pod would get on a node.
type Choice struct {
	CPUs Set
	// Nodes is the number of NUMA nodes of the CPUs.
	Nodes int
	// Admitted reports whether the node's policy admits the pod. If there is a policy, too few CPUs are always rejected.
	Admitted bool
}

// Choose returns which of the free CPUs a pod with these wishes would get, container by container, as the kubelet would choose.
func (n *Node) Choose(free Set, wishes []int) Choice {
	out := Choice{Admitted: true}
	for _, wish := range wishes {
		within, admitted := n.within(free, wish)
		got := n.take(free.And(within), wish)
		got = got.Or(n.take(free.Without(got), wish-got.Len()))
		out.CPUs, free = out.CPUs.Or(got), free.Without(got)
		out.Admitted = out.Admitted && admitted && (got.Len() == wish || n.Policy == None)
	}
	for _, numa := range n.numas {
		if numa.cpus.shared(out.CPUs) > 0 {
			out.Nodes++
		}
	}
	return out
}

// within returns the CPUs of the NUMA nodes from which a container's CPUs are taken first, and whether the node's policy accepts them.
func (n *Node) within(free Set, wish int) (cpus Set, admitted bool) {
	nodes, preferred := n.hint(free, wish)
	for i, numa := range n.numas {
		if nodes == nil || slices.Contains(nodes, i) {
			cpus = cpus.Or(numa.cpus)
		}
	}
	switch n.Policy {
	case Restricted:
		return cpus, preferred
	case SingleNUMA:
		return cpus, preferred && len(nodes) == 1
	case BestEffort:
		return cpus, true
	}
	return n.all, true
}

// hint returns the smallest number of NUMA nodes that together have enough free CPUs, by their index in the list. Among equally small sets,
// it returns the one whose last node comes first, then the last but one, and so on. preferred reports that no fewer nodes would suffice on
// the empty machine. nil: all nodes together do not have enough.
//
// Any mask of NUMA nodes with enough CPUs is a hint of the kubelet. There are very many masks, but the best one can be found without
// listing them.
func (n *Node) hint(free Set, wish int) (nodes []int, preferred bool) {
	count, total := make([]int, len(n.numas)), make([]int, len(n.numas))
	for i, numa := range n.numas {
		count[i], total[i] = numa.cpus.shared(free), numa.cpus.Len()
	}
	size := fewest(count, wish)
	if size < 0 {
		return nil, false
	}
	preferred = size == fewest(total, wish)
	for i, n := range slices.Backward(count) {
		if left := size - len(nodes); most(count[:i], left) < wish { // this node is part of the set
			nodes, wish = append(nodes, i), wish-n
		}
	}
	return nodes, preferred
}

// fewest returns how many of the counts are necessary for a sum; below 0: all of them are not enough.
func fewest(counts []int, sum int) int {
	for size := range len(counts) + 1 {
		if most(counts, size) >= sum {
			return size
		}
	}
	return -1
}

// most returns the sum of the size largest counts.
func most(counts []int, size int) (sum int) {
	sorted := slices.Clone(counts)
	slices.Sort(sorted)
	for i := range min(max(size, 0), len(sorted)) {
		sum += sorted[len(sorted)-1-i]
	}
	return sum
}

// Decision returns the chosen CPUs in Volcano's format: the number of CPUs of each NUMA node, as JSON.
func (n *Node) Decision(cpus Set) string {
	by := map[string]map[string]string{}
	for _, numa := range n.numas {
		if count := numa.cpus.shared(cpus); count > 0 {
			by[strconv.Itoa(numa.id[0])] = map[string]string{string(corev1.ResourceCPU): strconv.Itoa(count)}
		}
	}
	text, err := json.Marshal(map[string]any{"numa": by})
	if err != nil {
		return "" // cannot fail for strings
	}
	return string(text)
}
