package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// mostAsked is of how many nodes that a row refuses it is asked whether others do, too.
const mostAsked = 500

// help is what would have a node take a pod that none takes, each as a condition; nil: nothing that is known.
func (x *Cycle) help(w *model.Wait, t *model.Task) (out []string) {
	if t == nil || len(w.Nodes) == 0 {
		return nil
	}
	asked := 0
	var least lack
	alone := map[*policy.Rule][]string{}
	for _, row := range x.cluster.Nodes.ByOrder() {
		x.cluster.Breathe()
		if !x.cluster.Nodes.Rows[row].Ready {
			continue
		}
		lacks := x.lacking(t, row)
		switch refuser := x.Session.Class(t).Refuser(row); {
		case refuser == nil && lacks.below(&least):
			least = lacks
		case refuser != nil && len(lacks.dims) == 0 && asked < mostAsked:
			asked++
			if all := session.Refusers(x.Session, t, row); len(all) == 1 {
				alone[all[0]] = append(alone[all[0]], x.cluster.Nodes.Rows[row].Name)
			}
		}
	}
	out = x.lackText(&least, t)
	for _, r := range x.Session.Policy().Predicates() {
		if on := alone[r]; len(on) > 0 {
			out = append(out, fmt.Sprintf("%s let %s accept the pod; no other row refuses it there", model.RowName(r.Table, r.Name), some(on)))
		}
	}
	return out
}

// some names a few of some nodes.
func some(nodes []string) string {
	if len(nodes) > mostNodes {
		return strings.Join(nodes[:mostNodes], ", ") + " and " + Count(len(nodes)-mostNodes, "more node")
	}
	return listed(nodes)
}

// lack is what a node has too little of for a pod.
type lack struct {
	row  int32
	dims []int
	size float64 // the largest part of the request that is missing
	// never says that the node has less when it is empty.
	never bool
}

// below says that it is less than another: first comes what the node could have.
func (l *lack) below(other *lack) bool {
	if l.dims == nil {
		return false
	}
	if other.dims == nil || l.never != other.never {
		return other.dims == nil || other.never
	}
	return l.size < other.size
}

func (x *Cycle) lacking(t *model.Task, row int32) (out lack) {
	out.row = row
	n := &x.cluster.Nodes
	for _, dim := range n.Dims() {
		if want := t.Request; want.Has(dim) && want[dim] > n.FutureIdle(dim, row)+model.Slack {
			out.dims = append(out.dims, dim)
			out.never = out.never || want[dim] > x.cluster.Nodes.AllocatableOf(row).Get(dim)+model.Slack
			out.size = max(out.size, (want[dim]-n.FutureIdle(dim, row))/want[dim])
		}
	}
	return out
}

// lackText says how much more must be free on a node, or that it is too small; nil: nothing is lacking.
func (x *Cycle) lackText(l *lack, t *model.Task) []string {
	if len(l.dims) == 0 {
		return nil
	}
	n, dims := &x.cluster.Nodes, x.cluster.Dims
	name, all := n.Rows[l.row].Name, n.AllocatableOf(l.row)
	slices.SortFunc(l.dims, func(a, b int) int { return cmp.Compare(dims.Name(a), dims.Name(b)) })
	var more, larger, has []string
	for _, dim := range l.dims {
		want := t.Request[dim]
		if want > all.Get(dim)+model.Slack {
			wanted, offered := dims.AmountTexts(dim, want, all.Get(dim))
			larger, has = append(larger, dims.Name(dim)+" "+wanted), append(has, dims.Name(dim)+" "+offered)
			continue
		}
		more = append(more, fmt.Sprintf("%s %s", dims.Name(dim), dims.AmountText(dim, want-n.FutureIdle(dim, l.row))))
	}
	if len(larger) > 0 {
		return []string{fmt.Sprintf("there were a node with %s; %s, which comes nearest, has %s", listed(larger), name, listed(has))}
	}
	return []string{fmt.Sprintf("%s had %s more free; every other node that the rows accept lacks as much or more", name, listed(more))}
}
