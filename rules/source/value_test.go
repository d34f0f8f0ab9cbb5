package source

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func parseOne(t *testing.T, data string) *Document {
	t.Helper()
	docs, issues := Parse("f.yaml", []byte(data))
	if len(issues) > 0 || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), issues)
	}
	return docs[0]
}

// errorLines returns one line for each issue, without the file name.
func errorLines(issues Issues) []string {
	var out []string
	for _, i := range issues {
		out = append(out, strings.TrimPrefix(i.Error(), "f.yaml:"))
	}
	return out
}

const everyType = `string: abc
quoted: "12"
tagged: !!str 12
date: 2026-11-21
word: yes
bool: true
int: 0x10
big: 18446744073709551615
negative: -3
float: 2.5
whole: !!float 3
inf: .inf
nan: .nan
bad: !!int abc
null: null
empty:
duration: 1h30m
map: {a: 1}
list: [a, 1, b, null]
strings: [a, "1"]
`

func TestScalarsOfEachType(t *testing.T) {
	root := parseOne(t, everyType).Root
	var issues Issues
	got := map[string]any{}
	for _, f := range root.Fields(nil, &issues) {
		got[f.Name] = f.Value.Any()
	}
	want := map[string]any{
		"string": "abc", "quoted": "12", "tagged": "12", "date": "2026-11-21", "word": "yes", "bool": true,
		"int": int64(16), "big": float64(math.MaxUint64), "negative": int64(-3), "float": 2.5, "whole": 3.0,
		"inf": math.Inf(1), "nan": math.NaN(), "bad": "abc", "empty": nil, "duration": "1h30m",
		"map": map[string]any{"a": int64(1)}, "list": []any{"a", int64(1), "b", nil}, "strings": []any{"a", "1"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`15:1: null: must be a string, found nothing (null); write "null" in quotes`},
		errorLines(issues)); diff != "" {
		t.Error(diff)
	}
}

// TestTypesTaken asks each value for each type. It lists the types that a value accepts without an issue.
func TestTypesTaken(t *testing.T) {
	root := parseOne(t, everyType).Root
	asks := []struct {
		name string
		ask  func(Value, *Issues)
	}{
		{"string", func(v Value, is *Issues) { v.String(is) }},
		{"bool", func(v Value, is *Issues) { v.Bool(is) }},
		{"int", func(v Value, is *Issues) { v.Int(is) }},
		{"float", func(v Value, is *Issues) { v.Float(is) }},
		{"duration", func(v Value, is *Issues) { v.Duration(is) }},
		{"text", func(v Value, is *Issues) { v.Text(is) }},
		{"fields", func(v Value, is *Issues) { v.Fields(nil, is) }},
		{"items", func(v Value, is *Issues) { v.Items(is) }},
		{"strings", func(v Value, is *Issues) { v.Strings(is) }},
	}
	want := map[string]string{
		"string": "string text", "quoted": "string text", "tagged": "string text", "date": "string text", "word": "string text",
		"bool": "bool text", "int": "int float text", "big": "float text", "negative": "int float text", "float": "float text",
		"whole": "float text", "inf": "text", "nan": "text", "bad": "string text", "empty": "fields items strings",
		"duration": "string duration text", "map": "fields", "list": "items", "strings": "items strings",
		"absent": "string bool int float duration text fields items strings",
	}
	for name, taken := range want {
		var got []string
		for _, a := range asks {
			var issues Issues
			if a.ask(root.Get(name), &issues); len(issues) == 0 {
				got = append(got, a.name)
			}
		}
		if diff := cmp.Diff(taken, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValuesTaken(t *testing.T) {
	root := parseOne(t, everyType).Root
	var issues Issues
	got := []any{
		root.Get("string").String(&issues), root.Get("bool").Bool(&issues), root.Get("int").Int(&issues), root.Get("int").Float(&issues),
		root.Get("float").Float(&issues), root.Get("duration").Duration(&issues), root.Get("strings").Strings(&issues),
		root.Get("int").Text(&issues).Value, root.Get("bool").Text(&issues).Value, root.Get("nothing").Text(&issues).Value,
	}
	want := []any{"abc", true, int64(16), 16.0, 2.5, 90 * time.Minute, []string{"a", "1"}, "0x10", "true", ""}
	if diff := cmp.Diff(want, got); diff != "" || len(issues) > 0 {
		t.Errorf("%v\n%s", issues, diff)
	}
}

func TestWrongTypes(t *testing.T) {
	root := parseOne(t, `a: 3
b: "true"
c: 2.5
d:
  x: 1
e: [1]
f: !!str ""
g: null
h: .nan
i: &x one two three four five six seven eight nine ten
j: *x
`).Root
	var issues Issues
	root.Get("a").String(&issues)
	root.Get("b").Bool(&issues)
	root.Get("c").Int(&issues)
	root.Get("d").Float(&issues)
	root.Get("e").Text(&issues)
	root.Get("f").Duration(&issues)
	root.Get("g").String(&issues)
	root.Get("h").Float(&issues)
	root.Get("i").Fields(nil, &issues)
	root.Get("j").Items(&issues)
	if got := root.Get("e").Strings(&issues); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	want := []string{
		`1:4: a: must be a string, found the number 3; write "3" in quotes`,
		`2:4: b: must be true or false, found the string "true"`,
		`3:4: c: must be a whole number, found the number 2.5`,
		`5:3: d: must be a finite number, found a mapping`,
		`6:4: e: must be text, found a list`,
		`7:10: f: must be a duration, found the string ""; write it with its units, such as "90s" or "1h30m"`,
		`8:4: g: must be a string, found nothing (null)`,
		`9:4: h: must be a finite number, found the number .nan`,
		`10:7: i: must be a mapping, found the string "one two three four five six seven eight "…`,
		`11:4: j: must be a list, found the string "one two three four five six seven eight "…`,
		`6:5: e[0]: must be a string, found the number 1; write "1" in quotes`,
	}
	if diff := cmp.Diff(want, errorLines(issues)); diff != "" {
		t.Error(diff)
	}
	widths := []int{}
	for _, i := range issues {
		widths = append(widths, i.Width)
	}
	if diff := cmp.Diff([]int{1, 6, 3, 1, 1, 2, 4, 4, 48, 2, 1}, widths); diff != "" {
		t.Error(diff)
	}
}

func TestFields(t *testing.T) {
	root := parseOne(t, "expresion: 1\n12: x\nwhen: 2\ntrue: y\n\"on\": 3\nother: 4\n").Root
	var issues Issues
	var got []string
	for _, f := range root.Fields([]string{"when", "expression", "on"}, &issues) {
		got = append(got, f.Name+"="+f.Value.Path()+":"+f.Value.Text(&issues).Value)
	}
	if diff := cmp.Diff([]string{"when=when:2", "on=on:3"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`1:1: expresion: unknown field "expresion"; did you mean "expression"?`,
		`2:1: ["12"]: must be a string, found the number 12; write "12" in quotes`,
		`4:1: true: must be a string, found the boolean true; write "true" in quotes`,
		`6:1: other: unknown field "other"; known here: expression, on, when`,
	}
	if diff := cmp.Diff(want, errorLines(issues)); diff != "" {
		t.Error(diff)
	}
}

func TestFirstOfDuplicatesCounts(t *testing.T) {
	docs, issues := Parse("f.yaml", []byte("a: 1\na: 2\n<<: {b: 1}\n"))
	if len(issues) != 2 || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), issues)
	}
	root := docs[0].Root
	if got := root.Fields(nil, &issues); len(got) != 1 || got[0].Value.Int(&issues) != 1 || root.Get("a").Int(&issues) != 1 {
		t.Errorf("got %v", got)
	}
	if root.Get("<<").Exists() || !cmp.Equal(root.Any(), map[string]any{"a": int64(1)}) {
		t.Errorf("got %v", root.Any())
	}
}

func TestAbsent(t *testing.T) {
	root := parseOne(t, "spec:\n  tiers:\n  - name: x\n").Root
	missing := root.Get("spec").Get("tiers").Get("name").Get("deep")
	if missing.Exists() || missing.Kind() != Null || missing.Any() != nil || missing.Path() != "spec.tiers.name.deep" {
		t.Errorf("got %+v", missing)
	}
	var issues Issues
	item := root.Get("spec").Get("tiers").Items(&issues)[0]
	issues = append(issues, item.Get("expression").Issuef("add it", "%s is missing", "expression"))
	var zero Value
	issues = append(issues, zero.Issuef("", "nowhere"))
	if line, col := zero.Pos(); line != 0 || col != 0 || zero.Exists() || zero.Document() != nil || zero.Get("a").Exists() {
		t.Errorf("the zero value is at %d:%d", line, col)
	}
	want := []string{"3:5: spec.tiers[0].expression: expression is missing; add it", "nowhere"}
	if diff := cmp.Diff(want, errorLines(issues)); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	d := parseOne(t, "metadata:\n  labels:\n    a.b/c: x\n    \"q\\\"[0]\": y\n  list: [[1, {k: 2}], 3]\n\"\": z\n")
	for _, c := range []struct {
		path, found string
		whole       bool
	}{
		{"", "", true},
		{"metadata.labels", "metadata.labels", true},
		{`metadata.labels["a.b/c"]`, `metadata.labels["a.b/c"]`, true},
		{`metadata.labels["q\"[0]"]`, `metadata.labels["q\"[0]"]`, true},
		{`metadata["list"][0][1].k`, "metadata.list[0][1].k", true},
		{`[""]`, `[""]`, true},
		{"metadata.list[0][2]", "metadata.list[0]", false},
		{"metadata.list[1].k", "metadata.list[1]", false},
		{"metadata.lists[1]", "metadata", false},
		{"metadata.labels[0]", "metadata.labels", false},
		{"metadata.list[-1]", "metadata.list", false},
		{"metadata.list[0", "metadata.list", false},
		{"metadata..list", "metadata", false},
		{"metadata.", "metadata", false},
	} {
		v, whole := d.Find(c.path)
		if v.Path() != c.found || whole != c.whole || !v.Exists() {
			t.Errorf("Find(%q) = %q, %v; want %q, %v", c.path, v.Path(), whole, c.found, c.whole)
		}
	}
}

func TestEveryPathIsFound(t *testing.T) {
	d := parseOne(t, everyType+"odd: {\"a b\": [{\"\\\"\": 1}], -x: 2, 日本: 3, \"a\\nb\": 4}\n")
	n := 0
	texts(d.Root, func(text Text) {
		v, whole := d.Find(text.Path())
		if !whole || v.Path() != text.Path() || !cmp.Equal(v.Text(new(Issues)).Value, text.Value) {
			t.Errorf("%s leads to %s", text.Path(), v.Path())
		}
		n++
	})
	if n < 20 {
		t.Errorf("only %d texts", n)
	}
}

func TestSlice(t *testing.T) {
	text := parseOne(t, "a: 'é: ''{{x.idel}}'' 日'\n").Root.Get("a").Text(new(Issues))
	part := text.Slice(6, 12)
	if part.Value != "x.idel" || part.Path() != "a" {
		t.Errorf("got %q at %q", part.Value, part.Path())
	}
	if got := part.Slice(2, 99).Issue(0, 4, "m", ""); got.Line != 1 || got.Column != 14 || got.Width != 4 {
		t.Errorf("got %+v", got)
	}
	if line, col := part.Place(99); line != 1 || col != 18 {
		t.Errorf("the end of the part is at %d:%d", line, col)
	}
	if got := text.Slice(-1, -1).Value + text.Slice(50, 40).Value; got != "" {
		t.Errorf("got %q", got)
	}
	if line, col := NewText("abc").Slice(1, 2).Place(0); line != 0 || col != 0 {
		t.Errorf("got %d:%d", line, col)
	}
}

func TestEndOfText(t *testing.T) {
	for data, want := range map[string][2]int{
		"a: 1 +\nb: 1\n":             {1, 7},
		"a: '1 +'\n":                 {1, 8},
		"a: \"\"\n":                  {1, 5},
		"a: \"1 +\\n\"\n":            {1, 10},
		"a: |\n  1 +\n\n\nb: 1\n":    {2, 6},
		"a: |+\n  1 +\n\n\nb: 1\n":   {2, 6},
		"a: >\r\n  1\r\n  +\r\nb: 1": {3, 4},
		"a: 1 +":                     {1, 7},
	} {
		text := parseOne(t, data).Root.Get("a").Text(new(Issues))
		line, col := text.Place(len(text.Value))
		if [2]int{line, col} != want {
			t.Errorf("the end of %q is at %d:%d, want %v", data, line, col, want)
		}
	}
}

func TestWidthEndsWithTheLine(t *testing.T) {
	text := parseOne(t, "a: >\n  one\n  two\n").Root.Get("a").Text(new(Issues))
	if got := text.Issue(0, 7, "m", ""); got.Width != 3 || got.Source != "  one" {
		t.Errorf("got %+v", got)
	}
	if got := text.Issue(3, 1, "m", ""); got.Line != 2 || got.Column != 6 || got.Width != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestScalarThatIsNotFoundAgain makes the source and the parser differ. No known file does this.
func TestScalarThatIsNotFoundAgain(t *testing.T) {
	text := parseOne(t, "a: &x 'one'\n").Root.Get("a").Text(new(Issues))
	text.node.Value, text.Value = "two", "two"
	if got := text.Issue(2, 1, "m", ""); got.Line != 1 || got.Column != 7 || got.Width != 1 {
		t.Errorf("got %+v, want the place where the scalar starts", got)
	}
}
