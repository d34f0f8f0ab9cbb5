package source

import (
	"gopkg.in/yaml.v3"
)

// Spot is a position inside a scalar of a document.
type Spot struct {
	// Value is the scalar. For a key, its path is that of the field.
	Value Value
	// Key states that the scalar is the key of a field.
	Key bool
	// Offset is the position in the scalar's text, in characters.
	Offset int
	// Around are the mappings and lists that contain the scalar, from the root on.
	Around []Value
}

// Text returns the scalar's text, whatever its type is.
func (s Spot) Text() Text {
	return Text{Value: s.Value.node.Value, doc: s.Value.doc, node: s.Value.node, path: s.Value.path}
}

// At returns the scalar that contains, or ends at, a line and column, which count from 1. It returns false if there is none.
func (d *Document) At(line, column int) (Spot, bool) {
	s := d.source
	if line < 1 || line > len(s.lines) {
		return Spot{}, false
	}
	f := &finder{doc: d, at: s.lines[line-1] + column - 1}
	return f.below(d.Root)
}

// finder is the state of one At.
type finder struct {
	doc    *Document
	at     int
	around []Value
}

// below searches the last value that begins before the position, because no later value can contain it.
func (f *finder) below(v Value) (Spot, bool) {
	if v.at.Kind == yaml.AliasNode {
		return Spot{}, false
	}
	switch v.Kind() {
	case Map:
		f.around = append(f.around, v)
		return f.inMap(v)
	case List:
		f.around = append(f.around, v)
		var found *yaml.Node
		index := 0
		for i, n := range v.node.Content {
			if f.begun(n) {
				found, index = n, i
			}
		}
		if found == nil {
			return Spot{}, false
		}
		return f.below(v.Item(index))
	default:
		return f.inScalar(v, false)
	}
}

func (f *finder) inMap(v Value) (Spot, bool) {
	at := -1
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		if f.begun(v.node.Content[i]) {
			at = i
		}
	}
	if at < 0 {
		return Spot{}, false
	}
	key, value := v.node.Content[at], v.node.Content[at+1]
	path := v.join(resolved(key).Value)
	if f.begun(value) {
		depth := len(f.around)
		if spot, ok := f.below(v.child(value, path)); ok {
			return spot, true
		}
		f.around = f.around[:depth]
	}
	return f.inScalar(v.child(key, path), true)
}

func (f *finder) begun(n *yaml.Node) bool { return f.doc.offset(n) <= f.at }

func (f *finder) inScalar(v Value, key bool) (Spot, bool) {
	if v.at.Kind != yaml.ScalarNode {
		return Spot{}, false
	}
	s := scan(f.doc, v.at)
	if f.at < s.start || f.at > s.end || s.start == s.end {
		return Spot{}, false
	}
	offset := 0
	for offset < len(s.spans) && s.spans[offset].end <= f.at {
		offset++
	}
	return Spot{Value: v, Key: key, Offset: offset, Around: f.around}, true
}
