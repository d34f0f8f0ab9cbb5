package source

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// syntax finds the position of a syntax error. The YAML parser reports only a line, often that of the enclosing value or of a neighbor.
// Therefore the position is searched: the text is cut shorter and shorter, and the shortest cut that still fails in the same way ends at
// the position.
type syntax struct {
	source *source
	// start and end are the offsets between which the parser read.
	start, end int
	// spent is the number of characters that the search has parsed.
	spent int
}

// syntaxBudget limits the work of one search. Above it, the position is where the parser stopped.
const syntaxBudget = 2_000_000

// explain returns the offset of the error, and its issue.
func (x *syntax) explain(err error) (offset int, issue Issue) {
	problem, read, ended := x.try(x.end, "")
	if problem == "" {
		problem = problemOf(err)
	}
	hint := hintFor(problem)
	same := func(cut int) bool { got, _, _ := x.try(cut, spaces); return got == problem }
	switch {
	case strings.HasPrefix(problem, unknownAnchor):
		offset = x.search(read, same)
	case ended, problem == openQuoteAtDocument:
		// A bracket or quote was opened and never closed: every cut after it fails.
		offset = x.search(read, x.failsAnyhow)
	case strings.HasPrefix(problem, inBrackets):
		// A text that is cut inside brackets fails in the same way as one with a missing comma, but only at its end.
		offset = x.search(read, func(cut int) bool { got, _, cutEnded := x.try(cut, commas); return got == problem && !cutEnded })
		here, _ := x.source.place(offset)
		if line, _ := x.source.place(x.search(read, x.failsAnyhow)); line < here {
			hint += fmt.Sprintf(" (of the bracket opened on line %d)", line)
		}
	default:
		offset = x.search(read, same)
	}
	if offset < len(x.source.runes) && x.source.runes[offset] == '\t' {
		hint = "indent with spaces, not with tabs"
	}
	start, width := x.word(offset, problem)
	return offset, x.source.issue(start, width, "is not YAML: "+problem, hint)
}

// failsAnyhow reports whether the text up to cut has any problem. A cut between two single quotes counts as a problem, because they may be
// one escaped quote.
func (x *syntax) failsAnyhow(cut int) bool {
	if r := x.source.runes; cut < len(r) && r[cut] == '\'' && r[cut-1] == '\'' {
		return true
	}
	got, _, _ := x.try(cut, spaces)
	return got != ""
}

// word returns the start and width of the text to underline for an error at offset: the word that begins there, or the alias or key that
// ends there.
func (x *syntax) word(offset int, problem string) (start, width int) {
	runes := x.source.runes
	start, width = offset, 1
	switch {
	case strings.HasPrefix(problem, unknownAnchor):
		for start > x.start && runes[start] != '*' {
			start, width = start-1, width+1
		}
	case strings.HasPrefix(problem, "did not find expected") && offset < len(runes) && runes[offset] == ':':
		for start > x.start && isText(x.source, start-1) {
			start--
		}
		return start, max(offset-start, 1)
	}
	for isText(x.source, offset) && isText(x.source, start+width) {
		width++
	}
	return start, width
}

// The parser reports a token only after it has read a few more characters and two more tokens. The padding after a cut text provides these:
// blanks or, inside brackets, commas that neither correct nor close anything.
const (
	spaces = "        "
	commas = " , , , , ,"
)

// Problems of the parser that determine how to search.
const (
	openQuoteAtDocument = "found unexpected document indicator"
	inBrackets          = "did not find expected ',' or"
	unknownAnchor       = "unknown anchor "
)

func isText(s *source, offset int) bool {
	return offset < len(s.runes) && (unicode.IsLetter(s.runes[offset]) || unicode.IsDigit(s.runes[offset]))
}

// search goes back from a failing cut while earlier cuts also fail, first by lines, then by characters. It returns the last character of
// the shortest failing cut.
func (x *syntax) search(cut int, fails func(cut int) bool) int {
	lines := x.source.parserLines
	line := max(sort.SearchInts(lines, cut)-1, 0)
	for line > 0 && (lines[line] >= cut || lines[line] > x.start && fails(lines[line])) {
		cut = min(cut, max(lines[line], x.start+1))
		line--
	}
	floor := max(lines[line], x.start)
	for step := 1; cut-step > floor && fails(cut-step); {
		cut -= step
		if len(x.source.runes[floor:cut]) > 200 {
			step = max(1, (cut-floor)/50)
		} else {
			step = 1
		}
	}
	return max(cut-1, x.start)
}

// try parses the text up to cut, and padding after it. It returns the parser's problem, or "" if there is none or the budget is spent. It
// also returns the offset up to which the parser read, and whether it had to read to the end to see the problem.
func (x *syntax) try(cut int, padding string) (problem string, read int, ended bool) {
	if x.spent += cut - x.start; x.spent > max(syntaxBudget, 2*len(x.source.runes)) {
		return "", cut, false
	}
	feed := &slowReader{text: x.source.runes[x.start:cut], padding: padding}
	decoder := yaml.NewDecoder(feed)
	for {
		_, err := nextNode(decoder)
		if errors.Is(err, io.EOF) {
			return "", cut, true
		}
		if err != nil {
			return problemOf(err), x.start + feed.read, feed.ended
		}
	}
}

// slowReader returns one character at a time, so that the progress of the parser is visible. At the end it returns padding.
type slowReader struct {
	text    []rune
	read    int
	padding string
	ended   bool
}

// Read implements io.Reader.
func (r *slowReader) Read(p []byte) (int, error) {
	switch {
	case r.read < len(r.text):
		n := copy(p, utf8.AppendRune(nil, r.text[r.read]))
		r.read++
		return n, nil
	case r.padding != "":
		n := copy(p, r.padding[:1])
		r.padding = r.padding[1:]
		return n, nil
	default:
		r.ended = true
		return 0, io.EOF
	}
}

// problemOf removes the parser's own prefix and line from its message. The line is not reliable.
func problemOf(err error) string {
	return parserPrefix.ReplaceAllString(err.Error(), "")
}

var parserPrefix = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)

// hintFor returns the most likely correction for a problem of the parser.
func hintFor(problem string) string {
	for _, known := range [][2]string{
		{"mapping values are not allowed", `put a text that has ": " in it in quotes; the keys of one mapping start in one column`},
		{"did not find expected key", "what belongs to one mapping starts in one column, and nothing follows a closing quote or bracket"},
		{"did not find expected '-' indicator", "what belongs to one list starts in one column, with a dash and a space"},
		{"could not find expected ':'", "a key is followed by a colon and a space"},
		{inBrackets, "a comma or the closing bracket is missing"},
		{"did not find expected node content", "a value is missing, or there is a bracket or comma too many"},
		{"did not find expected comment or line break", "the text of | or > begins on the next line"},
		{"found character that cannot start any token", "put a text that starts with this character in quotes"},
		{"found unexpected end of stream", "the closing quote is missing"},
		{openQuoteAtDocument, "the closing quote is missing"},
		{"found unknown escape character", `write a backslash as \\, or use single quotes; a slash needs none`},
		{"found invalid Unicode character escape", "write the character itself, or all of it as \\U and eight digits"},
		{unknownAnchor, "an alias names an anchor that stands before it"},
	} {
		if strings.HasPrefix(problem, known[0]) {
			return known[1]
		}
	}
	return ""
}
