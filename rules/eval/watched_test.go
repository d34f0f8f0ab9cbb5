package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestWatch evaluates each expression with i = 1 to 3. It checks how often each condition was true and false, and where each condition
// begins.
func TestWatch(t *testing.T) {
	s := testScope(t)
	for _, test := range []struct{ name, expression, want string }{
		{"the whole", "i > 2", "0 i > 2: 1 true, 2 false"},
		{"operands", "i > 1 && (i > 2 || j == 0)", "0 i > 1: 2 true, 1 false\n10 i > 2: 1 true, 1 false\n19 j == 0: 1 true, 0 false"},
		{"fields", "order.turn && b || depot.crates.exists(c, c.order.turn)", "0 order.turn: 3 true, 0 false\n14 b: 3 true, 0 false\n" +
			"19 depot.crates.exists(c, c.order.turn): 0 true, 0 false"},
		{"negations", "!(i > 1 && !b)", "2 i > 1: 2 true, 1 false\n12 b: 2 true, 0 false"},
		{"a choice", "i > 1 ? d * 2.0 : d", "0 i > 1: 2 true, 1 false"},
		{"a choice of truths", "i > 1 ? b : order.turn", "0 i > 1: 2 true, 1 false\n8 b: 2 true, 0 false\n12 order.turn: 1 true, 0 false"},
		{"choices within", "1 + (i > 1 && b ? (i == 2 ? 1 : 2) : 3)", "5 i > 1: 2 true, 1 false\n14 b: 2 true, 0 false\n" +
			"19 i == 2: 1 true, 1 false"},
		{"loops", "[1, 2].exists(x, x == i || x == j)", "0 [1, 2].exists(x, x == i || x == j): 2 true, 1 false\n" +
			"17 x == i: 2 true, 3 false\n27 x == j: 0 true, 3 false"},
		{"loops in loops", "[1].all(x, [2].exists(y, y == i && b))", "0 [1].all(x, [2].exists(y, y == i && b)): 1 true, 2 false\n" +
			"25 y == i: 1 true, 2 false\n35 b: 1 true, 0 false"},
		{"what is constant is none", "params.factor > 1.0 && (1 > 2 || i > 1) ? 'x' : 'y'", "33 i > 1: 2 true, 1 false"},
		{"presence", "has(depot.labels.zone) && i > 0", "0 has(depot.labels.zone): 3 true, 0 false\n26 i > 0: 3 true, 0 false"},
		{"a function", "size(words) > 0 && int(d) > i", "0 size(words) > 0: 3 true, 0 false\n19 int(d) > i: 0 true, 3 false"},
		{"errors are neither", "i / j > 1 || i > 1", "0 i / j > 1: 0 true, 0 false\n13 i > 1: 2 true, 1 false"},
		{"a number", "depot.free", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, issues := Compile(s, source.Text{Value: test.expression}, rules.Anything())
			if issues != nil {
				t.Fatal(issues.Err())
			}
			plain := *e
			w, err := e.Watch()
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= 3; i++ {
				roots := testRoots(t, map[string]any{
					"i": types.Int(i), "j": types.Int(0), "b": types.True, "d": types.Double(1),
				})
				if got, want := fmt.Sprint(e.Eval(roots)), fmt.Sprint(plain.Eval(roots)); got != want {
					t.Errorf("watched it gives %s, else %s", got, want)
				}
			}
			var lines []string
			for _, c := range w.Conditions {
				lines = append(lines, fmt.Sprintf("%d %s: %d true, %d false", c.At, c.Text, c.True, c.False))
			}
			if got := strings.Join(lines, "\n"); w.Asked != 3 || got != test.want {
				t.Errorf("asked %d times, got\n%s\nwant\n%s", w.Asked, got, test.want)
			}
		})
	}
}
