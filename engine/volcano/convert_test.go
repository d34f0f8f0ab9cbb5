package volcano

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// readConf parses a configuration as a user writes it.
func readConf(t *testing.T, text string) (Conf, source.Issues) {
	t.Helper()
	docs, issues := source.Parse("volcano-scheduler.conf", []byte(text))
	if len(docs) != 1 {
		t.Fatalf("%d documents: %v", len(docs), issues)
	}
	conf := Read(docs[0].Root, &issues)
	return conf, issues
}

func messages(notes []Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Message)
	}
	return strings.Join(out, "; ")
}

// TestConvert converts the files of testdata/convert. Each part except the last is a configuration, or a ConfigMap that contains one.
// "explicit" in the name of a part means that missing settings count as off. The last part, want, is the text for the author and the
// policy. Every policy compiles. UPDATE=1 writes want again. Commit such changes only if you understand what caused them.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/convert/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if last := len(a.Files) - 1; a.Files[last].Name == "want" {
				want, a.Files = string(a.Files[last].Data), a.Files[:last]
			}
			var got strings.Builder
			for _, f := range a.Files {
				got.WriteString(conversionOf(t, f))
			}
			if os.Getenv("UPDATE") == "1" {
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got.String())})
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// conversionOf returns what the author of a configuration gets: issues, notes, and the policy without its first lines.
func conversionOf(t *testing.T, f txtar.File) string {
	t.Helper()
	conf, issues := Parse(f.Name, f.Data)
	options := Options{Tables: withoutTables("network-topology-aware")}
	if strings.Contains(f.Name, "explicit") {
		options.Flags = FlagsExplicit
	}
	var got *Conversion
	if issues.Err() == nil {
		var err error
		got, err = Convert(conf, options)
		if refused, ok := errors.AsType[source.Issues](err); ok {
			issues = append(issues, refused...)
		}
	}
	var b strings.Builder
	for _, i := range issues {
		b.WriteString(i.Render())
	}
	if got != nil {
		for _, n := range got.Notes {
			b.WriteString(n.Error() + "\n")
			if n.Lost != "" {
				b.WriteString("  lost: " + n.Lost + "\n")
			}
		}
		_, policy, _ := strings.Cut(string(got.Policy), "  mode: Active\n")
		b.WriteString(policy)
	}
	if got != nil && issues.Err() == nil {
		converts(t, got.Policy)
	}
	return b.String() + "\n"
}

// withoutTables returns the tables that ship, except those that only some versions contain.
func withoutTables(names ...string) map[string]*rules.Table {
	tables, _ := policy.Shipped()
	for _, name := range names {
		delete(tables, name)
	}
	return tables
}

// kinds is a table in which every param is another kind of argument.
const kinds = `
params:
  flag:  {type: bool, default: false, volcano: kinds.flag}
  whole: {type: int, default: 1, min: 0, max: 9, volcano: whole}
  wait:  {type: duration, default: 1m, min: 1s, volcano: wait}
  word:  {type: string, default: a, enum: [a, b], volcano: word}
  list:  {type: list(string), default: [], volcano: list}
  left:  {type: "map(string,double)", default: {}, volcano: "res.*.left"}
  right: {type: "map(string,double)", default: {}, volcano: "res.*.right"}
  zones: {type: "map(string,string)", default: {}, volcano: "zone.*"}
  tree:  {type: bool, default: false, volcano: enableHierarchy}
jobOrder:
- {name: row, by: job.name}
`

func TestConvertArguments(t *testing.T) {
	docs, issues := source.Parse("kinds.yaml", []byte(kinds))
	table := rules.ReadTable(docs[0].Root, "kinds", policy.Shape(), nil, &issues)
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ arguments, want, warning string }{
		{`{kinds.flag: "true"}`, `{flag: true}`, ""},
		{`{kinds: {flag: true}}`, `{flag: true}`, ""},
		{`{kinds.flag: perhaps}`, "", `argument kinds.flag: must be true or false, found "perhaps"; the default is used`},
		{`{whole: "9"}`, `{whole: 9}`, ""},
		{`{whole: 10}`, "", "argument whole: must be at most 9, found 10; the default is used"},
		{`{whole: 1.5}`, "", `argument whole: must be a whole number, found "1.5"; the default is used`},
		{`{wait: 3m}`, `{wait: "3m"}`, ""},
		{`{wait: "1"}`, "", `argument wait: must be a duration such as 3m, found "1"; the default is used`},
		{`{wait: 1ms}`, "", "argument wait: must be at least 1s, found 0.001; the default is used"},
		{`{word: b}`, `{word: b}`, ""},
		{`{word: c}`, "", `argument word: must be one of a, b, found "c"; the default is used`},
		{`{list: "x, y"}`, `{list: [x, "y"]}`, ""},
		{`{list: [x, "n"]}`, `{list: [x, "n"]}`, ""},
		{`{res.a/b.left: 1, res.a/b.right: "2.5", res: {c: {left: 3}}}`, `{left: {"a/b": 1, c: 3}, right: {"a/b": 2.5}}`, ""},
		{`{res.a.left: many}`, "", `argument res.a.left: must be a number, found "many"; it is left out`},
		{`{zone.z1: "0:00-1:00"}`, `{zones: {z1: "0:00-1:00"}}`, ""},
	} {
		conf, issues := readConf(t, "actions: allocate\ntiers: [{plugins: [{name: kinds, enableJobOrder: true, arguments: "+
			test.arguments+"}]}]\n")
		if err := issues.Err(); err != nil {
			t.Fatal(err)
		}
		got, err := Convert(conf, Options{Tables: map[string]*rules.Table{"kinds": table}})
		if err != nil {
			t.Fatal(err)
		}
		_, params, _ := strings.Cut(string(got.Policy), "params: ")
		if strings.TrimSpace(params) != test.want {
			t.Errorf("%s: params %q, want %q", test.arguments, params, test.want)
		}
		if w := strings.TrimPrefix(messages(got.Notes), "kinds: "); w != test.warning {
			t.Errorf("%s: warning %q, want %q", test.arguments, w, test.warning)
		}
	}
}

func TestConvertHierarchyIsAParam(t *testing.T) {
	docs, issues := source.Parse("kinds.yaml", []byte(kinds))
	table := rules.ReadTable(docs[0].Root, "kinds", policy.Shape(), nil, &issues)
	for _, test := range []struct{ value, want string }{{"true", "params: {tree: true}"}, {"false", "- name: kinds"}} {
		conf, read := readConf(t, "actions: allocate\ntiers: [{plugins: [{name: kinds, enableHierarchy: "+test.value+"}]}]\n")
		if err := read.Err(); err != nil {
			t.Fatal(err)
		}
		got, err := Convert(conf, Options{Tables: map[string]*rules.Table{"kinds": table}})
		if err != nil || len(got.Notes) > 0 || !strings.HasSuffix(strings.TrimSpace(string(got.Policy)), test.want) {
			t.Errorf("enableHierarchy: %s: %v %v\n%s", test.value, err, got.Notes, got.Policy)
		}
	}
}
