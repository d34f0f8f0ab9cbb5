package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/topology"
	"github.com/celsius-scheduler/celsius/rules"
)

// The hidden members that the functions below read.
const (
	readsTerms   = "{0}.podTerms"  // the pod's terms about its peers
	readsMatched = "{0}.matchedBy" // the terms of other pods that match the pod
	readsPeers   = "{1}.peers"     // the pods in the node's topology domains
	readsGroup   = "{1}.group"     // the candidate nodes
)

// nearFields returns the members of Task for terms between pods.
func nearFields() []*rules.Member {
	type v = *TaskView
	return []*rules.Member{
		boolField("hasPeerTerms", FromSpec|FromTerms|FromOthersTerms, rules.ByObject,
			"has terms of inter-pod affinity or anti-affinity, or is a pod that the terms of another speak of",
			func(t v) bool { return t.World.TopologyOf(t.Of).HasAffinity() }),
		boolField("hasSpread", FromTerms, rules.ByObject, "has topology spread constraints", func(t v) bool {
			return t.Of.PodTerms != nil && len(t.Of.PodTerms.Spread) > 0
		}),
		hidden("podTerms", FromTerms, rules.ByObject, "inter-pod affinity and topology spread",
			func(t v) ref.Val { return types.String(t.World.TopologyOf(t.Of).Terms()) }),
		hidden("matchedBy", FromSpec|FromOthersTerms, rules.ByObject, "other pods' terms about the labels",
			func(t v) ref.Val { return types.String(t.World.TopologyOf(t.Of).Matched()) }),
	}
}

// domainFields returns the members of Node for the contents of its topology domains.
func domainFields() []*rules.Member {
	of := func(name string, origin rules.Origin, doc string) *rules.Member {
		return hidden(name, origin, rules.ByStep, doc, func(*NodeView) ref.Val { return types.String("") })
	}
	return []*rules.Member{
		of("peers", FromPeers, "the pods in the topology domains"),
		of("imageNodes", FromImageNodes, "how many nodes share the images"),
		of("group", FromCandidates, "the fellow candidates"),
	}
}

func nearFunctions() []*rules.Function {
	return []*rules.Function{
		taskNode("affinityFits", "The node satisfies the pod's required inter-pod affinity and anti-affinity, and the anti-affinity of the "+
			"pods that are placed: kube-scheduler's filter InterPodAffinity. "+
			"A pod counts where it runs, is being released, or is promised. Costs a comparison a term.", cel.BoolType, affinityFits,
			readsTerms, readsMatched, "{1}.labels", readsPeers),
		taskNode("affinityScore", "Sum of the weights of the preferred inter-pod terms that placed pods satisfy in the node's domains, "+
			"anti-affinity negative; the terms of placed pods that speak of this one count too, "+
			"their required affinity with weight 1: kube-scheduler's score InterPodAffinity before it is normalised.", cel.DoubleType, affinityScore,
			readsTerms, readsMatched, "{1}.labels", readsPeers),
		taskNode("spreadFits", "The node satisfies the pod's topology spread constraints of DoNotSchedule: kube-scheduler's filter "+
			"PodTopologySpread. "+
			"A pod that is being released does not count. Costs a comparison a constraint.", cel.BoolType, spreadFits,
			readsTerms, "{0}.nodeTerms", "{0}.tolerations", "{1}.labels", readsPeers),
		taskNode("spreadApplies", "The pod has topology spread constraints of ScheduleAnyway, and the node has the labels of all of them.",
			cel.BoolType, spreadApplies,
			readsTerms, "{1}.labels"),
		taskNode("spreadScore", "How many of the pods that its constraints of ScheduleAnyway count are in the node's domains, each constraint "+
			"weighed by the logarithm of its number of domains among the nodes that are chosen from: "+
			"kube-scheduler's score PodTopologySpread before it is normalised (fewer is better). Asked without a choice of nodes, all that are "+
			"ready count.", cel.DoubleType, spreadScore,
			readsTerms, "{0}.nodeTerms", "{0}.tolerations", "{1}.labels", readsPeers, readsGroup),
	}
}

func affinityFits(t *TaskView, n *NodeView) ref.Val {
	co := t.World.TopologyOf(t.Of)
	return types.Bool(t.World.Counts().AffinityFits(co, t.Of, n.Of.Row))
}

func affinityScore(t *TaskView, n *NodeView) ref.Val {
	co := t.World.TopologyOf(t.Of)
	return types.Double(t.World.Counts().AffinityScore(co, t.Of, n.Of.Row))
}

func spreadFits(t *TaskView, n *NodeView) ref.Val {
	co := t.World.TopologyOf(t.Of)
	return types.Bool(t.World.Counts().SpreadFits(co, t.Of, n.Of.Row))
}

func spreadApplies(t *TaskView, n *NodeView) ref.Val {
	return types.Bool(t.World.TopologyOf(t.Of).SpreadApplies(n.Of.Row))
}

func spreadScore(t *TaskView, n *NodeView) ref.Val {
	co := t.World.TopologyOf(t.Of)
	return types.Double(t.World.Counts().SpreadScore(co, t.Of, n.Of.Row, t.World.Sizes))
}

// Counts returns the counts of the topology domains.
func (w *World) Counts() *topology.Counts {
	return w.Topology
}

// TopologyOf returns the current context for answers about a task's peers and images.
func (w *World) TopologyOf(t *model.Task) *topology.Context { return w.Counts().Of(t) }
