package source

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// writer builds a file and records the place of each character of one scalar value.
type writer struct {
	t     *rapid.T
	eol   string
	out   []rune
	value []rune
	marks []int // the offset at which value[i] was written
	ends  []int
}

func (w *writer) raw(text string) {
	w.out = append(w.out, []rune(strings.ReplaceAll(text, "\n", w.eol))...)
}

// char writes the source text of one character of the value.
func (w *writer) char(value rune, written string) {
	start := len(w.out)
	w.raw(written)
	w.value, w.marks, w.ends = append(w.value, value), append(w.marks, start), append(w.ends, len(w.out))
}

func (w *writer) chars(text string) {
	for _, r := range text {
		w.char(r, string(r))
	}
}

func (w *writer) flip(label string) bool { return rapid.Bool().Draw(w.t, label) }

func (w *writer) upTo(n int, label string) int { return rapid.IntRange(0, n).Draw(w.t, label) }

// spaces writes blanks that do not belong to the value.
func (w *writer) spaces(most int) { w.raw(strings.Repeat(" ", w.upTo(most, "spaces"))) }

// word draws a word without characters that a style must escape. Some words are not ASCII.
func (w *writer) word() string {
	return rapid.StringMatching(`[a-zé日😀][a-z0-9_.é日本😀ßя]{0,6}`).Draw(w.t, "word")
}

// fold writes a folded line break within a plain or quoted scalar.
func (w *writer) fold(indent int) {
	w.spaces(2)
	blankLines := w.upTo(2, "blank lines")
	if blankLines == 0 {
		w.char(' ', "\n")
	} else {
		w.raw("\n")
	}
	for range blankLines {
		w.spaces(2)
		w.char('\n', "\n")
	}
	w.raw(strings.Repeat(" ", indent))
	w.spaces(2)
}

func (w *writer) plain(indent int) {
	w.chars("p" + w.word())
	for range w.upTo(4, "words") {
		if w.flip("fold") {
			w.fold(indent)
		} else {
			w.chars(strings.Repeat(" ", 1+w.upTo(2, "blanks")))
		}
		w.chars(rapid.SampledFrom([]string{"x#", "y:z", "'", `"`, `\n`, ""}).Draw(w.t, "odd") + "a" + w.word())
	}
}

func (w *writer) singleQuoted(indent int) {
	w.raw("'")
	for range w.upTo(6, "parts") {
		switch w.upTo(3, "part") {
		case 0:
			w.char('\'', "''")
		case 1:
			w.chars("s")
			w.fold(indent)
			w.chars("s")
		case 2:
			w.chars(` "\n: # & *`)
		default:
			w.chars(w.word())
		}
	}
	w.raw("'")
}

func (w *writer) doubleQuoted(indent int) {
	escapes := []struct {
		written string
		value   rune
	}{
		{`\n`, '\n'},
		{`\t`, '\t'},
		{`\"`, '"'},
		{`\\`, '\\'},
		{`\0`, 0},
		{`\a`, '\a'},
		{`\b`, '\b'},
		{`\v`, '\v'},
		{`\f`, '\f'},
		{`\r`, '\r'},
		{`\e`, 0x1b},
		{`\ `, ' '},
		{`\N`, 0x85},
		{`\_`, 0xa0},
		{`\L`, 0x2028},
		{`\P`, 0x2029},
		{`\x41`, 'A'},
		{`\u65E5`, '日'},
		{`\u00e9`, 'é'},
		{`\U0001f600`, '😀'},
		{"\\\t", '\t'},
		{`\'`, '\''},
	}
	w.raw(`"`)
	for range w.upTo(8, "parts") {
		switch w.upTo(4, "part") {
		case 0, 1:
			e := rapid.SampledFrom(escapes).Draw(w.t, "escape")
			w.char(e.value, e.written)
		case 2:
			w.chars("d")
			w.fold(indent)
			w.chars("d")
		case 3:
			w.chars("c ")
			w.raw("\\\n" + strings.Repeat(" ", indent))
			w.spaces(2)
			w.chars("c")
		default:
			w.chars(w.word() + "' :#")
			w.chars("e")
		}
	}
	w.raw(`"`)
}

// block draws the lines of a block scalar and writes them with a header, as literal or folded. parent is the column of the mapping that
// holds the scalar, counted from 0.
func (w *writer) block(parent int, folded bool) {
	more := 1 + w.upTo(3, "more")
	lines := []string{}
	for range 1 + w.upTo(5, "lines") {
		line := rapid.SampledFrom([]string{"", " ", "   ", "\t"}).Draw(w.t, "lead") + w.word() +
			rapid.SampledFrom([]string{"", " # x", ": 'y", "  "}).Draw(w.t, "odd")
		if w.flip("empty") {
			line = ""
		}
		lines = append(lines, line)
	}
	lines[len(lines)-1] = "end"
	chomping := rapid.SampledFrom([]string{"", "-", "+"}).Draw(w.t, "chomping")
	header := chomping
	if joined := strings.Join(lines, ""); joined[0] == ' ' || joined[0] == '\t' || w.flip("explicit") {
		header = rapid.SampledFrom([]string{fmt.Sprintf("%d%s", more, header), fmt.Sprintf("%s%d", header, more)}).Draw(w.t, "order")
	}
	w.raw(map[bool]string{false: "|", true: ">"}[folded] + header)
	w.raw(rapid.SampledFrom([]string{"", " # comment: 日"}).Draw(w.t, "comment") + "\n")
	after := w.upTo(2, "after")
	for range after {
		lines = append(lines, "")
	}
	w.blockLines(lines, strings.Repeat(" ", parent+more), folded, len(lines)-after)
	w.chomp(chomping, after)
}

func (w *writer) blockLines(lines []string, indent string, folded bool, content int) {
	for i, line := range lines {
		if line != "" {
			w.raw(indent)
			w.chars(line)
		} else {
			w.spaces(len(indent))
		}
		if !folded || i >= content-1 {
			w.char('\n', "\n")
			continue
		}
		w.foldedBreak(lines[:content], i)
	}
}

// foldedBreak writes the line break after line i of a folded scalar (YAML 1.2, section 8.1.3).
func (w *writer) foldedBreak(lines []string, i int) {
	blank := func(line string) bool { return line[0] == ' ' || line[0] == '\t' }
	last, next := i, i+1
	for last >= 0 && lines[last] == "" {
		last--
	}
	for lines[next] == "" {
		next++
	}
	switch {
	case last != i || last < 0, blank(lines[last]), blank(lines[next]):
		w.char('\n', "\n")
	case next == i+1:
		w.char(' ', "\n")
	default:
		w.raw("\n")
	}
}

// chomp removes from the end of the value what the chomping indicator drops.
func (w *writer) chomp(chomping string, after int) {
	keep := len(w.value)
	switch chomping {
	case "-":
		keep -= after + 1
	case "":
		keep -= after
	}
	w.value, w.marks, w.ends = w.value[:keep], w.marks[:keep], w.ends[:keep]
}

// file writes a file that contains a scalar of the given style. It returns the path of the scalar.
func (w *writer) file(style string) (path string) {
	w.eol = rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(w.t, "eol")
	if w.flip("document before") {
		w.raw("# 日本語\nbefore: {x: [1, 'é']}\n---\n")
	}
	for range w.upTo(2, "fields") {
		w.raw(fmt.Sprintf("field%d: \"日本 \\u00e9 😀\" # %s\n", len(w.out), "é"))
	}
	flow := (style == "plain" || style == "single" || style == "double") && w.flip("flow")
	switch {
	case flow:
		w.raw(`日: {"k0": 1, "k1": [1, é, `)
		path = `["日"].k1[2]`
	case w.flip("list"):
		w.raw("spec:\n  list:\n  - a: é\n  - b: 1\n    expression: ")
		path = "spec.list[1].expression"
	default:
		w.raw("spec:\n  expression: ")
		path = "spec.expression"
	}
	w.raw(rapid.SampledFrom([]string{"", "&anchor ", "!!str ", "&a !!str ", "!!str &a  "}).Draw(w.t, "properties"))
	parent := 2
	if strings.Contains(path, "list") {
		parent = 4
	}
	w.style(style, parent)
	if flow {
		w.raw("], z: 1}\n")
		return path
	} else if style != "literal" && style != "folded" {
		w.raw(rapid.SampledFrom([]string{"\n", " # comment\n", "\n\n# comment\n"}).Draw(w.t, "end"))
	}
	if w.flip("more after it") {
		w.raw("last: 1\n")
	}
	return path
}

func (w *writer) style(style string, parent int) {
	switch style {
	case "plain":
		w.plain(parent + 1)
	case "single":
		w.singleQuoted(parent + 1)
	case "double":
		w.doubleQuoted(parent + 1)
	case "literal":
		w.block(parent, false)
	case "folded":
		w.block(parent, true)
	}
}

func TestEachCharacterIsFoundWhereItWasWritten(t *testing.T) {
	for _, style := range []string{"plain", "single", "double", "literal", "folded"} {
		t.Run(style, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := &writer{t: t}
				path := w.file(style)
				bom := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "bom")
				checkPlaces(t, w, bom+string(w.out), path)
			})
		})
	}
}

func checkPlaces(t *rapid.T, w *writer, data, path string) {
	docs, issues := Parse("f.yaml", []byte(data))
	if len(issues) > 0 {
		t.Fatalf("%s\nin %q", issues.Error(), data)
	}
	v, whole := docs[len(docs)-1].Find(path)
	text := v.Text(&issues)
	if !whole || len(issues) > 0 || text.Value != string(w.value) {
		t.Fatalf("%s is %q, want %q; issues %v\nin %q", path, text.Value, string(w.value), issues, data)
	}
	lines := strings.Split(string(w.out), w.eol)
	for i := range w.value {
		line := strings.Split(string(w.out[:w.marks[i]]), w.eol)
		wantLine, wantCol := len(line), len([]rune(line[len(line)-1]))+1
		got := text.Issue(i, 1, "", "")
		if got.Line != wantLine || got.Column != wantCol {
			t.Fatalf("character %d (%q) of %q is at %d:%d, want %d:%d\nin %q", i, w.value[i], text.Value, got.Line, got.Column,
				wantLine, wantCol, data)
		}
		written := string(w.out[w.marks[i]:w.ends[i]])
		if want := len([]rune(written)); written != w.eol && got.Width != want {
			t.Fatalf("character %d, written %q, is %d wide, want %d\nin %q", i, written, got.Width, want, data)
		}
		if !excerpt(lines[wantLine-1], got) {
			t.Fatalf("character %d is in line %q (after %d characters), want %q", i, got.Source, got.Skipped, lines[wantLine-1])
		}
	}
}

// TestJoin checks that an issue in a part of a joined text has the place of that part in the file.
func TestJoin(t *testing.T) {
	t.Parallel()
	docs, issues := Parse("x.yaml", []byte("a: äb\nc: \"d\\te\"\n"))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	a, c := docs[0].Root.Get("a").Text(&issues), docs[0].Root.Get("c").Text(&issues)
	x := Join(NewText("("), a, NewText(") && ("), c, NewText(")"))
	if want := "(äb) && (d\te)"; x.Value != want || !x.Joined() || !x.Written() || a.Joined() {
		t.Errorf("%q, joined %t, written %t; its first part joined %t", x.Value, x.Joined(), x.Written(), a.Joined())
	}
	for offset, want := range []string{
		"1:4", "1:4", "1:5", "2:5", "2:5", "2:5", "2:5", "2:5", "2:5", "2:5", "2:6", "2:8", "2:9", "2:9",
	} {
		i := x.Issue(offset, 100, "", "")
		if got := fmt.Sprintf("%d:%d", i.Line, i.Column); got != want {
			t.Errorf("at %d %s, want %s", offset, got, want)
		}
		if end := i.Column + i.Width; i.Line == 1 && end > 6 || i.Line == 2 && end > 10 {
			t.Errorf("at %d it is %d wide, beyond what was written", offset, i.Width)
		}
	}
}

// TestJoinSliced checks that a slice of a joined text keeps its places. Text that comes from no file has no place.
func TestJoinSliced(t *testing.T) {
	t.Parallel()
	docs, _ := Parse("x.yaml", []byte("a: äb\nc: \"d\\te\"\n"))
	var issues Issues
	x := Join(NewText("("), docs[0].Root.Get("a").Text(&issues), NewText(") && ("), docs[0].Root.Get("c").Text(&issues), NewText(")"))
	if line, col := x.Slice(2, 10).Place(1); x.Slice(2, 10).Value != "b) && (d" || line != 2 || col != 5 {
		t.Errorf("%q, its second character at %d:%d", x.Slice(2, 10).Value, line, col)
	}
	if Join(NewText("a")).Written() || Join(NewText("a")).Issue(0, 1, "m", "").Line != 0 {
		t.Error("text that nobody wrote has a place")
	}
}
