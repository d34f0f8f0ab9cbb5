package language

import (
	"github.com/go-logr/logr"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/rules"
)

func matchesNodeAffinity(t *TaskView, n *NodeView) ref.Val {
	ok, err := matchesRequired(t.Of, n.Of)
	if err != nil {
		return types.NewErr("node affinity of pod %s: %v", t.Of.Key, err)
	}
	return types.Bool(ok)
}

func matchesRequired(t *model.Task, n *model.Node) (bool, error) {
	if t.NodeAffinityKey == "" {
		return true, nil
	}
	return t.NodeAffinity.Match(n.Object) //nolint:wrapcheck // worded by the caller
}

// matchesColumn evaluates once for all nodes with the same values of the labels that the pod's terms read.
func matchesColumn(r rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	v, ok := args[0].Value.(*TaskView)
	if !ok || !args[1].Row {
		return false
	}
	if v.Of.NodeAffinityKey == "" {
		fill(out, true)
		return true
	}
	if v.Of.NodeAffinityFields {
		return false
	}
	w, d := worldOf(r), workspaceOf(r)
	d.codes = slab.Resized(d.codes, len(rows))
	distinct := w.byLabels(v.Of.NodeAffinityLabels).numbers(w, rows, d.codes)
	if distinct == 0 {
		return false
	}
	d.answers = slab.Resized(d.answers, distinct)
	for i, code := range d.codes {
		if d.answers[code] == Abstain {
			d.answers[code] = No
			switch matches, err := matchesRequired(v.Of, w.c.Nodes.Rows[rows[i]]); {
			case err != nil:
				return false
			case matches:
				d.answers[code] = Yes
			}
		}
		out[i] = d.answers[code] == Yes
	}
	return true
}

func fill[T any](out []T, x T) {
	for i := range out {
		out[i] = x
	}
}

func intolerablePreferNoSchedule(t *TaskView, n *NodeView) int64 {
	count := int64(0)
	for i := range n.Of.Taints {
		if taint := &n.Of.Taints[i]; taint.Effect == corev1.TaintEffectPreferNoSchedule && !preferTolerates(t.Of, taint) {
			count++
		}
	}
	return count
}

// preferTolerates checks only tolerations for PreferNoSchedule, as Kubernetes' scorer does.
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
	return t.Tolerates(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func portsFree(t *TaskView, n *NodeView) bool { return portsFreeOn(t.Of, &t.World.c.Nodes, n.Of.Row) }

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
	v, ok := args[0].Value.(*TaskView)
	if !ok || !args[1].Row {
		return false
	}
	for i, row := range rows {
		out[i] = len(v.Of.HostPorts) == 0 || portsFreeOn(v.Of, &v.World.c.Nodes, row)
	}
	return true
}

// clash reports whether two host ports exclude each other: 0.0.0.0 matches every address.
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
	v, ok := args[0].Value.(*TaskView)
	if !ok || !args[1].Row {
		return false
	}
	for i, row := range rows {
		out[i] = nodeAffinityScore(v.Of, v.World.c.Nodes.Rows[row])
	}
	return true
}
