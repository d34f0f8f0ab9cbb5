package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func testKeys() Keys {
	return Keys{Expressions: []string{"expression", "by", "when"}, Of: []string{"sum"}}
}

// TestFormat checks the output for each input.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"indents", "a:\n    b:\n        - x\n        -   y: 1\n            z: [1,   2]\n", "a:\n  b:\n  - x\n  - y: 1\n    z: [1, 2]\n"},
		{
			"quotes", "a: 'x'\nb: \"true\"\nc: 'it''s'\nd: '\"'\ne: \"\\\\\"\nf: ''\ng: {h: 'a, b', i: \"a: b\"}\nj: \"\\n\"\n",
			"a: x\nb: \"true\"\nc: it's\nd: '\"'\ne: \\\nf: \"\"\ng: {h: \"a, b\", i: \"a: b\"}\nj: \"\\n\"\n",
		},
		{
			"comments and empty lines",
			"# head\n\n# of a\na:   1   # one\n\n\nb:\n\n# of the item\n- x # it\n# foot of x\n\n- {y: 1} # y\n\n# end\n",
			"# head\n\n# of a\na: 1  # one\n\nb:\n\n# of the item\n- x  # it\n# foot of x\n\n- {y: 1}  # y\n\n# end\n",
		},
		{
			"spaces of expressions", "when: a&&b  ||[1,2].exists(x,x=='a  b')\nother: a&&b\n",
			"when: a && b || [1, 2].exists(x, x == 'a  b')\nother: a&&b\n",
		},
		{"parentheses and literals stay", "by: (1)+2.50*r'\\d'\n", "by: (1)+2.50*r'\\d'\n"},
		{"comments of CEL stay", "by: |\n  a && // why\n  b\n", "by: |\n  a && // why\n  b\n"},
		{
			"a long expression", "rows:\n- {name: x, when: \"" + strings.Repeat("a", 60) + " && (" + strings.Repeat("b", 60) + " || c) ? 1 : 2\"}\n",
			"rows:\n- name: x\n  when: >-\n    " + strings.Repeat("a", 60) + "\n    && (" + strings.Repeat("b", 60) + " || c)\n    ? 1 : 2\n",
		},
		{
			"within parentheses where it must be", "when: f(" + strings.Repeat("a", 60) + " && " + strings.Repeat("b", 60) + ")\n",
			"when: >-\n  f(" + strings.Repeat("a", 60) + "\n  && " + strings.Repeat("b", 60) + ")\n",
		},
		{"arguments", "sum: {of: a&&b, over: job}\nnot: {of: a&&b}\n", "sum: {of: a && b, over: job}\nnot: {of: a&&b}\n"},
		{
			"several lines", "when: |\n  a\n  && b\nmessage: |\n  two\n  lines\nfolded: >\n  two\n  lines\n",
			"when: a && b\nmessage: |\n  two\n  lines\nfolded: |\n  two lines\n",
		},
		{
			"anchors, tags and documents", "a: &x {b: 1}\nc: *x\nd: !!str 1\n---\ne: ~\nf:\ng: [~, {h: }]\n",
			"a: &x {b: 1}\nc: *x\nd: !!str \"1\"\n---\ne: ~\nf:\ng: [~, {h: null}]\n",
		},
	} {
		got, err := Format([]byte(c.in), testKeys())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
		again(t, got)
	}
}

// again fails if a second formatting changes the output of the first one.
func again(t interface {
	Helper()
	Errorf(format string, args ...any)
}, once []byte,
) {
	t.Helper()
	twice, err := Format(once, testKeys())
	if err != nil {
		t.Errorf("%v\n%s", err, once)
	} else if diff := cmp.Diff(string(once), string(twice)); diff != "" {
		t.Errorf("it is written otherwise the second time: -once +twice\n%s", diff)
	}
}

// TestFormatWhatShips formats all YAML files of the repository that the formatter is responsible for. A second formatting must not change
// them.
func TestFormatWhatShips(t *testing.T) {
	t.Parallel()
	n := 0
	for _, dir := range []string{"../tables", "../admission", "../jobplugins", "../../samples"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			once, err := Format(data, testKeys())
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			n++
			again(t, once)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 50 {
		t.Errorf("%d files were found", n)
	}
}

// drawExpression draws an expression with irregular spaces, as a careless author writes it.
func drawExpression(t *rapid.T, depth int) string {
	spaces := rapid.SampledFrom([]string{"", " ", "  ", "\n  "})
	leaf := rapid.SampledFrom([]string{
		"a", "node.labels['team']", "job.priority", "1.50", "'x  && y'", `"it's"`, `r'\d"'`, "[1,2]", "has(a.b)", "a[?'k'].orValue('')",
		"xs.exists(x,x in [1])", "'''q'''", "-1", "{'a':1}", "!a",
	})
	if depth == 0 {
		return leaf.Draw(t, "leaf")
	}
	part := func() string { return drawExpression(t, rapid.IntRange(0, depth-1).Draw(t, "depth")) }
	gap := func() string { return spaces.Draw(t, "spaces") }
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return "(" + gap() + part() + ")"
	case 1:
		return part() + gap() + "?" + gap() + " " + part() + gap() + ":" + gap() + part()
	case 2:
		return "f(" + part() + gap() + "," + part() + ")"
	default:
		return part() + gap() + rapid.SampledFrom([]string{"&&", "||", "==", "+", "<="}).Draw(t, "operator") + gap() + part()
	}
}

// TestExpressions checks that formatting keeps the meaning of an expression. A second formatting must not change it. The lines of a broken
// expression, joined by spaces, must be the expression.
func TestExpressions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawExpression(t, 4)
		before, ok := unparsed(text)
		got := expression(text)
		if after, still := unparsed(got); ok != still || after != before {
			t.Fatalf("%s became %s", text, got)
		}
		if next := expression(got); next != got {
			t.Fatalf("%s became %s, and then %s", text, got, next)
		}
		width := rapid.IntRange(20, 100).Draw(t, "width")
		if lines := breaks(got, width); strings.Join(lines, " ") != got {
			t.Fatalf("%s was cut into %q", got, lines)
		}
		row := []byte("rows:\n# why\n- name: x\n\n  when: |-\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n")
		once, err := Format(row, testKeys())
		if err != nil {
			t.Fatalf("%v\n%s", err, row)
		}
		if !strings.Contains(string(once), "# why\n") {
			t.Fatalf("the comment is gone\n%s", once)
		}
		again(t, once)
	})
}

// FuzzFormat formats any text. Either the output contains everything, or the formatter returns an error. The output can be formatted again.
func FuzzFormat(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n", "# c\na:\n- b: 'x' # d\n", "- - a\n  - b\n-\n  - c\n", "a: >\n  x\n  y\n\n  z\n", "a: |+\n  x\n\n", "{a: [b, {c: d}]}\n",
		"a: \"x\\\n  y\"\n",
		"? a\n: b\n", "when: a &&\n  b\n", "---\na: 1\n...\n---\n# only\n", "a: &b c\nd: *b\n", "\"#\": '#'\n",
		"a: # x\n  b: 1\n", "[a, # x\n b]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<11 {
			return // a longer text only takes more time
		}
		if once, err := Format([]byte(text), testKeys()); err == nil {
			if _, err := Format(once, testKeys()); err != nil {
				t.Errorf("%v\n%q became %q", err, text, once)
			}
		}
	})
}
