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

// mostAsked is the maximum number of nodes that one row rejects for which help determines whether other rows reject them, too.
const mostAsked = 500

// helpJob states what a job lacks to start if a node for pod t alone is not enough. It returns "" if it is enough, or if the job can start
// already. It places the other pods of the job on nodes that take them, as far as the job needs these pods to start.
func (x *Cycle) helpJob(txn *model.Txn, j *model.Job, t *model.Task) string {
	if x.Session.IsReady(j) {
		return ""
	}
	missing := func() int64 { return j.MinMember - j.Ready() - j.PendingBestEffort - j.Counts[model.Pipelined] }
	left := []*model.Task{t}
	refused := map[string]bool{} // requests and roles that no node accepts
	for _, mate := range j.Tasks {
		if mate == t || mate.Status != model.Pending || mate.Gated || mate.Foreign || missing() <= 1 {
			continue
		}
		like := fmt.Sprint(mate.Role, mate.Request)
		if !refused[like] && x.placeMate(txn, mate) {
			continue
		}
		refused[like] = true
		left = append(left, mate)
	}
	n := missing()
	if n <= 1 {
		return ""
	}
	which := ""
	if int64(len(left)) == n { // otherwise it is unknown which of the pods start
		var sum model.Resources
		for _, pod := range left {
			sum = sum.Add(pod.Request)
		}
		if pods, ok := x.cluster.Dims.Find("pods"); ok {
			sum.Set(pods, 0) // the text already contains the number of pods
		}
		sum = sum.Positive()
		which = ", which request " + x.cluster.Dims.Text(sum) + " together"
	}
	return fmt.Sprintf("its job starts only if nodes take %d more of its pods%s", n, which)
}

// placeMate places a pod on the first node that accepts it, and returns false if no node does.
func (x *Cycle) placeMate(txn *model.Txn, mate *model.Task) bool {
	class := x.Session.Class(mate)
	for _, row := range x.cluster.Nodes.ByOrder() {
		x.cluster.Breathe()
		if x.cluster.Nodes.Rows[row].Ready && class.TakesLater(row) {
			txn.Pipeline(mate, row, x.Session.Devices(mate, row, true))
			return true
		}
	}
	return false
}

// ofJob returns what the pods of a job use of each node that they are on.
func ofJob(j *model.Job) map[int32]model.Resources {
	out := map[int32]model.Resources{}
	for _, t := range j.Tasks {
		if t.Node != model.NoNode && t.Status != model.Pending {
			out[t.Node] = out[t.Node].Add(t.Request)
		}
	}
	return out
}

// help returns the conditions under which a node would accept a pod that no node accepts; nil: none is known. open are the nodes that
// reject the pod only because of other pods of its job.
func (x *Cycle) help(w *model.Wait, t *model.Task, open map[int32]bool) (out []string) {
	if t == nil || len(w.Nodes) == 0 {
		return nil
	}
	asked := 0
	var least lack
	alone := map[*policy.Rule][]string{}
	var taken []string // nodes that rows reject because of other pods of the job
	mates := ofJob(t.Job)
	for _, row := range x.cluster.Nodes.ByOrder() {
		x.cluster.Breathe()
		if !x.cluster.Nodes.Rows[row].Ready {
			continue
		}
		lacks := x.lacking(t, row, mates[row])
		switch refuser := x.Session.Class(t).Refuser(row); {
		case refuser != nil && open[row]:
			taken = append(taken, x.cluster.Nodes.Rows[row].Name)
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
	out = append(out, takenText(taken)...)
	for _, r := range x.Session.Policy().Predicates() {
		if on := alone[r]; len(on) > 0 {
			out = append(out, fmt.Sprintf("%s let %s accept the pod; no other row refuses it there", model.RowName(r.Table, r.Name), some(on)))
		}
	}
	return out
}

// takenText states that a pod needs a node in addition to nodes that would accept it without other pods of its job.
func takenText(taken []string) []string {
	if len(taken) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("another node took it, as %s would without other pods of its job", some(taken))}
}

// some returns the names of the first few nodes.
func some(nodes []string) string {
	if len(nodes) > mostNodes {
		return strings.Join(nodes[:mostNodes], ", ") + " and " + Count(len(nodes)-mostNodes, "more node")
	}
	return listed(nodes)
}

// lack states which resources of a node are insufficient for a pod.
type lack struct {
	row  int32
	dims []int
	size float64 // the largest part of the request that is missing
	// never states that the node has less when no pods but those of the same job are on it.
	never bool
}

// below reports whether it is less than another. A node that could have enough comes before a node that never could.
func (l *lack) below(other *lack) bool {
	if l.dims == nil {
		return false
	}
	if other.dims == nil || l.never != other.never {
		return other.dims == nil || other.never
	}
	return l.size < other.size
}

func (x *Cycle) lacking(t *model.Task, row int32, mates model.Resources) (out lack) {
	out.row = row
	n := &x.cluster.Nodes
	for _, dim := range n.Dims() {
		if want := t.Request; want.Has(dim) && want[dim] > n.FutureIdle(dim, row)+model.Slack {
			out.dims = append(out.dims, dim)
			out.never = out.never || want[dim] > x.cluster.Nodes.AllocatableOf(row).Get(dim)-mates.Get(dim)+model.Slack
			out.size = max(out.size, (want[dim]-n.FutureIdle(dim, row))/want[dim])
		}
	}
	return out
}

// lackText states how much more must be free on a node, or that it is too small; nil: nothing is lacking.
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
	if len(larger) == 0 && l.never {
		return []string{fmt.Sprintf("there were another node like %s with %s free; other pods of its job need %s",
			name, x.wanted(l, t), name)}
	}
	if len(larger) > 0 {
		return []string{fmt.Sprintf("there were a node with %s; %s, which comes nearest, has %s", listed(larger), name, listed(has))}
	}
	return []string{fmt.Sprintf("%s had %s more free; every other node that the rows accept lacks as much or more", name, listed(more))}
}

// wanted returns how much a pod requests of the resources that a node lacks.
func (x *Cycle) wanted(l *lack, t *model.Task) string {
	var out []string
	for _, dim := range l.dims {
		out = append(out, x.cluster.Dims.Name(dim)+" "+x.cluster.Dims.AmountText(dim, t.Request[dim]))
	}
	return listed(out)
}
