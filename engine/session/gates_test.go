package session

import (
	"testing"
)

// TestGates checks which tasks get equal answers at the gate. Two jobs of one queue are distinguished by values that change with them, or
// that differ between them.
func TestGates(t *testing.T) {
	c := aCluster(t, aNode("n1", "cpu=8"), aQueue("q"), aQueue("other"), aGroup("a", "q"), aGroup("b", "q"), aGroup("c", "other"),
		aPod("a-0", "cpu=1", inGroup("a")), aPod("b-0", "cpu=1", inGroup("b")), aPod("b-1", "cpu=2", inGroup("b")),
		aPod("c-0", "cpu=1", inGroup("c")))
	for _, test := range []struct {
		expression string
		alike      bool // a-0 and b-0
	}{
		{"(queue.allocated + task.request).within(queue.spec.capability, task.request)", true},
		{"queue.open && queue.allocated['pods'] < 9.0", true},
		{"task.priority > 5", true},
		{"task.name != 'a-0'", false},
		{"job.name != 'a'", false},
		{"job.allocated.cpu < 5.0", false},                     // it changes with the task of the job that has no node
		{"queue.request.cpu < 5.0", false},                     // so may the expected pods of a job
		{"task.job.pendingTasks < 5", false},                   //
		{"cluster.used.cpu < 5.0", false},                      // it depends on the node of the task
		{"task.node == null || task.node.name != 'n1'", false}, //
	} {
		g := NewGates(begun(t, c, "allocatable:\n- {name: row, expression: \""+test.expression+"\"}\n"))
		a, known := g.Kind(c.Tasks["a/a-0"])
		b, _ := g.Kind(c.Tasks["a/b-0"])
		if alike := known && a == b; alike != test.alike {
			t.Errorf("%s: alike %t, want %t", test.expression, alike, test.alike)
		}
		for _, name := range []string{"b-1", "c-0"} {
			if other, _ := g.Kind(c.Tasks["a/"+name]); known && other == a {
				t.Errorf("%s: a-0 is as %s is, which asks for more, or is of another queue", test.expression, name)
			}
		}
	}
}
