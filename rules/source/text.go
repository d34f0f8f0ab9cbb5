package source

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Text is a string of the author, or a part of one, that knows where each of its characters is written. The zero value is an empty text
// without a position.
type Text struct {
	// Value is the string as YAML reads it: without quotes, and with escapes and folding resolved.
	Value string

	doc  *Document
	node *yaml.Node
	path string
	// from is how many characters of the scalar come before Value.
	from int
	// parts are the texts that were joined, or nil.
	parts []Text
}

// NewText returns a text without a file. Its issues have no position.
func NewText(value string) Text { return Text{Value: value} }

// Join joins texts. An issue in a part has the position at which the author wrote that part. An issue between parts that the author wrote
// has the position of the next such part.
func Join(parts ...Text) Text {
	t := Text{parts: parts}
	for _, p := range parts {
		t.Value += p.Value
	}
	return t
}

// Joined reports whether the text was joined, so that it has more than one position.
func (t Text) Joined() bool { return t.parts != nil }

// Written reports whether the author wrote the text. Otherwise the field is absent or not a string.
func (t Text) Written() bool { return t.doc != nil || slices.ContainsFunc(t.parts, Text.Written) }

// part returns the part that contains an offset, or the next part that was written, and the offset in it.
func (t Text) part(offset int) (Text, int) {
	var found Text
	for _, p := range t.parts {
		size := utf8.RuneCountInString(p.Value)
		if p.Written() {
			if found = p; offset < size {
				return p, max(offset, 0)
			}
		}
		offset -= size
	}
	return found, utf8.RuneCountInString(found.Value)
}

// Path returns the path of the field that contains the text.
func (t Text) Path() string { return t.path }

// Slice returns the part between two offsets, in characters, with its positions. Offsets outside the text are moved to its ends.
func (t Text) Slice(from, to int) Text {
	runes := []rune(t.Value)
	to = min(max(to, 0), len(runes))
	from = min(max(from, 0), to)
	if t.parts != nil {
		return t.slice(from, to)
	}
	t.Value, t.from = string(runes[from:to]), t.from+from
	return t
}

// slice is Slice for a joined text.
func (t Text) slice(from, to int) Text {
	var parts []Text
	for _, p := range t.parts {
		size := utf8.RuneCountInString(p.Value)
		if from < size && to > 0 {
			parts = append(parts, p.Slice(from, to))
		}
		from, to = from-size, to-size
	}
	return Join(parts...)
}

// Place returns the line and column, from 1, of the character at offset, which counts characters. It returns 0 and 0 for a text without a
// file. An offset past the end is the position after the last character.
func (t Text) Place(offset int) (line, col int) {
	i := t.Issue(offset, 1, "", "")
	return i.Line, i.Column
}

// Issue returns an error at a part of the text, given in characters, with the author's position.
func (t Text) Issue(offset, width int, message, hint string) Issue {
	if t.parts != nil {
		p, within := t.part(offset)
		return p.Issue(within, min(width, utf8.RuneCountInString(p.Value)-within), message, hint)
	}
	if t.doc == nil {
		return Issue{Path: t.path, Message: message, Hint: hint, Width: max(width, 1)}
	}
	start, end := t.span(max(offset, 0), max(width, 1))
	i := t.doc.source.issue(start, end-start, message, hint)
	i.Path = t.path
	return i
}

// span returns the source offsets of a part of the text.
func (t Text) span(offset, width int) (start, end int) {
	s := scan(t.doc, t.node)
	if s.spans == nil {
		return s.start, s.start + 1
	}
	offset = t.from + min(offset, utf8.RuneCountInString(t.Value))
	if offset >= len(s.spans) {
		return s.tail, s.tail + 1
	}
	last := min(offset+width, len(s.spans)) - 1
	return s.spans[offset].start, s.spans[last].end
}

// span is the part of the source, [start, end), from which one character of a scalar was read.
type span struct{ start, end int }

// scalar is a scalar as it was found in the source.
type scalar struct {
	// start is the offset of its first character, after anchor and tag: a quote, an indicator, or text.
	start int
	// end is the offset after its last character.
	end int
	// spans has an element for each character of the value. It is nil if the source does not agree with the parser. Then only start and tail
	// are known.
	spans []span
	// tail is the offset after the last character that is not a line break.
	tail int
}

// scan reads a scalar again, because the YAML parser reports only where it starts.
func scan(d *Document, n *yaml.Node) scalar {
	c := &cursor{runes: d.source.runes, pos: d.offset(n), limit: utf8.RuneCountInString(n.Value)}
	if c.limit > 0 || n.Style&^yaml.TaggedStyle != 0 {
		c.properties()
	}
	start := c.pos
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		c.block(n.Value, n.Style&yaml.FoldedStyle != 0)
	case n.Style&yaml.SingleQuotedStyle != 0:
		c.quoted('\'')
	case d.json && n.Style&yaml.DoubleQuotedStyle != 0:
		c.jsonText()
	case n.Style&yaml.DoubleQuotedStyle != 0:
		c.quoted('"')
	default:
		c.plain()
	}
	return c.scalar(start, n.Value)
}

// cursor reads a scalar's source and collects the characters of its value.
type cursor struct {
	runes []rune
	pos   int
	// limit is how many characters the parser found. The cursor collects no more.
	limit int
	out   []rune
	spans []span
}

func (c *cursor) scalar(start int, want string) scalar {
	s := scalar{start: start, end: max(c.pos, start), tail: start}
	if string(c.out) != want {
		return s
	}
	s.spans = append([]span{}, c.spans...)
	for _, p := range c.spans {
		if !isBreak(c.runes[p.start]) {
			s.tail = p.end
		}
	}
	if len(c.out) == 0 && start < len(c.runes) && (c.runes[start] == '"' || c.runes[start] == '\'') {
		s.tail = start + 1
	}
	return s
}

// peek returns the character at distance k, or 0 after the end. No YAML text contains 0.
func (c *cursor) peek(k int) rune {
	if c.pos+k >= len(c.runes) {
		return 0
	}
	return c.runes[c.pos+k]
}

func (c *cursor) full() bool { return len(c.out) >= c.limit }

func (c *cursor) emit(r rune, s span) {
	if !c.full() {
		c.out, c.spans = append(c.out, r), append(c.spans, s)
	}
}

// emitAll emits white space that was held back.
func (c *cursor) emitAll(pieces []piece) {
	for _, p := range pieces {
		c.emit(p.rune, p.span)
	}
}

// piece is a character that may or may not belong to the value.
type piece struct {
	rune rune
	span span
}

// take reads n characters of source as one character r.
func (c *cursor) take(n int, r rune) piece {
	c.pos += n
	return piece{r, span{c.pos - n, c.pos}}
}

// lineBreak reads a line break. All line breaks except LS and PS become a line feed.
func (c *cursor) lineBreak() piece {
	switch r := c.peek(0); {
	case r == '\r' && c.peek(1) == '\n':
		return c.take(2, '\n')
	case r == 0x2028 || r == 0x2029:
		return c.take(1, r)
	default:
		return c.take(1, '\n')
	}
}

// properties skips anchor and tag, and everything between them and the scalar.
func (c *cursor) properties() {
	c.anchor()
	if c.peek(0) == '!' {
		for r := c.peek(0); r != 0 && !isBlank(r) && !isBreak(r); r = c.peek(0) {
			c.pos++
		}
		c.white()
	}
	c.anchor()
}

// anchor skips an anchor, if there is one, and the white space after it.
func (c *cursor) anchor() {
	if c.peek(0) != '&' {
		return
	}
	c.pos++
	for r := c.peek(0); r == '-' || isWord(r); r = c.peek(0) {
		c.pos++
	}
	c.white()
}

// white skips blanks, line breaks and comments.
func (c *cursor) white() {
	for {
		switch r := c.peek(0); {
		case isBlank(r) || isBreak(r):
			c.pos++
		case r == '#':
			c.comment()
		default:
			return
		}
	}
}

func (c *cursor) comment() {
	for r := c.peek(0); r != 0 && !isBreak(r); r = c.peek(0) {
		c.pos++
	}
}

// fold reads blanks and line breaks within a plain or quoted scalar. In a run with a line break the blanks do not count. One break becomes
// a space. If there are more, the first does not count. escaped states that an escaped break came before, which does not count.
func (c *cursor) fold(escaped bool) {
	var blanks, breaks []piece
	for isBlank(c.peek(0)) || isBreak(c.peek(0)) {
		if isBreak(c.peek(0)) {
			breaks = append(breaks, c.lineBreak())
		} else {
			blanks = append(blanks, c.take(1, c.peek(0)))
		}
	}
	switch {
	case escaped:
		c.emitAll(breaks)
	case len(breaks) == 0:
		c.emitAll(blanks)
	case breaks[0].rune != '\n':
		c.emitAll(breaks)
	case len(breaks) == 1:
		c.emit(' ', breaks[0].span)
	default:
		c.emitAll(breaks[1:])
	}
}

// plain reads a scalar without quotes. The parser's value determines where it ends.
func (c *cursor) plain() {
	for !c.full() && c.pos < len(c.runes) {
		if r := c.peek(0); isBlank(r) || isBreak(r) {
			c.fold(false)
			continue
		}
		p := c.take(1, c.peek(0))
		c.emit(p.rune, p.span)
	}
}

// quoted reads a scalar in single or double quotes.
func (c *cursor) quoted(quote rune) {
	if c.peek(0) != quote {
		return
	}
	c.pos++
	for c.pos < len(c.runes) {
		switch r := c.peek(0); {
		case r == quote && quote == '\'' && c.peek(1) == quote:
			p := c.take(2, quote)
			c.emit(p.rune, p.span)
		case r == quote:
			c.pos++
			return
		case r == '\\' && quote == '"' && isBreak(c.peek(1)):
			c.pos++
			c.lineBreak()
			c.fold(true)
		case r == '\\' && quote == '"':
			p := c.escape()
			c.emit(p.rune, p.span)
		case isBlank(r) || isBreak(r):
			c.fold(false)
		default:
			p := c.take(1, r)
			c.emit(p.rune, p.span)
		}
	}
}

// jsonText reads a string of JSON.
func (c *cursor) jsonText() {
	for c.pos++; c.peek(0) != '"'; {
		r, size, problem := jsonRune(c.runes[c.pos:])
		if problem != "" {
			return
		}
		p := c.take(size, r)
		c.emit(p.rune, p.span)
	}
	c.pos++
}

// escape reads a backslash and the characters that belong to it.
func (c *cursor) escape() piece {
	switch r := c.peek(1); r {
	case 'x':
		return c.hex(2)
	case 'u':
		return c.hex(4)
	case 'U':
		return c.hex(8)
	default:
		const letters, meanings = "0abtnvfreN_LP", "\x00\a\b\t\n\v\f\r\x1b\u0085\u00a0\u2028\u2029"
		if i := strings.IndexRune(letters, r); i >= 0 {
			r = []rune(meanings)[i]
		}
		return c.take(2, r)
	}
}

func (c *cursor) hex(digits int) piece {
	var r rune
	for k := range digits {
		d := c.peek(2 + k)
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		}
		r = r<<4 + d
	}
	return c.take(2+digits, r)
}

// block reads a literal or folded scalar: its header, then its lines.
func (c *cursor) block(want string, folded bool) {
	for r := c.peek(0); r != 0 && !isBreak(r) && r != '#'; r = c.peek(0) {
		c.pos++
	}
	c.comment()
	if isBreak(c.peek(0)) {
		c.lineBreak()
	}
	c.lines(c.indent(want), folded)
}

// indent returns how many spaces are before each line of a block scalar. It compares the parser's value with the source: the first line
// that is not empty has that many spaces fewer in the value.
func (c *cursor) indent(want string) int {
	content := strings.TrimLeft(want, "\n")
	if content == "" {
		return len(c.runes)
	}
	ahead := *c
	for range len(want) - len(content) {
		for ahead.peek(0) == ' ' {
			ahead.pos++
		}
		ahead.lineBreak()
	}
	start := ahead.pos
	for ahead.peek(0) == ' ' {
		ahead.pos++
	}
	return ahead.pos - start - (len(content) - len(strings.TrimLeft(content, " ")))
}

// lines reads the lines of a block scalar. A folded break between two lines that do not start with a blank becomes a space. If empty lines
// follow, it becomes nothing, and their breaks count.
func (c *cursor) lines(indent int, folded bool) {
	var last, empty []piece
	blankBefore := false
	for !c.full() {
		empty = append(empty, c.emptyLines(indent)...)
		if c.peek(0) == 0 || c.column() < indent {
			break
		}
		blankNow := isBlank(c.peek(0))
		if folded && !blankBefore && !blankNow && len(last) > 0 && last[0].rune == '\n' {
			if len(empty) == 0 {
				c.emit(' ', last[0].span)
			}
		} else {
			c.emitAll(last)
		}
		c.emitAll(empty)
		last, empty, blankBefore = nil, nil, blankNow
		for r := c.peek(0); r != 0 && !isBreak(r); r = c.peek(0) {
			p := c.take(1, r)
			c.emit(p.rune, p.span)
		}
		if isBreak(c.peek(0)) {
			last = []piece{c.lineBreak()}
		}
	}
	c.emitAll(last)
	c.emitAll(empty)
}

// emptyLines skips up to indent spaces, and collects the breaks of empty lines.
func (c *cursor) emptyLines(indent int) []piece {
	var breaks []piece
	for {
		for k := 0; k < indent && c.peek(0) == ' '; k++ {
			c.pos++
		}
		if !isBreak(c.peek(0)) {
			return breaks
		}
		breaks = append(breaks, c.lineBreak())
	}
}

// column returns how many characters of the line are before the cursor.
func (c *cursor) column() int {
	n := 0
	for n < c.pos && !isBreak(c.runes[c.pos-n-1]) {
		n++
	}
	return n
}

func isWord(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
