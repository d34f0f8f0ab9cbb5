package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// keptPolicy keeps nodes for a team. It has a row that fails if neither the node nor the job has a label tier.
const keptPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: kept}
spec:
  pipeline: [allocate]
  tiers:
  - name: first
    tables:
    - name: house
      inline:
        params: {strict: {type: bool, default: true}}
        variables:
        - {name: kept, on: node, expression: "'team' in node.labels"}
        predicates:
        - name: kept-for-team
          when: variables.kept
          expression: params.strict && node.labels['team'] == job.labels[?'team'].orValue('none') || task.priority > 100
        scores:
        - name: by-tier
          expression: "node.labels[?'tier'].orValue(job.labels['tier']) == 'fast' ? 10 : 0"
    - {name: gang}
`

// keptScenario is a scenario with its own world. A test sets the labels in this world, and adds the expected output at the end.
const keptScenario = `# A node of a team is for pods of the team.
load w
cycle
cmp decided
-- w --
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: mine, cpu: 4, labels: {team: a, tier: fast}}]
jobs: [{name: j, cpu: 1, labels: {LABELS}}]
-- decided --
`

// silentScenario has a row that fails in a cycle without news. So the output does not contain this error.
const silentScenario = `# Nothing changes in a minute.
load w
until 2m
cmp decided
-- w --
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: small, cpu: 8}]
pods: [{name: other, scheduler: other, cpu: 1, node: small}]
jobs: [{name: j, cpu: 8}, {name: k, cpu: 8}]
-- decided --
after 0s
admit  default/j    -
admit  default/k    -
wait   default/j    -  gang/all-or-nothing: 0 of the 1 pods that must start together can start
wait   default/j-0  -  builtin/fit: 0/1 nodes are available: 1 Insufficient cpu
wait   default/k    -  gang/all-or-nothing: 0 of the 1 pods that must start together can start
wait   default/k-0  -  builtin/fit: 0/1 nodes are available: 1 Insufficient cpu
-- own --
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: own}
spec:
  pipeline: [allocate]
  tiers:
  - name: first
    tables:
    - name: house
      inline:
        jobOrder: [{name: by-minute, by: 1 / (now.getMinutes('UTC') - 1)}]
    - {name: gang}
`

// keptTests returns a folder with scenarios in tests: team passes, other differs, and expects has a row that fails as expected. Next to
// tests, silent.txtar has a row that fails without a line in the output, and odd.txtar cannot run.
func keptTests(t *testing.T) string {
	t.Helper()
	with := func(labels, decided string) string {
		return strings.Replace(keptScenario, "LABELS", labels, 1) + decided
	}
	placed := "admit  default/j    -\nbind   default/j-0  mine  the only node that fits\n"
	dir := files(t, map[string]string{
		"kept.yaml": keptPolicy, "silent.txtar": strings.Replace(silentScenario, "load", "policy own\nload", 1), "odd.txtar": "# R.\nlod w\n",
	})
	if err := os.Mkdir(filepath.Join(dir, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	expects := strings.Replace(with("team: a", placed), ", tier: fast", "", 1) +
		"error    house/by-tier (scores) erred once, first for default/j-0 on mine: no such key: tier\n"
	for name, text := range map[string]string{
		"team.txtar": with("team: a", placed), "other.txtar": with("team: b", placed), "expects.txtar": expects,
	} {
		if err := os.WriteFile(filepath.Join(dir, "tests", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// printed runs the program in the working directory and returns its output. It fails for another exit code.
func printed(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(args, strings.NewReader(""), &out, &errs); got != code {
		t.Errorf("%s: exit code %d, want %d", strings.Join(args, " "), got, code)
	}
	return out.String() + errs.String()
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	os.Exit(m.Run())
}

// golden compares an output with a file of testdata. With -update, it writes the file instead.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-%s +printed\n%s", filepath.Base(file), diff)
	}
}

// testdata returns the absolute path of the folder testdata. Tests that change the working directory need it.
func testdata(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPolicyTest checks the output and the written files.
func TestPolicyTest(t *testing.T) {
	goldens := testdata(t)
	t.Chdir(keptTests(t))
	got := printed(t, exitMistakes, "policy", "test", "--policy", "kept.yaml", "--coverage", "coverage.json", "--junit", "junit.xml",
		"tests", "silent.txtar", "odd.txtar")
	golden(t, filepath.Join(goldens, "policy-test.txt"), got)
	written := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`time="\d+\.\d{3}"`).ReplaceAllString(string(data), `time="0.000"`)
	}
	golden(t, filepath.Join(goldens, "policy-test.json"), written("coverage.json"))
	golden(t, filepath.Join(goldens, "policy-test.xml"), written("junit.xml"))
}

// TestPolicyTestComparesWithTheDefinition checks a scenario that meets its expectations. It must fail if the definition decides something
// else.
func TestPolicyTestComparesWithTheDefinition(t *testing.T) {
	t.Chdir(keptTests(t))
	for _, test := range []struct {
		wrong func(*model.Plan)
		want  string
	}{
		{nil, ""},
		{func(p *model.Plan) { p.Binds[0].Node = "theirs" }, `-    "node": "theirs"`},
		{func(p *model.Plan) { p.Binds[0].Score++ }, `-    "score": `},
		{func(p *model.Plan) { p.Admits = nil }, `+  "admits": [`},
	} {
		runner := policyTest{policies: []string{"kept.yaml"}}
		if err := runner.readPolicies(); err != nil {
			t.Fatal(err)
		}
		runner.decide = func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
			plan := new(engine.Decider).Decide(c, p, now)
			if test.wrong != nil {
				test.wrong(plan)
			}
			return plan
		}
		r, err := runner.one("tests/team.txtar")
		if err != nil {
			t.Fatal(err)
		}
		if (r.failure == "") != (test.want == "") || !strings.Contains(r.failure, test.want) {
			t.Errorf("the scenario fails with %q, want %q", r.failure, test.want)
		}
	}
}

func TestPolicyTestExitCodes(t *testing.T) {
	t.Chdir(keptTests(t))
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	kept2 := strings.Replace(keptPolicy, "{name: kept}", "{name: kept2}", 1)
	named := strings.Replace(keptScenario, "load w", "policy kept\nload w", 1)
	named = strings.Replace(named, "LABELS", "team: a", 1) + "admit  default/j    -\nbind   default/j-0  mine  the only node that fits\n"
	if err := os.Mkdir("more", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"more/kept2.yaml": kept2, "twice.yaml": keptPolicy, "wrong.yaml": strings.Replace(keptPolicy, "node.labels['team']", "node.lables", 1),
		"world.yaml": world, "named.txtar": named, "unused.txtar": named + "-- left --\n",
		"default.txtar": "# R.\nload w\nshow nodes\ncmp n\n-- w --\n" + world +
			"-- n --\nNODE  STATE  PODS  IDLE\nn1    Ready  0     cpu 4, memory 32Gi, pods 110\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string // a part of the output
	}{
		{"tests/team.txtar --policy kept.yaml", exitOK, "1 scenario: 1 passed, 0 failed\n\ncoverage: 53.8 %, 7 of 13\n"},
		{"tests/team.txtar --policy kept.yaml --min-coverage 53.8", exitOK, ""},
		{"tests/team.txtar --policy kept.yaml --min-coverage 54", exitMistakes, "53.8 % is covered, less than the 54 % of --min-coverage"},
		{"tests/team.txtar --policy kept.yaml --shipped", exitOK, "jobReady gang/all-or-nothing"},
		{"tests/other.txtar", exitOK, "ok    tests/other.txtar"}, // the policy default decides
		{"default.txtar", exitOK, "coverage: the policies have no rows of their own; --shipped counts"},
		{"named.txtar --policy kept.yaml --policy more", exitOK, "1 passed"},
		{"named.txtar --policy more", exitMistakes, "there is no section kept, and no policy of that name"},
		{"unused.txtar --policy kept.yaml", exitMistakes, "no line of the script names left"},
		{"tests --policy kept.yaml --policy twice.yaml", exitUsage, "two policies are called kept, in kept.yaml and in twice.yaml"},
		{"tests --policy wrong.yaml", exitUsage, "wrong.yaml:17:"},
		{"tests --policy none.yaml", exitUsage, "--policy: read input: stat none.yaml: no such file"},
		{"tests --policy world.yaml", exitUsage, "there is no SchedulingPolicy in world.yaml"},
		{"none", exitUsage, "no such file"},
		{"empty", exitUsage, "there is no scenario, a file that ends with .txtar, in empty"},
		{"kept.yaml", exitUsage, "there is no scenario, a file that ends with .txtar, in kept.yaml"},
		{"", exitUsage, "name at least one scenario"},
		{"tests --min-coverage 101", exitUsage, "--min-coverage must be from 0 to 100"},
		{"tests --junit none/x.xml", exitUsage, "--junit: open none/x.xml"},
		{"tests --coverage none/x.json", exitUsage, "--coverage: open none/x.json"},
		{"tests --polcy kept.yaml", exitUsage, "unknown flag: --polcy"},
	} {
		got := printed(t, c.code, append([]string{"policy", "test"}, strings.Fields(c.args)...)...)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.args, c.want, got)
		}
	}
}
