package lsp

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// place is the position of the cursor in the structure of a document.
type place struct {
	doc  *source.Document
	kind *checker
	spot source.Spot
	// typed is the part of the scalar before the cursor.
	typed string
	// from is the byte offset at which the document begins.
	from int
}

// part is one document of a text, in byte offsets.
type part struct{ start, end int }

var mark = regexp.MustCompile(`(?m)^---(\s|$)`)

// partAt returns the document that contains a byte offset.
func partAt(text string, at int) part {
	p := part{0, len(text)}
	for _, m := range mark.FindAllStringIndex(text, -1) {
		if m[0] > at {
			p.end = m[0]
			break
		}
		p.start = min(m[0]+len("---"), len(text))
	}
	return p
}

// placeholder is inserted at the cursor, so that an empty word can be parsed.
const placeholder = "zzCursorzz"

// written returns the position of a cursor at which the author is writing. The text may not be valid YAML. written tries several
// corrections and uses the first one that makes it valid. It returns false if the cursor is in no document of our kinds.
func (c *Core) written(text string, at int) (place, bool) {
	p := partAt(text, at)
	before, after := text[p.start:at], text[at:p.end]
	line, rest := after, ""
	if i := strings.IndexAny(after, "\r\n"); i >= 0 {
		line, rest = after[:i], after[i:]
	}
	open := closers(before + line)
	for _, way := range []string{
		before + placeholder + after,
		before + placeholder + ":" + after,
		before + placeholder + `"` + after,
		before + placeholder + `'` + after,
		before + placeholder + open + line + rest,
		before + placeholder + ":" + open + line + rest,
		before + placeholder + `"` + open + rest,
		before + placeholder + `'` + open + rest,
		before + placeholder + line + open, // the text after it is not valid YAML either
		before + placeholder + ":" + line + open,
		before + placeholder + `"` + open,
		before + placeholder,
		before + placeholder + ":",
	} {
		if way = noPairs(way); !source.Parses([]byte(way)) {
			continue
		}
		if found, ok := c.placed(way, len(before)); ok && strings.Contains(found.spot.Text().Value, placeholder) {
			found.from = p.start
			found.typed, _, _ = strings.Cut(found.spot.Text().Value, placeholder)
			return found, true
		}
	}
	return place{}, false
}

// standing returns the position of a cursor in the unchanged text.
func (c *Core) standing(text string, at int) (place, bool) {
	p := partAt(text, at)
	found, ok := c.placed(text[p.start:p.end], at-p.start)
	if ok {
		runes := []rune(found.spot.Text().Value)
		found.typed, found.from = string(runes[:found.spot.Offset]), p.start
	}
	return found, ok
}

// placed parses a document and returns the scalar at a byte offset.
func (c *Core) placed(text string, at int) (place, bool) {
	if !strings.Contains(text, "kind") || !source.Parses([]byte(text)) {
		return place{}, false
	}
	docs, _ := source.Parse("", []byte(text))
	if len(docs) == 0 {
		return place{}, false
	}
	kind := c.checkerOf(docs[0])
	if kind == nil {
		return place{}, false
	}
	t := NewText(text)
	line := t.position(at).Line
	column := utf8.RuneCountInString(strings.TrimPrefix(text[t.lines[line]:at], byteOrderMark))
	spot, ok := docs[0].At(line+1, column+1)
	return place{doc: docs[0], kind: kind, spot: spot}, ok
}

var pair = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// noPairs replaces the pairs of escapes with which JSON writes an emoji, because YAML does not have them. A text with a placeholder is
// often not JSON. The text keeps its length, so that all positions stay the same.
func noPairs(text string) string { return pair.ReplaceAllString(text, `\ufffd\ufffd`) }

// closers returns the closing brackets that the last line of a text lacks.
func closers(text string) string {
	line := text[strings.LastIndexAny(text, "\r\n")+1:]
	var open []byte
	quote := byte(0)
	for i := range len(line) {
		ch := line[i]
		switch {
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case ch == '"' || ch == '\'':
			quote = ch
		case ch == '[':
			open = append(open, ']')
		case ch == '{':
			open = append(open, '}')
		case (ch == ']' || ch == '}') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	out := make([]byte, 0, len(open))
	for _, o := range slices.Backward(open) {
		out = append(out, o)
	}
	return string(out)
}

// holder returns the mapping or list that contains the cursor's scalar.
func (p *place) holder() source.Value {
	if n := len(p.spot.Around); n > 0 {
		return p.spot.Around[n-1]
	}
	return p.doc.Root
}

// below reports whether the scalar is a plain one on its own line below its key. The author may be starting a mapping there.
func (p *place) below() bool {
	if p.spot.Key || strings.ContainsAny(p.typed, "\n ") {
		return false
	}
	for _, f := range p.holder().Fields(nil, &source.Issues{}) {
		if f.Value.Path() == p.spot.Value.Path() {
			key, _ := f.Key.Pos()
			value, _ := f.Value.Pos()
			return value > key
		}
	}
	return p.holder().Kind() == source.List
}
