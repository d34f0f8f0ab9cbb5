package volcano

import (
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// flagSections returns which sections of a table each of Volcano's flags switches.
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
		"enabledAllocatable": {"allocatable", "bindable"},
	}
}

// hierarchyFlag sets a param, not a section. It is never on by default.
const hierarchyFlag = "enableHierarchy"

// idleFlags are accepted, but have no effect, because no table has what they switch.
func idleFlags() []string {
	return []string{
		"enableBestNode", "enableTargetJob", "enableReservedNodes", "EnabledClusterOrder", "enabledClusterOrder", "enableClusterOrder",
		"enabledHyperNodeOrder", "enabledHyperNodeGradient", "enabledSubJobOrder", "enabledSubJobReady", "enabledSubJobPipelined",
	}
}

// otherNames returns the tables of plugins that have another name in Volcano.
func otherNames() map[string]string { return map[string]string{"numa-aware": "numaaware"} }

// laterPlugins returns Volcano's plugins without a table, with the consequence of leaving them out.
func laterPlugins() map[string]string {
	return map[string]string{
		"network-topology-aware": "pods are placed without regard to HyperNodes",
	}
}

// pluginHint returns what the author of an unknown plugin name may have meant.
func pluginHint(name string, tables map[string]*rules.Table) string {
	all := slices.Concat(slices.Sorted(maps.Keys(tables)), slices.Sorted(maps.Keys(laterPlugins())))
	if near := source.Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "Volcano has none of that name; what a plugin of your own does can be rows of a table under inline"
}
