package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/try"
)

const world = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}]
jobs:
- {name: fits, cpu: 1}
- {name: waits, cpu: 64}
`

const housePolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: NAME}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables: [{name: predicates}]
`

// files writes files into a new folder and returns its path.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSimulateExitCodes(t *testing.T) {
	t.Parallel()
	policy := func(name string) string { return strings.Replace(housePolicy, "NAME", name, 1) }
	scenario := "# R.\nload w\nshow nodes\ncmp want\n-- w --\n" + world +
		"-- want --\nNODE  STATE  PODS  IDLE\nn1    Ready  0     cpu 4, memory 32Gi, pods 110\n"
	dir := files(t, map[string]string{
		"world.yaml":  world,
		"timed.yaml":  "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{name: n1}]\njobs: [{name: fits, cpu: 1, run: 30s}]\n",
		"bad.yaml":    "apiVersion: v1\nkind: Node\nmetadata: {nam: n}\n",
		"lone.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n",
		"house.yaml":  policy("house"),
		"coming.yaml": "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\njobs: [{name: coming, cpu: 1}]\n",
		"erring.yaml": strings.Replace(policy("erring"), "}]",
			"}, {name: own, inline: {predicates: [{name: odd, onError: allow, expression: \"node.labels[task.name] == 'a'\"}]}}]", 1),
		"wrong.yaml":  strings.Replace(policy("wrong"), "predicates", "predicate", 1),
		"both.yaml":   policy("one") + "---\n" + policy("two"),
		"same.txtar":  scenario,
		"other.txtar": strings.Replace(scenario, "cpu 4, ", "cpu 5, ", 1),
		"odd.txtar":   strings.Replace(scenario, "load w", "lod w", 1),
	})
	tests := []struct {
		name     string
		args     string
		code     int
		out, err string // what the two streams must contain
	}{
		{"pods that wait are no failure", "simulate world.yaml", exitOK, "wait      default/waits", ""},
		{"json", "simulate -o json world.yaml", exitOK, `"policy": "default"`, ""},
		{"standard input", "simulate -", exitOK, "default/fits-0", ""},
		{"the only policy is used", "simulate world.yaml house.yaml", exitOK, "policy house (from ", ""},
		{"a policy from a file", "simulate --policy house.yaml world.yaml", exitOK, "policy house (from ", ""},
		{"a policy by name", "simulate --policy two world.yaml both.yaml", exitOK, "policy two (from ", ""},
		{"explain", "simulate --explain waits world.yaml", exitOK, "job default/waits\n", ""},
		{"cycles", "simulate --cycles 2 world.yaml", exitOK, "cycle 2\n", ""},
		{"a warning", "simulate lone.yaml world.yaml", exitOK, "default/fits-0", "1 pod pending for another scheduler"},
		{"a warning, strict", "simulate --strict lone.yaml world.yaml", exitMistakes, "", "1 pod pending for another scheduler"},
		{"a row that errs", "simulate world.yaml erring.yaml", exitOK, "error    own/odd (predicates) erred ", ""},
		{"a row that errs, strict", "simulate --strict world.yaml erring.yaml", exitMistakes, "default/fits-0", "own/odd (predicates) erred "},
		{"a scheduler's name", "simulate --scheduler-name default-scheduler lone.yaml", exitOK, "default/p", ""},
		{"a mistake", "simulate bad.yaml", exitMistakes, "", `bad.yaml:3:12: metadata.nam: unknown field "nam"`},
		{"a mistake in a policy", "simulate world.yaml wrong.yaml", exitMistakes, "", "wrong.yaml:"},
		{"a file that is not there", "simulate none.yaml", exitMistakes, "", "none.yaml: no such file"},
		{"what if a job came", "simulate --what-if coming.yaml world.yaml", exitOK, "job default/coming would start now: 1 pod of 1\n", ""},
		{"what if a policy came", "simulate --what-if house.yaml world.yaml", exitMistakes, "", "a policy is said apart"},
		{"explain a pod that is not there", "simulate --explain wait world.yaml", exitMistakes, "", "did you mean default/waits?"},
		{"a page", "simulate -o html world.yaml", exitOK, "<title>default: simulation by Celsius</title>", ""},
		{"watch standard input", "simulate --watch -", exitUsage, "", "standard input is neither"},
		{"watch a page", "simulate --watch -o html world.yaml", exitUsage, "", "add --to"},
		{"watch a scenario", "simulate --watch same.txtar", exitUsage, "", "not for scenarios"},
		{"no file", "simulate", exitUsage, "", "simulate what?"},
		{"a flag", "simulate --polcy x world.yaml", exitUsage, "", "unknown flag: --polcy"},
		{"a format", "simulate -o svg world.yaml", exitUsage, "", "--output must be one of table, wide, json, yaml, html"},
		{"a time", "simulate --now noon world.yaml", exitUsage, "", "--now noon is no time"},
		{"no cycles", "simulate --cycles 0 world.yaml", exitUsage, "", "--cycles must be at least 1"},
		{"until", "simulate --until 1h timed.yaml", exitOK, "default/fits  default  1     0s         0s       30s       0s", ""},
		{"until idle", "simulate --until idle timed.yaml", exitOK, "in 30s\n", ""},
		{"until a time", "simulate --now 2026-01-05T12:00:00Z --until 2026-01-05T13:00:00Z timed.yaml", exitOK, "in 1h\n", ""},
		{
			"the most cycles", "simulate --until idle --cycles 1 timed.yaml", exitOK,
			"1 cycle in 0s; 1 job had not finished; stopped there, with more to come", "",
		},
		{"until what", "simulate --until noon timed.yaml", exitUsage, "", "--until noon is neither"},
		{"until before", "simulate --until 2020-01-05T13:00:00Z timed.yaml", exitUsage, "", "nor a time after the first cycle"},
		{"every without until", "simulate --every 1m timed.yaml", exitUsage, "", "add --until"},
		{"two policies", "simulate world.yaml both.yaml", exitUsage, "", "there are 2 policies, one, two; choose one with --policy"},
		{"a policy that is not there", "simulate --policy nope world.yaml house.yaml", exitUsage, "", "neither a policy among the files (house"},
		{"a command", "simulte", exitUsage, "", "did you mean simulate?"},
		{"a scenario", "simulate same.txtar", exitOK, "ok    ", ""},
		{"a scenario that differs", "simulate same.txtar other.txtar", exitDiffers, "- n1    Ready  0     cpu 5, ", "1 of 2 scenarios differ"},
		{
			"a scenario that is wrong", "simulate odd.txtar other.txtar", exitMistakes, "FAIL  ",
			"odd.txtar:2: lod: there is no such verb; did you mean load?",
		},
		{"scenarios and files", "simulate same.txtar world.yaml", exitUsage, "", "scenarios bring their own files"},
		{"help", "simulate --help", exitOK, "Exit codes:", ""},
		{"version", "--version", exitOK, "celsius ", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for word := range strings.FieldsSeq(test.args) {
				if strings.Contains(word, ".") {
					word = filepath.Join(dir, word)
				}
				args = append(args, word)
			}
			var out, errs bytes.Buffer
			code := run(args, strings.NewReader(world), &out, &errs)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.err) {
				t.Errorf("want %q in the output and %q in the errors", test.out, test.err)
			}
			if t.Failed() {
				t.Logf("output\n%s\nerrors\n%s", &out, &errs)
			}
		})
	}
}

func TestUpdateRewritesAScenario(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"s.txtar": "# R.\nload w\nshow nodes\ncmp want\n-- w --\n" + world + "-- want --\n"})
	path := filepath.Join(dir, "s.txtar")
	var out bytes.Buffer
	if code := run([]string{"simulate", path}, nil, &out, &out); code != exitDiffers {
		t.Errorf("exit code %d, want %d\n%s", code, exitDiffers, &out)
	}
	for _, args := range [][]string{{"simulate", "--update", path}, {"simulate", path}} {
		if code := run(args, nil, &out, &out); code != exitOK {
			t.Errorf("%v: exit code %d\n%s", args, code, &out)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"world.yaml": world})
	var first string
	for range 3 {
		var out bytes.Buffer
		args := []string{"simulate", "--now", "2026-01-05T12:00:00Z", "-o", "yaml", "--cycles", "2", dir}
		if code := run(args, nil, &out, &out); code != exitOK {
			t.Fatalf("exit code %d\n%s", code, &out)
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first {
			t.Fatalf("the same input gave other bytes:\n%s\n%s", first, &out)
		}
	}
}

// TestVerify checks that --verify lists evictions that break a rule, after the report. A row of the policy allows to evict a pod because
// other pods still run. At the end of the action, these others are evicted, too.
func TestVerify(t *testing.T) {
	t.Parallel()
	policy := `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [preempt]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}ROWS]
`
	world := `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 3}]
priorityClasses: {high: 5}
jobs:
- {name: low, replicas: 3, min: 1, cpu: 1, node: n1}
- {name: first, priority: high, cpu: 1, phase: Inqueue}
- {name: second, priority: high, cpu: 1, phase: Inqueue}
`
	scenario := "# R.\npolicy p\nload w\ncycle\nshow queues\ncmp want\n-- p --\n"
	row := ", {name: own, inline: {preemptable: " +
		"[{name: not-the-last, veto: true, expression: victim.index != 2 || victim.job.runningTasks > 2}]}}"
	wrong := strings.Replace(policy, "ROWS", row, 1)
	dir := files(t, map[string]string{
		"world.yaml": world, "right.yaml": strings.Replace(policy, "ROWS", "", 1), "wrong.yaml": wrong,
		"wrong.txtar": scenario + wrong + "-- w --\n" + world + "-- want --\n",
	})
	const found = " atEnd: pod default/low-2 goes for default/first-0, but the rows of preemptable do not let it any more at the end of " +
		"the action"
	for _, test := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"--verify", "--policy", "right.yaml", "world.yaml"}, exitOK, "default/low-2", ""},
		{
			[]string{"--verify", "--policy", "wrong.yaml", "world.yaml"},
			exitMistakes, "default/low-2",
			"do not hold:\n2026-03-02T10:00:00Z" + found,
		},
		{[]string{"--policy", "wrong.yaml", "world.yaml"}, exitOK, "default/low-2", ""},
		{[]string{"--verify", "--watch", "world.yaml"}, exitUsage, "", "--verify is not for --watch"},
		{[]string{"--verify", "--update", "wrong.txtar"}, exitMistakes, "ok ", "wrong.txtar 2026-01-05T12:00:00Z" + found},
	} {
		args := []string{"simulate"}
		if !strings.HasSuffix(test.args[len(test.args)-1], ".txtar") {
			args = append(args, "--now", "2026-03-02T10:00:00Z")
		}
		for _, a := range test.args {
			if strings.Contains(a, ".") {
				a = filepath.Join(dir, a)
			}
			args = append(args, a)
		}
		var out, errs bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &errs)
		if code != test.code || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.errs) {
			t.Errorf("%v: %d, want %d\n%s\n%s", test.args, code, test.code, out.String(), errs.String())
		}
	}
}

// TestSimulateAsThePage checks that the command and the page choose the same policies from the same files. So their decisions are equal.
func TestSimulateAsThePage(t *testing.T) {
	t.Chdir(t.TempDir())
	const world = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
queues: [{name: a}, {name: lab}]
nodes: [{name: "n[1-3]", cpu: 4}]
jobs: [{name: a, cpu: 1, queue: a}, {name: l, cpu: 1, queue: lab}]
`
	on := func(node, name, more string) string {
		return fmt.Sprintf(`---
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: %s}
spec:
  pipeline: [enqueue, allocate]
  tiers: [{name: all, tables: [{name: own, inline: {predicates: [{name: p, expression: "node.name == '%s'"}]}}]}]
%s`, name, node, more)
	}
	const ofLab, shadow = "  queues: queue.name == 'lab'\n", "  mode: Shadow\n"
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct{ name, policies, a, l, err string }{
		{name: "none", a: "n1", l: "n2"},
		{name: "one", policies: on("n3", "x", ""), a: "n3", l: "n3"},
		{name: "of a queue", policies: on("n3", "x", "") + on("n2", "lab", ofLab), a: "n3", l: "n2"},
		{
			name: "the first by name of two of a queue", policies: on("n3", "z", ofLab) + on("n1", "x", "") + on("n2", "y", ofLab),
			a: "n1", l: "n2",
		},
		{
			name: "shadows decide nothing", policies: on("n2", "w", shadow) + on("n3", "x", "") + on("n2", "y", ofLab+shadow),
			a: "n3", l: "n3",
		},
		{name: "a shadow alone", policies: on("n3", "w", shadow), a: "n3", l: "n3"},
		{name: "two", policies: on("n3", "x", "") + on("n2", "y", ""), err: "there are 2 policies, x, y; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(try.WorldFile, []byte(world), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(try.PolicyFile, []byte(c.policies), 0o600); err != nil {
				t.Fatal(err)
			}
			page := try.Ask(try.Question{Policy: c.policies, World: world}, now)
			var out, errs bytes.Buffer
			run([]string{"simulate", "--now", now.Format(time.RFC3339), try.PolicyFile, try.WorldFile}, strings.NewReader(""), &out, &errs)
			if c.err != "" {
				if !strings.Contains(errs.String(), c.err) || !strings.Contains(page.Error, c.err) {
					t.Errorf("the command says %q, the page %q", &errs, page.Error)
				}
				return
			}
			if out.String() != page.Plan {
				t.Errorf("the command decides\n%s%s\nthe page\n%s", &out, &errs, page.Plan)
			}
			for job, node := range map[string]string{"a": c.a, "l": c.l} {
				if want := regexp.MustCompile(`bind +default/` + job + `-0 +` + node); !want.MatchString(out.String()) {
					t.Errorf("job %s is not on %s:\n%s", job, node, &out)
				}
			}
		})
	}
}

// clusterWithMistakes is a cluster with three mistakes. One pod cannot be read. One pod is on a node that does not exist. A Job names a
// PriorityClass that the file does not contain.
const clusterWithMistakes = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: u1}
  status: {allocatable: {cpu: 4}, conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: good, uid: u2}
  spec: {schedulerName: celsius, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: bad, uid: u3, annotations: {celsius.dev/gpu-count: x}}
  spec: {schedulerName: celsius, containers: [{name: c}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: lost, uid: u4}
  spec: {schedulerName: celsius, nodeName: ghost, containers: [{name: c}]}
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: train, uid: u5}
  spec:
    schedulerName: celsius
    tasks: [{name: w, replicas: 1, template: {spec: {priorityClassName: urgent, containers: [{name: c}]}}}]
`

// TestSimulateWarnsOfObjectsOfClusters checks mistakes in objects. For objects of a cluster, they are warnings that name the object and the
// reason. For objects that a user wrote, they are errors.
func TestSimulateWarnsOfObjectsOfClusters(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"cluster.yaml": clusterWithMistakes,
		"written.yaml": regexp.MustCompile(`, uid: u\d`).ReplaceAllString(clusterWithMistakes, ""),
		"more.yaml":    "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\njobs: [{name: more, cpu: 1}]\n",
		"class.yaml": clusterWithMistakes + "- apiVersion: scheduling.k8s.io/v1\n  kind: PriorityClass\n" +
			"  metadata: {name: urgents, uid: u6}\n  value: 1\n",
	})
	bad := `Pod default/bad is left out: metadata.annotations[celsius.dev/gpu-count]: "x" is no whole number from 0 to 1024`
	for _, c := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"cluster.yaml", exitOK, "bind      default/good ", bad},
		{"cluster.yaml", exitOK, "", `Pod default/lost is on node "ghost", which is not there: it uses resources of no node`},
		{"cluster.yaml", exitOK, "bind      default/train-w-0 ", `task w: PriorityClass "urgent" is not in the files, and no other is`},
		{"class.yaml", exitOK, "bind      default/good ", "task w: PriorityClass urgent does not exist; create it, or change"},
		{"--explain train class.yaml", exitOK, "  cause  PriorityClass urgent does not exist; create it, or change", ""},
		{"--explain bad cluster.yaml", exitOK, "  cause  pod default/bad is left out, because the scheduler cannot read it: ", bad},
		{"--what-if more.yaml cluster.yaml", exitOK, "default/more", bad},
		{"--strict cluster.yaml", exitMistakes, "", bad},
		{"written.yaml", exitMistakes, "", `Pod default/lost is on node "ghost", which is not there`},
	} {
		args := []string{"simulate"}
		for arg := range strings.FieldsSeq(c.args) {
			if strings.HasSuffix(arg, ".yaml") {
				arg = filepath.Join(dir, arg)
			}
			args = append(args, arg)
		}
		var out, errs bytes.Buffer
		if code := run(args, nil, &out, &errs); code != c.code || !strings.Contains(out.String(), c.out) ||
			!strings.Contains(errs.String(), c.errs) {
			t.Errorf("%s: code %d, want %d, %q and %q\n%s\n%s", c.args, code, c.code, c.out, c.errs, out.String(), errs.String())
		}
	}
}

// TestMessagesEscapeCommandsToTheTerminal checks warnings that name objects of users. Control characters in a name must not reach the
// terminal.
func TestMessagesEscapeCommandsToTheTerminal(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"snapshot.yaml": "apiVersion: v1\nkind: List\nitems:\n" +
		"- apiVersion: scheduling.volcano.sh/v1beta1\n  kind: PodGroup\n" +
		"  metadata: {name: \"pg\\e[31m\", namespace: ml, uid: 5b1c}\n  spec: {minMember: 1}\n"})
	var out, errs bytes.Buffer
	run([]string{"simulate", filepath.Join(dir, "snapshot.yaml")}, nil, &out, &errs)
	if text := out.String() + errs.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, `pg\x1b[31m`) {
		t.Errorf("got %q", text)
	}
}

// TestExplainSelects explains objects of several kinds that have the same name. KIND/NAME selects one of them, even if a namespace has the
// name of a kind.
func TestExplainSelects(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"world.yaml": `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}]
queues: [{name: n1}]
jobs:
- {name: n1, cpu: 1}
- {name: n1, namespace: ml, cpu: 1}
- {name: n2, namespace: node, cpu: 1}
- {name: n2, namespace: job, cpu: 1}
`})
	heads := regexp.MustCompile(`(?m)^(?:job|pod|queue|node) \S+`)
	for name, want := range map[string]string{
		"n1":           "job default/n1, job ml/n1, queue n1, node n1",
		"job/n1":       "job default/n1, job ml/n1",
		"vj/ml/n1":     "job ml/n1",
		"ml/n1":        "job ml/n1",
		"q/n1":         "queue n1",
		"nodes/n1":     "node n1",
		"pod/n1-0":     "pod default/n1-0, pod ml/n1-0",
		"n1-0":         "pod default/n1-0, pod ml/n1-0",
		"pod/ml/n1-0":  "pod ml/n1-0",
		"node/n2":      "job node/n2",
		"job/n2":       "job job/n2, job node/n2",
		"job/job/n2":   "job job/n2",
		"node/n":       "there is no node n; did you mean n1?",
		"queue/ml/n1":  "there is no queue ml/n1",
		"pod/n1-9":     "there is no pod n1-9; did you mean default/n1-0?",
		"job/ml/n3":    "there is no job ml/n3; did you mean ml/n1?",
		"jbo/n1":       "there is no pod or job jbo/n1; did you mean job/n2?",
		"default/none": "there is no pod or job default/none",
	} {
		var out, errs bytes.Buffer
		run([]string{"simulate", "--explain", name, filepath.Join(dir, "world.yaml")}, strings.NewReader(""), &out, &errs)
		got := strings.Join(heads.FindAllString(out.String(), -1), ", ") + strings.TrimSpace(errs.String())
		if got != want && (out.Len() > 0 || !strings.Contains(got, want)) {
			t.Errorf("--explain %s: %s, want %s", name, got, want)
		}
	}
}

// TestSimulateSpool checks that a long run leaves no temporary file and works without one.
func TestSimulateSpool(t *testing.T) {
	t.Chdir(files(t, map[string]string{
		"world.yaml": "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{name: n, cpu: 1}]\njobs:\n" +
			"- {name: a, cpu: 1, run: 1s}\n- {name: b, cpu: 1, run: 1s}\n",
	}))
	folder := t.TempDir()
	for _, format := range sim.Formats() {
		args := []string{"simulate", "--until", "idle", "--now", "2026-01-01T00:00:00Z", "-o", format, "world.yaml"}
		t.Setenv("TMPDIR", folder)
		got := printed(t, exitOK, args...)
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", format, left, err)
		}
		printed(t, exitOK, append(args, "--to", "report")...)
		if written, err := os.ReadFile("report"); err != nil || string(written) != got {
			t.Errorf("%s: the file differs: %v", format, err)
		}
		t.Setenv("TMPDIR", filepath.Join(folder, "none"))
		if want := printed(t, exitOK, args...); got != want || got == "" {
			t.Errorf("%s: a run without a temporary file printed\n%s\nnot\n%s", format, want, got)
		}
	}
}
