package policy

import (
	"math"

	"github.com/go-logr/logr"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

func matchesNodeAffinity(t *taskView, n *nodeView) ref.Val {
	if t.of.NodeAffinityKey == "" {
		return types.True
	}
	ok, err := t.of.NodeAffinity.Match(n.of.Object)
	if err != nil {
		return types.NewErr("node affinity of pod %s: %v", t.of.Key, err)
	}
	return types.Bool(ok)
}

func tolerates(t *model.Task, taint *corev1.Taint) bool {
	for i := range t.Tolerations {
		if t.Tolerations[i].ToleratesTaint(logr.Discard(), taint, true) {
			return true
		}
	}
	return false
}

func firstUntolerated(t *model.Task, n *model.Node) (corev1.Taint, bool) {
	for i := range n.Taints {
		taint := &n.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(t, taint) {
			return *taint, true
		}
	}
	return corev1.Taint{}, false
}

func intolerablePreferNoSchedule(t *taskView, n *nodeView) ref.Val {
	count := 0
	for i := range n.of.Taints {
		if taint := &n.of.Taints[i]; taint.Effect == corev1.TaintEffectPreferNoSchedule && !preferTolerates(t.of, taint) {
			count++
		}
	}
	return types.Int(count)
}

// preferTolerates asks only the tolerations that are about PreferNoSchedule, as Kubernetes' scorer does.
func preferTolerates(t *model.Task, taint *corev1.Taint) bool {
	for i := range t.Tolerations {
		tol := &t.Tolerations[i]
		if (tol.Effect == "" || tol.Effect == corev1.TaintEffectPreferNoSchedule) && tol.ToleratesTaint(logr.Discard(), taint, true) {
			return true
		}
	}
	return false
}

func toleratesUnschedulable(t *model.Task) bool {
	return tolerates(t, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func portsFree(t *taskView, n *nodeView) ref.Val {
	for _, want := range t.of.HostPorts {
		for _, other := range t.s.c.Nodes.Tasks[n.of.Row] {
			if other == t.of {
				continue
			}
			for _, taken := range other.HostPorts {
				if clash(want, taken) {
					return types.False
				}
			}
		}
	}
	return types.True
}

// clash says whether two host ports exclude each other: 0.0.0.0 stands for every address.
func clash(a, b model.HostPort) bool {
	if a.Port != b.Port || a.Protocol != b.Protocol {
		return false
	}
	anyIP := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return a.IP == b.IP || anyIP(a.IP) || anyIP(b.IP)
}

func nodeAffinityScore(t *taskView, n *nodeView) ref.Val {
	if t.of.PreferredNodes == nil {
		return types.Double(0)
	}
	return types.Double(t.of.PreferredNodes.Score(n.of.Object))
}

// dimsOf gives the dimensions that a list of names stands for; names that nothing has are left out.
func (s *Session) dimsOf(names ref.Val) []int {
	l, ok := names.(traits.Lister)
	if !ok {
		return nil
	}
	var out []int
	for it := l.Iterator(); it.HasNext() == types.True; {
		if name, ok := it.Next().(types.String); ok {
			if i, ok := s.c.Dims.Find(string(name)); ok {
				out = append(out, i)
			}
		}
	}
	return out
}

// What a pod that asks for no cpu or memory is counted as in least- and most-allocated, as Kubernetes does.
const (
	defaultMilliCPU    = 100
	defaultMemoryBytes = 200 * 1024 * 1024
)

// counted is a task's request in a dimension as Kubernetes' allocation scorers count it.
func counted(t *model.Task, dim int) float64 {
	v := t.Request.Get(dim)
	switch {
	case v != 0:
		return v
	case dim == model.CPU:
		return defaultMilliCPU
	case dim == model.Memory:
		return defaultMemoryBytes
	}
	return 0
}

// countedUse is what the tasks of a node are counted as.
func countedUse(n *nodeView, dim int) float64 {
	nodes := &n.s.c.Nodes
	use := nodes.Used[dim][n.of.Row]
	if dim > model.Memory {
		return use
	}
	for _, t := range nodes.Tasks[n.of.Row] {
		if t.Status != model.Pipelined && t.Request.Get(dim) == 0 {
			use += counted(t, dim)
		}
	}
	return use
}

// percentages means whole percents over the named resources, dropping those the node lacks. More than there is, which
// the default requests can come to, counts as all of it.
func percentages(n *nodeView, t *taskView, names []int, percent func(allocatable, used float64) float64) float64 {
	sum, count := 0.0, 0.0
	for _, dim := range names {
		allocatable := n.s.c.Nodes.Allocatable[dim][n.of.Row]
		if !(allocatable > 0) {
			continue
		}
		count++
		sum += math.Trunc(percent(allocatable, min(countedUse(n, dim)+counted(t.of, dim), allocatable)))
	}
	if count == 0 {
		return 0
	}
	return math.Trunc(sum / count)
}

func leastAllocated(n *nodeView, t *taskView, names []int) float64 {
	return percentages(n, t, names, func(allocatable, used float64) float64 { return (allocatable - used) * 100 / allocatable })
}

func mostAllocated(n *nodeView, t *taskView, names []int) float64 {
	return percentages(n, t, names, func(allocatable, used float64) float64 { return used * 100 / allocatable })
}

// balanced is what Kubernetes 1.36 makes of the balance with the task and without it: about 75 where it does
// not change, more where the task improves it; 0 for a task that asks for none of the resources.
func balanced(n *nodeView, t *taskView, names []int) float64 {
	var with, without fractions
	asks := false
	for _, dim := range names {
		allocatable, request := n.s.c.Nodes.Allocatable[dim][n.of.Row], t.of.Request.Get(dim)
		asks = asks || request > 0
		if !(allocatable > 0) || request == 0 && dim > model.Memory {
			continue // of a resource that the task does not ask for only cpu and memory count
		}
		used := n.s.c.Nodes.Used[dim][n.of.Row]
		without.add(used / allocatable)
		with.add((used + request) / allocatable)
	}
	if !asks {
		return 0
	}
	return 50 + math.Trunc((50+with.balance()-without.balance())/2)
}

// fractions are how much of some resources is used; of more than eight the rest is left out.
type fractions struct {
	parts [8]float64
	count int
}

func (f *fractions) add(part float64) {
	if f.count < len(f.parts) {
		f.parts[f.count] = min(part, 1)
		f.count++
	}
}

// balance is 100 less their standard deviation in whole percent.
func (f *fractions) balance() float64 {
	parts := f.parts[:f.count]
	deviation := 0.0
	switch {
	case len(parts) == 2:
		deviation = math.Abs((parts[0] - parts[1]) / 2)
	case len(parts) > 2:
		mean, sum := 0.0, 0.0
		for _, p := range parts {
			mean += p / float64(len(parts))
		}
		for _, p := range parts {
			sum += (p - mean) * (p - mean)
		}
		deviation = math.Sqrt(sum / float64(len(parts)))
	}
	return math.Trunc((1 - deviation) * 100)
}

// binpack is behaviour section 9's formula without its factor of 100 and the plugin's weight. As in the recorded
// cases, a resource that the node lacks counts as 0, and one that would not fit makes the whole 0.
func binpack(n *nodeView, t *taskView, weights []ref.Val) ref.Val {
	cpu, _ := number(weights[0])
	memory, _ := number(weights[1])
	listed := n.s.dimsOf(weights[2])
	own, ok := weights[3].(traits.Mapper)
	if !ok {
		return wrongArgument(weights[3])
	}
	score, total, fits := 0.0, 0.0, true
	add := func(dim int, weight float64) {
		request := t.of.Request.Get(dim)
		if request == 0 {
			return
		}
		total += weight
		allocatable, used := n.s.c.Nodes.Allocatable[dim][n.of.Row], n.s.c.Nodes.Used[dim][n.of.Row]+request
		if allocatable > 0 {
			score += weight * used / allocatable
			fits = fits && used <= allocatable
		}
	}
	add(model.CPU, cpu)
	add(model.Memory, memory)
	for _, dim := range listed {
		weight := 1.0
		if v, found := own.Find(types.String(n.s.c.Dims.Name(dim))); found {
			weight, _ = number(v)
		}
		add(dim, weight)
	}
	if total == 0 || !fits {
		return types.Double(0)
	}
	return types.Double(score / total)
}
