package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// asking returns for each yes-or-no site a function that evaluates it for the pod a/p, its job or its queue.
func asking() map[string]func(s *Session) bool {
	task := func(s *Session) *model.Task { return s.c.Tasks["a/p"] }
	job := func(s *Session) *model.Job { return s.c.Jobs["a/g"] }
	return map[string]func(s *Session) bool{
		policy.JobValid:       func(s *Session) bool { return s.Valid(job(s)).Yes },
		policy.JobReady:       func(s *Session) bool { return s.Ready(job(s)).Yes },
		policy.JobPipelined:   func(s *Session) bool { return s.Pipelined(job(s)).Yes },
		policy.JobStarving:    func(s *Session) bool { return s.Starving(job(s)) },
		policy.JobEnqueueable: func(s *Session) bool { return s.Enqueueable(job(s)).Yes },
		policy.Overused:       func(s *Session) bool { return s.Overused(job(s).Queue).Yes },
		policy.Allocatable:    func(s *Session) bool { return s.Allocatable(task(s)).Yes },
		policy.Preemptive:     func(s *Session) bool { return s.Preemptive(job(s), task(s).Request).Yes },
		policy.TaskFeasible:   func(s *Session) bool { return s.Feasible(task(s)).Yes },
		policy.Predicates:     func(s *Session) bool { _, ok := s.Class(task(s)).Choose(); return ok },
	}
}

// answerCase is one row of a yes-or-no site, and the expected answer of the site.
type answerCase struct {
	name, row string
	want      bool
	faults    int
}

// answerCases returns rows of the site that agree, refuse, have no opinion, or fail.
func answerCases(site policy.Site) []answerCase {
	erring := map[string]string{
		policy.Overused: "queue.labels['none'] == ''", policy.Allocatable: "task.labels['none'] == ''",
		policy.TaskFeasible: "task.labels['none'] == ''",
		policy.Predicates:   "node.labels['none'] == ''",
	}[site.Name]
	if erring == "" {
		erring = "job.labels['none'] == ''"
	}
	// Without rows, nothing stops the job, and no queue is overused and no job starves. A queue is overused only if a row states it.
	nobody := site.Name != policy.Overused && site.Name != policy.JobStarving
	denied := site.DenyIs
	return []answerCase{
		{"no row", "", nobody, 0},
		{"agrees", `expression: "true"`, true, 0},
		{"refuses", `expression: "false"`, false, 0},
		{"guard false", `when: "false", expression: "` + fmt.Sprint(!nobody) + `"`, nobody, 0},
		{"guard false by a field", `when: cluster.nodeCount > 99, expression: "` + fmt.Sprint(!nobody) + `"`, nobody, 0},
		{"guard true", `when: cluster.nodeCount > 0, expression: "false"`, false, 0},
		{"errs", `expression: "` + erring + `"`, denied, 1},
		{"guard errs", `when: "` + erring + `", expression: "true"`, denied, 1},
		{"errs, deny", `expression: "` + erring + `", onError: deny`, denied, 1},
		{"errs, allow", `expression: "` + erring + `", onError: allow`, !site.DenyIs, 1},
		{"errs, skip", `expression: "` + erring + `", onError: skip`, nobody, 1},
	}
}

// TestAnswers checks the answer of each site in five cases: its only row agrees, refuses, has no opinion, or fails, or there is no row
// (docs/rule-language.md, Sections).
func TestAnswers(t *testing.T) {
	for _, site := range policy.Sites() {
		ask := asking()[site.Name]
		if ask == nil {
			continue
		}
		for _, test := range answerCases(site) {
			t.Run(site.Name+"/"+test.name, func(t *testing.T) {
				table := site.Name + ": []"
				if test.row != "" {
					table = site.Name + ": [{name: r, " + test.row + "}]"
				}
				s := begun(t, aCluster(t, aNode("n1", "cpu=4 pods=9"), aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1")), table)
				if got := ask(s); got != test.want {
					t.Errorf("got %t, want %t", got, test.want)
				}
				faults := s.Faults()
				if len(faults) != test.faults {
					t.Fatalf("%d faults, want %d: %v", len(faults), test.faults, faults)
				}
				for _, f := range faults {
					want := model.RuleError{Site: site.Name, Table: "mine", Rule: "r", Count: 1, Object: f.Object, Text: "no such key: none"}
					if f != want || f.Object == "" {
						t.Errorf("the fault does not name its row, what it was evaluated for, or why: %+v", f)
					}
				}
			})
		}
	}
}

// TestFaultsAreCountedAndContained checks a row that fails for one object. Only that object is affected. Each failure is counted. It is
// reported once, with the first object.
func TestFaultsAreCountedAndContained(t *testing.T) {
	c := aCluster(t, aNode("n1", "cpu=9 pods=9"), aNode("n2", "cpu=9 pods=9", labelled("rack", "r2")), aNode("n3", "cpu=9 pods=9"),
		aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1"))
	s := begun(t, c, `predicates: [{name: in-a-rack, expression: "node.labels['rack'] == 'r2'", message: "no rack"}]`)
	class := s.Class(c.Tasks["a/p"])
	if choice, ok := class.Choose(); !ok || c.Nodes.Rows[choice.Row].Name != "n2" || choice.Feasible != 1 {
		t.Errorf("the node with a rack is still found: %+v", choice)
	}
	want := []model.RuleError{{Site: "predicates", Table: "mine", Rule: "in-a-rack", Count: 2, Object: "a/p on n1", Text: "no such key: rack"}}
	if diff := cmp.Diff(want, s.Faults()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]model.NodeCount{{Table: "mine", Rule: "in-a-rack", Text: "erred: no such key: rack", Count: 2}},
		class.Rejections()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.Begin(noon())
	if len(s.Faults()) != 0 {
		t.Error("faults are of their cycle")
	}
}

// TestMessages checks that a message is written when the row rejects, with the values of that moment. An error in it is shown, and stops
// nothing.
func TestMessages(t *testing.T) {
	for _, test := range [][2]string{
		{"plain words", "plain words"},
		{"pod {{task.name}} of {{job.name}}: {{1 + 1}}", "pod p of g: 2"},
		{"{{task.request}}|{{task.labels.size()}}|{{task.priority > 0}}|{{0.1 + 0.2}}", "cpu 1, pods 1|0|true|0.3"},
		{"{{task.labels['none']}} is missing", "(no such key: none) is missing"},
		{"{{now}} and {{now - task.createdAt}}", "2026-01-05T12:00:00Z and 3600s"},
		{"{{[1, 2].map(x, string(x)).join(', ')}}", "1, 2"},
		{"größer: {{'日本' + 'é'}} }} {", "größer: 日本é }} {"},
		{"{{task.annotation('none')}}, {{task.annotation('scheduling.k8s.io/group-name')}}", "none, g"},
		{"{{task.startedAt}}", "null"},
		{"{{ {'b': 1, 'a': 2} }}", "a: 2, b: 1"},
		{
			"{{task.job}} of {{task.queue}} at {{task.node}}; {{job.roles}}; {{task.queue.spec}}; {{cluster}}",
			"a/g of q at null; ; a QueueSpec; a Cluster",
		},
	} {
		s := begun(t, aCluster(t, aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1")),
			"taskFeasible: [{name: r, expression: \"false\", reason: No, message: \""+strings.ReplaceAll(test[0], `"`, `\"`)+"\"}]")
		answer := s.Feasible(s.c.Tasks["a/p"])
		if answer.Text != test[1] {
			t.Errorf("%s: got %q, want %q", test[0], answer.Text, test[1])
		}
		want := model.Reason{Site: "taskFeasible", Table: "mine", Rule: "r", Reason: "No", Text: test[1]}
		if diff := cmp.Diff(want, answer.Reason()); diff != "" {
			t.Error(diff)
		}
		if len(s.Faults()) != 0 {
			t.Errorf("%s: an error in a message is none of the row: %v", test[0], s.Faults())
		}
	}
	s := begun(t, aCluster(t, aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1")), "taskFeasible: [{name: r, expression: task.priority > 5}]")
	if got := s.Feasible(s.c.Tasks["a/p"]).Text; got != "task.priority > 5 does not hold" {
		t.Errorf("a row without a message says its own words: %q", got)
	}
}

// order returns the names of jobs in the order of a table.
func order(t *testing.T, table string, edits ...func(*v1beta1.PodGroup)) (names string, s *Session) {
	t.Helper()
	objects := []any{aQueue("q")}
	for i, edit := range edits {
		objects = append(objects, aGroup(fmt.Sprintf("j%d", i+1), "q", edit))
	}
	s = begun(t, aCluster(t, objects...), table)
	heap := s.Jobs()
	for _, j := range s.c.JobsByKey() {
		heap.Put(j)
	}
	for j, ok := heap.Take(); ok; j, ok = heap.Take() {
		names += " " + j.Name
	}
	return strings.TrimSpace(names), s
}

// keyed returns an edit that gives a PodGroup the label k; none if value is "".
func keyed(value string) func(*v1beta1.PodGroup) {
	return func(g *v1beta1.PodGroup) {
		g.Labels = map[string]string{}
		if value != "" {
			g.Labels["k"] = value
		}
	}
}

// TestOrders checks sort keys of every type, and objects without a key (docs/rule-language.md, Orders).
func TestOrders(t *testing.T) {
	for _, test := range []struct {
		name, row string
		values    []string
		want      string
		faults    int
	}{
		{"nothing: by name", "by: 1", []string{"", "", ""}, "j1 j2 j3", 0},
		{"strings", "by: job.labels['k']", []string{"b", "a", "c"}, "j2 j1 j3", 0},
		{"descending", "by: job.labels['k']\n  descending: true", []string{"b", "a", "c"}, "j3 j1 j2", 0},
		{"ints", "by: int(job.labels['k'])", []string{"10", "9", "-1"}, "j3 j2 j1", 0},
		{"large ints are exact", "by: int(job.labels['k'])", []string{"9007199254740993", "9007199254740992"}, "j2 j1", 0},
		{"doubles", "by: double(job.labels['k'])", []string{"0.5", "-0.5", "0.25"}, "j2 j3 j1", 0},
		{"false comes first", "by: job.labels['k'] == 'x'", []string{"x", "y", "x"}, "j2 j1 j3", 0},
		{"times", "by: timestamp(job.labels['k'])", []string{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"}, "j2 j1", 0},
		{"durations", "by: duration(job.labels['k'])", []string{"1h", "90s"}, "j2 j1", 0},
		{"lists, element by element", "by: job.labels['k'].split('-')", []string{"a-b", "a-a-z", "0"}, "j3 j2 j1", 0},
		{"a list that another begins with is its equal", "by: job.labels['k'].split('-')", []string{"a-b", "a", "a-b-c"}, "j1 j2 j3", 0},
		{"lists of lists", "by: '[job.labels[\"k\"].split(\"-\"), [job.name]]'", []string{"b", "a", "a"}, "j2 j3 j1", 0},
		{"who has no opinion comes last", "by: job.labels['k']\n  when: \"'k' in job.labels\"", []string{"b", "", "a"}, "j3 j1 j2", 0},
		{
			"and also when descending", "by: job.labels['k']\n  descending: true\n  when: \"'k' in job.labels\"",
			[]string{"b", "", "a"},
			"j1 j3 j2",
			0,
		},
		{"who errs comes last", "by: job.labels['k']", []string{"b", "", "a"}, "j3 j1 j2", 1},
		{"NaN is an error", "by: double(job.labels['k']) / 0.0", []string{"0", "1", "-1"}, "j3 j2 j1", 1},
		{"NaN in a list is an error", "by: '[double(job.labels[\"k\"]) / 0.0]'", []string{"0", "1"}, "j2 j1", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var edits []func(*v1beta1.PodGroup)
			for _, v := range test.values {
				edits = append(edits, keyed(v))
			}
			got, s := order(t, "jobOrder:\n- name: r\n  "+test.row, edits...)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if len(s.Faults()) != test.faults {
				t.Errorf("faults: %v", s.Faults())
			}
		})
	}
	if got, _ := order(t, "jobOrder: [{name: a, by: \"job.labels['k'] < 'c'\"}, {name: b, by: job.name, descending: true}]", keyed("a"),
		keyed("b"), keyed("c"), keyed("d")); got != "j4 j3 j2 j1" {
		t.Errorf("the second row decides where the first does not: %s", got)
	}
}

// TestNaNSaysSo checks the text of an error that NaN causes.
func TestNaNSaysSo(t *testing.T) {
	_, s := order(t, "jobOrder: [{name: r, by: 0.0 / 0.0}]", keyed(""))
	if f := s.Faults(); len(f) != 1 || !strings.Contains(f[0].Text, "NaN") || f[0].Object != "a/j1" {
		t.Errorf("the fault does not say what is wrong: %+v", f)
	}
}

// TestDevices checks the devices that a task gets: the largest sums, and the lowest index on ties (docs/concepts.md, Sharing GPUs).
func TestDevices(t *testing.T) {
	node := aNode("n1", "cpu=9 pods=9 nvidia.com/gpu=4")
	share := func(name, milli, device string) *corev1.Pod {
		return aPod(name, "cpu=1", runningOn("n1"), annotated("celsius.dev/gpu-milli", milli, "celsius.dev/gpus", device))
	}
	others := []any{share("x", "300", "0"), share("y", "600", "2")}
	for _, test := range []struct {
		name, table string
		pod         func(*corev1.Pod)
		want        string
		faults      int
	}{
		{"none asked", "deviceScores: []", func(*corev1.Pod) {}, "[]", 0},
		{"a part comes from the fullest that has it", "deviceScores: []", annotated("celsius.dev/gpu-milli", "400"), "[2]", 0},
		{"the fullest has too little", "deviceScores: []", annotated("celsius.dev/gpu-milli", "500"), "[0]", 0},
		{"whole ones are the first idle", "deviceScores: []", annotated("celsius.dev/gpu-count", "2"), "[1 3]", 0},
		{"by a row", "deviceScores: [{name: r, expression: gpu.index}]", annotated("celsius.dev/gpu-milli", "300"), "[3]", 0},
		{
			"by a row, lowest index on ties", "deviceScores: [{name: r, expression: \"gpu.free == 1000 ? 1 : 0\"}]",
			annotated("celsius.dev/gpu-milli", "300"), "[1]", 0,
		},
		{
			"several, in order of index", "deviceScores: [{name: r, expression: -gpu.free}]",
			annotated("celsius.dev/gpu-milli", "300", "celsius.dev/gpu-count", "2"), "[0 2]", 0,
		},
		{
			"by weight", "deviceScores: [{name: a, expression: gpu.index}, {name: b, expression: gpu.free, weight: 0.1}]",
			annotated("celsius.dev/gpu-milli", "300"), "[3]", 0,
		},
		{
			"no opinion", "deviceScores: [{name: r, when: task.gpuCount > 1, expression: gpu.index}]", annotated("celsius.dev/gpu-milli", "300"),
			"[2]", 0,
		},
		{
			"an error is no opinion", "deviceScores: [{name: r, expression: \"gpu.index / (gpu.index - 3) * 0\"}]",
			annotated("celsius.dev/gpu-milli", "300"), "[0]", 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := aCluster(t, append(others, node, aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1", test.pod))...)
			s := begun(t, c, test.table)
			if got := fmt.Sprint(s.Devices(c.Tasks["a/p"], 0, false)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if len(s.Faults()) != test.faults {
				t.Errorf("faults: %v", s.Faults())
			}
		})
	}
}
