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
		"enablePredicate":    {"predicates", "taskFeasible"},
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

// laterPlugins are Volcano's plugins, with what follows where no table stands for one.
func laterPlugins() map[string]string {
	return map[string]string{
		"deviceshare":            "shared GPUs are placed by the annotations that celsius has for them, not by Volcano's resources",
		"network-topology-aware": "pods are placed without regard to HyperNodes",
		"numa-aware":             "the NUMA policies of pods are not heeded",
		"numaaware":              "the NUMA policies of pods are not heeded",
	}
}

// refusedPlugins are those for which nothing will stand in, with the reason.
func refusedPlugins() map[string]string {
	return map[string]string{
		"extender": "it would wait for an HTTP server inside of every cycle, and no answer of it could be explained or repeated; write what it " +
			"decides as rows of a table",
	}
}

// idleArguments are what no table does and no plan lacks, with the reason that the author is told.
func idleArguments() map[string]string {
	const claims = "resource claims are not heeded here: pods that have one are placed by their other needs, and a warning counts them"
	const unread = "Volcano does not read it either"
	return map[string]string{
		"predicate.DynamicResourceAllocationEnable": claims,
		"capacity.DynamicResourceAllocationEnable":  claims,
		"metricsPeriod": "what is measured is what the API metrics.k8s.io says, over a time of its own; staleAfter says how old it may be",
		"strategies.lowNodeUtilization.thresholds.pods":            unread,
		"strategies.lowNodeUtilization.targetThresholds.pods":      unread,
		"strategies.lowNodeUtilization.thresholdPriorityClassName": unread,
		"strategies.lowNodeUtilization.numberOfNodes":              unread,
		"strategies.lowNodeUtilization.nodeFit":                    unread,
	}
}

// isLaterArgument says of an argument of Volcano's plugins that it is known, though no table has a param for it yet.
func isLaterArgument(name string) bool {
	return slices.Contains([]string{"predicate.VolumeBindingEnable", "volumebinding.weight"}, name) || strings.HasPrefix(name, "estimator.")
}

// pluginHint is what the author of an unknown plugin's name may have meant.
func pluginHint(name string, tables map[string]*rules.Table) string {
	all := slices.Concat(slices.Sorted(maps.Keys(tables)), slices.Sorted(maps.Keys(laterPlugins())))
	if near := source.Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "Volcano has none of that name; what a plugin of your own does can be rows of a table under inline"
}
