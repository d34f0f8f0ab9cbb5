package session

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// hashes evaluates hash01 for names and a seed.
func hashes(t *testing.T, seed int64, names ...string) []float64 {
	t.Helper()
	c := aCluster(t, aQueue("q"), aNode("n1", "cpu=1 pods=9"))
	c.Seed = seed
	s := begun(t, c, "attributes:\n- {name: chance, on: cluster, expression: \"[["+strings.Join(names, "], [")+
		"]].map(names, hash01(names))\"}")
	var out []float64
	for part := range strings.SplitSeq(language.Text(policy.ReadAttribute(s.p.Attributes()[0], s.ClusterView)), ", ") {
		var x float64
		if _, err := fmt.Sscan(part, &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// TestHash01 checks that hash01 depends on every string, on their limits, on their order and on the seed, and always returns the same
// value.
func TestHash01(t *testing.T) {
	all := map[float64]string{}
	for _, seed := range []int64{0, 1, 2, math.MinInt64} {
		names := []string{"", "''", "'', ''", "'a'", "'b'", "'a', 'b'", "'b', 'a'", "'ab'", "'ab', ''", "'a', '', 'b'"}
		got := hashes(t, seed, names...)
		if diff := cmp.Diff(got, hashes(t, seed, names...)); diff != "" {
			t.Errorf("two answers: %s", diff)
		}
		for i, x := range got {
			key := fmt.Sprintf("%d [%s]", seed, names[i])
			if x < 0 || x >= 1 || all[x] != "" {
				t.Errorf("%s gives %v, as does %q", key, x, all[x])
			}
			all[x] = key
		}
	}
}

// TestHash01OfAnyList checks that a literal list has the same hash as an equal computed list.
func TestHash01OfAnyList(t *testing.T) {
	for _, names := range []string{"", "'a'", "'a', 'b'", "'a', 'b', 'c'", "'a', 'b', 'c', 'd'", "'a', 'b', 'c', 'd', 'e'"} {
		c := aCluster(t, aQueue("q"))
		s := begun(t, c, "attributes:\n- {name: same, on: cluster, expression: \"hash01(["+names+"]) == hash01(["+names+"].map(x, x))\"}")
		if got := policy.ReadAttribute(s.p.Attributes()[0], s.ClusterView); got != types.True {
			t.Errorf("[%s]: %v", names, got)
		}
	}
}

// TestHash01IsEven checks that hash01 is evenly distributed over names that differ only in their last characters. It uses the chi-square
// test of 20 bins over 20,000 pairs, at 0.1 %.
func TestHash01IsEven(t *testing.T) {
	c := aCluster(t)
	c.Seed = 7
	cluster := &language.ClusterView{View: language.View[model.Cluster]{Of: c}}
	var bins [20]float64
	for node := range 200 {
		for task := range 100 {
			x, _ := language.Number(language.HashOf(cluster, types.String(fmt.Sprintf("pod-%d", task)), types.String(fmt.Sprintf("node-%d", node))))
			bins[int(20*x)]++
		}
	}
	chi := 0.0
	for _, n := range bins {
		chi += (n - 1000) * (n - 1000) / 1000
	}
	if chi > 43.8 {
		t.Errorf("chi-square is %.1f: %v", chi, bins)
	}
}

// TestTypicalTasks checks that the typical tasks come from the workload if there is one, otherwise from the known tasks without those of
// other schedulers. They stay the same until they settle again. Each shape states on how many devices its tasks could run.
func TestTypicalTasks(t *testing.T) {
	withGPUs := func(n *corev1.Node) { n.Annotations[model.NodeGPUsAnnotation] = "4" }
	c := aCluster(t, aNode("n1", "cpu=2 pods=9", withGPUs), aNode("n2", "cpu=2 pods=9", withGPUs), aNode("n3", "cpu=1 pods=9", withGPUs),
		aQueue("q"), aGroup("g", "q"), aPod("p1", "cpu=1"), aPod("p2", "cpu=1"), aPod("p3", "cpu=2", annotated("celsius.dev/gpu-milli", "500")))
	const table = "attributes:\n- {name: typical, on: cluster, settle: SETTLE, typicalTasks: {cover: COVER}}\nqueueOrder: []"
	value := func(s *Session) string {
		return strings.TrimSpace(language.Text(policy.ReadAttribute(s.p.Attributes()[0], s.ClusterView)))
	}
	with := func(settle, cover string) *Session {
		return begun(t, c, strings.NewReplacer("SETTLE", settle, "COVER", cover).Replace(table))
	}
	for _, test := range [][3]string{{"cycle", "1", "2x(1000,0x0,) 1x(2000,1x500, on 8)"}, {"cycle", "0.5", "2x(1000,0x0,)"}} {
		if got := value(with(test[0], test[1])); got != test[2] {
			t.Errorf("cover %s: got %s, want %s", test[1], got, test[2])
		}
	}
	for _, cover := range []string{"0", "1.5", "-1"} {
		if got, want := value(with("cycle", cover)), "(cover must be above 0 and at most 1, is "+cover+")"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	start, cycle := with("start", "1"), with("cycle", "1")
	c.Workload = []model.Shape{{CPU: 4000, Tasks: 7}}
	start.Begin(noon())
	cycle.Begin(noon())
	if got := value(start); got != "2x(1000,0x0,) 1x(2000,1x500, on 8)" {
		t.Errorf("settled at the start: %s", got)
	}
	if got := value(cycle); got != "7x(4000,0x0,)" {
		t.Errorf("settled in the cycle: %s", got)
	}
}

// askedOften places two pods of one class, one after the other. It returns how often the rows of a table are evaluated, and which nodes are
// chosen.
func askedOften(t *testing.T, forget bool, table string) (counts map[string]uint64, nodes string) {
	t.Helper()
	c := aCluster(t, aNode("n1", "cpu=4 pods=9"), aNode("n2", "cpu=4 pods=9"), aNode("n3", "cpu=1 pods=9"), aQueue("q"), aGroup("g", "q"),
		aPod("p1", "cpu=2"), aPod("p2", "cpu=2"))
	s := begun(t, c, table)
	x := c.Begin()
	for _, key := range []string{"a/p1", "a/p2"} {
		if forget {
			s = anew(s)
		}
		choice, ok := s.Class(c.Tasks[key]).Choose()
		if !ok {
			t.Fatal("no node")
		}
		nodes += c.Nodes.Rows[choice.Row].Name + fmt.Sprintf(" %g ", choice.Score)
		x.Allocate(c.Tasks[key], choice.Row, nil)
	}
	counts = map[string]uint64{}
	for _, r := range s.p.All {
		counts[r.Name] = s.Evaluated(r)
	}
	return counts, nodes
}

// TestRowsAreAskedNoMoreThanNeeded checks a score that distinguishes tasks. It is evaluated for each task on the remaining nodes, and no
// other row is evaluated again. A guard that reads only the task is evaluated once per class, and a row whose guard is false is not
// evaluated. The choice is the same as without any caches.
func TestRowsAreAskedNoMoreThanNeeded(t *testing.T) {
	const table = `
predicates:
- {name: plain, expression: node.taskCount < 5}
- {name: never, when: task.priority > 100, expression: node.taskCount < 0}
- {name: always, when: task.priority < 100, expression: node.taskCount < 5}
scores:
- {name: shared, expression: node.idle.cpu}
- {name: own, expression: "hash01([task.name, node.name])", normalize: max, weight: 0.02}
- {name: unasked, when: task.gpuCount > 0, expression: node.idle.cpu}
`
	counts, nodes := askedOften(t, false, table)
	// First three nodes, of which n1 and n2 are equal; then the changed node. n3 has too little CPU to get a score.
	want := map[string]uint64{"plain": 3, "never": 0, "always": 3, "shared": 2, "own": 4, "unasked": 0}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, afresh := askedOften(t, true, table); nodes != afresh {
		t.Errorf("chosen are %s, afresh %s", nodes, afresh)
	}
}

// TestAGuardThatErrsIsCountedByNode checks that a guard that fails counts as an error for each node, even if it reads only the task.
func TestAGuardThatErrsIsCountedByNode(t *testing.T) {
	c := aCluster(t, aNode("n1", "cpu=4 pods=9"), aNode("n2", "cpu=4 pods=9"), aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=2"))
	s := begun(t, c, "predicates: [{name: r, when: \"task.labels['none'] == ''\", expression: node.taskCount < 5, onError: allow}]")
	if _, ok := s.Class(c.Tasks["a/p"]).Choose(); !ok {
		t.Error("an error that allows stops nothing")
	}
	if f := s.Faults(); len(f) != 1 || f[0].Count != 2 || f[0].Object != "a/p on n1" {
		t.Errorf("faults: %+v", f)
	}
}
