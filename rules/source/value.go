package source

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// On is the string that a YAML 1.1 reader, such as kubectl's, reads for an unquoted key on.
const On = "true"

// NodeKind is the form of a Value.
type NodeKind uint8

const (
	// Null is an empty value or null. It is also the kind of an absent value.
	Null NodeKind = iota
	// Scalar is a string, a number, true or false.
	Scalar
	// Map is a mapping.
	Map
	// List is a sequence.
	List
)

// Value is a value of a document, with its position and path. The zero Value is absent. A field that Get does not find is also absent, but
// has its path and the position of its parent, for issues.
type Value struct {
	doc *Document
	// node is the value with aliases resolved, or nil if absent. at is the node where it is used: the alias, or the value itself, or the
	// parent of an absent value.
	node, at *yaml.Node
	path     string
}

// Field is one entry of a mapping.
type Field struct {
	Name  string
	Key   Value
	Value Value
}

func (v Value) child(n *yaml.Node, path string) Value {
	return Value{doc: v.doc, node: resolved(n), at: n, path: path}
}

// Exists reports whether the value was written. A written null exists.
func (v Value) Exists() bool { return v.node != nil }

// Kind returns the form of the value.
func (v Value) Kind() NodeKind {
	switch {
	case v.node == nil || isNull(v.node):
		return Null
	case v.node.Kind == yaml.MappingNode:
		return Map
	case v.node.Kind == yaml.SequenceNode:
		return List
	default:
		return Scalar
	}
}

// Path returns the path of the value in its document, or "" for the root.
func (v Value) Path() string { return v.path }

// Document returns the document that contains the value, or nil for the zero Value.
func (v Value) Document() *Document { return v.doc }

// Pos returns the line and column, from 1, of the value. For an alias it is the position of the alias, and for an absent value the position
// of its parent. It is 0 and 0 for the zero Value.
func (v Value) Pos() (line, col int) {
	if v.at == nil {
		return 0, 0
	}
	start, _ := v.extent()
	return v.doc.source.place(start)
}

// extent returns the offsets that an issue of the value underlines.
func (v Value) extent() (start, end int) {
	start = v.doc.offset(v.at)
	switch {
	case v.at.Kind == yaml.AliasNode:
		return start, start + 1 + utf8.RuneCountInString(v.at.Value)
	case v.at.Kind == yaml.ScalarNode:
		s := scan(v.doc, v.at)
		return s.start, s.end
	case v.at.Kind == yaml.MappingNode && v.at.Style&yaml.FlowStyle == 0 && len(v.at.Content) > 0:
		return v.child(v.at.Content[0], "").extent()
	}
	return start, start + 1
}

// Issuef returns an error at the value's position. hint states what would be correct, or is "".
func (v Value) Issuef(hint, format string, args ...any) Issue {
	message, hint := Short(fmt.Sprintf(format, args...)), Short(hint)
	if v.at == nil {
		return Issue{Path: v.path, Width: 1, Message: message, Hint: hint}
	}
	start, end := v.extent()
	i := v.doc.source.issue(start, end-start, message, hint)
	i.Path = v.path
	return i
}

func (v Value) wrong(issues *Issues, want, hint string) {
	*issues = append(*issues, v.Issuef(hint, "must be %s, found %s", want, describe(v.node)))
}

// describe describes a node for a message: the number 3, the string "abc", a list.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "a mapping"
	}
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	switch scalarOf(n).(type) {
	case nil:
		return "nothing (null)"
	case bool:
		return "the boolean " + n.Value
	case int64, float64:
		return "the number " + n.Value
	}
	const most = 40
	if text := []rune(n.Value); len(text) > most {
		return "the string " + strconv.Quote(string(text[:most])) + "…"
	}
	return "the string " + strconv.Quote(n.Value)
}

// scalarOf returns the value of a scalar: string, int64, float64, bool or nil. A number too large for int64 is a float64; a date is a
// string.
func scalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!int", "!!float", "!!bool":
	default:
		return n.Value
	}
	var x any
	bare := yaml.Node{Kind: yaml.ScalarNode, Tag: n.ShortTag(), Value: n.Value}
	if bare.Decode(&x) != nil {
		return n.Value
	}
	switch x := x.(type) {
	case int:
		return int64(x)
	case uint64:
		return float64(x)
	case int64, float64, bool:
		return x
	}
	return n.Value
}

// Fields returns the fields of a mapping, in the order of the file. It reports a value that is not a mapping, and a key that is not a
// string. It also reports a key that is not in known (unless known is nil). It omits such keys. It also omits repeated keys after the
// first, which Parse has reported. Null and absent values have no fields.
func (v Value) Fields(known []string, issues *Issues) []Field {
	if v.Kind() == Null {
		return nil
	}
	if v.Kind() != Map {
		v.wrong(issues, "a mapping", "")
		return nil
	}
	var out []Field
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := resolved(v.node.Content[i])
		if key.Kind != yaml.ScalarNode || isMerge(key) {
			continue // Parse has reported it
		}
		path := v.join(key.Value)
		f := Field{key.Value, v.child(v.node.Content[i], path), v.child(v.node.Content[i+1], path)}
		if _, ok := scalarOf(key).(string); !ok && !slices.Contains(known, f.Name) {
			f.Key.wrong(issues, "a string", "write "+strconv.Quote(key.Value)+" in quotes")
			continue
		}
		if known != nil && !slices.Contains(known, f.Name) {
			*issues = append(*issues, f.Key.Issuef(knownHint(f.Name, known), "unknown field %q", f.Name))
			continue
		}
		if !seen[f.Name] {
			seen[f.Name] = true
			out = append(out, f)
		}
	}
	return out
}

func knownHint(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "no field is known here"
	}
	sorted := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == On })
	slices.Sort(sorted)
	return "known here: " + strings.Join(sorted, ", ")
}

func (v Value) join(key string) string { return strings.TrimPrefix(v.path+pathStep(key), ".") }

// pathStep formats a key as a step of a path: .name, or ["any text"]. A long key is cut, because the paths of all values below contain it.
func pathStep(key string) string {
	for i, c := range key {
		begins := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		follows := i > 0 && (c >= '0' && c <= '9' || c == '-')
		if !begins && !follows {
			return "[" + strconv.Quote(cutMiddle(key, longestShown)) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return "." + cutMiddle(key, longestShown)
}

// Get returns a field of a mapping. It is absent if there is no such field, or v is not a mapping.
func (v Value) Get(name string) Value {
	path := v.join(name)
	if v.Kind() == Map {
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			key := resolved(v.node.Content[i])
			if key.Kind == yaml.ScalarNode && key.Value == name && !isMerge(key) {
				return v.child(v.node.Content[i+1], path)
			}
		}
	}
	return Value{doc: v.doc, at: v.at, path: path}
}

// Items returns the elements of a list, and reports any other value. Null and absent values have no elements.
func (v Value) Items(issues *Issues) []Value {
	if v.Kind() == Null {
		return nil
	}
	if v.Kind() != List {
		v.wrong(issues, "a list", "")
		return nil
	}
	out := make([]Value, len(v.node.Content))
	for i, n := range v.node.Content {
		out[i] = v.child(n, fmt.Sprintf("%s[%d]", v.path, i))
	}
	return out
}

// scalar returns the value of a scalar; ok is false if it is absent.
func (v Value) scalar() (x any, ok bool) {
	if v.node == nil {
		return nil, false
	}
	if v.node.Kind != yaml.ScalarNode {
		return v, true // of no type that a caller accepts
	}
	return scalarOf(v.node), true
}

// String returns a string, and reports any other value. For an absent value it returns "" without an issue.
func (v Value) String(issues *Issues) string {
	x, ok := v.scalar()
	s, isString := x.(string)
	if ok && !isString {
		hint := ""
		if v.Kind() == Scalar {
			hint = "write " + strconv.Quote(v.node.Value) + " in quotes"
		}
		v.wrong(issues, "a string", hint)
	}
	return s
}

// Bool returns a bool, and reports any other value. For an absent value it returns false without an issue.
func (v Value) Bool(issues *Issues) bool {
	x, ok := v.scalar()
	b, isBool := x.(bool)
	if ok && !isBool {
		v.wrong(issues, "true or false", "")
	}
	return b
}

// Int returns a whole number, and reports any other value. For an absent value it returns 0 without an issue.
func (v Value) Int(issues *Issues) int64 {
	x, ok := v.scalar()
	n, isInt := x.(int64)
	if ok && !isInt {
		v.wrong(issues, "a whole number", "")
	}
	return n
}

// Float returns a number, and reports any other value, infinity and NaN. For an absent value it returns 0 without an issue.
func (v Value) Float(issues *Issues) float64 {
	x, ok := v.scalar()
	if n, isInt := x.(int64); isInt {
		return float64(n)
	}
	f, isFloat := x.(float64)
	if ok && (!isFloat || math.IsNaN(f) || math.IsInf(f, 0)) {
		v.wrong(issues, "a finite number", "")
		return 0
	}
	return f
}

// Duration returns a duration in Go's format: "90s", "1h30m". It reports any other value. For an absent value it returns 0 without an
// issue.
func (v Value) Duration(issues *Issues) time.Duration {
	x, ok := v.scalar()
	if !ok {
		return 0
	}
	s, isString := x.(string)
	d, err := time.ParseDuration(s)
	if !isString || err != nil {
		v.wrong(issues, "a duration", `write it with its units, such as "90s" or "1h30m"`)
		return 0
	}
	return d
}

// Strings returns a list of strings. It reports and omits elements that are not strings.
func (v Value) Strings(issues *Issues) []string {
	var out []string
	for _, item := range v.Items(issues) {
		before := len(*issues)
		if s := item.String(issues); len(*issues) == before {
			out = append(out, s)
		}
	}
	return out
}

// Text returns a string with the positions of its characters. Numbers, true and false are read as they are written. It reports any other
// value, and returns an empty text. For an absent value it returns the zero Text without an issue.
func (v Value) Text(issues *Issues) Text {
	switch {
	case v.node == nil:
		return Text{}
	case v.Kind() != Scalar:
		v.wrong(issues, "text", "")
		return Text{path: v.path}
	}
	return Text{Value: v.node.Value, doc: v.doc, node: v.node, path: v.path}
}

// Any returns the value as map[string]any, []any, string, int64, float64, bool or nil. Keys that are not strings become the text that the
// author wrote. The first of repeated keys counts.
func (v Value) Any() any {
	if v.node == nil {
		return nil
	}
	return plainValue(v.node)
}

func plainValue(n *yaml.Node) any {
	n = resolved(n)
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolved(n.Content[i])
			if _, twice := out[key.Value]; !twice && key.Kind == yaml.ScalarNode && !isMerge(key) {
				out[key.Value] = plainValue(n.Content[i+1])
			}
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = plainValue(item)
		}
		return out
	default:
		return scalarOf(n)
	}
}

// TooDeep returns the issue for the first value in v, including v, that ParseShallow omitted because it is nested too deep.
func (v Value) TooDeep() (i Issue, found bool) {
	if v.doc == nil || !v.doc.shortened || v.node == nil {
		return Issue{}, false
	}
	return v.leftOut(map[*yaml.Node]bool{})
}

// leftOut is TooDeep without the values in seen.
func (v Value) leftOut(seen map[*yaml.Node]bool) (i Issue, found bool) {
	if v.node.Tag == leftOutTag {
		return v.Issuef("", "a field %s", tooDeep()), true
	}
	if len(v.node.Content) == 0 || seen[v.node] {
		return Issue{}, false
	}
	seen[v.node] = true
	for k, n := range v.node.Content {
		isMap, path := v.node.Kind == yaml.MappingNode, ""
		switch {
		case isMap && k%2 == 0:
			continue // a key
		case isMap:
			path = v.join(resolved(v.node.Content[k-1]).Value)
		default:
			path = fmt.Sprintf("%s[%d]", v.path, k)
		}
		if i, found = v.child(n, path).leftOut(seen); found {
			return i, true
		}
	}
	return Issue{}, false
}

// Find follows a path such as spec.containers[0].image or metadata.labels["a.b/c"]. It returns the deepest existing value on the path, and
// whether that is the whole path.
func (d *Document) Find(path string) (Value, bool) {
	v := d.Root
	for path != "" {
		step, rest, ok := cutStep(path)
		if !ok {
			return v, false
		}
		var next Value
		if step.isIndex {
			next = v.Item(step.index)
		} else {
			next = v.Get(step.key)
		}
		if !next.Exists() {
			return v, false
		}
		v, path = next, rest
	}
	return v, true
}

// Item returns an element of a list. It is absent if there is no such element, or v is not a list.
func (v Value) Item(index int) Value {
	if v.Kind() != List || index < 0 || index >= len(v.node.Content) {
		return Value{}
	}
	return v.child(v.node.Content[index], fmt.Sprintf("%s[%d]", v.path, index))
}

// pathPart is one step of a path: an index, or a key.
type pathPart struct {
	key     string
	index   int
	isIndex bool
}

// cutStep cuts the first step off a path; ok is false if there is none.
func cutStep(path string) (first pathPart, rest string, ok bool) {
	if inside, found := strings.CutPrefix(path, "["); found {
		if quoted, err := strconv.QuotedPrefix(inside); err == nil {
			key, err := strconv.Unquote(quoted)
			rest, closed := strings.CutPrefix(inside[len(quoted):], "]")
			return pathPart{key: key}, rest, err == nil && closed
		}
		digits, rest, closed := strings.Cut(inside, "]")
		index, err := strconv.ParseUint(digits, 10, 31)
		return pathPart{index: int(index), isIndex: true}, rest, err == nil && closed
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return pathPart{key: path[:end]}, path[end:], end > 0
}
