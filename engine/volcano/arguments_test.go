package volcano

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// documented returns the arguments of Volcano's plugins as Volcano documents them; * stands for any name. Plugins that are missing here
// take no arguments.
func documented() map[string]string {
	return map[string]string{
		"binpack": "binpack.weight binpack.cpu binpack.memory binpack.resources binpack.resources.*",
		"capacity": "ancestorReclaimLevel rootQueue capacity.DynamicResourceAllocationEnable " +
			"capacity.DRAConsumableCapacityEnable",
		"deviceshare": "deviceshare.GPUSharingEnable deviceshare.GPUNumberEnable deviceshare.NodeLockEnable deviceshare.VGPUEnable " +
			"deviceshare.SchedulePolicy deviceshare.ScheduleWeight deviceshare.GPUExclusiveRules deviceshare.KnownGeometriesCMName " +
			"deviceshare.KnownGeometriesCMNamespace deviceshare.ASCEND310PVNPUEnable deviceshare.AscendHAMiVNPUEnable " +
			"deviceshare.AscendMindClusterVNPUEnable",
		"extender": "extender.urlPrefix extender.httpTimeout extender.onSessionOpenVerb extender.onSessionCloseVerb extender.predicateVerb " +
			"extender.prioritizeVerb extender.preemptableVerb extender.reclaimableVerb extender.queueOverusedVerb extender.jobEnqueueableVerb " +
			"extender.jobEnqueuedVerb extender.jobReadyVerb extender.allocateFuncVerb extender.deallocateFuncVerb extender.managedResources " +
			"extender.ignorable",
		"nodegroup": "strict enablePreferredOrder",
		"nodeorder": "leastrequested.weight mostrequested.weight nodeaffinity.weight podaffinity.weight balancedresource.weight " +
			"tainttoleration.weight imagelocality.weight podtopologyspread.weight",
		"numaaware":  "weight",
		"overcommit": "overcommit-factor",
		"predicates": "predicate.NodeAffinityEnable predicate.NodePortsEnable predicate.TaintTolerationEnable predicate.PodAffinityEnable " +
			"predicate.NodeVolumeLimitsEnable predicate.VolumeZoneEnable predicate.PodTopologySpreadEnable predicate.VolumeBindingEnable " +
			"predicate.DynamicResourceAllocationEnable predicate.CacheEnable predicate.ProportionalEnable predicate.resources " +
			"predicate.resources.*.cpu predicate.resources.*.memory volumebinding.weight " +
			"predicate.GPUSharingEnable predicate.GPUNumberEnable predicate.VGPUEnable",
		"rescheduling": "interval metricsPeriod queueSelector labelSelector.* strategies strategies.lowNodeUtilization.thresholds.cpu " +
			"strategies.lowNodeUtilization.thresholds.memory strategies.lowNodeUtilization.thresholds.pods " +
			"strategies.lowNodeUtilization.targetThresholds.cpu strategies.lowNodeUtilization.targetThresholds.memory " +
			"strategies.lowNodeUtilization.targetThresholds.pods strategies.lowNodeUtilization.thresholdPriorityClassName " +
			"strategies.lowNodeUtilization.numberOfNodes strategies.lowNodeUtilization.nodeFit",
		"resource-strategy-fit": "resourceStrategyFitWeight resources.*.type resources.*.weight sra.enable sra.weight sra.resources " +
			"sra.resourceWeight.* proportional.enable proportional.resources proportional.resourceProportion.*",
		"sla":           "sla-waiting-time",
		"task-topology": "task-topology.weight",
		"tdm":           "tdm.revocable-zone.* tdm.evict.period",
		"usage": "usage.weight cpu.weight memory.weight thresholds.cpu thresholds.mem estimator.request_ratio estimator.burst_ratio " +
			"estimator.risk_threshold estimator.risk_factor estimator.be_cpu estimator.be_mem",
	}
}

// TestEveryArgumentIsKnown checks that params and otherArguments list exactly the documented arguments of each plugin.
func TestEveryArgumentIsKnown(t *testing.T) {
	tables := withoutTables()
	for name, table := range tables {
		known := slices.Collect(maps.Keys(otherArguments()[name]))
		for _, p := range table.Params {
			if p.Volcano != "" && p.Volcano != hierarchyFlag {
				known = append(known, p.Volcano)
			}
		}
		slices.Sort(known)
		want := strings.Fields(documented()[name])
		slices.Sort(want)
		if !slices.Equal(known, want) {
			t.Errorf("%s takes %v, and what is documented is %v", name, known, want)
		}
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(otherArguments())), maps.Keys(documented())) {
		if tables[name] == nil {
			t.Errorf("there is no table %s", name)
		}
	}
}

// written is an argument of a configuration, by its dotted name.
type written struct {
	name  string
	value any
}

// flat returns arguments with dotted names.
func flat(prefix string, fields []source.Field) (out []written) {
	for _, f := range fields {
		name := prefix + f.Name
		switch items := mappings(f.Value); {
		case f.Value.Kind() == source.Map:
			out = append(out, flat(name+".", f.Value.Fields(nil, &source.Issues{}))...)
		case items != nil && name == "strategies":
			names := []any{}
			for _, item := range items {
				own := item.Get("name").Any()
				names = append(names, own)
				out = append(out, flat(fmt.Sprintf("%s.%v.", name, own), item.Get("params").Fields(nil, &source.Issues{}))...)
			}
			out = append(out, written{name, names})
		default:
			out = append(out, written{name, f.Value.Any()})
		}
	}
	return out
}

// everyArgument returns the configurations that together contain every argument.
func everyArgument(t *testing.T) (confs []Conf) {
	t.Helper()
	a, err := txtar.ParseFile("testdata/convert/every_argument.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files[:2] {
		conf, issues := Parse(f.Name, f.Data)
		if err := issues.Err(); err != nil {
			t.Fatal(err)
		}
		confs = append(confs, conf)
	}
	return confs
}

// converted converts a text, and returns the policy and all messages to the author.
func converted(t *testing.T, tables map[string]*rules.Table, text string) (policy, told string) {
	t.Helper()
	conf, issues := readConf(t, text)
	if err := issues.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, err := Convert(conf, Options{Tables: tables})
	if refused, ok := errors.AsType[source.Issues](err); ok {
		for _, i := range refused {
			told += i.Message + "; " + i.Hint + "\n"
		}
	}
	return string(got.Policy), told + messages(got.Notes)
}

// TestNoArgumentIsDroppedInSilence writes every documented argument with a value other than its default. The argument must be in the
// policy, or a message must name it to the author. A misspelt argument is reported as unknown.
func TestNoArgumentIsDroppedInSilence(t *testing.T) {
	tables := withoutTables("network-topology-aware")
	left := documented()
	for _, conf := range everyArgument(t) {
		for _, p := range slices.Concat(conf.Tiers...) {
			plain, _ := converted(t, tables, fmt.Sprintf("actions: allocate\ntiers: [{plugins: [{name: %s}]}]\n", p.Name))
			for _, x := range flat("", p.Arguments) {
				policy, told := converted(t, tables, oneArgument(t, p.Name, x))
				if policy == plain && !strings.Contains(told, x.name) || policy == "" && told == "" {
					t.Errorf("%s: %s: %v is dropped in silence", p.Name, x.name, x.value)
				}
				table := tables[tableName(p.Name)]
				if table == nil {
					continue
				}
				left[table.Name] = without(left[table.Name], x.name)
				if isDefault(table, x) {
					t.Errorf("%s: %s: %v is its default, and shows nothing", p.Name, x.name, x.value)
				}
				misspelt(t, tables, p.Name, x)
			}
		}
	}
	for plugin, names := range left {
		if names != "" {
			t.Errorf("%s: %s: no configuration of testdata/convert/every_argument.txtar has it", plugin, names)
		}
	}
}

// isDefault reports whether an argument only repeats the default of its param. It does not apply to strategies.
func isDefault(table *rules.Table, x written) bool {
	param := paramOf(table, x.name)
	return param != nil && param.Default.Exists() && fmt.Sprint(param.Default.Any()) == fmt.Sprint(x.value) && x.name != "strategies"
}

// tableName returns the name of the table that stands for a plugin.
func tableName(plugin string) string {
	if name, other := otherNames()[plugin]; other {
		return name
	}
	return plugin
}

// oneArgument returns a configuration of one plugin with one argument.
func oneArgument(t *testing.T, plugin string, x written) string {
	t.Helper()
	out, err := json.Marshal(map[string]any{x.name: x.value})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("actions: allocate\ntiers: [{plugins: [{name: %s, arguments: %s}]}]\n", plugin, out)
}

// without returns the documented names except those that stand for an argument.
func without(names, argument string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(names), func(name string) bool {
		before, after, star := strings.Cut(name, "*")
		return name == argument || star && len(argument) > len(before)+len(after) && strings.HasPrefix(argument, before) &&
			strings.HasSuffix(argument, after)
	}), " ")
}

// misspelt writes an argument with an extra letter at its end.
func misspelt(t *testing.T, tables map[string]*rules.Table, plugin string, x written) {
	t.Helper()
	x.name += "x"
	if Takes(tables[tableName(plugin)], x.name) {
		return // any name is allowed there
	}
	_, told := converted(t, tables, oneArgument(t, plugin, x))
	if !strings.Contains(told, fmt.Sprintf("unknown argument %q", x.name)) {
		t.Errorf("%s: %s is misspelt, and the author is told %q", plugin, x.name, told)
	}
}

// TestNoFlagIsDroppedInSilence checks each flag of each plugin, on and off. The flag must change the policy, or a message must name it to
// the author.
func TestNoFlagIsDroppedInSilence(t *testing.T) {
	tables := withoutTables("network-topology-aware")
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		plain, _ := converted(t, tables, fmt.Sprintf("actions: allocate\ntiers: [{plugins: [{name: %s}]}]\n", name))
		for _, flag := range slices.Concat(slices.Sorted(maps.Keys(flagSections())), idleFlags(), []string{hierarchyFlag}) {
			changes := map[bool]bool{}
			for _, on := range []bool{false, true} {
				policy, told := converted(t, tables, fmt.Sprintf("actions: allocate\ntiers: [{plugins: [{name: %s, %s: %t}]}]\n", name, flag, on))
				changes[on] = policy != plain
				if strings.Contains(told, flag) {
					changes[on] = true
				}
			}
			if !changes[false] && !changes[true] {
				t.Errorf("%s: %s is dropped in silence", name, flag)
			}
		}
	}
}

// TestNoActionArgumentIsDroppedInSilence checks that a message names each argument of an action, and each key of metrics, to the author.
func TestNoActionArgumentIsDroppedInSilence(t *testing.T) {
	conf := everyArgument(t)[0]
	got, err := Convert(conf, Options{Tables: withoutTables("network-topology-aware")})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, n := range got.Notes {
		told += n.Message + "; " + n.Hint + "\n"
	}
	left := actionArguments()
	for _, a := range conf.Configurations {
		for _, f := range a.Arguments {
			delete(left[a.Name.Value], f.Name)
			if !strings.Contains(told, fmt.Sprintf("action %s: argument %s ", a.Name.Value, f.Name)) {
				t.Errorf("action %s: %s is dropped in silence", a.Name.Value, f.Name)
			}
		}
	}
	for action, arguments := range left {
		for name := range arguments {
			t.Errorf("action %s: %s: no configuration of testdata/convert/every_argument.txtar has it", action, name)
		}
	}
	for _, f := range conf.Metrics.Fields(nil, &source.Issues{}) {
		if name := strings.TrimPrefix(f.Name, "type"); !strings.Contains(told, name) {
			t.Errorf("metrics: %s is dropped in silence", f.Name)
		}
	}
}
