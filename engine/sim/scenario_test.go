package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/digest"
	"github.com/celsius-scheduler/celsius/engine/digest/sums"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/sim/textdiff"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const scenarioDir = "testdata/scenarios"

// scenarioFiles returns every scenario, by its path below scenarioDir without its extension.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(scenarioDir, func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".txtar"); ok && err == nil {
			out = append(out, strings.TrimPrefix(filepath.ToSlash(name), scenarioDir+"/"))
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("no scenarios in %s: %v", scenarioDir, err)
	}
	slices.Sort(out)
	return out
}

// TestScenarios runs every scenario unchanged. After each cycle the cluster is consistent. The decisions in a folder's plans are compared
// with testdata/decisions.txt. So the test shows whether a change that should only change texts changes no decision.
func TestScenarios(t *testing.T) {
	t.Parallel()
	names := scenarioFiles(t)
	var mu sync.Mutex
	plans := map[string][]*model.Plan{} // the plans of each scenario
	t.Cleanup(func() {
		if len(plans) == len(names) && !t.Failed() { // otherwise only some ran
			decisions(t, names, plans)
		}
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			o := ScenarioOptions{Update: updating(), AfterCycle: checked, World: Options{Volumes: volume.New, Decide: proven(t)}}
			r, err := RunScenario(path, data, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Diff != "" {
				t.Errorf("behaviour changed: explain it in the commit, or -update\n%s", r.Diff)
			}
			if o.Update {
				if err := os.WriteFile(path, r.Archive, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			scenarioForm(t, data, r)
			mu.Lock()
			defer mu.Unlock()
			plans[name] = r.Plans
		})
	}
}

// decisions compares the digests of the decisions of scenarios, by folder.
func decisions(t *testing.T, names []string, plans map[string][]*model.Plan) {
	t.Helper()
	byFolder := map[string]*digest.Sum{}
	for _, name := range names {
		folder, _, _ := strings.Cut(name, "/")
		if byFolder[folder] == nil {
			byFolder[folder], _ = digest.New() // no plan, no error
		}
		for _, p := range plans[name] {
			if err := byFolder[folder].Add(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	sums.Check(t, "testdata/decisions.txt", updating(), byFolder)
}

func scenarioFile(t *testing.T, name string) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(scenarioDir, filepath.FromSlash(name)+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

// checked is an AfterCycle that checks the cluster's consistency.
func checked(w *World) error { return w.Cluster().Check() }

// proven returns a Decide that checks every plan.
func proven(t *testing.T) engine.DecideFunc {
	return new(proof.Run).Checked(new(engine.Decider).Decide, func(plan *model.Plan, wrong []proof.Violation) {
		for _, v := range wrong {
			t.Errorf("%s: %v", plan.Now.Format(time.TimeOnly), v)
		}
	})
}

// scenarioForm checks the rules that keep many scenarios readable.
func scenarioForm(t *testing.T, data []byte, r ScenarioResult) {
	t.Helper()
	if r.Heading == "" {
		t.Error("the first line must be a comment that states the rule")
	}
	if len(r.Unused) > 0 {
		t.Errorf("sections that no verb names: %s", strings.Join(r.Unused, ", "))
	}
	if lines := strings.Count(string(data), "\n"); lines > 60 {
		t.Errorf("%d lines are more than 60: state only what matters", lines)
	}
	script, _, _ := strings.Cut(string(data), "\n-- ")
	if n := len(r.Plans); n > 3 && !strings.Contains(script, "\nuntil ") || n < 1 && !strings.Contains(script, "\ncheck ") &&
		!strings.Contains(script, "\nask ") {
		t.Errorf("%d cycles: a scenario has 1 to 3, or runs by the clock, or asks, or checks a policy", n)
	}
}

// TestScenarioIndex compares INDEX.md with the headings of the scenarios.
func TestScenarioIndex(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# Scenarios\n\nWritten by `go test ./engine/sim -update`: one behaviour a file.\n")
	area := ""
	for _, name := range scenarioFiles(t) {
		data, err := os.ReadFile(filepath.Join(scenarioDir, name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		if dir, _, _ := strings.Cut(name, "/"); dir != area {
			area = dir
			fmt.Fprintf(&out, "\n## %s\n\n", area)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		fmt.Fprintf(&out, "- [%s](%s.txtar): %s\n", strings.TrimPrefix(name, area+"/"), name, heading([]byte(script)))
	}
	golden(t, "scenarios/INDEX.md", out.String())
}

// worldSection is the section that the tests below load.
const worldSection = `-- w --
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}]
jobs:
- {name: j, replicas: 2, cpu: 1, node: n1}
`

func TestScenarioVerbs(t *testing.T) {
	t.Parallel()
	r, err := RunScenario("x.txtar", []byte(`# A rule.
# On two lines.

now 2026-03-01T00:00:00Z
seed 4
load w    # the world
finish j-0
delete default/j-[1-1]
show pods
cordon n1
show nodes
cmp first
advance 30s
drain n1
show pods
show jobs
show queues
cmp second
`+worldSection+`-- first --
POD          STATUS     NODE  ASKS
default/j-0  Succeeded  -     cpu 1, pods 1
default/j-1  Releasing  n1    cpu 1, pods 1
NODE  STATE     PODS  IDLE
n1    Cordoned  1     cpu 3, memory 32Gi, pods 109
-- second --
wrong
-- unused --
`), ScenarioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Heading != "A rule. On two lines." {
		t.Errorf("heading %q", r.Heading)
	}
	if diff := cmp.Diff([]string{"unused"}, r.Unused); diff != "" {
		t.Errorf("unused (-want +got)\n%s", diff)
	}
	want := `x.txtar:18: cmp second: - is expected, + was printed
- wrong
+ POD  STATUS  NODE  ASKS
+ JOB        QUEUE    PHASE    MIN  PODS
+ default/j  default  Running  2    none
+ QUEUE    STATE  JOBS       ALLOCATED
+ default  Open   1 Running  nothing
+ root     Open   none       nothing
`
	if diff := cmp.Diff(want, r.Diff); diff != "" {
		t.Errorf("diff (-want +got)\n%s", diff)
	}
}

func TestScenarioUpdate(t *testing.T) {
	t.Parallel()
	const before = "# R.\nload w\nshow pods\ncmp want\n" + worldSection + "-- want --\nold\n"
	r, err := RunScenario("x", []byte(before), ScenarioOptions{Update: true})
	if err != nil || r.Diff != "" {
		t.Fatalf("%v, diff %s", err, r.Diff)
	}
	again, err := RunScenario("x", r.Archive, ScenarioOptions{})
	if err != nil || again.Diff != "" {
		t.Fatalf("after the update: %v, diff %s", err, again.Diff)
	}
	if !strings.HasPrefix(string(r.Archive), "# R.\nload w\nshow pods\ncmp want\n"+worldSection) {
		t.Errorf("the update changed more than what is compared:\n%s", r.Archive)
	}
}

func TestScenarioErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, script, want string }{
		{"verb", "\nlod w\n", "x:2: lod: there is no such verb; did you mean load?"},
		{"arguments", "load\n", "x:1: load: write load SECTION..."},
		{"section", "load v\n", "x:1: load: there is no section v"},
		{"pod", "load w\nfinish j-9\n", "x:2: finish: there is no pod default/j-9; did you mean default/j-0?"},
		{"range", "load w\nfinish j-[3-\n", `x:2: finish: "j-[3-" is no range of names`},
		{"late", "load w\nseed 1\n", "x:2: seed: comes before load and policy"},
		{"time", "now noon\n", `x:1: now: "noon" is no time; write it as 2026-01-31T12:00:00Z`},
		{"number", "seed x\n", `x:1: seed: "x" is no whole number`},
		{"cycles", "cycle 0\n", `x:1: cycle: "0" is no number from 1 to 100`},
		{"duration", "advance 5\n", `x:1: advance: "5" is no duration; write it as 90s or 1h30m`},
		{"show", "show all\n", `x:1: show: "all" cannot be shown; there are asks, jobs, nodes, pods, queues, timeline, volumes`},
		{"explain", "explain j\n", "x:1: explain: nothing was decided yet"},
		{"uncompared", "load w\nshow pods\n", "x:2: what was printed last is not compared; end with cmp"},
	}
	for _, test := range tests {
		_, err := RunScenario("x", []byte(test.script+worldSection), ScenarioOptions{})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
	}
	if _, err := RunScenario("x", []byte("-- a --\n-- a --\n"), ScenarioOptions{}); err == nil {
		t.Error("two sections of one name must be an error")
	}
}

func TestScenarioIssuesLieInTheArchive(t *testing.T) {
	t.Parallel()
	_, err := RunScenario("x.txtar", []byte("# R.\nload w\n-- w --\napiVersion: v1\nkind: Node\nmetadata: {nam: n}\n"), ScenarioOptions{})
	var issues source.Issues
	if !errors.As(err, &issues) || len(issues) != 1 {
		t.Fatalf("error %v", err)
	}
	if got := issues[0]; got.File != "x.txtar" || got.Line != 6 || got.Column != 12 {
		t.Errorf("the issue is at %s:%d:%d", got.File, got.Line, got.Column)
	}
}

func TestDiffLines(t *testing.T) {
	t.Parallel()
	tests := []struct{ a, b, want string }{
		{"", "", ""},
		{"a\nb\nc\n", "a\nc\nd\n", "  a\n- b\n  c\n+ d\n"},
		{"", "x\n", "+ x\n"},
		{"x\n", "", "- x\n"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, textdiff.Lines(test.a, test.b)); diff != "" {
			t.Errorf("%q, %q (-want +got)\n%s", test.a, test.b, diff)
		}
	}
}
