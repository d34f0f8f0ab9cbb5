package source

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Severity states whether an issue makes the file invalid.
type Severity uint8

const (
	// Error makes the file invalid.
	Error Severity = iota
	// Warning does not make the file invalid.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Issue is one mistake, with its position in the author's own file.
type Issue struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 if there is no position.
	Line, Column int
	// Width is how many characters of the line are underlined. It is at least 1 if there is a position.
	Width int
	// Path is the path of the field: spec.tiers[0].tables[1].inline.scores[0].expression.
	Path     string
	Severity Severity
	// Message states what is wrong.
	Message string
	// Hint states what would be correct; it may be empty.
	Hint string
	// Source is the line at the position, without its line break. For a long line it is the part around the position.
	Source string
	// Skipped is how many characters of the line come before Source.
	Skipped int
}

// Error returns the issue as one line, "file:line:column: path: message; hint".
func (i Issue) Error() string {
	var b strings.Builder
	b.WriteString(i.File)
	if i.Line > 0 {
		if i.File == "" {
			b.WriteString("line ")
		} else {
			b.WriteString(":")
		}
		fmt.Fprintf(&b, "%d:%d", i.Line, i.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if i.Severity == Warning {
		b.WriteString("warning: ")
	}
	if i.Path != "" {
		b.WriteString(oneLine(i.Path) + ": ")
	}
	b.WriteString(oneLine(i.Message))
	if i.Hint != "" {
		b.WriteString("; " + oneLine(i.Hint))
	}
	return b.String()
}

// oneLine returns a text as one line, without most of long values, and with visible control characters.
func oneLine(text string) string {
	lines := strings.FieldsFunc(Short(text), func(r rune) bool { return r == '\n' || r == '\r' })
	return Escape(strings.Join(lines, " "))
}

// Render returns the line of Error, and below it the author's line with carets under the position. Every line ends with a line feed.
func (i Issue) Render() string {
	var b strings.Builder
	b.WriteString(i.Error() + "\n")
	if i.Line <= 0 {
		return b.String()
	}
	number := strconv.Itoa(i.Line)
	before, place, after := i.window()
	b.WriteString(strings.TrimRight(" "+number+" | "+show(before+place+after), " \t") + "\n")
	fmt.Fprintf(&b, " %s | %s^", strings.Repeat(" ", len(number)), blank(before))
	// A position may be after the end of its line, where there is nothing to underline.
	fmt.Fprintf(&b, "%s\n", strings.Repeat("~", max(cells(place), 1)-1))
	return b.String()
}

// The maximum number of characters of a line that are shown before the position, and from it on.
const (
	windowBefore = 80
	windowAfter  = 120
)

// window cuts the source line at the position into three parts, and omits what is far from it.
func (i Issue) window() (before, place, after string) {
	line := []rune(i.Source)
	start := min(max(i.Column-1-i.Skipped, 0), len(line))
	end := min(start+max(i.Width, 1), len(line))
	from, to := 0, len(line)
	var head, tail string
	if start > windowBefore {
		from, head = start-windowBefore, "…"
	}
	if to-start > windowAfter {
		to, tail = start+windowAfter, "…"
		end = min(end, to)
	}
	return head + string(line[from:start]), string(line[start:end]), string(line[end:to]) + tail
}

// show replaces characters that a terminal would hide or interpret.
func show(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// blank returns white space that is as wide as line. Tabs stay, whatever their width.
func blank(line string) string {
	var b strings.Builder
	for _, r := range show(line) {
		if r == '\t' {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Repeat(" ", runeCells(r)))
		}
	}
	return b.String()
}

func cells(text string) int {
	n := 0
	for _, r := range show(text) {
		n += runeCells(r)
	}
	return n
}

// runeCells returns how many cells of a terminal a character takes. Combining marks take none. The wide and fullwidth blocks of Unicode's
// East Asian Width take two.
func runeCells(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	for _, wide := range [][2]rune{
		{0x1100, 0x115F}, // Hangul jamo
		{0x2E80, 0x303E}, // radicals, ideographic punctuation
		{0x3041, 0xA4CF}, // kana, CJK, Yi
		{0xA960, 0xA97F},
		{0xAC00, 0xD7A3}, // Hangul syllables
		{0xF900, 0xFAFF}, // compatibility ideographs
		{0xFE30, 0xFE6F},
		{0xFF00, 0xFF60}, // fullwidth forms
		{0xFFE0, 0xFFE6},
		{0x1F300, 0x1F64F}, // pictographs
		{0x1F680, 0x1F6FF},
		{0x1F900, 0x1FAFF},
		{0x20000, 0x3FFFD},
	} {
		if r >= wide[0] && r <= wide[1] {
			return 2
		}
	}
	return 1
}

// Issues are mistakes, in the order in which they were found until Sort is called.
type Issues []Issue

// MostShown is the maximum number of issues in one text for people. A generated file can have one mistake in each of its objects.
const MostShown = 1000

// Error formats the issues in the same way as Shown, each with the author's line.
func (is Issues) Error() string { return is.Shown(Issue.Render) }

// Shown formats at most MostShown issues, and then how many more there are. If there are more, it omits warnings before errors. It does not
// change the order of the issues. The text does not end with a line feed.
func (is Issues) Shown(write func(Issue) string) string {
	errs := min(len(is.Errors()), MostShown)
	places := map[Severity]int{Error: errs, Warning: MostShown - errs}
	hidden := map[Severity]int{}
	var b strings.Builder
	for _, i := range is {
		if places[i.Severity] == 0 {
			hidden[i.Severity]++
			continue
		}
		places[i.Severity]--
		b.WriteString(strings.TrimSuffix(write(i), "\n") + "\n")
	}
	var more []string
	for _, s := range []Severity{Error, Warning} {
		if n := hidden[s]; n > 0 {
			more = append(more, fmt.Sprintf("%d more %s%s", n, s, map[bool]string{true: "s"}[n > 1]))
		}
	}
	if len(more) > 0 {
		b.WriteString("… and " + strings.Join(more, ", ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Err returns the issues as an error, or nil if none has severity Error.
func (is Issues) Err() error {
	if len(is.Errors()) == 0 {
		return nil
	}
	return is
}

// Sort sorts the issues by file, line and column. Issues at one position keep their order.
func (is Issues) Sort() {
	slices.SortStableFunc(is, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Errors returns the issues with severity Error.
func (is Issues) Errors() Issues { return is.of(Error) }

// Warnings returns the issues with severity Warning.
func (is Issues) Warnings() Issues { return is.of(Warning) }

func (is Issues) of(s Severity) Issues {
	var out Issues
	for _, i := range is {
		if i.Severity == s {
			out = append(out, i)
		}
	}
	return out
}
