// Package text writes policies as text: unchanged, or with all referenced tables and actions included.
package text

import (
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Resolve writes a policy with every built-in table and action that it names included, so that it depends on nothing else. The function
// rename returns the name of an included table's entry; nil keeps the names.
func Resolve(doc *source.Document, rename func(table string) string) ([]byte, source.Issues) {
	if _, issues := policy.Load(doc); issues.Err() != nil {
		return nil, issues
	}
	r := &resolver{rename: rename}
	if rename == nil {
		r.rename = func(table string) string { return table }
	}
	root := r.copy(doc.Root, map[string]func(source.Value) any{"spec": r.spec})
	if r.issues.Err() != nil {
		return nil, r.issues
	}
	out, err := source.Write(root)
	if err != nil {
		return nil, source.Issues{doc.Root.Issuef("", "%v", err)}
	}
	return out, nil
}

type resolver struct {
	rename func(string) string
	issues source.Issues
}

// copy copies a mapping and changes some of its fields.
func (r *resolver) copy(v source.Value, change map[string]func(source.Value) any) []source.Entry {
	var out []source.Entry
	for _, f := range v.Fields(nil, &r.issues) {
		if with, ok := change[f.Name]; ok {
			out = append(out, source.Entry{Name: f.Name, Value: with(f.Value)})
			continue
		}
		out = append(out, source.Entry{Name: f.Name, Value: f.Value})
	}
	return out
}

func (r *resolver) spec(v source.Value) any {
	out := r.copy(v, map[string]func(source.Value) any{
		"tiers": func(tiers source.Value) any {
			return r.each(tiers, func(tier source.Value) []source.Entry {
				return r.copy(tier, map[string]func(source.Value) any{"tables": func(tables source.Value) any { return r.each(tables, r.table) }})
			})
		},
		"actions": func(actions source.Value) any { return r.actions(v, actions) },
	})
	if !v.Get("actions").Exists() {
		out = append(out, source.Entry{Name: "actions", Value: r.actions(v, source.Value{})})
	}
	return out
}

func (r *resolver) each(v source.Value, f func(source.Value) []source.Entry) [][]source.Entry {
	var out [][]source.Entry
	for _, item := range v.Items(&r.issues) {
		out = append(out, f(item))
	}
	return out
}

// table writes a built-in table under inline.
func (r *resolver) table(v source.Value) []source.Entry {
	if v.Get("inline").Exists() {
		return r.copy(v, nil)
	}
	name := v.Get("name").String(&r.issues)
	shipped := name
	if t := v.Get("table"); t.Exists() {
		shipped = t.String(&r.issues)
	}
	out := []source.Entry{{Name: "name", Value: r.rename(name)}}
	for _, f := range v.Fields(nil, &r.issues) {
		if f.Name != "name" && f.Name != "table" {
			out = append(out, source.Entry{Name: f.Name, Value: f.Value})
		}
	}
	doc, issues := policy.Embedded(shipped)
	r.issues = append(r.issues, issues...)
	if doc == nil {
		return out
	}
	var body []source.Entry
	for _, f := range doc.Root.Fields(nil, &r.issues) {
		if f.Name != "apiVersion" && f.Name != "kind" && f.Name != "metadata" {
			body = append(body, source.Entry{Name: f.Name, Value: f.Value})
		}
	}
	return append(out, source.Entry{Name: "inline", Value: body})
}

// actions returns the policy's own actions, and the built-in ones that its pipeline names.
func (r *resolver) actions(spec, own source.Value) [][]source.Entry {
	var out [][]source.Entry
	seen := map[string]bool{}
	if own.Exists() {
		for _, a := range own.Items(&r.issues) {
			seen[a.Get("name").String(&r.issues)] = true
			out = append(out, r.copy(a, nil))
		}
	}
	doc, issues := policy.Embedded("actions")
	r.issues = append(r.issues, issues...)
	if doc == nil {
		return out
	}
	wanted := spec.Get("pipeline").Strings(&r.issues)
	for _, a := range doc.Root.Get("actions").Items(&r.issues) {
		name := a.Get("name").String(&r.issues)
		for _, w := range wanted {
			if w == name && !seen[name] {
				seen[name] = true
				out = append(out, r.copy(a, nil))
			}
		}
	}
	return out
}

// Show checks a policy and writes it unchanged.
func Show(doc *source.Document) ([]byte, source.Issues) {
	if _, issues := policy.Load(doc); issues.Err() != nil {
		return nil, issues
	}
	r := &resolver{}
	out, err := source.Write(r.copy(doc.Root, nil))
	if err != nil {
		return nil, source.Issues{doc.Root.Issuef("", "%v", err)}
	}
	return out, nil
}
