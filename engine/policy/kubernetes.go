package policy

import (
	"math"

	"github.com/go-logr/logr"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func matchesNodeAffinity(t *taskView, n *nodeView) ref.Val {
	ok, err := matchesRequired(t.of, n.of)
	if err != nil {
		return types.NewErr("node affinity of pod %s: %v", t.of.Key, err)
	}
	return types.Bool(ok)
}

func matchesRequired(t *model.Task, n *model.Node) (bool, error) {
	if t.NodeAffinityKey == "" {
		return true, nil
	}
	return t.NodeAffinity.Match(n.Object) //nolint:wrapcheck // worded by the caller
}

// matchesColumn asks once for all nodes that have the labels alike which the pod's terms read.
func matchesColumn(r rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	v, ok := args[0].Value.(*taskView)
	if !ok || !args[1].Row {
		return false
	}
	if v.of.NodeAffinityKey == "" {
		fill(out, true)
		return true
	}
	if v.of.NodeAffinityFields {
		return false
	}
	s := v.s
	s.codes = resized(s.codes, len(rows))
	distinct := s.byLabels(v.of.NodeAffinityLabels).numbers(s, rows, s.codes)
	if distinct == 0 {
		return false
	}
	s.answers = resized(s.answers, distinct)
	for i, code := range s.codes {
		if s.answers[code] == Abstain {
			s.answers[code] = No
			switch matches, err := matchesRequired(v.of, s.c.Nodes.Rows[rows[i]]); {
			case err != nil:
				return false
			case matches:
				s.answers[code] = Yes
			}
		}
		out[i] = s.answers[code] == Yes
	}
	return true
}

func fill[T any](out []T, x T) {
	for i := range out {
		out[i] = x
	}
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

func intolerablePreferNoSchedule(t *taskView, n *nodeView) int64 {
	count := int64(0)
	for i := range n.of.Taints {
		if taint := &n.of.Taints[i]; taint.Effect == corev1.TaintEffectPreferNoSchedule && !preferTolerates(t.of, taint) {
			count++
		}
	}
	return count
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

func portsFree(t *taskView, n *nodeView) bool { return portsFreeOn(t.of, &t.s.c.Nodes, n.of.Row) }

func portsFreeOn(t *model.Task, n *model.Nodes, row int32) bool {
	for _, want := range t.HostPorts {
		for _, other := range n.Tasks[row] {
			if other == t {
				continue
			}
			for _, taken := range other.HostPorts {
				if clash(want, taken) {
					return false
				}
			}
		}
	}
	return true
}

func portsColumn(_ rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	v, ok := args[0].Value.(*taskView)
	if !ok || !args[1].Row {
		return false
	}
	for i, row := range rows {
		out[i] = len(v.of.HostPorts) == 0 || portsFreeOn(v.of, &v.s.c.Nodes, row)
	}
	return true
}

// clash says whether two host ports exclude each other: 0.0.0.0 stands for every address.
func clash(a, b model.HostPort) bool {
	if a.Port != b.Port || a.Protocol != b.Protocol {
		return false
	}
	anyIP := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return a.IP == b.IP || anyIP(a.IP) || anyIP(b.IP)
}

func nodeAffinityScore(t *model.Task, n *model.Node) float64 {
	if t.PreferredNodes == nil {
		return 0
	}
	return float64(t.PreferredNodes.Score(n.Object))
}

func preferenceColumn(_ rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	v, ok := args[0].Value.(*taskView)
	if !ok || !args[1].Row {
		return false
	}
	for i, row := range rows {
		out[i] = nodeAffinityScore(v.of, v.s.c.Nodes.Rows[row])
	}
	return true
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
func countedUse(nodes *model.Nodes, row int32, dim int) float64 {
	use := nodes.Used[dim][row]
	switch dim {
	case model.CPU:
		use += defaultMilliCPU * float64(nodes.Unasked[dim][row])
	case model.Memory:
		use += defaultMemoryBytes * float64(nodes.Unasked[dim][row])
	}
	return use
}

// allocation is a score of a node from a task's request and some resources.
type allocation func(n *model.Nodes, row int32, t *model.Task, names []resourceName, dims *model.Dims) float64

// percentages means whole percents over the named resources, dropping those the node lacks. More than there is, which
// the default requests can come to, counts as all of it.
func percentages(percent func(allocatable, used float64) float64) allocation {
	return func(n *model.Nodes, row int32, t *model.Task, names []resourceName, dims *model.Dims) float64 {
		sum, count := 0.0, 0.0
		for _, name := range names {
			dim, ok := name.in(dims)
			if !ok {
				continue
			}
			allocatable := n.Allocatable[dim][row]
			if !(allocatable > 0) {
				continue
			}
			count++
			sum += math.Trunc(percent(allocatable, min(countedUse(n, row, dim)+counted(t, dim), allocatable)))
		}
		if count == 0 {
			return 0
		}
		return math.Trunc(sum / count)
	}
}

func leastAllocated() allocation {
	return percentages(func(allocatable, used float64) float64 { return (allocatable - used) * 100 / allocatable })
}

func mostAllocated() allocation {
	return percentages(func(allocatable, used float64) float64 { return used * 100 / allocatable })
}

// balanced is what Kubernetes 1.36 makes of the balance with the task and without it: about 75 where it does
// not change, more where the task improves it; 0 for a task that asks for none of the resources.
func balanced(n *model.Nodes, row int32, t *model.Task, names []resourceName, dims *model.Dims) float64 {
	var with, without fractions
	asks := false
	for _, name := range names {
		dim, ok := name.in(dims)
		if !ok {
			continue
		}
		allocatable, request := n.Allocatable[dim][row], t.Request.Get(dim)
		asks = asks || request > 0
		if !(allocatable > 0) || request == 0 && dim > model.Memory {
			continue // of a resource that the task does not ask for only cpu and memory count
		}
		used := n.Used[dim][row]
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

// weighedName is a resource with its weight.
type weighedName struct {
	resourceName
	weight float64
}

// binpackWeights are those of binpack's last four arguments; false: they are of other types.
func binpackWeights(args []ref.Val) (weights []weighedName, ok bool) {
	cpu, okC := number(args[0])
	memory, okM := number(args[1])
	listed, okL := resourceNames(args[2])
	own, okO := args[3].(traits.Mapper)
	if !okC || !okM || !okL || !okO {
		return nil, false
	}
	weights = []weighedName{{dimension("cpu"), cpu}, {dimension("memory"), memory}}
	for _, name := range listed {
		weight := 1.0
		if v, found := own.Find(types.String(name.name)); found {
			weight, _ = number(v)
		}
		weights = append(weights, weighedName{name, weight})
	}
	return weights, true
}

// binpack is behaviour section 9's formula without its factor of 100 and the plugin's weight. As in the recorded
// cases, a resource that the node lacks counts as 0, and one that would not fit makes the whole 0.
func binpack(n *model.Nodes, row int32, t *model.Task, weights []weighedName, dims *model.Dims) float64 {
	score, total, fits := 0.0, 0.0, true
	for i := range weights {
		dim, ok := weights[i].in(dims)
		if !ok {
			continue
		}
		request := t.Request.Get(dim)
		if request == 0 {
			continue
		}
		weight := weights[i].weight
		total += weight
		allocatable, used := n.Allocatable[dim][row], n.Used[dim][row]+request
		if allocatable > 0 {
			score += weight * used / allocatable
			fits = fits && used <= allocatable
		}
	}
	if total == 0 || !fits {
		return 0
	}
	return score / total
}
