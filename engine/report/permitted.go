package report

import "github.com/celsius-scheduler/celsius/engine/model"

// Permits states by which rules of a policy a node is refused to a pod, whichever pods run.
type Permits struct {
	Labels bool // the labels or the name of the node do not match what the pod requires
	Taints bool // the pod does not tolerate a taint of effect NoSchedule or NoExecute
}

// PermitsBy returns the rules of a policy. filters is Policy.Filters.
func PermitsBy(filters func(function string, implied ...string) bool) Permits {
	return Permits{Labels: filters("matchesNodeAffinity"), Taints: filters("toleratesAll")}
}

// Any reports whether a policy has one of the rules.
func (p Permits) Any() bool { return p.Labels || p.Taints }

// Permitted are the amounts that the nodes that are permitted to a pod allocate when they are empty, as in Sizes.
type Permitted struct{ Largest, Sum model.Resources }

// To returns the amounts of the nodes that are permitted to a task. A requirement that cannot be read permits the node. The amounts are
// the same for all tasks with the same NodeRequirements.
func (p Permits) To(t *model.Task, n *model.Nodes) *Permitted {
	out := &Permitted{}
	for row, node := range n.Rows {
		if node == nil || !p.node(t, node) {
			continue
		}
		for dim, column := range n.Allocatable {
			if has := column[row]; has > 0 {
				out.Largest.Set(dim, max(out.Largest.Get(dim), has))
				out.Sum.Set(dim, out.Sum.Get(dim)+has)
			}
		}
	}
	return out
}

func (p Permits) node(t *model.Task, node *model.Node) bool {
	if p.Taints {
		if _, found := t.FirstUntolerated(node); found {
			return false
		}
	}
	if !p.Labels || t.NodeAffinityKey == "" {
		return true
	}
	matches, err := t.NodeAffinity.Match(node.Object)
	return matches || err != nil
}

// holds reports whether some permitted node allocates as much of each dimension as a task requests. One node need not have all of them.
func (p *Permitted) holds(request model.Resources, dims []int) bool {
	for _, dim := range dims {
		if request.Has(dim) && request[dim] > p.Largest.Get(dim)+model.Slack {
			return false
		}
	}
	return true
}
