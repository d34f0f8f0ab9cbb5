package volcano

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// fate states what happens to an argument of Volcano that no param takes.
type fate uint8

const (
	// idle: it has no effect, and needs none.
	idle fate = iota + 1
	// lost: it has an effect in Volcano, but none here.
	lost
	// refused: without it, the configuration would decide differently, so it is an error.
	refused
	// always: its effect applies here whether or not it is turned on.
	always
)

// argument is an argument of Volcano that no param takes.
type argument struct {
	fate fate
	why  string // text for the author; the sentence begins with what happens to the argument
}

// otherArguments returns, by table, the arguments of Volcano's plugins that no param of the table takes. Together with its params, these
// are all arguments of Volcano's plugin. Any other argument is a mistake.
func otherArguments() map[string]map[string]argument {
	const cards = "pods that request GPU cards by Volcano's resources get them, whatever this argument is"
	const mig = "cards are not partitioned by MIG: pods that request it wait"
	const ascend = "cards of Ascend are not distinguished: pods that request them are placed by the sums of their nodes"
	const claims = "resource claims are not counted: the deviceclasses in a queue's capability limit no pod"
	const session = "extenders are asked between cycles, each question by itself; " +
		"no request states that a cycle begins, ends, or admits a job"
	const victims = "victims are chosen within a cycle, for each task and node again, so no external service can be asked " +
		"beforehand; write it as rows of preemptable or reclaimable"
	const steps = "a placement is decided within a cycle, which waits for no external service; " +
		"write what it forbids as an answer of predicateVerb"
	const moved = "Volcano moved it to the plugin deviceshare, as deviceshare.%s; list that plugin, so that pods are given GPU cards"
	const unread = "Volcano does not read it either"
	return map[string]map[string]argument{
		"predicates": {
			"predicate.DynamicResourceAllocationEnable": {idle, "resource claims are not heeded here: pods that have one are placed by their " +
				"other needs, and a warning counts them"},
			"predicate.VolumeBindingEnable": {always, "the row volume-binding is asked of every pod that has volumes; who wants it otherwise " +
				"copies the table under inline, and leaves the row out"},
			"predicate.GPUSharingEnable": {lost, fmt.Sprintf(moved, "GPUSharingEnable")},
			"predicate.GPUNumberEnable":  {lost, fmt.Sprintf(moved, "GPUNumberEnable")},
			"predicate.VGPUEnable":       {lost, fmt.Sprintf(moved, "VGPUEnable")},
			"volumebinding.weight":       {lost, "nodes are not scored by how well their volumes fit what is claimed"},
		},
		"capacity": {
			"capacity.DynamicResourceAllocationEnable": {lost, claims},
			"capacity.DRAConsumableCapacityEnable":     {lost, claims},
		},
		"usage": {
			"estimator.burst_ratio": {lost, "limits of pods are not read: a pod is never assumed to use more than it requests"},
		},
		"rescheduling": {
			"metricsPeriod": {idle, "what is measured is what the API metrics.k8s.io says, over a time of its own; staleAfter says how old it " +
				"may be"},
			"strategies.lowNodeUtilization.thresholds.pods":            {idle, unread},
			"strategies.lowNodeUtilization.targetThresholds.pods":      {idle, unread},
			"strategies.lowNodeUtilization.thresholdPriorityClassName": {idle, unread},
			"strategies.lowNodeUtilization.numberOfNodes":              {idle, unread},
			"strategies.lowNodeUtilization.nodeFit":                    {idle, unread},
		},
		"deviceshare": {
			"deviceshare.GPUSharingEnable": {idle, cards},
			"deviceshare.GPUNumberEnable":  {idle, cards},
			"deviceshare.VGPUEnable":       {idle, cards},
			"deviceshare.NodeLockEnable": {lost, "no node is locked while a device plugin hands out cards, which finds them by " +
				"annotations"},
			"deviceshare.GPUExclusiveRules": {lost, "pods of one rule may share a card unless a row says no; write each rule as a row of " +
				"devicePredicates, such as: task.labels[?'team'] != " +
				"optional.of('a') || !gpu.tasks.exists(t, t.labels[?'team'] == optional.of('a'))"},
			"deviceshare.KnownGeometriesCMName":       {lost, mig},
			"deviceshare.KnownGeometriesCMNamespace":  {lost, mig},
			"deviceshare.ASCEND310PVNPUEnable":        {lost, ascend},
			"deviceshare.AscendHAMiVNPUEnable":        {lost, ascend},
			"deviceshare.AscendMindClusterVNPUEnable": {lost, ascend},
		},
		"extender": {
			"extender.onSessionOpenVerb":  {lost, session},
			"extender.onSessionCloseVerb": {lost, session},
			"extender.jobEnqueuedVerb":    {lost, session},
			"extender.preemptableVerb":    {refused, victims},
			"extender.reclaimableVerb":    {refused, victims},
			"extender.allocateFuncVerb":   {refused, steps},
			"extender.deallocateFuncVerb": {refused, steps},
		},
	}
}

// quantities returns the arguments that Volcano writes as Kubernetes quantities, such as 250m, and params as numbers.
func quantities() []string { return []string{"estimator.be_cpu", "estimator.be_mem"} }

// argumentHint returns what the author may have meant.
func argumentHint(table *rules.Table, name string) string {
	known := slices.Collect(maps.Keys(otherArguments()[table.Name]))
	for _, p := range table.Params {
		if p.Volcano != "" && p.Volcano != hierarchyFlag {
			known = append(known, p.Volcano)
		}
	}
	if _, flag := flagSections()[name]; flag || name == hierarchyFlag || slices.Contains(idleFlags(), name) {
		return "it is a flag: write it next to arguments"
	}
	if len(known) == 0 {
		return "it takes none"
	}
	if near := source.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	slices.Sort(known)
	return "it takes " + strings.Join(known, ", ")
}

// actionArguments returns the arguments of Volcano's actions, with the reason why each has no effect here.
func actionArguments() map[string]map[string]string {
	nodes := fmt.Sprintf("no sample is taken: nodes are tried in the order of their scores, until there are %d on which "+
		"evictions free enough resources",
		policy.MostCosts)
	errs := map[string]string{"predicateErrorCacheEnable": "what rows say of a node is kept for as long as it holds, whatever this says"}
	preempt := map[string]string{
		"enableTopologyAwarePreemption": "the shipped action always does what this is for: it asks all rows of a node as it will be when " +
			"those are gone who would go, and takes the node where those go who matter least",
		"topologyAwarePreemptWorkerNum": nodes, "minCandidateNodesPercentage": nodes, "minCandidateNodesAbsolute": nodes,
		"maxCandidateNodesAbsolute": nodes,
	}
	maps.Copy(preempt, errs)
	gangs := maps.Clone(errs)
	gangs["allowWholeBundle"] = "that is what the shipped action does"
	gangs["maxDomains"] = "the whole cluster is one domain, as HyperNodes are not read"
	enqueue := map[string]string{"overcommit-factor": "it is read as an argument of the plugin overcommit alone, as in Volcano"}
	return map[string]map[string]string{
		"enqueue": enqueue, "allocate": errs, "backfill": errs, "preempt": preempt, "reclaim": errs, "gangpreempt": gangs, "gangreclaim": gangs,
	}
}
