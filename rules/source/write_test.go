package source

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// rewritten writes the fields of a document and reads the result again.
func rewritten(t interface {
	Helper()
	Fatal(args ...any)
}, d *Document,
) (out []byte, again *Document) {
	t.Helper()
	var issues Issues
	var entries []Entry
	for _, f := range d.Root.Fields(nil, &issues) {
		entries = append(entries, Entry{f.Name, f.Value})
	}
	out, err := Write(entries)
	if err != nil {
		t.Fatal(err)
	}
	docs, found := Parse("out.yaml", out)
	if len(docs) != 1 || append(issues, found...).Err() != nil {
		t.Fatal(len(docs), issues, found, string(out))
	}
	return out, docs[0]
}

// TestWriteKeepsValues checks that a written document has the same values. A second write must give the same text.
func TestWriteKeepsValues(t *testing.T) {
	for _, text := range []string{
		"a: 1\nb: [x, 'it''s', \"\\u00e9\\n\"]\nc: {d: null, e: ~, f: true, g: 1.50, h: '1'}\n",
		"a: &x [1, 2]\nb: *x\nc: {d: *x}\n",
		"a: |\n  line\n    more\n\n  last\nb: >-\n  folded\n    indented\n\n  again\n\n\n  far\nc: |+\n  kept\n\n\nd: >\n\n  begins late\n",
		"\"true\": 1\n\"on\": 2\n'3': x\nyes: no\n",
		"a: \"  blank before and behind  \"\nb: '#'\nc: \"- x\"\nd: ''\n",
		"größe: 日本語 👍\n",
	} {
		docs, issues := Parse("in.yaml", []byte(text))
		if len(docs) != 1 || issues.Err() != nil {
			t.Fatalf("%v\n%s", issues, text)
		}
		once, again := rewritten(t, docs[0])
		if diff := cmp.Diff(docs[0].Root.Any(), again.Root.Any()); diff != "" {
			t.Errorf("%s\n(-in +out):\n%s\n%s", text, diff, once)
		}
		if twice, _ := rewritten(t, again); string(twice) != string(once) {
			t.Errorf("written twice (-once +twice):\n%s", cmp.Diff(string(once), string(twice)))
		}
	}
}

// TestWriteKeepsStrings checks that any string, in any style, is the same after it is written and read.
func TestWriteKeepsStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", " ", "\n", "\t", ":", "#", "'", "\"", "\\", "- ", "é", "👍", "{", "}}",
			"%", "\u00a0", "0",
		}), 0, 12).Draw(t, "string"), "")
		quoted, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text := "a: " + string(quoted) + "\n"
		for _, style := range []string{"|2", "|2-", "|2+", ">2", ">2-", ">2+"} {
			text += "b" + strings.NewReplacer("|", "l", ">", "f").Replace(style) + ": " + style + "\n  " + strings.ReplaceAll(s, "\n", "\n  ") + "\n"
		}
		docs, issues := Parse("in.yaml", []byte(text))
		if len(docs) != 1 || issues.Err() != nil {
			t.Skip("not all styles can hold it")
		}
		once, again := rewritten(t, docs[0])
		if diff := cmp.Diff(docs[0].Root.Any(), again.Root.Any()); diff != "" {
			t.Fatalf("%s\n(-in +out):\n%s\n%s", text, diff, once)
		}
	})
}

// TestWriteEntries writes every kind of value that an Entry can hold.
func TestWriteEntries(t *testing.T) {
	out, err := Write([]Entry{
		{"a", "x"},
		{"b", true},
		{"c", 2.5},
		{"d", []string{"y", "no"}},
		{"e", []Entry{{"f", 1}}},
		{"g", [][]Entry{{{"h", "1"}}, {}}},
		{"i", Value{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "a: x\nb: true\nc: 2.5\nd:\n  - \"y\"\n  - \"no\"\ne:\n  f: 1\ng:\n  - h: \"1\"\n  - {}\ni: null\n"
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}
