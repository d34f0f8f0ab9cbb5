package volcano

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Flags states the value of a flag that the author did not write.
type Flags uint8

const (
	// FlagsDefault is how Volcano's scheduler reads its ConfigMap: all flags are on, except enableHierarchy.
	FlagsDefault Flags = iota
	// FlagsExplicit is how Volcano's framework sees a configuration without defaults: all flags are off.
	FlagsExplicit
)

// Options are the caller's choices. The zero value is for a ConfigMap of a scheduler and the built-in tables.
type Options struct {
	Name  string // of the policy; "volcano" if empty
	Flags Flags
	// Tables contains a table for each plugin name; nil: those of Shipped.
	Tables map[string]*rules.Table
	// Actions contains the names of the existing actions; nil: the built-in actions.
	Actions []string
}

// Note tells the author of a configuration what happened to a part of it.
type Note struct {
	source.Issue // a warning, at its position
	// Lost names something that has an effect in Volcano, but is not in the policy: "plugin tdm", "action preempt", "nodeorder:
	// podaffinity.weight". It is "" if nothing is lost: the default is used, as in Volcano, or there was nothing to do.
	Lost string
}

// Conversion is a SchedulingPolicy that does the same as a configuration, except what the notes state.
type Conversion struct {
	Policy []byte // YAML
	Notes  []Note
}

// converter is the state of one conversion.
type converter struct {
	options Options
	issues  source.Issues
	notes   []Note
	used    map[string]int // number of entries by table name
}

// Convert returns the SchedulingPolicy that does the same as a Volcano configuration: a table for each plugin, sections switched by its
// flags, and params set from its arguments. It knows no table by name, because the params of a table state which argument they take. The
// notes state what was dropped, and the consequences. The error contains every plugin, action and argument that Volcano does not have
// either, and those that are refused.
func Convert(conf Conf, o Options) (*Conversion, error) {
	c := &converter{options: o, used: map[string]int{}}
	c.options.Name = cmp.Or(o.Name, "volcano")
	if o.Tables == nil {
		var issues source.Issues
		c.options.Tables, issues = policy.Shipped()
		c.issues = append(c.issues, issues...)
	}
	if o.Actions == nil {
		var issues source.Issues
		c.options.Actions, issues = policy.ShippedActions()
		c.issues = append(c.issues, issues...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata:\n  name: %s\nspec:\n  mode: Active\n",
		yamlText(c.options.Name))
	fmt.Fprintf(&b, "  pipeline: %s\n", yamlText(c.pipeline(conf)))
	if len(conf.Tiers) > 0 {
		b.WriteString("  tiers:\n")
	}
	for i, tier := range conf.Tiers {
		var entries strings.Builder
		for _, p := range tier {
			c.entry(&entries, p)
		}
		fmt.Fprintf(&b, "  - name: tier-%d\n    tables:%s\n%s", i+1, emptyList(entries.Len()), entries.String())
	}
	for _, a := range conf.Configurations {
		if !c.actionKnown(a.Name) {
			continue
		}
		for _, f := range a.Arguments {
			c.actionArgument(a.Name.Value, f)
		}
	}
	c.metrics(conf.Metrics)
	c.issues.Sort()
	if err := c.issues.Err(); err != nil {
		return &Conversion{Notes: c.notes}, err
	}
	return &Conversion{[]byte(b.String()), c.notes}, nil
}

// pipeline returns the actions. Actions that Volcano does not have either are issues.
func (c *converter) pipeline(conf Conf) []string {
	out := []string{}
	for _, a := range conf.Actions {
		if c.actionKnown(a) {
			out = append(out, a.Value)
		}
	}
	if len(conf.Actions) == 0 {
		c.note(conf.At, "", "write actions, such as: enqueue, allocate, backfill", "there are no actions: the policy does nothing")
	}
	return out
}

// actionKnown reports whether an action exists. An unknown action is an issue.
func (c *converter) actionKnown(a source.Text) bool {
	known := c.options.Actions
	if slices.Contains(known, a.Value) {
		return true
	}
	c.issues = append(c.issues, a.Issue(0, len([]rune(a.Value)), fmt.Sprintf("unknown action %q", a.Value), source.Suggest(a.Value, known)))
	return false
}

// actionArgument adds a note about an argument of an action. No param takes such an argument.
func (c *converter) actionArgument(action string, f source.Field) {
	gangs := action == "gangpreempt" || action == "gangreclaim"
	why, known := actionArguments()[action][f.Name]
	switch {
	case gangs && f.Name == "allowWholeBundle" && turnsOff(f.Value):
		c.note(f.Key, "action "+action+": "+f.Name,
			"define an action of that name under spec.actions, as the shipped one with wholeBundles: false",
			"action %s: argument %s is dropped: the shipped action lets gangs go as a whole", action, f.Name)
	case known:
		c.note(f.Key, "", "", "action %s: argument %s has no effect: %s", action, f.Name, why)
	default:
		c.issues = append(c.issues, f.Key.Issuef(source.Suggest(f.Name, slices.Sorted(maps.Keys(actionArguments()[action]))),
			"action %s: unknown argument %q", action, f.Name))
	}
}

func emptyList(n int) string {
	if n == 0 {
		return " []"
	}
	return ""
}

func noted(i source.Issue, lost string) Note {
	i.Severity = source.Warning
	return Note{i, lost}
}

// note adds a note at its position.
func (c *converter) note(at source.Value, lost, hint, format string, args ...any) {
	c.notes = append(c.notes, noted(at.Issuef(hint, format, args...), lost))
}

// entry writes one plugin as an entry of a tier.
func (c *converter) entry(b *strings.Builder, p Plugin) {
	name := p.At.Get("name")
	p.Name = cmp.Or(otherNames()[p.Name], p.Name)
	table, ok := c.options.Tables[p.Name]
	if !ok {
		follows, later := laterPlugins()[p.Name]
		switch {
		case later:
			c.note(name, "plugin "+p.Name, "", "plugin %s is dropped%s: no table stands for it yet, so %s", p.Name, withAll(p), follows)
		default:
			c.issues = append(c.issues, name.Issuef(pluginHint(p.Name, c.options.Tables), "unknown plugin %q", p.Name))
		}
		return
	}
	c.used[p.Name]++
	n := c.used[p.Name]
	if n > 1 && len(table.Attributes) > 0 {
		c.note(name, "", "", "the second entry of plugin %s is dropped%s: what its table computes cannot be there twice", p.Name, withAll(p))
		return
	}
	if n == 1 {
		fmt.Fprintf(b, "    - name: %s\n", yamlText(p.Name))
	} else {
		fmt.Fprintf(b, "    - name: %s\n      table: %s\n", yamlText(fmt.Sprintf("%s-%d", p.Name, n)), yamlText(p.Name))
	}
	params := map[string]any{}
	for _, f := range p.Arguments {
		c.argument(table, f.Name, f, params)
	}
	for _, x := range table.Params {
		if _, set := params[x.Name]; !set && x.AsVolcano.Exists() {
			params[x.Name] = x.AsVolcano.Any()
		}
	}
	switches := c.flags(table, p, params)
	if len(params) > 0 {
		fmt.Fprintf(b, "      params: %s\n", yamlText(params))
	}
	b.WriteString(switches)
}

// withAll returns the names of the arguments and flags that are dropped with their plugin.
func withAll(p Plugin) string {
	var names []string
	for _, f := range slices.Concat(p.Flags, p.Arguments) {
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return ", and with it " + strings.Join(names, ", ")
}

// flags returns the line that switches sections, "" if all sections of the table are on. It also sets the params that are flags.
func (c *converter) flags(table *rules.Table, p Plugin, params map[string]any) string {
	on := map[string]bool{}
	for _, f := range p.Flags {
		value := f.Value.Bool(&c.issues)
		on[f.Name] = value
		c.flag(table, p, f, value, params)
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

// flag sets the param of a flag that is on, or notes that the flag has no effect.
func (c *converter) flag(table *rules.Table, p Plugin, f source.Field, on bool, params map[string]any) {
	param := paramOf(table, f.Name)
	switch {
	case param != nil && on:
		params[param.Name] = true
	case param != nil:
	case f.Name == hierarchyFlag && on:
		c.note(f.Key, p.Name+": "+f.Name, "", "%s: %s is dropped: table %s knows no hierarchy", p.Name, f.Name, table.Name)
	case f.Name == hierarchyFlag:
		c.note(f.Key, "", "", "%s: %s has no effect: table %s knows no hierarchy", p.Name, f.Name, table.Name)
	case slices.Contains(idleFlags(), f.Name):
		c.note(f.Key, "", "", "%s: %s has no effect: no table has rows of the kind", p.Name, f.Name)
	case !slices.ContainsFunc(flagSections()[f.Name], func(s string) bool { return len(table.Sections[s]) > 0 }):
		c.note(f.Key, "", "", "%s: %s has no effect: table %s has no rows of %s", p.Name, f.Name, table.Name,
			strings.Join(flagSections()[f.Name], " or "))
	}
}

// Takes reports whether some param of the table takes an argument of that name.
func Takes(table *rules.Table, argument string) bool {
	p, _ := mapParamOf(table, argument)
	return p != nil || paramOf(table, argument) != nil
}

// paramOf returns the param that an argument with exactly this name sets.
func paramOf(table *rules.Table, argument string) *rules.Param {
	for _, p := range table.Params {
		if p.Volcano == argument {
			return p
		}
	}
	return nil
}

// mapParamOf returns the param of which the argument sets one key. The * in the param's argument name stands for the key. If several match,
// it returns the one with the longest fixed text.
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

// argument sets the param that takes an argument. A nested argument is treated as an argument with a dotted name.
func (c *converter) argument(table *rules.Table, name string, f source.Field, params map[string]any) {
	v := f.Value
	if p := paramOf(table, name); p != nil && name != hierarchyFlag {
		if p.Deprecated != "" {
			c.note(f.Key, "", "", "%s: argument %s has no effect: %s", table.Name, name, p.Deprecated)
			return
		}
		if items := mappings(v); items != nil {
			params[p.Name] = c.strategies(table, name, items, params)
			return
		}
		if x, err := c.value(p, p.Type, v); err != nil {
			c.note(v, "", "", "%s: argument %s: %v; the default is used", table.Name, name, err)
		} else {
			params[p.Name] = x
		}
		return
	}
	if p, key := mapParamOf(table, name); p != nil && v.Kind() != source.Map {
		if x, err := c.value(p, elementType(p.Type), v); err != nil {
			c.note(v, "", "", "%s: argument %s: %v; it is left out", table.Name, name, err)
		} else {
			setEntry(params, p.Name, key, x)
		}
		return
	}
	other, known := otherArguments()[table.Name][name]
	switch {
	case v.Kind() == source.Map && !known:
		for _, inner := range v.Fields(nil, &c.issues) {
			c.argument(table, name+"."+inner.Name, inner, params)
		}
	case !known:
		c.issues = append(c.issues, f.Key.Issuef(argumentHint(table, name), "%s: unknown argument %q", table.Name, name))
	default:
		c.other(table, name, f, other)
	}
}

// other adds a note or an issue about an argument that no param takes.
func (c *converter) other(table *rules.Table, name string, f source.Field, x argument) {
	switch {
	case x.fate == idle || x.fate == always && !turnsOff(f.Value):
		c.note(f.Key, "", "", "%s: argument %s has no effect: %s", table.Name, name, x.why)
	case x.fate == refused && fmt.Sprint(f.Value.Any()) == "":
		c.note(f.Key, "", "", "%s: argument %s has no effect: it is empty", table.Name, name)
	case x.fate == refused:
		c.issues = append(c.issues, f.Key.Issuef("remove it", "%s: argument %s is not supported: %s", table.Name, name, x.why))
	case x.fate == lost && turnsOff(f.Value):
		c.note(f.Key, "", "", "%s: argument %s has no effect: there is nothing to turn off yet", table.Name, name)
	default:
		c.note(f.Key, table.Name+": "+name, "", "%s: argument %s is dropped: %s", table.Name, name, x.why)
	}
}

// setEntry sets an entry of a param that is a map.
func setEntry(params map[string]any, name, key string, x any) {
	entries, _ := params[name].(map[string]any)
	if entries == nil {
		entries = map[string]any{}
	}
	entries[key] = x
	params[name] = entries
}

// mappings returns the elements of a list of mappings; nil: the value is no such list.
func mappings(v source.Value) []source.Value {
	if v.Kind() != source.List {
		return nil
	}
	items := v.Items(&source.Issues{})
	if slices.ContainsFunc(items, func(item source.Value) bool { return item.Kind() != source.Map }) {
		return nil
	}
	return items
}

// strategies returns the names in a list of mappings. Each mapping contains a name and params, which become arguments with dotted names. It
// leaves out names for which the table has no param.
func (c *converter) strategies(table *rules.Table, name string, elements []source.Value, params map[string]any) []string {
	names := []string{}
	for _, item := range elements {
		at := item.Get("name")
		if !at.Exists() {
			at = item
		}
		own := name + "." + item.Get("name").String(&c.issues)
		if !slices.ContainsFunc(table.Params, func(p *rules.Param) bool { return strings.HasPrefix(p.Volcano, own+".") }) {
			c.note(at, "", "", "%s: argument %s is dropped: Volcano has nothing of that name either", table.Name, own)
			continue
		}
		names = append(names, strings.TrimPrefix(own, name+"."))
		for _, f := range item.Fields([]string{"name", "params"}, &c.issues) {
			if f.Name == "params" && f.Value.Kind() != source.Null {
				for _, inner := range f.Value.Fields(nil, &c.issues) {
					c.argument(table, own+"."+inner.Name, inner, params)
				}
			}
		}
	}
	return names
}

// turnsOff reports whether an argument turns something off. This is no loss if that does not exist here.
func turnsOff(v source.Value) bool {
	return slices.Contains([]string{"0", "false"}, fmt.Sprint(v.Any()))
}

// elementType returns T of "map(string,T)".
func elementType(t string) string {
	_, element, ok := strings.Cut(strings.TrimSuffix(t, ")"), ",")
	if !ok {
		return t
	}
	return strings.TrimSpace(element)
}

// value reads an argument as Volcano does, which also accepts numbers and booleans as strings. For an argument that is an error, Volcano
// uses its default.
func (c *converter) value(p *rules.Param, kind string, v source.Value) (any, error) {
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
		if slices.Contains(quantities(), p.Volcano) {
			q, err := decode.Quantity(text)
			x := q.AsApproximateFloat64()
			return x, cmp.Or(explain(err, "must be an amount such as 250m or 200Mi, found %q", text), bounds(p, x))
		}
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
		var issues source.Issues
		list := words(v, &issues)
		return list, issues.Err()
	}
	if v.Kind() != source.Map {
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

// bounds checks a number against the bounds of a param. Bounds of durations are in Go's syntax, and are compared in seconds.
func bounds(p *rules.Param, x float64) error {
	for _, side := range []struct {
		bound source.Value
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

// yamlText writes a value in flow style: names without quotes, other strings quoted, maps in key order.
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

// plain reports whether every YAML reader reads the text as a string without quotes.
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
