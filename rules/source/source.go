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

// source is the text of one file. An offset counts its characters (code points) from 0; a byte
// order mark at the start is not one of them.
type source struct {
	file  string
	runes []rune
	// lines holds where each line starts as editors count lines, parserLines as the YAML parser
	// does, to which NEL, LS and PS end a line too.
	lines, parserLines []int
}

// newSource decodes data. Text that YAML does not allow at all is an issue, of which the first is given.
func newSource(file string, data []byte) (*source, Issues) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := &source{file: file, runes: make([]rune, 0, len(data)), lines: []int{0}, parserLines: []int{0}}
	bad, what := -1, ""
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if bad < 0 {
			if what = notAllowed(r, size); what != "" {
				bad = len(s.runes)
			}
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
	if bad >= 0 {
		return s, Issues{s.issue(bad, 1, what, "save the file as UTF-8 text, and write such a character as an escape in double quotes")}
	}
	return s, nil
}

func notAllowed(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "the file is not UTF-8 text here"
	case r == '\ufeff':
		return "a byte order mark (U+FEFF) stands inside the file"
	case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
		return fmt.Sprintf("the control character %U stands in the file", r)
	}
	return ""
}

// isBreak says whether the YAML parser ends a line at r.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// place gives line and column, from 1, of an offset.
func (s *source) place(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.runes))
	line = sort.SearchInts(s.lines, offset+1)
	return line, offset - s.lines[line-1] + 1
}

// lineEnd gives the offset at which the line of offset ends, before its line break.
func (s *source) lineEnd(offset int) int {
	for offset < len(s.runes) && s.runes[offset] != '\n' && s.runes[offset] != '\r' {
		offset++
	}
	return offset
}

// issue makes an error at an offset; what of width goes past the end of the line is cut.
func (s *source) issue(offset, width int, message, hint string) Issue {
	offset = min(max(offset, 0), len(s.runes))
	line, column := s.place(offset)
	start, end := s.lines[line-1], s.lineEnd(offset)
	if offset > start && offset < len(s.runes) && s.runes[offset] == '\n' && s.runes[offset-1] == '\r' {
		// Between the two characters of one line break: the place is before both.
		offset, column, end = offset-1, column-1, offset-1
	}
	width = max(1, min(width, end-offset))
	from, to := start, end
	if offset-start > windowBefore { // one character more shows that something is left out
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

// at gives the offset of a line and column that the YAML parser counted, from 1.
func (s *source) at(line, column int) int {
	line = min(max(line, 1), len(s.parserLines))
	return min(s.parserLines[line-1]+max(column-1, 0), len(s.runes))
}

// nextDocument gives the first line, counted from 0 as the parser does, that starts behind offset
// with the mark of a new document, or the number of lines.
func (s *source) nextDocument(offset int) int {
	for i := sort.SearchInts(s.parserLines, offset+1); i < len(s.parserLines); i++ {
		rest := s.runes[s.parserLines[i]:]
		if len(rest) >= 3 && string(rest[:3]) == "---" && (len(rest) == 3 || isBlank(rest[3]) || isBreak(rest[3])) {
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
	// Index counts the documents of the file that are not empty, from 0.
	Index int

	source *source
	// base is how many lines of the source stand before what the parser was given.
	base int
}

// offset gives where a node starts.
func (d *Document) offset(n *yaml.Node) int { return d.source.at(d.base+n.Line, n.Column) }

// Parse reads the YAML or JSON documents of a file; file is only its name, for the issues. All
// mistakes of form are issues: bad syntax (the documents after it are still read), duplicate keys,
// merge keys, unknown tags, aliases that contain themselves or grow out of bounds. A document is
// given where it can be walked, even if it has issues. Empty documents are left out.
func Parse(file string, data []byte) ([]*Document, Issues) {
	s, issues := newSource(file, data)
	if len(issues) > 0 {
		return nil, issues
	}
	r := &stream{source: s}
	for line := 0; line < len(s.parserLines); {
		line = r.read(line)
	}
	r.issues.Sort()
	return r.documents, r.issues
}

// stream collects what Parse gives.
type stream struct {
	source    *source
	documents []*Document
	issues    Issues
	index     int
}

// read takes documents from the given line on up to the first syntax error, and gives the line to go on from.
func (r *stream) read(line int) (next int) {
	start := r.source.parserLines[line]
	decoder := yaml.NewDecoder(strings.NewReader(string(r.source.runes[start:])))
	for {
		node, err := nextNode(decoder)
		if errors.Is(err, io.EOF) {
			return len(r.source.parserLines)
		}
		if err != nil {
			r.index++
			place, issue := (&syntax{source: r.source, start: start}).explain(err)
			r.issues = append(r.issues, issue)
			return r.source.nextDocument(place)
		}
		if node.Kind != yaml.DocumentNode || len(node.Content) != 1 || isNull(node.Content[0]) {
			continue
		}
		d := &Document{File: r.source.file, Index: r.index, source: r.source, base: line}
		r.index++
		d.Root = Value{doc: d, node: node.Content[0], at: node.Content[0]}
		vet := &vetting{doc: d, seen: map[*yaml.Node]extent{}, open: map[*yaml.Node]bool{}}
		vet.node(d.Root.node)
		r.issues = append(r.issues, vet.issues...)
		if !vet.unsafe {
			r.documents = append(r.documents, d)
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// nextNode reads the next document. The parser is not trusted to answer bad input with an error only.
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
	// maxDepth is how deep values may be nested, aliases included.
	maxDepth = 100
	// maxExpansion is how many values the aliases of a document may add to those written.
	maxExpansion = 100_000
)

// extent is how large a node is with its aliases expanded.
type extent struct{ size, height int }

// vetting checks what the YAML parser lets pass, once for each node written.
type vetting struct {
	doc    *Document
	issues Issues
	path   []string
	seen   map[*yaml.Node]extent
	open   map[*yaml.Node]bool
	added  int
	// unsafe: walking the document might not end, or not soon.
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

// node checks n and what is below it, and gives its size.
func (c *vetting) node(n *yaml.Node) extent {
	switch {
	case c.unsafe:
		return extent{}
	case n.Kind == yaml.AliasNode:
		return c.alias(n)
	case len(c.path) >= maxDepth:
		return c.refuse(n, fmt.Sprintf("is nested deeper than %d values", maxDepth), "")
	}
	c.tag(n)
	c.open[n] = true
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
	delete(c.open, n)
	c.seen[n] = total
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

// alias checks that an alias names a value of its own document, and does not make it endless.
func (c *vetting) alias(n *yaml.Node) extent {
	if c.open[n.Alias] {
		return c.refuse(n, fmt.Sprintf("the alias *%s stands inside of what it names", n.Value), "write the value out")
	}
	target, ok := c.seen[n.Alias]
	if !ok {
		return c.refuse(n, fmt.Sprintf("the anchor &%s belongs to another document", n.Value), "write the value out")
	}
	if len(c.path)+target.height >= maxDepth {
		return c.refuse(n, fmt.Sprintf("is nested deeper than %d values", maxDepth), "")
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

// resolved follows an alias to the value that it names.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
