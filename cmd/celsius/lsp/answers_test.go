package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
)

func TestHover(t *testing.T) {
	core := newCore(t)
	row := func(expression string) string {
		return inTable("predicates:\n- name: fits\n  expression: " + expression)
	}
	entry := func(text string) string { return policyHead + "  tiers: [{name: a, tables: [" + text + "]}]\n" }
	for name, c := range map[string]struct {
		text  string
		on    string   // the text that the answer is about
		wants []string // parts of the answer
	}{
		"a field": {
			row("node.id¦le.cpu > 1.0"),
			"idle",
			[]string{"**node.idle** `Resources`", "Changes with every step"},
		},
		"a field in JSON with an emoji as two escapes": {
			"{\"kind\": \"SchedulingPolicy\", \"apiVersion\": \"scheduling.celsius.dev/v1alpha1\",\n" +
				"\t\"metadata\": {\"name\": \"p\", \"annotations\": {\"a\": \"\\ud83d\\ude00\"}},\n" +
				"\t\"spec\": {\"tiers\": [{\"name\": \"t\", \"tables\": [{\"name\": \"x\", \"inline\": {\n" +
				"\t\t\"predicates\": [{\"name\": \"fits\", \"expression\": \"node.id¦le.cpu > 1.0\"}]}}]}]}}",
			"idle",
			[]string{"**node.idle** `Resources`"},
		},
		"a field of a field": {row("task.job.minMem¦ber > 1"), "minMember", []string{"**task.job.minMember** `int`"}},
		"its end":            {row("node.idle¦.cpu > 1.0"), "idle", []string{"**node.idle**"}},
		"a computed field": {
			row("job.siz¦e > 1"),
			"size",
			[]string{"**job.size** `int`", "how large it is", "It reads `job.taskCount`"},
		},
		"a param": {row("params.nig¦ht > 1"), "night", []string{"**params.night** `int`", "when night begins"}},
		"a variable": {
			row("variables.lo¦ng"),
			"long",
			[]string{"**variables.long** `bool`", "It reads `job.taskCount`"},
		},
		"a root": {row("no¦de.ready"), "node", []string{"**node** `Node`", "The node that is tried."}},
		"a function": {
			row("task.toleratesAl¦l(node)"),
			"toleratesAll",
			[]string{"Task.toleratesAll(Node) -> bool", "It reads `"},
		},
		"a macro":              {row("job.roles.exi¦sts(r, r.min > 1)"), "exists", []string{"exists"}},
		"a function of a name": {row("math.grea¦test(1, 2) > 1"), "greatest", []string{"math.greatest"}},
		"a field in a loop":    {row("job.roles.exists(r, r.mi¦n > 1)"), "min", []string{"**r.min** `int`"}},
		"in a block":           {row("|\n    node.ready\n    && node.na¦me != '😀'\n"), "name", []string{"**node.name** `string`"}},
		"in a message": {
			inTable("predicates:\n- name: x\n  expression: node.ready\n  message: \"😀 {{node.na¦me}} {{task.name}}\""),
			"name",
			[]string{"**node.name**"},
		},
		"text of a message": {
			inTable("predicates:\n- name: x\n  expression: node.ready\n  message: \"no¦ {{node.name}}\""),
			"", nil,
		},
		"a string":  {row("\"node.name == 'na¦me'\""), "", nil},
		"a mistake": {row("node.nam¦ == ''"), "", nil},
		"a row": {
			strings.Replace(row("node.ready"), "name: fits", "name: fi¦ts", 1),
			"fits",
			[]string{"**fits** `bool`", "costs 2", "reads `node.ready`", "holds: per class and node"},
		},
		"an attribute": {
			strings.Replace(row("node.ready"), "name: size", "name: si¦ze", 1),
			"size",
			[]string{"**job.size** `int`", "how large it is", "reads `job.taskCount`"},
		},
		"a row with a mistake": {strings.Replace(row("node.raedy"), "name: fits", "name: fi¦ts", 1), "", nil},
		"a table": {
			entry("{name: overc¦ommit}"),
			"overcommit",
			[]string{"a table that ships", "`factor` double", "Sections: `jobEnqueueable`"},
		},
		"a table under table": {entry("{name: x, table: overc¦ommit}"), "overcommit", []string{"a table that ships"}},
		"a table's param":     {entry("{name: overcommit, params: {fac¦tor: 2}}"), "factor", []string{"**factor** `number`"}},
		"a key": {
			strings.Replace(policyHead, "pipeline", "pipe¦line", 1),
			"pipeline",
			[]string{"The names of the actions"},
		},
		"a section": {
			strings.Replace(row("node.ready"), "predicates", "pred¦icates", 1),
			"predicates",
			[]string{"Is the node fit for the task?"},
		},
		"an action": {strings.Replace(policyHead, "enqueue", "enq¦ueue", 1), "enqueue", []string{"admits jobs"}},
		"a verb": {
			policyHead + "  actions: [{name: a, steps: [{verb: pla¦ce}]}]\n",
			"place",
			[]string{"puts tasks on nodes"},
		},
		"a parameter of a verb": {
			policyHead + "  actions: [{name: a, steps: [{verb: place, tu¦rn: all}]}]\n",
			"turn",
			[]string{"How long one job keeps the floor", "Default: untilReady"},
		},
		"a file of others": {"kind: Deployment\nspec: {a¦: 1}\n", "", nil},
		"a table's own file": {
			tableHead + "scores:\n- name: s\n  expression: node.id¦le.cpu\n",
			"idle",
			[]string{"**node.idle**"},
		},
		"the second document": {
			"kind: Deployment\nx: 1\n--- # ours\n" + strings.Replace(policyHead, "pipeline", "pipe¦line", 1),
			"pipeline",
			[]string{"The names"},
		},
	} {
		x, at := marked(t, c.text)
		got := core.Hover(x, at)
		if got == nil {
			if c.wants != nil {
				t.Errorf("%s: nothing is told", name)
			}
			continue
		}
		if about := x.text[x.offset(got.Range.Start):x.offset(got.Range.End)]; about != c.on {
			t.Errorf("%s: it is about %q, want %q: %s", name, about, c.on, got.Contents.Value)
		}
		for _, want := range c.wants {
			if !strings.Contains(got.Contents.Value, want) {
				t.Errorf("%s: %q is not told in %q", name, want, got.Contents.Value)
			}
		}
	}
}

func TestDefine(t *testing.T) {
	core := newCore(t)
	row := func(expression string) string {
		return inTable("predicates:\n- name: fits\n  expression: " + expression)
	}
	entry := func(text string) string { return policyHead + "  tiers: [{name: a, tables: [" + text + "]}]\n" }
	for name, c := range map[string]struct {
		text, file string
		want       string // how the text at the declaration begins; "": there is no declaration
	}{
		"a table":             {entry("{name: ga¦ng}"), "gang", "apiVersion:"},
		"a table under table": {entry("{name: x, table: ga¦ng}"), "gang", "apiVersion:"},
		"a name beside table": {entry("{name: mi¦ne, table: gang}"), "gang", "apiVersion:"},
		"a table of its own":  {strings.Replace(row("node.ready"), "name: own", "name: o¦wn", 1), "", "params:"},
		"a param of a table":  {entry("{name: overcommit, params: {fac¦tor: 2}}"), "overcommit", "{type: double"},
		"a section":           {entry("{name: gang, without: [jobRe¦ady]}"), "gang", "- "},
		"an action":           {strings.Replace(policyHead, "enqueue", "enq¦ueue", 1), "actions", "name: enqueue"},
		"an action of its own": {
			strings.Replace(policyHead, "enqueue", "enq¦ueue", 1) + "  actions: [{name: enqueue, steps: []}]\n",
			"", "{name: enqueue, steps",
		},
		"an attribute":              {row("job.si¦ze > 1"), "", "{'on': job, name: size"},
		"an attribute of a table":   {row("task.job.queue.dese¦rved.cpu > 1.0"), "proportion", "on: queue\n  name: deserved"},
		"a param in an expression":  {row("params.ni¦ght > 1"), "", "{type: int, default: 20"},
		"a variable":                {row("variables.lo¦ng"), "", "{name: long"},
		"a field of the language":   {row("node.id¦le.cpu > 1.0"), "", ""},
		"a table that is not there": {entry("{name: ga¦ngs}"), "", ""},
		"a file of others":          {"kind: Deployment\nname: ga¦ng\n", "", ""},
	} {
		x, at := marked(t, c.text)
		got, ok := core.Define(x, at)
		if !ok {
			if c.want != "" {
				t.Errorf("%s: nothing is found", name)
			}
			continue
		}
		text := x.text
		if got.Shipped != "" {
			data, err := policy.ShippedText(got.Shipped)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		found := text[NewText(text).offset(got.Range.Start):]
		if got.Shipped != c.file || !strings.HasPrefix(found, c.want) || c.want == "" {
			t.Errorf("%s: found in %q: %.60q; want %q: %q", name, got.Shipped, found, c.file, c.want)
		}
	}
}

// TestCached checks that a table is written once, and again after a user changed the file.
func TestCached(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		file, err := cached(folder, "gang")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		want, _ := policy.ShippedText("gang")
		if err != nil || string(got) != string(want) || filepath.Base(file) != "gang.yaml" {
			t.Errorf("%s: %v, %d bytes", file, err, len(got))
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cached(folder, "../gang"); err == nil {
		t.Error("a file outside of what ships is found")
	}
}

func TestSymbols(t *testing.T) {
	var lines []string
	x := NewText(inTable("predicates:\n- name: fits\n  expression: |\n    node.ready\njobOrder:\n- {name: first, by: job.size}") +
		"---\nkind: Deployment\n---\n" + tableHead + "params: {a: {type: int, default: 1}}\n")
	var walk func(depth int, list []Symbol)
	walk = func(depth int, list []Symbol) {
		for _, s := range list {
			name := x.text[x.offset(s.SelectionRange.Start):x.offset(s.SelectionRange.End)]
			lines = append(lines, fmt.Sprintf("%s%s %d-%d %s", strings.Repeat(" ", depth), s.Name, s.Range.Start.Line, s.Range.End.Line, name))
			if x.offset(s.Range.Start) > x.offset(s.SelectionRange.Start) || x.offset(s.Range.End) < x.offset(s.SelectionRange.End) {
				t.Errorf("%s: %v does not hold %v", s.Name, s.Range, s.SelectionRange)
			}
			walk(depth+1, s.Children)
		}
	}
	walk(0, newCore(t).Symbols(x))
	want := `p 0-24 apiVersion
 spec 3-24 spec
  tiers 5-24 tiers
   shipped 6-24 shipped
    tables 7-24 tables
     proportion 8-8 proportion
     gang 9-9 gang
     own 10-24 own
      inline 11-24 inline
       params 12-13 params
        night 13-13 night
       variables 14-15 variables
        long 15-15 long
       attributes 16-17 attributes
        size 17-17 size
       predicates 19-22 predicates
        fits 20-22 fits
       jobOrder 23-24 jobOrder
        first 24-24 first
x 28-31 apiVersion
 params 31-31 params
  a 31-31 a`
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// largest returns the largest shipped policy, with the content of everything that it names.
func largest(b *testing.B) *Text {
	b.Helper()
	doc, issues := policy.Embedded("default")
	if doc == nil {
		b.Fatal(issues)
	}
	text, issues := policytext.Resolve(doc, nil)
	if issues.Err() != nil {
		b.Fatal(issues)
	}
	return NewText(string(text))
}

// BenchmarkAnswers measures how long an editor waits at the last row of the largest shipped policy. Everything that the row depends on
// comes before it. The documentation promises 50 ms.
func BenchmarkAnswers(b *testing.B) {
	core, err := NewCore()
	if err != nil {
		b.Fatal(err)
	}
	text := largest(b)
	at := strings.LastIndex(text.text, "expression: ") + len("expression: ")
	typing := NewText(text.text[:at] + "node. + " + text.text[at:])
	behind := typing.position(at + len("node."))
	row := text.position(strings.LastIndex(text.text[:at], "name: ") + len("name: "))
	word := text.position(strings.LastIndex(text.text, "node.") + 1)
	line := strings.LastIndex(text.text[:at], "\n") + 1
	indent := text.text[line : line+strings.Index(text.text[line:], "e")]
	writing := NewText(text.text[:line] + indent + "w\n" + text.text[line:])
	key := writing.position(line + len(indent) + 1)
	for name, answer := range map[string]func() bool{
		"completion of fields": func() bool { return len(core.Complete(typing, behind)) > 20 },
		"completion of keys": func() bool {
			return len(core.Complete(writing, key)) > 2
		},
		"hover of a row":           func() bool { return core.Hover(text, row) != nil },
		"hover of a word":          func() bool { return core.Hover(text, word) != nil },
		"symbols":                  func() bool { return len(core.Symbols(text)) > 0 },
		"diagnostics":              func() bool { return len(core.Check("p.yaml", text.text).Errors()) == 0 },
		"diagnostics of a mistake": func() bool { return len(core.Check("p.yaml", typing.text)) > 0 },
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !answer() {
					b.Fatal("there is no answer")
				}
			}
		})
	}
}
