package policy

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// What the functions below read: the names of hidden members.
const (
	readsTerms   = "{0}.podTerms"  // what the pod asks of its peers
	readsMatched = "{0}.matchedBy" // the terms of others that speak of the pod
	readsPeers   = "{1}.peers"     // who is placed in the node's topology domains
	readsGroup   = "{1}.group"     // which nodes are chosen from
)

// nearFields are the members of Task for what pods ask of each other.
func nearFields() []*rules.Member {
	type v = *taskView
	return []*rules.Member{
		boolField("hasPeerTerms", rules.ByObject, "has terms of inter-pod affinity or anti-affinity, or is a pod that the terms of another speak of",
			func(t v) bool { return t.w.company(t).hasAffinity() }),
		boolField("hasSpread", rules.ByObject, "has topology spread constraints", func(t v) bool {
			return t.of.PodTerms != nil && len(t.of.PodTerms.Spread) > 0
		}),
		hidden("podTerms", "inter-pod affinity and topology spread", func(t v) ref.Val {
			if co := t.w.company(t); co.template != nil {
				return types.String(co.template.name)
			}
			return types.String("")
		}),
		hidden("matchedBy", "other pods' terms about the labels", func(t v) ref.Val { return types.String(t.w.company(t).matched) }),
	}
}

// domainFields are the members of Node for what lies in its topology domains.
func domainFields() []*rules.Member {
	of := func(name, doc string) *rules.Member {
		m := hidden(name, doc, func(*nodeView) ref.Val { return types.String("") })
		m.Changes = rules.ByStep
		return m
	}
	return []*rules.Member{
		of("peers", "the pods in the topology domains"),
		of("imageNodes", "how many nodes share the images"),
		of("group", "the fellow candidates"),
	}
}

func nearFunctions() []*rules.Function {
	return []*rules.Function{
		taskNode("affinityFits", "The node satisfies the pod's required inter-pod affinity and anti-affinity, and the anti-affinity of the pods that are placed: kube-scheduler's filter InterPodAffinity. "+
			"A pod counts where it runs, is being released, or is promised. Costs a comparison a term.", cel.BoolType, affinityFits,
			readsTerms, readsMatched, "{1}.labels", readsPeers),
		taskNode("affinityScore", "Sum of the weights of the preferred inter-pod terms that placed pods satisfy in the node's domains, anti-affinity negative; the terms of placed pods that speak of this one count too, "+
			"their required affinity with weight 1: kube-scheduler's score InterPodAffinity before it is normalised.", cel.DoubleType, affinityScore,
			readsTerms, readsMatched, "{1}.labels", readsPeers),
		taskNode("spreadFits", "The node satisfies the pod's topology spread constraints of DoNotSchedule: kube-scheduler's filter PodTopologySpread. "+
			"A pod that is being released does not count. Costs a comparison a constraint.", cel.BoolType, spreadFits,
			readsTerms, "{0}.nodeTerms", "{0}.tolerations", "{1}.labels", readsPeers),
		taskNode("spreadApplies", "The pod has topology spread constraints of ScheduleAnyway, and the node has the labels of all of them.", cel.BoolType, spreadApplies,
			readsTerms, "{1}.labels"),
		taskNode("spreadScore", "How many of the pods that its constraints of ScheduleAnyway count are in the node's domains, each constraint weighed by the logarithm of its number of domains among the nodes that are chosen from: "+
			"kube-scheduler's score PodTopologySpread before it is normalised (fewer is better). Asked without a choice of nodes, all that are ready count.", cel.DoubleType, spreadScore,
			readsTerms, "{0}.nodeTerms", "{0}.tolerations", "{1}.labels", readsPeers, readsGroup),
	}
}

// affinityFits goes by presence in domains.
func affinityFits(t *taskView, n *nodeView) ref.Val {
	co, row, fits := t.w.company(t), n.of.Row, false
	t.w.peers.without(t.of, func() { fits = co.fits(row) })
	return types.Bool(fits)
}

func (co *company) fits(row int32) bool {
	if x := co.template; x != nil && (!x.nearFits(row) || !nobody(x.apart, row)) {
		return false
	}
	return nobody(co.against, row)
}

// nobody says that no tally has anybody in the row's domain.
func nobody(tallies []*tally, row int32) bool {
	for _, ta := range tallies {
		if n, _ := ta.at(row); n > 0 {
			return false
		}
	}
	return true
}

// nearFits wants somebody in each domain; where there is nobody anywhere, a pod that is one of those whom it wants to
// be near goes first, for else none of its kind could.
func (x *template) nearFits(row int32) bool {
	somebody, everyone := true, int64(0)
	for _, ta := range x.near {
		n, ok := ta.at(row)
		if !ok {
			return false
		}
		somebody = somebody && n > 0
		everyone += ta.total
	}
	return somebody || everyone == 0 && x.nearSelf
}

func affinityScore(t *taskView, n *nodeView) ref.Val {
	co, row, sum := t.w.company(t), n.of.Row, int64(0)
	t.w.peers.without(t.of, func() {
		for _, ta := range co.drawn {
			count, _ := ta.at(row)
			sum += ta.weight * count
		}
		if co.template == nil {
			return
		}
		for _, d := range co.template.drawn {
			count, _ := d.at(row)
			sum += d.weight * count
		}
	})
	return types.Double(sum)
}

func spreadFits(t *taskView, n *nodeView) ref.Val {
	co, row, fits := t.w.company(t), n.of.Row, true
	if co.template == nil {
		return types.True
	}
	t.w.peers.without(t.of, func() {
		for _, ta := range co.template.hard {
			d := ta.where.of[row]
			fits = fits && d != nowhere && !ta.limit.full[d]
		}
	})
	return types.Bool(fits)
}

func spreadApplies(t *taskView, n *nodeView) ref.Val {
	co := t.w.company(t)
	return types.Bool(co.template != nil && len(co.template.soft) > 0 && co.template.softIn(n.of.Row))
}

// softIn says that the row's node has the label of each preferred constraint.
func (x *template) softIn(row int32) bool {
	for i := range x.soft {
		if x.soft[i].where.of[row] == nowhere {
			return false
		}
	}
	return true
}

func spreadScore(t *taskView, n *nodeView) ref.Val {
	co, row, sum := t.w.company(t), n.of.Row, 0.0
	if co.template == nil || !co.template.softIn(row) {
		return types.Double(0)
	}
	sizes := t.w.sizes
	if sizes == nil {
		sizes = co.template.sizesOf(&t.w.c.Nodes)
	}
	t.w.peers.without(t.of, func() {
		for i := range co.template.soft {
			x := &co.template.soft[i]
			count, _ := x.at(row)
			sum += float64(count)*math.Log(float64(sizes[i]+2)) + float64(x.maxSkew-1)
		}
	})
	return types.Double(math.Round(sum))
}

// sizesOf counts, for each preferred constraint, the domains among all nodes that are ready: a walk over the nodes.
func (x *template) sizesOf(n *model.Nodes) []int32 {
	g := newGroup(x)
	for row, node := range n.Rows {
		if node != nil && node.Ready {
			g.add(int32(row), fitsNow, 1)
		}
	}
	return g.sizes(fitsNow)
}

// sizesAmong counts them among some nodes; nil where the task has no preferred constraint.
func (w *World) sizesAmong(t *model.Task, nodes []int32) []int32 {
	x := w.company(w.taskView(t)).template
	if x == nil || len(x.soft) == 0 {
		return nil
	}
	g := newGroup(x)
	for _, row := range nodes {
		g.add(row, fitsNow, 1)
	}
	return g.sizes(fitsNow)
}

// group counts, for each preferred spread constraint of a template, the domains of the nodes that can be chosen, now
// or later.
type group struct {
	of    *template
	nodes [3]int32
	count [3][][]int32 // by fit, constraint and domain
	size  [3][]int32   // domains with nodes, by fit and constraint
	out   []int32      // reused
}

func newGroup(x *template) *group {
	g := &group{of: x, out: make([]int32, len(x.soft))}
	for f := range g.count {
		g.count[f], g.size[f] = make([][]int32, len(x.soft)), make([]int32, len(x.soft))
		for i := range x.soft {
			g.count[f][i] = make([]int32, len(x.soft[i].where.rows))
		}
	}
	return g
}

// add counts a node in, or out. Nodes without the label of some constraint are passed over.
func (g *group) add(row int32, f fit, by int32) {
	if !g.of.softIn(row) {
		return
	}
	g.nodes[f] += by
	for i := range g.of.soft {
		d := g.of.soft[i].where.of[row]
		was := g.count[f][i][d]
		g.count[f][i][d] += by
		switch {
		case was == 0:
			g.size[f][i]++
		case was+by == 0:
			g.size[f][i]--
		}
	}
}

// sizes are the numbers of domains; valid until the next call.
func (g *group) sizes(f fit) []int32 {
	copy(g.out, g.size[f])
	for i := range g.of.soft {
		if g.of.soft[i].byNode {
			g.out[i] = g.nodes[f]
		}
	}
	return g.out
}
