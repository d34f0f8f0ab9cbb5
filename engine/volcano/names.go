package volcano

import (
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// flagSections is which sections of a table each of Volcano's flags switches.
func flagSections() map[string][]string {
	return map[string][]string{
		"enableJobOrder":     {"jobOrder"},
		"enableJobReady":     {"jobReady"},
		"enableJobPipelined": {"jobPipelined"},
		"enableJobStarving":  {"jobStarving"},
		"enableJobEnqueued":  {"jobEnqueueable"},
		"enableTaskOrder":    {"taskOrder"},
		"enablePreemptable":  {"preemptable"},
		"enableReclaimable":  {"reclaimable"},
		"enablePreemptive":   {"preemptive"},
		"enableQueueOrder":   {"queueOrder"},
		"enablePredicate":    {"predicates", "devicePredicates", "taskFeasible"},
		"enableNodeOrder":    {"scores", "deviceScores"},
		"enabledVictim":      {"victims"},
		"enabledOverused":    {"overused"},
		"enabledAllocatable": {"allocatable"},
	}
}

// hierarchyFlag sets a param, not a section, and is never on by itself.
const hierarchyFlag = "enableHierarchy"

// idleFlags are accepted and do nothing: no table has what they switch.
func idleFlags() []string {
	return []string{
		"enableBestNode", "enableTargetJob", "enableReservedNodes", "EnabledClusterOrder", "enabledClusterOrder", "enableClusterOrder",
		"enabledHyperNodeOrder", "enabledHyperNodeGradient", "enabledSubJobOrder", "enabledSubJobReady", "enabledSubJobPipelined",
	}
}

// otherNames are the tables of plugins that Volcano calls otherwise.
func otherNames() map[string]string { return map[string]string{"numa-aware": "numaaware"} }

// laterPlugins are Volcano's plugins, with what follows where no table stands for one.
func laterPlugins() map[string]string {
	return map[string]string{
		"network-topology-aware": "pods are placed without regard to HyperNodes",
	}
}

// refusedArguments are those without which a configuration would decide something else, with the reason.
func refusedArguments() map[string]string {
	const victims = "who has to go is settled within a cycle, for each task and node anew, and nobody outside can be asked of that " +
		"beforehand; write it as rows of preemptable or reclaimable"
	const steps = "a placement is decided within a cycle, which waits for nobody outside; write what it forbids as an answer of predicateVerb"
	return map[string]string{
		"extender.preemptableVerb": victims, "extender.reclaimableVerb": victims,
		"extender.allocateFuncVerb": steps, "extender.deallocateFuncVerb": steps,
	}
}

// idleArguments are what no table does and no plan lacks, with the reason that the author is told.
func idleArguments() map[string]string {
	const claims = "resource claims are not heeded here: pods that have one are placed by their other needs, and a warning counts them"
	const unread = "Volcano does not read it either"
	const cards = "who asks for GPU cards in Volcano's words is given some, by each of its resources and whatever the others are set to"
	return map[string]string{
		"predicate.DynamicResourceAllocationEnable": claims,
		"metricsPeriod": "what is measured is what the API metrics.k8s.io says, over a time of its own; staleAfter says how old it may be",
		"strategies.lowNodeUtilization.thresholds.pods":            unread,
		"strategies.lowNodeUtilization.targetThresholds.pods":      unread,
		"strategies.lowNodeUtilization.thresholdPriorityClassName": unread,
		"strategies.lowNodeUtilization.numberOfNodes":              unread,
		"strategies.lowNodeUtilization.nodeFit":                    unread,
		"deviceshare.GPUSharingEnable":                             cards,
		"deviceshare.GPUNumberEnable":                              cards,
		"deviceshare.VGPUEnable":                                   cards,
	}
}

// laterArgument says of an argument of Volcano's plugins that it is known, though no table has a param for it yet, and why that is a loss.
func laterArgument(table, name string) (why string, known bool) {
	const session = "extenders are asked between cycles, each question by itself, and are not told when a cycle begins, ends, or lets a job in"
	const ascend = "cards of Ascend are not told apart: pods that ask for some are placed by the sums of their nodes"
	const claims = "resource claims are not counted: what a queue's capability says of a deviceclass limits nobody"
	why, known = map[string]string{
		"capacity.DynamicResourceAllocationEnable": claims,
		"capacity.DRAConsumableCapacityEnable":     claims,
		"estimator.burst_ratio":                    "limits of pods are not read: a pod is never taken to use more than it asks for",
		"deviceshare.NodeLockEnable":               "no node is locked while a device plugin hands out cards, which finds them by annotations",
		"extender.onSessionOpenVerb":               session,
		"extender.onSessionCloseVerb":              session,
		"extender.jobEnqueuedVerb":                 session,
		"deviceshare.GPUExclusiveRules": "write each rule as a row of devicePredicates, such as: task.labels[?'team'] != optional.of('a') || " +
			"!gpu.tasks.exists(t, t.labels[?'team'] == optional.of('a'))",
		"deviceshare.KnownGeometriesCMName":       "cards are not cut by MIG: whoever asks for that waits",
		"deviceshare.KnownGeometriesCMNamespace":  "cards are not cut by MIG: whoever asks for that waits",
		"deviceshare.ASCEND310PVNPUEnable":        ascend,
		"deviceshare.AscendHAMiVNPUEnable":        ascend,
		"deviceshare.AscendMindClusterVNPUEnable": ascend,
	}[name]
	if !known && strings.HasPrefix(name, "estimator.") {
		return "what pods that ask for nothing are taken to use is said by params bestEffortCPU and bestEffortMemory, in cores and bytes", true
	}
	if !known && (name == "predicate.VolumeBindingEnable" || name == "volumebinding.weight") {
		return "table " + table + " has nothing of the kind yet", true
	}
	return why, known
}

// pluginHint is what the author of an unknown plugin's name may have meant.
func pluginHint(name string, tables map[string]*rules.Table) string {
	all := slices.Concat(slices.Sorted(maps.Keys(tables)), slices.Sorted(maps.Keys(laterPlugins())))
	if near := source.Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "Volcano has none of that name; what a plugin of your own does can be rows of a table under inline"
}

// actionArguments are what Volcano's actions take, with the reason why nothing follows of it here.
func actionArguments() map[string]map[string]string {
	const nodes = "all nodes are looked at, those that matter to a decision once"
	errs := map[string]string{"predicateErrorCacheEnable": "what rows say of a node is kept for as long as it holds, whatever this says"}
	preempt := map[string]string{
		"enableTopologyAwarePreemption": "the shipped action always asks all that rows say of a node when those are gone who would go, " +
			"and takes the node where those go who matter least",
		"topologyAwarePreemptWorkerNum": nodes, "minCandidateNodesPercentage": nodes, "minCandidateNodesAbsolute": nodes,
		"maxCandidateNodesAbsolute": nodes,
	}
	maps.Copy(preempt, errs)
	gangs := maps.Clone(errs)
	gangs["allowWholeBundle"] = "that is what the shipped action does"
	gangs["maxDomains"] = ""
	enqueue := map[string]string{"overcommit-factor": "it is an argument of plugin overcommit"}
	return map[string]map[string]string{
		"enqueue": enqueue, "allocate": errs, "backfill": errs, "preempt": preempt, "reclaim": errs, "gangpreempt": gangs, "gangreclaim": gangs,
	}
}
