package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/rules"
)

// VolcanoConf is a Volcano scheduler's configuration, as read by ReadVolcanoConf.
type VolcanoConf struct {
	Actions        []string
	Tiers          [][]VolcanoPlugin
	Configurations []VolcanoAction
}

// VolcanoPlugin is one plugin of a tier. Flags that the author did not write are not in Flags.
type VolcanoPlugin struct {
	Name      string
	Flags     []rules.Field // enableJobOrder and its like
	Arguments []rules.Field
	At        rules.Value
}

// VolcanoAction is the arguments of one action.
type VolcanoAction struct {
	Name      string
	Arguments []rules.Field
}

// Flags says what a flag means that the author did not write.
type Flags uint8

const (
	// FlagsDefault is how Volcano's scheduler reads its ConfigMap: on, but for enableHierarchy.
	FlagsDefault Flags = iota
	// FlagsExplicit is how Volcano's framework sees a configuration that nobody has filled in: off.
	FlagsExplicit
)

// ConvertOptions are the caller's choices.
type ConvertOptions struct {
	Name   string // of the policy; "volcano" if empty
	Flags  Flags
	Tables map[string]*rules.Table // by plugin; Shipped() gives them
}

// Shipped reads the tables that ship, by name.
func Shipped() (map[string]*rules.Table, rules.Issues) {
	out := map[string]*rules.Table{}
	var issues rules.Issues
	for _, name := range ShippedNames() {
		doc, found := Embedded(name)
		issues = append(issues, found...)
		if doc != nil {
			out[name] = rules.ReadTable(doc.Root, name, Shape(), []string{"apiVersion", "kind", "metadata"}, &issues)
		}
	}
	return out, issues
}

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
		"enableBestNode", "enableTargetJob", "enableReservedNodes", "enabledClusterOrder", "enableClusterOrder",
		"enabledHyperNodeOrder", "enabledHyperNodeGradient", "enabledSubJobOrder", "enabledSubJobReady", "enabledSubJobPipelined",
	}
}

// droppedArguments are what no table does, with the reason that the author is told.
func droppedArguments() map[string]string {
	const claims = "resource claims are not heeded here: pods that have one are placed by their other needs, and a warning counts them"
	return map[string]string{
		"predicate.DynamicResourceAllocationEnable": claims,
		"capacity.DynamicResourceAllocationEnable":  claims,
	}
}

// ReadVolcanoConf reads the mapping of actions, tiers and configurations; unknown keys are issues.
func ReadVolcanoConf(v rules.Value, issues *rules.Issues) VolcanoConf {
	var conf VolcanoConf
	for _, f := range v.Fields([]string{"actions", "tiers", "configurations", "metrics"}, issues) {
		switch f.Name {
		case "actions":
			conf.Actions = words(f.Value, issues)
		case "tiers":
			for _, tier := range f.Value.Items(issues) {
				conf.Tiers = append(conf.Tiers, readTier(tier, issues))
			}
		case "configurations":
			for _, item := range f.Value.Items(issues) {
				a := VolcanoAction{}
				for _, k := range item.Fields([]string{"name", "arguments"}, issues) {
					if k.Name == "name" {
						a.Name = k.Value.String(issues)
					} else if k.Value.Kind() != rules.Null {
						a.Arguments = k.Value.Fields(nil, issues)
					}
				}
				conf.Configurations = append(conf.Configurations, a)
			}
		}
	}
	return conf
}

// words is a list of strings, or one string with commas.
func words(v rules.Value, issues *rules.Issues) []string {
	if v.Kind() == rules.List {
		return v.Strings(issues)
	}
	var out []string
	for w := range strings.SplitSeq(v.String(issues), ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func readTier(tier rules.Value, issues *rules.Issues) []VolcanoPlugin {
	var out []VolcanoPlugin
	known := slices.Concat([]string{"name", "arguments", hierarchyFlag}, slices.Sorted(maps.Keys(flagSections())), idleFlags())
	for _, f := range tier.Fields([]string{"plugins"}, issues) {
		for _, item := range f.Value.Items(issues) {
			p := VolcanoPlugin{At: item}
			for _, k := range item.Fields(known, issues) {
				switch {
				case k.Name == "name":
					p.Name = k.Value.String(issues)
				case k.Name != "arguments":
					p.Flags = append(p.Flags, k)
				case k.Value.Kind() != rules.Null:
					p.Arguments = k.Value.Fields(nil, issues)
				}
			}
			out = append(out, p)
		}
	}
	return out
}

// converter is the state of one conversion.
type converter struct {
	options  ConvertOptions
	issues   rules.Issues
	warnings []string
	used     map[string]int // how many entries have a table's name
}

// Convert writes the SchedulingPolicy that does what a Volcano configuration does: a table for
// each plugin, sections switched by its flags, params set from its arguments. It knows no plugin by
// name; the tables' params say which argument is theirs. The warnings tell what was dropped. The
// error names every plugin that has no table and every argument that no param takes.
func Convert(conf VolcanoConf, o ConvertOptions) (policy []byte, warnings []string, err error) {
	c := &converter{options: o, used: map[string]int{}}
	var b strings.Builder
	name := o.Name
	if name == "" {
		name = "volcano"
	}
	fmt.Fprintf(&b, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata:\n  name: %s\nspec:\n  mode: Active\n", yamlText(name))
	fmt.Fprintf(&b, "  pipeline: %s\n", yamlText(conf.Actions))
	if len(conf.Tiers) > 0 {
		b.WriteString("  tiers:\n")
	}
	for i, tier := range conf.Tiers {
		fmt.Fprintf(&b, "  - name: tier-%d\n    tables:%s\n", i+1, emptyList(len(tier)))
		for _, p := range tier {
			c.entry(&b, p)
		}
	}
	for _, a := range conf.Configurations {
		for _, f := range a.Arguments {
			c.warn(f.Value, "action %s: argument %s has no effect", a.Name, f.Name)
		}
	}
	if err := c.issues.Err(); err != nil {
		return nil, c.warnings, err
	}
	return []byte(b.String()), c.warnings, nil
}

func emptyList(n int) string {
	if n == 0 {
		return " []"
	}
	return ""
}

// warn notes what the author should know, with its line where it has one.
func (c *converter) warn(at rules.Value, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if line, _ := at.Pos(); line > 0 {
		text = fmt.Sprintf("line %d: %s", line, text)
	}
	c.warnings = append(c.warnings, text)
}

// entry writes one plugin as an entry of a tier.
func (c *converter) entry(b *strings.Builder, p VolcanoPlugin) {
	table, ok := c.options.Tables[p.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(c.options.Tables))
		hint := "the tables are " + strings.Join(known, ", ")
		if near := rules.Nearest(p.Name, known); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		c.issues = append(c.issues, p.At.Get("name").Issuef(hint, "no table stands for plugin %q", p.Name))
		return
	}
	c.used[p.Name]++
	if n := c.used[p.Name]; n == 1 {
		fmt.Fprintf(b, "    - name: %s\n", yamlText(p.Name))
	} else {
		fmt.Fprintf(b, "    - name: %s\n      table: %s\n", yamlText(fmt.Sprintf("%s-%d", p.Name, n)), yamlText(p.Name))
	}
	params := map[string]any{}
	for _, f := range p.Arguments {
		c.argument(table, f.Name, f.Value, params)
	}
	switches := c.flags(table, p, params)
	if len(params) > 0 {
		fmt.Fprintf(b, "      params: %s\n", yamlText(params))
	}
	b.WriteString(switches)
}

// flags gives the line that switches sections, "" where all that the table has are on, and sets the params that are flags.
func (c *converter) flags(table *rules.Table, p VolcanoPlugin, params map[string]any) string {
	on := map[string]bool{}
	for _, f := range p.Flags {
		value := f.Value.Bool(&c.issues)
		switch param := paramOf(table, f.Name); {
		case param != nil && value:
			params[param.Name] = true
		case param == nil && value && (f.Name == hierarchyFlag || slices.Contains(idleFlags(), f.Name)):
			c.warn(f.Value, "%s: %s has no effect: no row of table %s reads it", p.Name, f.Name, table.Name)
		}
		on[f.Name] = value
	}
	var only, without []string
	sections := flagSections()
	for _, flag := range slices.Sorted(maps.Keys(sections)) {
		value, written := on[flag]
		if !written {
			value = c.options.Flags == FlagsDefault
		}
		for _, s := range sections[flag] {
			switch {
			case len(table.Sections[s]) == 0:
			case value:
				only = append(only, s)
			default:
				without = append(without, s)
			}
		}
	}
	switch {
	case len(without) == 0:
		return ""
	case c.options.Flags == FlagsExplicit:
		return fmt.Sprintf("      only: %s\n", yamlText(only))
	}
	return fmt.Sprintf("      without: %s\n", yamlText(without))
}

// Takes says whether some param of the table takes an argument of that name.
func Takes(table *rules.Table, argument string) bool {
	p, _ := mapParamOf(table, argument)
	_, dropped := droppedArguments()[argument]
	return p != nil || dropped || paramOf(table, argument) != nil
}

// paramOf is the param that an argument of that exact name sets.
func paramOf(table *rules.Table, argument string) *rules.Param {
	for _, p := range table.Params {
		if p.Volcano == argument {
			return p
		}
	}
	return nil
}

// mapParamOf is the param of which the argument sets one key, where * in its name stands for the
// key: the one with the longest fixed text.
func mapParamOf(table *rules.Table, argument string) (param *rules.Param, key string) {
	longest := -1
	for _, p := range table.Params {
		before, after, star := strings.Cut(p.Volcano, "*")
		if !star || len(argument) <= len(before)+len(after) || len(before)+len(after) <= longest ||
			!strings.HasPrefix(argument, before) || !strings.HasSuffix(argument, after) {
			continue
		}
		param, key, longest = p, argument[len(before):len(argument)-len(after)], len(before)+len(after)
	}
	return param, key
}

// argument sets the param that takes an argument; a nested argument is one of a dotted name.
func (c *converter) argument(table *rules.Table, name string, v rules.Value, params map[string]any) {
	if p := paramOf(table, name); p != nil {
		if x, err := c.value(p, p.Type, v); err != nil {
			c.warn(v, "%s: argument %s: %v; the default is used", table.Name, name, err)
		} else {
			params[p.Name] = x
		}
		return
	}
	if p, key := mapParamOf(table, name); p != nil && v.Kind() != rules.Map {
		x, err := c.value(p, elementType(p.Type), v)
		if err != nil {
			c.warn(v, "%s: argument %s: %v; it is left out", table.Name, name, err)
			return
		}
		entries, _ := params[p.Name].(map[string]any)
		if entries == nil {
			entries = map[string]any{}
		}
		entries[key] = x
		params[p.Name] = entries
		return
	}
	if v.Kind() == rules.Map {
		for _, f := range v.Fields(nil, &c.issues) {
			c.argument(table, name+"."+f.Name, f.Value, params)
		}
		return
	}
	if why, ok := droppedArguments()[name]; ok {
		c.warn(v, "%s: argument %s is dropped: %s", table.Name, name, why)
		return
	}
	c.issues = append(c.issues, v.Issuef(argumentHint(table, name), "table %s has no param for argument %q", table.Name, name))
}

// argumentHint is what the author may have meant.
func argumentHint(table *rules.Table, name string) string {
	var known []string
	for _, p := range table.Params {
		if p.Volcano != "" {
			known = append(known, p.Volcano)
		}
	}
	if len(known) == 0 {
		return "it takes none"
	}
	if near := rules.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "it takes " + strings.Join(known, ", ")
}

// elementType of "map(string,T)" is T.
func elementType(t string) string {
	_, element, ok := strings.Cut(strings.TrimSuffix(t, ")"), ",")
	if !ok {
		return t
	}
	return strings.TrimSpace(element)
}

// value reads an argument as Volcano does, which takes numbers and truth values as strings, too; an error is
// one that Volcano meets by using its default.
func (c *converter) value(p *rules.Param, kind string, v rules.Value) (any, error) {
	whole := v.Any()
	text := strings.TrimSpace(fmt.Sprint(whole))
	switch kind {
	case "bool":
		x, err := strconv.ParseBool(text)
		return x, explain(err, "must be true or false, found %q", text)
	case "int":
		x, err := strconv.ParseInt(text, 10, 64)
		return x, cmp.Or(explain(err, "must be a whole number, found %q", text), bounds(p, float64(x)))
	case "double":
		x, err := strconv.ParseFloat(text, 64)
		return x, cmp.Or(explain(err, "must be a number, found %q", text), bounds(p, x))
	case "duration":
		x, err := time.ParseDuration(text)
		return text, cmp.Or(explain(err, "must be a duration such as 3m, found %q", text), bounds(p, x.Seconds()))
	case "string":
		if len(p.Enum) > 0 && !slices.Contains(p.Enum, text) {
			return nil, fmt.Errorf("must be one of %s, found %q", strings.Join(p.Enum, ", "), text)
		}
		return text, nil
	case "list(string)":
		var issues rules.Issues
		list := words(v, &issues)
		return list, issues.Err()
	}
	if v.Kind() != rules.Map {
		return nil, fmt.Errorf("must be a mapping, found %q", text)
	}
	return whole, nil
}

func explain(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// bounds checks a number against a param's; a duration's are in Go's syntax and compared in seconds.
func bounds(p *rules.Param, x float64) error {
	for _, side := range []struct {
		bound rules.Value
		sign  float64
		text  string
	}{{p.Min, 1, "at least"}, {p.Max, -1, "at most"}} {
		if !side.bound.Exists() {
			continue
		}
		text := fmt.Sprint(side.bound.Any())
		limit, err := strconv.ParseFloat(text, 64)
		if d, e := time.ParseDuration(text); err != nil && e == nil {
			limit = d.Seconds()
		}
		if side.sign*x < side.sign*limit {
			return fmt.Errorf("must be %s %s, found %v", side.text, text, x)
		}
	}
	return nil
}

// yamlText writes a value in flow style: names plainly, other strings quoted, maps by key.
func yamlText(v any) string {
	switch x := v.(type) {
	case string:
		if plain(x) {
			return x
		}
	case []string:
		parts := make([]string, len(x))
		for i, s := range x {
			parts[i] = yamlText(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, yamlText(k)+": "+yamlText(x[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(fmt.Sprint(v))
	}
	return string(text)
}

// plain says whether every reader of YAML takes the text for a string without quotes.
func plain(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inside := letter || c == '-' || c >= '0' && c <= '9'
		if !inside || i == 0 && !letter {
			return false
		}
	}
	return s != "" && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s))
}
