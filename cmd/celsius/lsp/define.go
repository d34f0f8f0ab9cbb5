package lsp

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Target is the position of a declaration.
type Target struct {
	// Shipped is the name of the built-in file without its extension. It is "" if the declaration is in the text itself.
	Shipped string
	Range   Range
}

// Define returns the declaration of the word at a position: a table, its params and sections, attributes, variables, actions.
func (c *Core) Define(t *Text, at Position) (Target, bool) {
	p, ok := c.standing(t.text, t.offset(at))
	if !ok || p.kind.kind != policyKind && p.kind.kind != policy.TableKind {
		return Target{}, false
	}
	var found source.Value
	if x, ok := c.pointedAt(&p); ok {
		found = c.declared(&p, &x)
	} else {
		found = c.named(&p)
	}
	if !found.Exists() {
		return Target{}, false
	}
	line, column := found.Pos()
	if found.Document() == p.doc {
		place := t.position(p.from + NewText(t.text[p.from:]).place(line, column))
		return Target{Range: Range{place, place}}, true
	}
	name := strings.TrimSuffix(filepath.Base(found.Document().File), ".yaml")
	data, err := policy.ShippedText(name)
	if err != nil {
		return Target{}, false
	}
	shipped := NewText(string(data))
	place := shipped.position(shipped.place(line, column))
	return Target{name, Range{place, place}}, true
}

// named returns the declaration that a word of YAML refers to.
func (c *Core) named(p *place) source.Value {
	text, path := p.spot.Text().Value, p.spot.Value.Path()
	entry := p.entry()
	t := c.tableOf(entry)
	switch {
	case path == entry.Path()+".name" || path == entry.Path()+".table":
		if t != nil {
			return t.At
		}
	case p.spot.Key && path == entry.Path()+".params."+text && t != nil:
		return paramOf(t, text)
	case t != nil && (strings.HasPrefix(path, entry.Path()+".only[") || strings.HasPrefix(path, entry.Path()+".without[")):
		return t.At.Get(text)
	case p.holder().Path() == "spec.pipeline":
		return action(p.doc, text)
	}
	return source.Value{}
}

// entry returns the table of a tier that contains the cursor, or an absent value.
func (p *place) entry() source.Value {
	for i, v := range p.spot.Around {
		if i > 0 && v.Kind() == source.Map && strings.HasSuffix(p.spot.Around[i-1].Path(), ".tables") {
			return v
		}
	}
	return source.Value{}
}

// tableOf returns the table that an entry uses, or nil.
func (c *Core) tableOf(entry source.Value) *rules.Table {
	if inline := entry.Get("inline"); inline.Exists() {
		return rules.ReadTable(inline, "", policy.Shape(), nil, &source.Issues{})
	}
	name, ok := entry.Get("table").Any().(string)
	if !ok {
		name, _ = entry.Get("name").Any().(string)
	}
	return c.shipped[name]
}

func paramOf(t *rules.Table, name string) source.Value {
	for _, p := range t.Params {
		if p.Name == name {
			return p.At
		}
	}
	return source.Value{}
}

// action returns the definition of an action, either of the policy or a built-in one.
func action(doc *source.Document, name string) source.Value {
	own := doc.Root.Get("spec").Get("actions")
	shipped := source.Value{}
	if embedded, _ := policy.Embedded("actions"); embedded != nil {
		shipped = embedded.Root.Get("actions")
	}
	for _, list := range []source.Value{own, shipped} {
		for _, a := range list.Items(&source.Issues{}) {
			if a.Get("name").Any() == any(name) {
				return a
			}
		}
	}
	return source.Value{}
}

// declared returns the declaration that a word of an expression refers to.
func (c *Core) declared(p *place, x *pointed) source.Value {
	if !x.dotted() {
		return source.Value{}
	}
	tables := c.tables(p)
	last := tables[len(tables)-1]
	switch x.receiver() {
	case "params":
		return paramOf(last, x.word())
	case "variables":
		for _, v := range last.Variables {
			if v.Name == x.word() {
				return v.At
			}
		}
		return source.Value{}
	}
	m := x.member()
	if m == nil || m.Reads == nil {
		return source.Value{} // it is not a computed field
	}
	of := x.scope.TypeOf(x.receiver()).TypeName()
	for _, t := range slices.Backward(tables) {
		for _, a := range t.Attributes {
			if computes(a, x.word()) && strings.EqualFold(a.On, of) {
				return a.At
			}
		}
	}
	return source.Value{}
}

// computes reports whether an attribute defines a field: under its own name, or a name in its function.
func computes(a *rules.Attribute, name string) bool {
	if a.Name == name {
		return true
	}
	for arg := range a.Args {
		if strings.HasSuffix(arg, "."+name) {
			return true
		}
	}
	return false
}

// tables returns the tables whose attributes an expression can read. Its own table is the last.
func (c *Core) tables(p *place) []*rules.Table {
	if p.kind.kind == policy.TableKind {
		return []*rules.Table{rules.ReadTable(p.doc.Root, "", policy.Shape(), nil, &source.Issues{})}
	}
	entry := p.entry()
	out := []*rules.Table{{}}
	for _, tier := range p.doc.Root.Get("spec").Get("tiers").Items(&source.Issues{}) {
		for _, e := range tier.Get("tables").Items(&source.Issues{}) {
			if t := c.tableOf(e); t != nil {
				out = append(out, t)
			}
			if e.Path() == entry.Path() {
				return out
			}
		}
	}
	return out
}

// definition serves textDocument/definition. It writes a built-in table into the cache, because not every editor accepts documents that are
// not files.
func (s *server) definition(t *open, at Position) (any, error) {
	target, ok := s.core.Define(t.text, at)
	if !ok {
		return nil, nil //nolint:nilnil // nothing is declared
	}
	if target.Shipped == "" {
		return Location{t.uri, target.Range}, nil
	}
	file, err := cached(s.Cache, target.Shipped)
	if err != nil {
		return nil, err
	}
	return Location{(&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(), target.Range}, nil
}

// cached writes a built-in file into a folder that is named after its content, unless it exists, and returns its path.
func cached(folder, name string) (string, error) {
	data, err := policy.ShippedText(name)
	if err != nil {
		return "", fmt.Errorf("table %s: %w", name, err)
	}
	folder = filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256(data))[:12])
	file := filepath.Join(folder, name+".yaml")
	if old, err := os.ReadFile(file); err == nil && string(old) == string(data) {
		return file, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("write table %s: %w", name, err)
	}
	if err := os.WriteFile(file, data, 0o444); err != nil {
		return "", fmt.Errorf("write table %s: %w", name, err)
	}
	return file, nil
}
