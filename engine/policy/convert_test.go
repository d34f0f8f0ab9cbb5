package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/rules"
)

// readConf parses a configuration as a user writes it.
func readConf(t *testing.T, text string) (VolcanoConf, rules.Issues) {
	t.Helper()
	docs, issues := rules.Parse("volcano-scheduler.conf", []byte(text))
	if len(docs) != 1 {
		t.Fatalf("%d documents: %v", len(docs), issues)
	}
	conf := ReadVolcanoConf(docs[0].Root, &issues)
	return conf, issues
}

func shippedTables(t *testing.T) map[string]*rules.Table {
	t.Helper()
	tables, issues := Shipped()
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestConvert(t *testing.T) {
	for _, test := range []struct {
		name     string
		flags    Flags
		conf     string
		want     string // below spec.mode
		warnings []string
	}{
		{
			name: "all on", flags: FlagsDefault,
			conf: "actions: \"enqueue, allocate,backfill\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: nodeorder\n",
			want: `  pipeline: [enqueue, allocate, backfill]
  tiers:
  - name: tier-1
    tables:
    - name: priority
    - name: gang
  - name: tier-2
    tables:
    - name: nodeorder
`,
		},
		{
			name: "a flag that is off, and one for a section that the table lacks", flags: FlagsDefault,
			conf: "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enablePreemptable: false, enableNodeOrder: false}\n",
			want: "  pipeline: [allocate]\n  tiers:\n  - name: tier-1\n    tables:\n    - name: gang\n      without: [preemptable]\n",
		},
		{
			name: "explicit: what is not written is off", flags: FlagsExplicit,
			conf: "actions: [allocate]\ntiers:\n- plugins:\n  - {name: gang, enableJobReady: true, enableJobPipelined: true}\n  - {name: drf}\n  - {name: overcommit, enableJobEnqueued: true}\n",
			want: `  pipeline: [allocate]
  tiers:
  - name: tier-1
    tables:
    - name: gang
      only: [jobPipelined, jobReady]
    - name: drf
      only: []
    - name: overcommit
`,
		},
		{
			name: "arguments: numbers as text, lists with commas, maps by key", flags: FlagsDefault,
			conf: `actions: allocate
tiers:
- plugins:
  - name: binpack
    arguments:
      binpack.weight: "10"
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 7
      binpack.resources.example.com/foo: "8"
`,
			want: `  pipeline: [allocate]
  tiers:
  - name: tier-1
    tables:
    - name: binpack
      params: {listed: ["nvidia.com/gpu", "example.com/foo"], resources: {"example.com/foo": 8, "nvidia.com/gpu": 7}, weight: 10}
`,
		},
		{
			name: "an argument that Volcano would not take is its default, with a warning", flags: FlagsDefault,
			conf:     "actions: enqueue\ntiers:\n- plugins:\n  - name: overcommit\n    arguments: {overcommit-factor: 0.8}\n  - name: nodeorder\n    arguments:\n      leastrequested.weight: much\n",
			want:     "  pipeline: [enqueue]\n  tiers:\n  - name: tier-1\n    tables:\n    - name: overcommit\n    - name: nodeorder\n",
			warnings: []string{"line 5: overcommit: argument overcommit-factor: must be at least 1, found 0.8; the default is used", `line 8: nodeorder: argument leastrequested.weight: must be a number, found "much"; the default is used`},
		},
		{
			name: "what is dropped is told", flags: FlagsDefault,
			conf: `actions: allocate
tiers:
- plugins:
  - {name: gang, enableBestNode: true, enableHierarchy: true, enableTargetJob: false}
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: true}
`,
			want: "  pipeline: [allocate]\n  tiers:\n  - name: tier-1\n    tables:\n    - name: gang\n",
			warnings: []string{
				"line 4: gang: enableBestNode has no effect: no row of table gang reads it",
				"line 4: gang: enableHierarchy has no effect: no row of table gang reads it",
				"line 7: action allocate: argument predicateErrorCacheEnable has no effect",
			},
		},
		{
			name: "one plugin in two tiers", flags: FlagsDefault,
			conf: "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n- plugins: [{name: gang}]\n",
			want: "  pipeline: [allocate]\n  tiers:\n  - name: tier-1\n    tables:\n    - name: gang\n  - name: tier-2\n    tables:\n    - name: gang-2\n      table: gang\n",
		},
		{
			name: "no plugin at all", flags: FlagsDefault,
			conf: "actions: allocate\ntiers:\n- plugins: []\n",
			want: "  pipeline: [allocate]\n  tiers:\n  - name: tier-1\n    tables: []\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			conf, issues := readConf(t, test.conf)
			if err := issues.Err(); err != nil {
				t.Fatal(err)
			}
			got, warnings, err := Convert(conf, ConvertOptions{Name: "converted", Flags: test.flags, Tables: shippedTables(t)})
			if err != nil {
				t.Fatal(err)
			}
			head := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata:\n  name: converted\nspec:\n  mode: Active\n"
			if diff := cmp.Diff(head+test.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
			docs, parsed := rules.Parse("converted", got)
			if err := parsed.Err(); err != nil {
				t.Fatal(err)
			}
			if _, compiled := Load(docs[0]); compiled.Err() != nil {
				t.Errorf("the result does not compile:\n%v", compiled)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, test := range []struct {
		name, conf string
		line       int
		want       string // in the message or the hint
	}{
		{"an unknown key", "actions: allocate\ntier: []\n", 2, "tiers"},
		{"a misspelt flag", "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enableOverused: true}\n", 4, "enabledOverused"},
		{"a flag that is no truth value", "tiers:\n- plugins:\n  - {name: gang, enableJobReady: 7}\n", 3, "true or false"},
		{"a plugin without a table", "tiers:\n- plugins:\n  - name: priority\n  - name: gangs\n", 4, "did you mean gang?"},
		{"an argument that no param takes", "tiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.wieght: 1\n", 5, "did you mean binpack.weight?"},
		{"an argument of a table without params", "tiers:\n- plugins:\n  - name: gang\n    arguments: {x: 1}\n", 4, "it takes none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conf, issues := readConf(t, test.conf)
			if issues.Err() == nil {
				_, _, err := Convert(conf, ConvertOptions{Tables: shippedTables(t)})
				found, ok := err.(rules.Issues) //nolint:errorlint // Convert gives its issues as they are
				if !ok {
					t.Fatalf("no issue: %v", err)
				}
				issues = found
			}
			if len(issues) != 1 || issues[0].Line != test.line || !strings.Contains(issues[0].Message+" "+issues[0].Hint, test.want) {
				t.Errorf("got %v\nwant one issue in line %d with %q", issues, test.line, test.want)
			}
		})
	}
}

// Every mistake is told at once.
func TestConvertTellsAllMistakes(t *testing.T) {
	conf, issues := readConf(t, "tiers:\n- plugins:\n  - name: nope\n  - name: binpack\n    arguments: {a: 1, b: 2}\n")
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	_, _, err := Convert(conf, ConvertOptions{Tables: shippedTables(t)})
	if found, _ := err.(rules.Issues); len(found) != 3 { //nolint:errorlint // Convert gives its issues as they are
		t.Errorf("got %d issues, want 3: %v", len(found), err)
	}
}

// A table of which every param is another kind of argument.
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
	docs, issues := rules.Parse("kinds.yaml", []byte(kinds))
	table := rules.ReadTable(docs[0].Root, "kinds", Shape(), nil, &issues)
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
		{`{predicate.DynamicResourceAllocationEnable: true}`, "", "argument predicate.DynamicResourceAllocationEnable is dropped: resource claims are not heeded here: pods that have one are placed by their other needs, and a warning counts them"},
	} {
		conf, issues := readConf(t, "tiers: [{plugins: [{name: kinds, enableJobOrder: true, arguments: "+test.arguments+"}]}]\n")
		if err := issues.Err(); err != nil {
			t.Fatal(err)
		}
		got, warnings, err := Convert(conf, ConvertOptions{Tables: map[string]*rules.Table{"kinds": table}})
		if err != nil {
			t.Fatal(err)
		}
		_, params, _ := strings.Cut(string(got), "params: ")
		if strings.TrimSpace(params) != test.want {
			t.Errorf("%s: params %q, want %q", test.arguments, params, test.want)
		}
		if w := strings.TrimPrefix(strings.Join(warnings, "; "), "line 1: kinds: "); w != test.warning {
			t.Errorf("%s: warning %q, want %q", test.arguments, w, test.warning)
		}
	}
}

func TestConvertHierarchyIsAParam(t *testing.T) {
	docs, issues := rules.Parse("kinds.yaml", []byte(kinds))
	table := rules.ReadTable(docs[0].Root, "kinds", Shape(), nil, &issues)
	for _, test := range []struct{ value, want string }{{"true", "params: {tree: true}"}, {"false", "- name: kinds"}} {
		conf, read := readConf(t, "tiers: [{plugins: [{name: kinds, enableHierarchy: "+test.value+"}]}]\n")
		if err := read.Err(); err != nil {
			t.Fatal(err)
		}
		got, warnings, err := Convert(conf, ConvertOptions{Tables: map[string]*rules.Table{"kinds": table}})
		if err != nil || len(warnings) > 0 || !strings.HasSuffix(strings.TrimSpace(string(got)), test.want) {
			t.Errorf("enableHierarchy: %s: %v %v\n%s", test.value, err, warnings, got)
		}
	}
}
