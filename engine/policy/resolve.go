package policy

import (
	"github.com/celsius-scheduler/celsius/rules"
)

// Resolve writes a policy with every shipped table and action that it names written out in it, so that nothing of
// what it does lies elsewhere. rename gives each written-out table the name of its entry; nil keeps them.
func Resolve(doc *rules.Document, rename func(table string) string) ([]byte, rules.Issues) {
	if _, issues := Load(doc); issues.Err() != nil {
		return nil, issues
	}
	r := &resolver{rename: rename}
	if rename == nil {
		r.rename = func(table string) string { return table }
	}
	root := r.copy(doc.Root, map[string]func(rules.Value) any{"spec": r.spec})
	if r.issues.Err() != nil {
		return nil, r.issues
	}
	out, err := rules.Write(root)
	if err != nil {
		return nil, rules.Issues{doc.Root.Issuef("", "%v", err)}
	}
	return out, nil
}

type resolver struct {
	rename func(string) string
	issues rules.Issues
}

// copy keeps a mapping but for the fields that change names.
func (r *resolver) copy(v rules.Value, change map[string]func(rules.Value) any) []rules.Entry {
	var out []rules.Entry
	for _, f := range v.Fields(nil, &r.issues) {
		if with, ok := change[f.Name]; ok {
			out = append(out, rules.Entry{Name: f.Name, Value: with(f.Value)})
			continue
		}
		out = append(out, rules.Entry{Name: f.Name, Value: f.Value})
	}
	return out
}

func (r *resolver) spec(v rules.Value) any {
	out := r.copy(v, map[string]func(rules.Value) any{
		"tiers": func(tiers rules.Value) any {
			return r.each(tiers, func(tier rules.Value) []rules.Entry {
				return r.copy(tier, map[string]func(rules.Value) any{"tables": func(tables rules.Value) any { return r.each(tables, r.table) }})
			})
		},
		"actions": func(actions rules.Value) any { return r.actions(v, actions) },
	})
	if !v.Get("actions").Exists() {
		out = append(out, rules.Entry{Name: "actions", Value: r.actions(v, rules.Value{})})
	}
	return out
}

func (r *resolver) each(v rules.Value, f func(rules.Value) []rules.Entry) [][]rules.Entry {
	var out [][]rules.Entry
	for _, item := range v.Items(&r.issues) {
		out = append(out, f(item))
	}
	return out
}

// table writes a shipped table out under inline.
func (r *resolver) table(v rules.Value) []rules.Entry {
	if v.Get("inline").Exists() {
		return r.copy(v, nil)
	}
	name := v.Get("name").String(&r.issues)
	shipped := name
	if t := v.Get("table"); t.Exists() {
		shipped = t.String(&r.issues)
	}
	out := []rules.Entry{{Name: "name", Value: r.rename(name)}}
	for _, f := range v.Fields(nil, &r.issues) {
		if f.Name != "name" && f.Name != "table" {
			out = append(out, rules.Entry{Name: f.Name, Value: f.Value})
		}
	}
	doc, issues := Embedded(shipped)
	r.issues = append(r.issues, issues...)
	if doc == nil {
		return out
	}
	var body []rules.Entry
	for _, f := range doc.Root.Fields(nil, &r.issues) {
		if f.Name != "apiVersion" && f.Name != "kind" && f.Name != "metadata" {
			body = append(body, rules.Entry{Name: f.Name, Value: f.Value})
		}
	}
	return append(out, rules.Entry{Name: "inline", Value: body})
}

// actions lists the policy's own actions and the shipped ones that its pipeline names.
func (r *resolver) actions(spec, own rules.Value) [][]rules.Entry {
	var out [][]rules.Entry
	seen := map[string]bool{}
	if own.Exists() {
		for _, a := range own.Items(&r.issues) {
			seen[a.Get("name").String(&r.issues)] = true
			out = append(out, r.copy(a, nil))
		}
	}
	doc, issues := Embedded("actions")
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

// Show writes a policy as it is, after checking it.
func Show(doc *rules.Document) ([]byte, rules.Issues) {
	if _, issues := Load(doc); issues.Err() != nil {
		return nil, issues
	}
	r := &resolver{}
	out, err := rules.Write(r.copy(doc.Root, nil))
	if err != nil {
		return nil, rules.Issues{doc.Root.Issuef("", "%v", err)}
	}
	return out, nil
}
