package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// source is the text of one file. An offset counts its characters (code points) from 0. A byte order mark at the start does not count.
type source struct {
	file  string
	runes []rune
	// lines contains the offsets at which lines start, as editors count lines. parserLines contains those of the YAML parser, for which NEL,
	// LS and PS also end a line.
	lines, parserLines []int
}

// newSource decodes data. notUTF8 is the offset of the first character that is not UTF-8, or -1.
func newSource(file string, data []byte) (s *source, notUTF8 int) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s, notUTF8 = &source{file: file, runes: make([]rune, 0, len(data)), lines: []int{0}, parserLines: []int{0}}, -1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 && notUTF8 < 0 {
			notUTF8 = len(s.runes)
		}
		data = data[size:]
		s.runes = append(s.runes, r)
		if r == '\r' && len(data) > 0 && data[0] == '\n' {
			continue
		}
		if r == '\n' || r == '\r' {
			s.lines = append(s.lines, len(s.runes))
		}
		if isBreak(r) {
			s.parserLines = append(s.parserLines, len(s.runes))
		}
	}
	return s, notUTF8
}

// vetText reports the first character that the file must not contain. Strings of JSON can contain some characters that YAML cannot.
func (s *source) vetText(notUTF8 int, parts []jsonPart) Issues {
	for offset := 0; offset < len(s.runes); offset++ {
		if len(parts) > 0 && offset >= parts[0].start {
			if notUTF8 < offset || notUTF8 >= parts[0].end {
				offset, parts = parts[0].end-1, parts[1:]
				continue
			}
			offset = notUTF8
		}
		what := notAllowed(s.runes[offset])
		if offset == notUTF8 {
			what = "the file is not UTF-8 text here"
		}
		if what != "" {
			return Issues{s.issue(offset, 1, what, "save the file as UTF-8 text, and write such a character as an escape in double quotes")}
		}
	}
	return nil
}

func notAllowed(r rune) string {
	switch {
	case r == '\ufeff':
		return "a byte order mark (U+FEFF) stands inside the file"
	case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
		return fmt.Sprintf("the control character %U stands in the file", r)
	}
	return ""
}

// isBreak reports whether the YAML parser ends a line at r.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// place returns the line and column, from 1, of an offset.
func (s *source) place(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.runes))
	line = sort.SearchInts(s.lines, offset+1)
	return line, offset - s.lines[line-1] + 1
}

// lineEnd returns the offset at which the line of offset ends, before its line break. It does not read the line, because a file of JSON can
// be one line with thousands of mistakes.
func (s *source) lineEnd(offset int) int {
	line, _ := s.place(offset)
	if line == len(s.lines) {
		return len(s.runes)
	}
	end := s.lines[line] - 1
	if end > offset && s.runes[end] == '\n' && s.runes[end-1] == '\r' {
		end--
	}
	return end
}

// issue returns an error at an offset. The width is cut at the end of the line.
func (s *source) issue(offset, width int, message, hint string) Issue {
	offset = min(max(offset, 0), len(s.runes))
	line, column := s.place(offset)
	start, end := s.lines[line-1], s.lineEnd(offset)
	if offset > start && offset < len(s.runes) && s.runes[offset] == '\n' && s.runes[offset-1] == '\r' {
		// The offset is between the two characters of one line break: use the position before both.
		offset, column, end = offset-1, column-1, offset-1
	}
	width = max(1, min(width, end-offset))
	from, to := start, end
	if offset-start > windowBefore { // one more character shows that something is omitted
		from = offset - windowBefore - 1
	}
	if end-offset > windowAfter {
		to = offset + windowAfter + 1
	}
	return Issue{
		File: s.file, Line: line, Column: column, Width: width,
		Message: message, Hint: hint, Source: string(s.runes[from:to]), Skipped: from - start,
	}
}

// at returns the offset of a line and column that the YAML parser counted, from 1.
func (s *source) at(line, column int) int {
	line = min(max(line, 1), len(s.parserLines))
	return min(s.parserLines[line-1]+max(column-1, 0), len(s.runes))
}

// nextDocument returns the first line after offset that starts with the mark of a new document, or the number of lines. Lines count from 0,
// as in the parser.
func (s *source) nextDocument(offset int) int {
	for i := sort.SearchInts(s.parserLines, offset+1); i < len(s.parserLines); i++ {
		if s.isMark(s.parserLines[i]) {
			return i
		}
	}
	return len(s.parserLines)
}

// Document is one YAML document of a file.
type Document struct {
	File string
	// Root is the value of the document; it exists and is not null.
	Root Value
	// Index is the number of the document, from 0, among the documents of the file that are not empty.
	Index int

	source *source
	// base is the number of source lines before the text that the parser received.
	base int
	// json states that strings are written as in JSON. shortened states that ParseShallow omitted a value.
	json, shortened bool
}

// offset returns the offset at which a node starts.
func (d *Document) offset(n *yaml.Node) int { return d.source.at(d.base+n.Line, n.Column) }

// Parse reads the YAML or JSON documents of a file. file is only its name, for the issues. All mistakes of form are issues: bad syntax (the
// documents after it are still read), duplicate keys, merge keys, unknown tags, and aliases that contain themselves or expand too much. A
// document with issues is returned, too, if it can be traversed. Empty documents are omitted.
func Parse(file string, data []byte) ([]*Document, Issues) { return parse(file, data, false) }

// ParseShallow is Parse for a file with objects of several authors. Parse refuses a document with a value that is nested too deep.
// ParseShallow omits only that value. The reader of each object must call Value.TooDeep to detect this.
func ParseShallow(file string, data []byte) ([]*Document, Issues) { return parse(file, data, true) }

func parse(file string, data []byte, shallow bool) ([]*Document, Issues) {
	s, notUTF8 := newSource(file, data)
	parts, mistakes := s.jsonParts()
	if issues := s.vetText(notUTF8, parts); len(issues) > 0 {
		return nil, issues
	}
	r := &stream{source: s, mistakes: mistakes, shallow: shallow}
	start := 0
	for _, p := range parts {
		r.yaml(start, p.start)
		for _, root := range p.values {
			r.document(root, 0, true)
		}
		start = p.end
	}
	r.yaml(start, len(s.runes))
	r.issues.Sort()
	return r.documents, r.issues
}

// stream collects the results of Parse.
type stream struct {
	source    *source
	mistakes  []*jsonMistake
	shallow   bool
	documents []*Document
	issues    Issues
	index     int
}

// yaml reads the documents of a part of the file, [start, end) in characters. Both are starts of lines, or the end of the file.
func (r *stream) yaml(start, end int) {
	for start < end {
		start = r.read(start, end)
	}
}

// read reads documents from an offset up to the first syntax error, and returns the offset at which to continue.
func (r *stream) read(start, end int) (next int) {
	line := sort.SearchInts(r.source.parserLines, start+1) - 1
	decoder := yaml.NewDecoder(&runeReader{r.source.runes[start:end]})
	for {
		node, err := nextNode(decoder)
		if errors.Is(err, io.EOF) {
			return end
		}
		if err != nil {
			r.index++
			place, issue := (&syntax{source: r.source, start: start, end: end}).explain(err)
			next = end
			if i := r.source.nextDocument(place); i < len(r.source.parserLines) {
				next = min(r.source.parserLines[i], end)
			}
			r.issues = append(r.issues, r.json(place, next, issue))
			return next
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 && !isNull(node.Content[0]) {
			r.document(node.Content[0], line, false)
		}
	}
}

// runeReader reads text without copying it, because a file with thousands of mistakes is read again after each of them.
type runeReader struct{ runes []rune }

// Read implements io.Reader.
func (r *runeReader) Read(p []byte) (n int, err error) {
	for len(r.runes) > 0 && n+utf8.UTFMax <= len(p) {
		n += utf8.EncodeRune(p[n:], r.runes[0])
		r.runes = r.runes[1:]
	}
	if n == 0 && len(r.runes) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// json returns the issue for a document that has a mistake at place and ends at end. If the document is JSON up to a later place, its
// author wrote JSON, and the mistake of JSON there is the issue.
func (r *stream) json(place, end int, issue Issue) Issue {
	for ; len(r.mistakes) > 0 && r.mistakes[0].offset <= end; r.mistakes = r.mistakes[1:] {
		if m := r.mistakes[0]; m.offset > place {
			return m.issue(r.source)
		}
	}
	return issue
}

// document processes a document that is not empty.
func (r *stream) document(root *yaml.Node, base int, isJSON bool) {
	d := &Document{File: r.source.file, Index: r.index, source: r.source, base: base, json: isJSON}
	r.index++
	d.Root = Value{doc: d, node: root, at: root}
	vet := &vetting{doc: d, shallow: r.shallow, seen: map[*yaml.Node]extent{}, open: map[*yaml.Node]bool{}}
	vet.node(d.Root.node)
	r.issues = append(r.issues, vet.issues...)
	if !vet.unsafe {
		r.documents = append(r.documents, d)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// nextNode reads the next document. It recovers from panics, because the parser may panic on bad input.
func nextNode(decoder *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	node = &yaml.Node{}
	return node, decoder.Decode(node)
}

const (
	// maxDepth is the maximum depth of nested values, including aliases.
	maxDepth = 100
	// maxExpansion is the maximum number of values that the aliases of a document may add.
	maxExpansion = 100_000
)

func tooDeep() string { return fmt.Sprintf("is nested deeper than %d values", maxDepth) }

// leftOutTag is the tag of values that ParseShallow omitted. An author cannot write it, because it contains a space.
const leftOutTag = "too deep"

// extent is the size of a node with its aliases expanded.
type extent struct{ size, height int }

// vetting checks mistakes that the YAML parser accepts, once for each written node. seen and open contain only nodes with an anchor.
type vetting struct {
	doc     *Document
	issues  Issues
	path    []string
	seen    map[*yaml.Node]extent
	open    map[*yaml.Node]bool
	added   int
	shallow bool
	// unsafe states that a traversal of the document might not end, or might take too long.
	unsafe bool
}

func (c *vetting) where() string { return strings.TrimPrefix(strings.Join(c.path, ""), ".") }

func (c *vetting) report(n *yaml.Node, message, hint string) {
	v := Value{doc: c.doc, node: n, at: n, path: c.where()}
	c.issues = append(c.issues, v.Issuef(hint, "%s", message))
}

func (c *vetting) refuse(n *yaml.Node, message, hint string) extent {
	c.report(n, message, hint)
	c.unsafe = true
	return extent{}
}

// leaveOut replaces n with an empty list that Value.TooDeep finds.
func (c *vetting) leaveOut(n *yaml.Node) extent {
	c.doc.shortened = true
	*n = yaml.Node{Kind: yaml.SequenceNode, Tag: leftOutTag, Style: yaml.FlowStyle, Line: n.Line, Column: n.Column}
	c.seen[n] = extent{size: 1}
	return c.seen[n]
}

// node checks n and all nodes below it, and returns its size.
func (c *vetting) node(n *yaml.Node) extent {
	switch {
	case c.unsafe:
		return extent{}
	case n.Kind == yaml.AliasNode:
		return c.alias(n)
	case len(c.path) >= maxDepth:
		return c.refuse(n, tooDeep(), "")
	case c.shallow && len(c.path) == maxDepth-1 && len(n.Content) > 0:
		return c.leaveOut(n)
	}
	c.tag(n)
	if n.Anchor != "" { // an alias can refer to it
		c.open[n] = true
	}
	total := extent{size: 1}
	add := func(child extent) {
		total = extent{total.size + child.size, max(total.height, child.height+1)}
	}
	if n.Kind == yaml.MappingNode {
		c.mapping(n, add)
	} else {
		for i, item := range n.Content {
			c.path = append(c.path, fmt.Sprintf("[%d]", i))
			add(c.node(item))
			c.path = c.path[:len(c.path)-1]
		}
	}
	if n.Anchor != "" {
		delete(c.open, n)
		c.seen[n] = total
	}
	return total
}

func (c *vetting) mapping(n *yaml.Node, add func(extent)) {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !c.unsafe; i += 2 {
		written, key := n.Content[i], resolved(n.Content[i])
		name := ""
		if key.Kind == yaml.ScalarNode {
			name = pathStep(key.Value)
		}
		c.path = append(c.path, name)
		add(c.node(written))
		switch {
		case key.Kind != yaml.ScalarNode:
			c.report(written, "a key must be a string, found "+describe(key), "")
		case isMerge(key):
			c.report(written, "the merge key << is not supported", "write the fields out")
		case first[key.ShortTag()+key.Value] != nil:
			line, _ := c.doc.source.place(c.doc.offset(first[key.ShortTag()+key.Value]))
			c.report(written, fmt.Sprintf("duplicate key %q, first on line %d", key.Value, line), "keep one of them")
		default:
			first[key.ShortTag()+key.Value] = written
		}
		add(c.node(n.Content[i+1]))
		c.path = c.path[:len(c.path)-1]
	}
}

// alias checks that an alias refers to a value of its own document, and that the value does not contain the alias.
func (c *vetting) alias(n *yaml.Node) extent {
	if c.open[n.Alias] {
		return c.refuse(n, fmt.Sprintf("the alias *%s stands inside of what it names", n.Value), "write the value out")
	}
	target, ok := c.seen[n.Alias]
	if !ok {
		return c.refuse(n, fmt.Sprintf("the anchor &%s belongs to another document", n.Value), "write the value out")
	}
	if len(c.path)+target.height >= maxDepth {
		if c.shallow {
			return c.leaveOut(n)
		}
		return c.refuse(n, tooDeep(), "")
	}
	if c.added += target.size; c.added > maxExpansion {
		return c.refuse(n, fmt.Sprintf("the aliases of the document add more than %d values", maxExpansion), "write fewer of them")
	}
	return target
}

func (c *vetting) tag(n *yaml.Node) {
	if n.Style&yaml.TaggedStyle == 0 {
		return
	}
	var known []string
	switch n.Kind {
	case yaml.MappingNode:
		known = []string{"!!map"}
	case yaml.SequenceNode:
		known = []string{"!!seq"}
	default:
		known = []string{"!!str", "!!int", "!!float", "!!bool", "!!null"}
	}
	tag := n.ShortTag()
	if slices.Contains(known, tag) {
		return
	}
	at := &cursor{runes: c.doc.source.runes, pos: c.doc.offset(n)}
	at.anchor()
	i := c.doc.source.issue(at.pos, utf8.RuneCountInString(tag), fmt.Sprintf("unknown tag %s", tag), "leave it out")
	i.Path = c.where()
	c.issues = append(c.issues, i)
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

// resolved follows an alias to its value.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
