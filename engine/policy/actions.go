package policy

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// pipeline compiles the actions that a policy names. Its own definitions come before the built-in ones.
func (c *compiler) pipeline(spec source.Value) {
	own := c.definitions(spec.Get("actions"))
	var shipped map[string]source.Value
	if doc, issues := Embedded("actions"); doc != nil {
		shipped = c.definitions(doc.Root.Get("actions"))
	} else {
		c.issues = append(c.issues, issues...)
	}
	compiled := map[string]*Action{}
	for _, name := range sortedKeys(own) {
		compiled[name] = c.action(name, own[name])
	}
	known := append(sortedKeys(own), sortedKeys(shipped)...)
	for _, item := range c.items(c.need(spec, "pipeline")) {
		name := item.String(&c.issues)
		a := compiled[name]
		switch definition, ok := shipped[name]; {
		case a != nil || name == "" && item.Any() != "":
		case ok:
			a = c.action(name, definition)
			compiled[name] = a
		default:
			c.report(item.Issuef(source.Suggest(name, known)+"; or define it under spec.actions", "unknown action %q", name))
		}
		if a != nil {
			c.p.Pipeline, c.p.Actions = append(c.p.Pipeline, name), append(c.p.Actions, a)
		}
	}
	c.p.Layout.Pipeline = language.StringList(c.p.Pipeline)
	c.p.readsWaits = slices.ContainsFunc(c.p.Expressions(), func(e *eval.Expr) bool { return slices.ContainsFunc(e.Reads.All, ofWaits) })
}

func suggestList(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (c *compiler) definitions(v source.Value) map[string]source.Value {
	out := map[string]source.Value{}
	for _, item := range c.items(v) {
		item.Fields([]string{"name", "description", "steps"}, &c.issues)
		name := item.Get("name")
		if s := c.name(item); s != "" {
			if out[s].Exists() {
				c.report(name.Issuef("give it a name of its own", "duplicate name %q", s))
			}
			out[s] = item
		}
	}
	return out
}

func (c *compiler) action(name string, v source.Value) *Action {
	a := &Action{Name: name}
	s := &TableScope{
		compiler: c, entry: &entry{name: name, at: v, table: &rules.Table{}}, objects: c.objects,
		scopes: map[string]*rules.Scope{}, probe: &language.Frame{}, filters: true,
	}
	s.params = &rules.Object{Name: "Params", Type: language.Object("Params")}
	for _, item := range c.items(c.need(v, "steps")) {
		step := s.step(item)
		if step == nil || step.Gate(BeyondShare) && len(s.p.rules[BeyondShare]) == 0 {
			continue
		}
		step.number = len(a.Steps)
		a.Steps = append(a.Steps, step)
	}
	return a
}
