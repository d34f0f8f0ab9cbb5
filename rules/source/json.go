package source

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// jsonPart is a part of a file, [start, end) in characters, that contains JSON objects and lists only. JSON is not quite a part of YAML: a
// YAML parser refuses the two escapes of an emoji, changes some characters in strings, and allows only short keys.
type jsonPart struct {
	start, end int
	values     []*yaml.Node
	texts      []span // the parts of the source with the values
	comment    string // before the first value
}

// jsonMistake is the place at which text is no longer JSON.
type jsonMistake struct {
	offset        int
	message, hint string
}

// notJSON is the prefix of the message of a jsonMistake.
const notJSON = "is not JSON: "

func (m *jsonMistake) issue(s *source) Issue {
	return s.issue(m.offset, 1, notJSON+m.message, m.hint)
}

// jsonParts finds the JSON documents of a file, which may be between YAML documents. If a document begins like JSON but is not JSON,
// mistakes contains the place where this becomes clear. Such a document is read as YAML.
func (s *source) jsonParts() (parts []jsonPart, mistakes []*jsonMistake) {
	for start := 0; start < len(s.runes); {
		r := &jsonReader{source: s, pos: s.afterMark(start), line: sort.SearchInts(s.parserLines, start+1) - 1}
		begins, mistake := r.documents()
		switch {
		case begins && mistake == nil && !s.afterDirective(start):
			parts = append(parts, jsonPart{start, r.pos, r.values, r.texts, r.comment})
			start = r.pos
			continue
		case begins && mistake != nil:
			mistakes = append(mistakes, mistake)
		}
		start = s.nextMark(start)
	}
	return parts, mistakes
}

// isMark reports whether a line that starts at offset is the mark of a new document.
func (s *source) isMark(offset int) bool {
	rest := s.runes[offset:]
	return len(rest) >= 3 && string(rest[:3]) == "---" && (len(rest) == 3 || isBlank(rest[3]) || isBreak(rest[3]))
}

// afterMark returns the offset behind the mark of a new document, if one starts at offset.
func (s *source) afterMark(offset int) int {
	if s.isMark(offset) {
		return offset + len("---")
	}
	return offset
}

// nextMark returns the offset of the first line after offset that is the mark of a new document, or the end. It checks only the lines that
// editors count, because a string of JSON can contain the characters that end a line for the YAML parser.
func (s *source) nextMark(offset int) int {
	line, _ := s.place(offset)
	for _, start := range s.lines[line:] {
		if s.isMark(start) {
			return start
		}
	}
	return len(s.runes)
}

// afterDirective reports whether the line before offset is a directive of YAML, which belongs to the document at offset.
func (s *source) afterDirective(offset int) bool {
	line, _ := s.place(offset)
	return line > 1 && s.runes[s.lines[line-2]] == '%'
}

// jsonReader reads JSON into the nodes that the YAML parser would return. It stores the position of each value.
type jsonReader struct {
	source *source
	pos    int
	line   int    // of pos, from 0, as the YAML parser counts lines
	open   []bool // the open brackets: true for {, false for [
	starts []int  // positions of the first of them, at most maxDepth+1
	nodes  []*yaml.Node
	values []*yaml.Node
	texts  []span // the parts of the source with the values

	comment string // before the first value
}

// documents reads all values up to the mark of a new document or the end. begins reports whether an object or a list begins.
func (r *jsonReader) documents() (begins bool, mistake *jsonMistake) {
	r.comments()
	for {
		if r.end() {
			return begins, nil
		}
		if c := r.peek(); c != '{' && c != '[' {
			return begins, r.wrong("an object or a list is expected here", "")
		}
		begins = true
		start := r.pos
		if mistake := r.value(); mistake != nil {
			return begins, mistake
		}
		r.texts = append(r.texts, span{start, r.pos})
	}
}

// end skips white space, and reports whether the next document or the end of the file follows.
func (r *jsonReader) end() bool {
	r.white()
	s := r.source
	return r.pos == len(s.runes) || r.peek() == '-' && r.pos > 0 && (s.runes[r.pos-1] == '\n' || s.runes[r.pos-1] == '\r') && s.isMark(r.pos)
}

// comments reads comments of YAML before the first value.
func (r *jsonReader) comments() {
	var lines []string
	for r.white(); r.peek() == '#'; r.white() {
		start := r.pos
		r.pos = r.source.lineEnd(r.pos)
		lines = append(lines, string(r.source.runes[start:r.pos]))
	}
	r.comment = strings.Join(lines, "\n")
}

// peek returns the next character, or 0 at the end.
func (r *jsonReader) peek() rune {
	if r.pos >= len(r.source.runes) {
		return 0
	}
	return r.source.runes[r.pos]
}

func (r *jsonReader) white() {
	for isJSONSpace(r.peek()) {
		r.pos++
	}
}

func isJSONSpace(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// wrong returns the mistake at the present position.
func (r *jsonReader) wrong(message, hint string) *jsonMistake {
	if n := len(r.open); r.pos >= len(r.source.runes) && n > 0 {
		return &jsonMistake{r.pos, fmt.Sprintf("the closing %c is missing%s", closing(r.open[n-1]), r.opening()), ""}
	}
	return &jsonMistake{r.pos, message, hint}
}

// opening returns a phrase with the line of the bracket that was opened last.
func (r *jsonReader) opening() string {
	if n := len(r.open); n <= len(r.starts) {
		line, _ := r.source.place(r.starts[n-1])
		return fmt.Sprintf(" (of the bracket opened on line %d)", line)
	}
	return ""
}

// value reads a value and all values in it. It is not recursive, so that deep nesting in a file cannot exhaust the stack. It stores no
// nodes for values that are nested too deep, because Parse refuses them.
func (r *jsonReader) value() *jsonMistake {
	for {
		opened, mistake := r.begin()
		if mistake != nil {
			return mistake
		}
		if opened {
			continue
		}
		if more, mistake := r.afterValue(); mistake != nil || !more {
			return mistake
		}
	}
}

// begin reads a scalar, an empty object or list, or the beginning of another one, up to its first value. opened reports the last case.
func (r *jsonReader) begin() (opened bool, mistake *jsonMistake) {
	r.white()
	switch c := r.peek(); c {
	case '{', '[':
		r.push(c == '{')
		r.pos++
		if r.white(); r.peek() == closing(c == '{') {
			r.pop()
			return false, nil
		}
		return true, r.key()
	case '"':
		return false, r.text()
	default:
		return false, r.word()
	}
}

// afterValue closes the objects and lists that end after a value, and goes to the next value. more reports whether there is one.
func (r *jsonReader) afterValue() (more bool, mistake *jsonMistake) {
	for len(r.open) > 0 {
		inObject := r.open[len(r.open)-1]
		r.white()
		switch r.peek() {
		case ',':
			r.pos++
			return true, r.key()
		case closing(inObject):
			r.pop()
		default:
			return false, r.wrong(fmt.Sprintf("a comma or the closing %c is missing%s", closing(inObject), r.opening()), "")
		}
	}
	return false, nil
}

func closing(ofObject bool) rune {
	if ofObject {
		return '}'
	}
	return ']'
}

// key reads the key of a field and the colon after it, if an object is open.
func (r *jsonReader) key() *jsonMistake {
	if !r.open[len(r.open)-1] {
		return nil
	}
	r.white()
	if r.peek() != '"' {
		return r.wrong("a key in double quotes is expected here", "")
	}
	if mistake := r.text(); mistake != nil {
		return mistake
	}
	if r.white(); r.peek() != ':' {
		return r.wrong("a colon is missing behind the key", "")
	}
	r.pos++
	return nil
}

// push opens an object or a list.
func (r *jsonReader) push(isObject bool) {
	if len(r.open) <= maxDepth {
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		if isObject {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		r.add(n, r.pos)
		r.nodes, r.starts = append(r.nodes, n), append(r.starts, r.pos)
	}
	r.open = append(r.open, isObject)
}

// pop closes the object or list that was opened last.
func (r *jsonReader) pop() {
	r.pos++
	r.open = r.open[:len(r.open)-1]
	if n := len(r.open); n < len(r.nodes) {
		r.nodes, r.starts = r.nodes[:n], r.starts[:n]
	}
}

// add sets the position of a node, and appends it to the open object or list.
func (r *jsonReader) add(n *yaml.Node, start int) {
	if len(r.open) > maxDepth {
		return
	}
	lines := r.source.parserLines
	for r.line+1 < len(lines) && lines[r.line+1] <= start {
		r.line++
	}
	n.Line, n.Column = r.line+1, start-lines[r.line]+1
	if len(r.open) == 0 {
		r.values = append(r.values, n)
		return
	}
	parent := r.nodes[len(r.nodes)-1]
	parent.Content = append(parent.Content, n)
}

// word reads a number, true, false or null.
func (r *jsonReader) word() *jsonMistake {
	start := r.pos
	for c := r.peek(); c == '+' || c == '-' || c == '.' || isWord(c); c = r.peek() {
		r.pos++
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: string(r.source.runes[start:r.pos])}
	switch n.Value {
	case "true", "false":
		n.Tag = "!!bool"
	case "null":
		n.Tag = "!!null"
	default:
		if n.Tag = numberTag(n.Value); n.Tag == "" {
			r.pos = start
			return r.wrong("a value is expected here", "a text is in double quotes")
		}
	}
	r.add(n, start)
	return nil
}

// jsonNumber matches the numbers of JSON. Its group is empty for whole numbers.
var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)$`)

// numberTag returns the tag of a JSON number, or "" for any other text.
func numberTag(word string) string {
	parts := jsonNumber.FindStringSubmatch(word)
	if parts == nil {
		return ""
	}
	_, signed := strconv.ParseInt(word, 10, 64)
	_, unsigned := strconv.ParseUint(word, 10, 64)
	if parts[1] == "" && (signed == nil || unsigned == nil) {
		return "!!int"
	}
	return "!!float"
}

// text reads a string.
func (r *jsonReader) text() *jsonMistake {
	start := r.pos
	r.pos++
	var out strings.Builder
	for r.peek() != '"' {
		c, size, problem := jsonRune(r.source.runes[r.pos:])
		if problem != "" {
			return r.wrong(problem, "")
		}
		if len(r.open) <= maxDepth {
			out.WriteRune(c)
		}
		r.pos += size
	}
	r.pos++
	if len(r.open) <= maxDepth {
		r.add(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: out.String()}, start)
	}
	return nil
}

// jsonRune reads one character of a string, which can be an escape or a pair of escapes. Half of such a pair is the replacement character,
// as in encoding/json.
func jsonRune(runes []rune) (c rune, size int, problem string) {
	if len(runes) == 0 {
		return 0, 0, "the closing quote is missing"
	}
	switch c := runes[0]; {
	case c == '\n' || c == '\r':
		return 0, 0, "the closing quote is missing"
	case c < ' ':
		return 0, 0, fmt.Sprintf("the control character %U is not escaped", c)
	case c != '\\':
		return c, 1, ""
	}
	if len(runes) > 1 && runes[1] != 'u' {
		const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		if i := strings.IndexRune(letters, runes[1]); i >= 0 {
			return rune(meanings[i]), 2, ""
		}
	}
	c, ok := jsonUnit(runes)
	if !ok {
		return 0, 0, "an unknown escape"
	}
	if !utf16.IsSurrogate(c) {
		return c, jsonUnitSize, ""
	}
	if low, ok := jsonUnit(runes[jsonUnitSize:]); ok {
		if c = utf16.DecodeRune(c, low); c != utf8.RuneError {
			return c, 2 * jsonUnitSize, ""
		}
	}
	return utf8.RuneError, jsonUnitSize, ""
}

// jsonUnitSize is the length of the escape of a UTF-16 unit, in characters.
const jsonUnitSize = len(`\u0000`)

// jsonUnit reads the escape of a UTF-16 unit.
func jsonUnit(runes []rune) (c rune, ok bool) {
	if len(runes) < jsonUnitSize || runes[0] != '\\' || runes[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(runes[2:jsonUnitSize]), 16, 16)
	return rune(n), err == nil
}
