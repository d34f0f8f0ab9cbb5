package lsp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/cmd/celsius/schemas"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Complete returns the possible completions at a position. It is empty if nothing is known, for example in files of other kinds.
func (c *Core) Complete(t *Text, at Position) []Item {
	offset := t.offset(at)
	p, ok := c.written(t.text, offset)
	if !ok {
		return nil
	}
	items, typed := c.inYAML(&p), p.typed
	if items == nil {
		items, typed = c.inExpression(&p)
	}
	from := t.position(offset - len(typed))
	if strings.Contains(typed, "\n") || !strings.HasSuffix(t.text[:offset], typed) {
		from = at // the text differs from its value, for example because of escapes
	}
	for i := range items {
		text := items[i].Label
		if items[i].TextEdit != nil {
			text = items[i].TextEdit.NewText
		}
		if strings.HasPrefix(t.text[offset:], "(") {
			text = strings.TrimSuffix(text, "(")
		}
		items[i].TextEdit = &TextEdit{Range{from, t.position(offset)}, text}
	}
	return items
}

// inYAML returns the keys of a mapping, or the words of a value.
func (c *Core) inYAML(p *place) []Item {
	here := c.schemasAt(p)
	mapping := func(s *schemas.Schema) bool { return len(s.Properties) > 0 }
	if p.spot.Key || p.below() && slices.ContainsFunc(here, mapping) {
		return keyItems(here, p)
	}
	var out []Item
	for _, s := range here {
		out = append(out, wordItems(s)...)
	}
	if p.kind.kind == policyKind && p.holder().Path() == "spec.pipeline" {
		for _, a := range p.doc.Root.Get("spec").Get("actions").Items(&source.Issues{}) {
			if name, ok := a.Get("name").Any().(string); ok {
				out = append(out, Item{Label: name, Kind: itemModule, Documentation: markdown("An action of this policy.")})
			}
		}
	}
	return unique(out)
}

const policyKind = "SchedulingPolicy"

// schemasAt returns the schemas of the value that contains the cursor. For a key, or where a key may begin, it returns those of the
// enclosing mapping.
func (c *Core) schemasAt(p *place) []*schemas.Schema {
	root := c.schemas[p.kind.kind]
	here := root.Applying(p.doc.Root.Any())
	around := append(slices.Clone(p.spot.Around), p.spot.Value)
	if p.spot.Key {
		around = around[:len(around)-1]
	}
	for i := 1; i < len(around); i++ {
		here = down(here, around[i-1], around[i])
	}
	return here
}

// down returns the schemas of a field or an element, given those of the enclosing value.
func down(here []*schemas.Schema, from, to source.Value) []*schemas.Schema {
	key := lastKey(from, to)
	var out []*schemas.Schema
	for _, s := range here {
		next := s.Items
		if from.Kind() == source.Map {
			next = s.Properties[key]
			if more, ok := s.Additional.(*schemas.Schema); ok && next == nil {
				next = more
			}
		}
		out = append(out, next.Applying(to.Any())...)
	}
	return out
}

// lastKey returns the key of a value in a mapping.
func lastKey(from, to source.Value) string {
	for _, f := range from.Fields(nil, &source.Issues{}) {
		if f.Value.Path() == to.Path() {
			return f.Name
		}
	}
	return ""
}

// keyItems returns the keys that a mapping may have and does not have yet.
func keyItems(here []*schemas.Schema, p *place) []Item {
	has := map[string]bool{}
	if p.spot.Key {
		for _, f := range p.holder().Fields(nil, &source.Issues{}) {
			has[f.Name] = true
		}
	}
	fields := map[string]*schemas.Schema{}
	for _, s := range here {
		for name, f := range s.Properties {
			if old := fields[name]; old == nil || old.Description == "" {
				fields[name] = f
			}
		}
	}
	var out []Item
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if has[name] {
			continue
		}
		f := fields[name]
		text := name + ": "
		if f.Type == "object" || f.Type == "array" {
			text = name + ":"
		}
		if p.spot.Key && strings.Contains(p.spot.Text().Value, placeholder) && p.followedByColon() {
			text = name
		}
		out = append(out, Item{
			Label: name, Kind: itemProperty, Detail: typeWord(f), Documentation: markdown(f.Description), TextEdit: &TextEdit{NewText: text},
		})
	}
	return out
}

// followedByColon reports whether the key already has a value.
func (p *place) followedByColon() bool {
	for _, f := range p.holder().Fields(nil, &source.Issues{}) {
		if strings.Contains(f.Name, placeholder) {
			return f.Value.Kind() != source.Null
		}
	}
	return false
}

func typeWord(s *schemas.Schema) string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []string:
		return strings.Join(t, " or ")
	}
	return ""
}

// wordItems returns the words that a value may be.
func wordItems(s *schemas.Schema) []Item {
	var out []Item
	for i, e := range s.Enum {
		item := Item{Label: fmt.Sprint(e), Kind: itemWord}
		if i < len(s.Docs) {
			item.Documentation = markdown(s.Docs[i])
		}
		out = append(out, item)
	}
	if s.Const != nil {
		out = append(out, Item{Label: fmt.Sprint(s.Const), Kind: itemWord})
	}
	if s.Type == "boolean" {
		out = append(out, Item{Label: "true", Kind: itemWord}, Item{Label: "false", Kind: itemWord})
	}
	return out
}

func unique(items []Item) []Item {
	seen := map[string]bool{}
	return slices.DeleteFunc(items, func(i Item) bool {
		twice := seen[i.Label]
		seen[i.Label] = true
		return twice
	})
}

// seenAt returns the expression or message that contains the cursor, with the variables that it can read, or false.
func (c *Core) seenAt(p *place) (policy.Seen, bool) {
	if p.spot.Key || p.kind.kind != policyKind && p.kind.kind != policy.TableKind {
		return policy.Seen{}, false
	}
	path := p.spot.Value.Path()
	list, _ := c.dialect.See(p.doc, path)
	for _, seen := range list {
		if seen.Text.Path() == path {
			return seen, true
		}
	}
	return policy.Seen{}, false
}

// inExpression returns the completions in an expression, and the part of the word before the cursor.
func (c *Core) inExpression(p *place) ([]Item, string) {
	seen, ok := c.seenAt(p)
	before := p.typed
	if ok && isMessage(p) {
		before, ok = inMessage(before)
	}
	if !ok {
		return nil, ""
	}
	w := writingAt(seen.Scope, before)
	switch {
	case w.inString:
		return w.strings(), w.word
	case w.dot:
		return w.members(), w.word
	}
	return w.words(), w.word
}

// isMessage reports whether the cursor is in a text that contains expressions.
func isMessage(p *place) bool { return strings.HasSuffix(p.spot.Value.Path(), ".message") }

// strings returns the possible values of the field that the string is compared with.
func (w *writing) strings() []Item {
	m := memberOf(w.scope, w.of)
	if m == nil {
		return nil
	}
	var out []Item
	for _, word := range m.Words {
		out = append(out, Item{Label: word, Kind: itemWord, Documentation: markdown("A value of " + w.of + ".")})
	}
	return out
}

// memberOf returns the field at the end of a chain of names, or nil.
func memberOf(scope *rules.Scope, chain string) *rules.Member {
	list := tokenize(chain)
	n := len(list)
	if n < 3 || list[n-1].kind != word || !list[n-2].isDot() {
		return nil
	}
	for _, m := range scope.Fields(scope.TypeOf(chain[:list[n-2].start])) {
		if m.Name == list[n-1].text {
			return m
		}
	}
	return nil
}

// members returns what may follow the dot.
func (w *writing) members() []Item {
	var out []Item
	t := w.scope.TypeOf(w.receiver)
	if t == nil {
		return w.qualified()
	}
	for _, m := range w.scope.Fields(t) {
		out = append(out, fieldItem(m))
	}
	for _, call := range w.scope.Calls(t) {
		out = append(out, callItem(call, itemMethod, call.Name))
	}
	return out
}

// qualified returns functions whose names contain a dot, for example lists.range.
func (w *writing) qualified() []Item {
	var out []Item
	for _, call := range w.scope.Calls(nil) {
		if name, ok := strings.CutPrefix(call.Name, w.receiver+"."); ok && w.receiver != "" {
			out = append(out, callItem(call, itemFunction, name))
		}
	}
	return out
}

// words returns variables, and functions and macros that have no receiver.
func (w *writing) words() []Item {
	docs := rootDocs()
	var out []Item
	for _, name := range w.scope.Roots() {
		if t := w.scope.Root(name); t != nil {
			out = append(out, Item{Label: name, Kind: itemVariable, Detail: t.String(), Documentation: markdown(docs[name]), SortText: "0" + name})
		}
	}
	for _, call := range w.scope.Calls(nil) {
		item := callItem(call, itemFunction, call.Name)
		item.SortText = "1" + call.Name
		out = append(out, item)
	}
	return out
}

// rootDocs returns the descriptions of the roots.
func rootDocs() map[string]string {
	out := map[string]string{"params": "The table's params, as the policy sets them.", "variables": "The table's variables."}
	for _, r := range policy.Roots() {
		out[r.Name] = r.Doc
	}
	return out
}

func fieldItem(m *rules.Member) Item {
	return Item{Label: m.Name, Kind: itemField, Detail: typeText(m.Type), Documentation: markdown(fieldDoc(m)), SortText: "0" + m.Name}
}

func fieldDoc(m *rules.Member) string {
	doc := m.Doc
	if len(m.Words) > 0 {
		doc += "\n\nOne of " + strings.Join(m.Words, ", ") + "."
	}
	return strings.TrimSpace(doc + "\n\nChanges " + m.Changes.String() + ".")
}

func typeText(t *cel.Type) string {
	return strings.NewReplacer("google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration",
		"kubernetes.", "").Replace(t.String())
}

func callItem(call rules.Call, kind int, label string) Item {
	return Item{
		Label: label, Kind: kind, Detail: call.Signatures[0], Documentation: markdown(callDoc(call)), SortText: "1" + call.Name,
		TextEdit: &TextEdit{NewText: label + "("},
	}
}

// callDoc describes a function and its forms.
func callDoc(call rules.Call) string {
	return strings.TrimSpace(call.Doc + "\n\n```\n" + strings.Join(call.Signatures, "\n") + "\n```")
}

// complete serves textDocument/completion.
func (s *server) complete(t *open, at Position) (any, error) {
	items := append([]Item{}, s.core.Complete(t.text, at)...)
	return map[string]any{"isIncomplete": false, "items": items}, nil
}
