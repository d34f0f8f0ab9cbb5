package lsp

import (
	"strings"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Symbols returns the outline of a text: its documents of our kinds, with everything that has a name.
func (c *Core) Symbols(t *Text) []Symbol {
	out := []Symbol{}
	if !strings.Contains(t.text, "kind") || !source.Parses([]byte(t.text)) {
		return out
	}
	docs, _ := source.Parse("", []byte(t.text))
	for _, d := range docs {
		k := c.checkerOf(d)
		if k == nil {
			continue
		}
		name, _ := d.Root.Get("metadata").Get("name").Any().(string)
		if name == "" {
			name = k.kind
		}
		o := outline{t}
		out = append(out, o.symbol(name, k.kind, symbolFile, d.Root, d.Root))
	}
	return out
}

// outline creates symbols for the values of a text.
type outline struct{ text *Text }

func (o outline) symbol(name, detail string, kind int, at, whole source.Value) Symbol {
	i := at.Issuef("", "")
	s := Symbol{Name: name, Detail: detail, Kind: kind, SelectionRange: o.text.spread(i.Line, i.Column, i.Width), Children: o.below(whole)}
	s.Range = Range{s.SelectionRange.Start, o.end(whole, s.SelectionRange.End)}
	return s
}

// below returns the symbols in a mapping: values with a name, and fields that contain such values.
func (o outline) below(v source.Value) []Symbol {
	var out []Symbol
	if v.Kind() != source.Map {
		return nil
	}
	for _, f := range v.Fields(nil, &source.Issues{}) {
		switch f.Value.Kind() {
		case source.Map:
			isParam := v.Path() == "params" || strings.HasSuffix(v.Path(), ".params")
			if s := o.symbol(f.Name, "", symbolNamespace, f.Key, f.Value); len(s.Children) > 0 || isParam {
				out = append(out, s)
			}
		case source.List:
			if s := o.list(f); len(s.Children) > 0 {
				out = append(out, s)
			}
		case source.Null, source.Scalar:
		}
	}
	return out
}

func (o outline) list(f source.Field) Symbol {
	s := o.symbol(f.Name, "", symbolNamespace, f.Key, f.Value)
	for _, item := range f.Value.Items(&source.Issues{}) {
		name := item.Get("name")
		if !name.Exists() {
			name = item.Get("resourceGroup")
		}
		if text, ok := name.Any().(string); ok && text != "" {
			kind := symbolField
			if item.Get("tables").Exists() || item.Get("inline").Exists() || item.Get("steps").Exists() {
				kind = symbolModule
			}
			s.Children = append(s.Children, o.symbol(text, "", kind, name, item))
		}
	}
	return s
}

// end returns where a value ends, but not a position before least.
func (o outline) end(v source.Value, least Position) Position {
	last := v
	for last.Kind() == source.Map || last.Kind() == source.List {
		next := source.Value{}
		if last.Kind() == source.Map {
			for _, f := range last.Fields(nil, &source.Issues{}) {
				next = f.Value
			}
		} else {
			for _, item := range last.Items(&source.Issues{}) {
				next = item
			}
		}
		if !next.Exists() {
			break
		}
		last = next
	}
	end := least
	if last.Kind() == source.Scalar {
		text := last.Text(&source.Issues{})
		line, column := text.Place(len([]rune(text.Value)))
		end = o.text.position(o.text.place(line, column))
	}
	if end.Line < least.Line || end.Line == least.Line && end.Character < least.Character {
		return least
	}
	return end
}

// symbols serves textDocument/documentSymbol.
func (s *server) symbols(t *open, _ Position) (any, error) { return s.core.Symbols(t.text), nil }
