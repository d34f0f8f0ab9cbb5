package lsp

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Text is a text in lines. It is immutable.
type Text struct {
	text string
	// lines are the byte offsets at which lines start. As in the protocol, lines end with \n, \r\n or \r.
	lines []int
}

// NewText returns a Text.
func NewText(text string) *Text {
	t := &Text{text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' || text[i] == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// String returns the text.
func (t *Text) String() string { return t.text }

// line returns the byte offsets of a line, from 0, without its line break.
func (t *Text) line(n int) (start, end int) {
	start, end = t.lines[n], len(t.text)
	if n+1 < len(t.lines) {
		end = t.lines[n+1]
	}
	return start, start + len(strings.TrimRight(t.text[start:end], "\r\n"))
}

// offset returns the byte offset of a position. A position outside the text is moved to the nearest one inside.
func (t *Text) offset(p Position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.lines) {
		return len(t.text)
	}
	at, end := t.line(p.Line)
	for units := 0; at < end; {
		r, size := utf8.DecodeRuneInString(t.text[at:end])
		if units += utf16Len(r); units > p.Character {
			break
		}
		at += size
	}
	return at
}

// position is the inverse of offset.
func (t *Text) position(offset int) Position {
	offset = min(max(offset, 0), len(t.text))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.text[t.lines[line]:offset] {
		units += utf16Len(r)
	}
	return Position{line, units}
}

// place returns the byte offset of a line and a column in characters. Both count from 1, as in issues.
func (t *Text) place(line, column int) int {
	if line < 1 || line > len(t.lines) {
		return len(t.text)
	}
	at, end := t.line(line - 1)
	if line == 1 && strings.HasPrefix(t.text, byteOrderMark) {
		column++ // issues do not count the byte order mark
	}
	for ; column > 1 && at < end; column-- {
		_, size := utf8.DecodeRuneInString(t.text[at:])
		at += size
	}
	return at
}

const byteOrderMark = "\ufeff"

// spread returns a range of width characters from a line and column on, within the line.
func (t *Text) spread(line, column, width int) Range {
	start := t.place(line, column)
	return Range{t.position(start), t.position(t.place(line, column+width))}
}

// utf16Len is how many UTF-16 code units a character takes.
func utf16Len(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// With applies a change.
func (t *Text) With(c Change) *Text {
	if c.Range == nil {
		return NewText(c.Text)
	}
	start, end := t.offset(c.Range.Start), t.offset(c.Range.End)
	end = max(start, end)
	return NewText(t.text[:start] + c.Text + t.text[end:])
}
