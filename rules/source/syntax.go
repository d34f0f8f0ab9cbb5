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

// syntax finds where a syntax error stands. The YAML parser tells a line only, often that of the
// enclosing value or one beside it, so the place is searched: the text is cut shorter and shorter,
// and the last cut that still fails in the same way ends at the place.
type syntax struct {
	source *source
	// start and end are the offsets between which the parser read.
	start, end int
	// spent counts the characters parsed for the search.
	spent int
}

// syntaxBudget bounds the work of one search; past it, the place is where the parser gave up.
const syntaxBudget = 2_000_000

// explain gives the offset of the error, and the issue for it.
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
		// Something was opened and never closed: it failed from there on.
		offset = x.search(read, x.failsAnyhow)
	case strings.HasPrefix(problem, inBrackets):
		// A text cut inside of brackets fails like one with a comma missing, but only at its end.
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

// failsAnyhow says whether the text up to cut has any problem. One cut between two single quotes
// counts as if it had, since they may be one escaped quote.
func (x *syntax) failsAnyhow(cut int) bool {
	if r := x.source.runes; cut < len(r) && r[cut] == '\'' && r[cut-1] == '\'' {
		return true
	}
	got, _, _ := x.try(cut, spaces)
	return got != ""
}

// word gives the start and width of what to underline for an error at offset: the word that begins
// there, or the alias or key that ends there.
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

// The parser judges a token only when it has seen a few characters and two tokens after it. What
// follows a cut text gives it those: blanks, or inside of brackets what neither mends nor closes.
const (
	spaces = "        "
	commas = " , , , , ,"
)

// Problems of the parser that tell how to search.
const (
	openQuoteAtDocument = "found unexpected document indicator"
	inBrackets          = "did not find expected ',' or"
	unknownAnchor       = "unknown anchor "
)

func isText(s *source, offset int) bool {
	return offset < len(s.runes) && (unicode.IsLetter(s.runes[offset]) || unicode.IsDigit(s.runes[offset]))
}

// search goes back from a cut that fails as long as the cuts before it fail, first by lines, then by
// characters, and gives the last character of the shortest one.
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

// try parses the text up to cut, and padding after it. It gives the parser's problem, "" if it found none or the budget is
// spent; the offset up to which it read; and whether it had to read to the end to see the problem.
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

// slowReader hands out one character at a time, so that how far the parser came can be seen, and then padding.
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

// problemOf takes the parser's own prefix and line, which is not to be trusted, from its message.
func problemOf(err error) string {
	return parserPrefix.ReplaceAllString(err.Error(), "")
}

var parserPrefix = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)

// hintFor says what is most often meant where the parser finds a problem.
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
