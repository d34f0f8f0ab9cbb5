package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
)

// measured returns what bench reports about kept.yaml.
func measured(t *testing.T, args ...string) (m measurement) {
	t.Helper()
	got := printed(t, exitOK, append([]string{"policy", "bench", "kept.yaml", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got), &m); err != nil {
		t.Fatal(err)
	}
	byShare := func(a, b rowTiming) int { return cmp.Compare(b.Cold.Percent, a.Cold.Percent) }
	if m.ColdNanos <= 0 || m.SteadyNanos <= 0 || !slices.IsSortedFunc(m.Rows, byShare) {
		t.Errorf("%+v", m)
	}
	return m
}

// evaluations returns how often each row of the table house was evaluated, in the cold cycle and in a steady cycle.
func (m *measurement) evaluations() map[string][2]int {
	out := map[string][2]int{}
	for _, r := range m.Rows {
		if r.Table == "house" {
			out[r.Site+" "+r.Name] = [2]int{r.Cold.Evaluations, r.Steady.Evaluations}
		}
	}
	return out
}

// benchFiles writes policies and a world into a folder, and changes the working directory to it.
func benchFiles(t *testing.T) {
	t.Helper()
	t.Chdir(files(t, map[string]string{
		"kept.yaml": keptPolicy, "wrong.yaml": strings.Replace(keptPolicy, "node.labels", "node.lables", 1),
		"world.yaml": strings.Replace(world, "jobs:", "jobs:\n- {name: more, cpu: 1, labels: {tier: fast}}", 1),
	}))
}

// TestPolicyBench checks that each run has the same number of evaluations. The times differ between runs.
func TestPolicyBench(t *testing.T) {
	benchFiles(t)
	m := measured(t, "--nodes", "20", "--jobs", "4")
	if m.Policy != "kept" || m.Nodes != 20 || m.Pods != 20 {
		t.Errorf("%+v", m)
	}
	// Pods of 4 shapes are tried on 20 nodes each. Predicates are evaluated by column: for many nodes at a time.
	if got := m.evaluations()["predicates kept-for-team"][0]; got < 20 {
		t.Errorf("a predicate was evaluated %d times on 20 nodes", got)
	}
	again := measured(t, "--nodes", "20", "--jobs", "4")
	if diff := gocmp.Diff(m.evaluations(), again.evaluations()); diff != "" {
		t.Errorf("it is evaluated otherwise each time:\n%s", diff)
	}
	if m := measured(t, "-f", "world.yaml"); m.Nodes != 1 || m.Pods != 3 {
		t.Errorf("%+v", m)
	}
	table := printed(t, exitOK, "policy", "bench", "kept.yaml", "--nodes", "10", "--jobs", "10")
	for line := range strings.Lines(table) {
		if utf8.RuneCountInString(line) > helpColumns+1 {
			t.Errorf("wider than %d columns: %s", helpColumns, line)
		}
	}
	if !strings.HasPrefix(table, "policy kept on 10 nodes with 50 pods\na cold cycle takes ") || !strings.Contains(table, "\nROW  ") ||
		!strings.Contains(table, "rows were not evaluated") {
		t.Error(table)
	}
}

func TestPolicyBenchExitCodes(t *testing.T) {
	benchFiles(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"wrong.yaml", exitMistakes, `Node has no field "lables"`},
		{"gone.yaml", exitMistakes, "no such file"},
		{"kept.yaml -f gone.yaml", exitUsage, "no such file"},
		{"kept.yaml -f kept.yaml", exitOK, "on 0 nodes with 0 pods"},
		{"kept.yaml -f world.yaml --nodes 3", exitUsage, "without -f"},
		{"kept.yaml --nodes 0", exitUsage, "must be from 1 to 100000"},
		{"kept.yaml -o yaml", exitUsage, "--output must be table or json"},
		{"", exitUsage, "name one file with a policy"},
	} {
		got := printed(t, c.code, append([]string{"policy", "bench"}, strings.Fields(c.args)...)...)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.args, c.want, got)
		}
	}
}
