package layout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/parser"
)

// unparsed returns an expression in the form of cel-go, or false if it does not parse. Macros are parsed as plain calls, so that they are
// not expanded.
func unparsed(text string) (string, bool) {
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return "", false
	}
	a, errs := p.Parse(common.NewTextSource(text))
	if len(errs.GetErrors()) > 0 {
		return "", false
	}
	out, err := parser.Unparse(a.Expr(), a.SourceInfo(), parser.WrapAfterColumnLimit(false), parser.WrapOnColumn(1<<20))
	return out, err == nil
}

// expression returns an expression on one line with the spaces of cel-go. Literals, parentheses and everything else stay as written. An
// expression with a CEL comment, or one that does not parse, stays unchanged.
func expression(text string) string {
	whole, ok := unparsed(text)
	pieces, literals, plain := split(text)
	if !ok || !plain {
		return text
	}
	flat := strings.Join(strings.Fields(marked(pieces)), " ")
	if spaced, ok := unparsed(flat); ok && bare(spaced) == bare(flat) {
		flat = spaced
	}
	for i, literal := range literals {
		flat = strings.Replace(flat, mark(i), literal, 1)
	}
	if again, ok := unparsed(flat); !ok || again != whole {
		return text
	}
	return flat
}

// mark returns the placeholder of a string literal.
func mark(i int) string { return fmt.Sprintf(`"@%d@"`, i) }

func marked(pieces []string) string {
	var out strings.Builder
	for i, p := range pieces {
		if i > 0 {
			out.WriteString(mark(i - 1))
		}
		out.WriteString(p)
	}
	return out.String()
}

// bare returns a text without white space.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }

// split cuts an expression at its string literals, including quotes and prefix. plain is false if the expression contains a comment, bytes,
// or a literal over several lines. Such an expression stays unchanged.
func split(text string) (pieces, literals []string, plain bool) {
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "//"):
			return nil, nil, false
		case c == '`': // a quoted name
			end := strings.IndexByte(text[i+1:], '`')
			if end < 0 {
				return nil, nil, false
			}
			i += end + 1
		case c == '"' || c == '\'':
			from := i
			raw := false
			for from > start && strings.ContainsRune("rRbB", rune(text[from-1])) {
				from--
				raw = raw || strings.ContainsRune("rR", rune(text[from]))
				if strings.ContainsRune("bB", rune(text[from])) {
					return nil, nil, false
				}
			}
			end := closing(text, i, raw)
			if end < 0 || strings.Contains(text[i:end], "\n") {
				return nil, nil, false
			}
			pieces, literals = append(pieces, text[start:from]), append(literals, text[from:end])
			start, i = end, end-1
		}
	}
	return append(pieces, text[start:]), literals, true
}

// closing returns the offset after a literal that opens at an offset.
func closing(text string, open int, raw bool) int {
	quote := text[open : open+1]
	if strings.HasPrefix(text[open:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for i := open + len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// breaks cuts an expression on one line into lines of at most width characters, if possible. It cuts before || and &&, ? and :, at
// operators with the lowest precedence first. The lines joined with single spaces are the expression.
func breaks(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var at []int
	best := 1 << 20
	for _, p := range places(text) {
		if p.rank < best {
			best, at = p.rank, nil
		}
		if p.rank == best {
			at = append(at, p.offset)
		}
	}
	if at == nil {
		return []string{text}
	}
	var out []string
	from, whole := 0, false // whether the previous line is a part that was not cut
	for _, offset := range append(at, len(text)) {
		lines := breaks(text[from:offset], width)
		from = offset + 1 // without the space
		last := len(out) - 1
		if whole && len(lines) == 1 && utf8.RuneCountInString(out[last])+1+utf8.RuneCountInString(lines[0]) <= width {
			out[last] += " " + lines[0] // put several short conditions on one line
			continue
		}
		out, whole = append(out, lines...), len(lines) == 1
	}
	return out
}

// place is the space before an operator. Operators of a lower rank enclose those of a higher one.
type place struct{ offset, rank int }

func places(text string) []place {
	pieces, literals, plain := split(text)
	if !plain {
		return nil
	}
	var out []place
	depth, offset := 0, 0
	for i, piece := range pieces {
		for j := range len(piece) {
			switch piece[j] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			case ' ':
				for rank, operator := range []string{" ? ", " : ", " || ", " && "} {
					if offset+j > 0 && strings.HasPrefix(piece[j:], operator) {
						out = append(out, place{offset + j, depth*4 + max(rank-1, 0)})
					}
				}
			}
		}
		offset += len(piece)
		if i < len(literals) {
			offset += len(literals[i])
		}
	}
	return out
}

// words cuts a text at its spaces into lines of at most width characters, if possible.
func words(text string, width int) []string {
	var out []string
	for word := range strings.SplitSeq(text, " ") {
		if n := len(out); n > 0 && utf8.RuneCountInString(out[n-1])+1+utf8.RuneCountInString(word) <= width {
			out[n-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}
