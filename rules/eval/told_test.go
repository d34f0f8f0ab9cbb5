package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestTell checks the description of an evaluation: its text with the values that it read, then its result. Joined conditions have one line
// each.
func TestTell(t *testing.T) {
	s, roots := testScope(t), testRoots(t, map[string]any{"i": types.Int(3), "j": types.Int(0)})
	words := func(v ref.Val) (string, bool) {
		switch v.(type) {
		case types.Int, types.Double, types.Bool, types.String:
			return fmt.Sprint(v.Value()), true
		}
		return "", false
	}
	for _, test := range []struct{ name, expression, want string }{
		{"amounts", "depot.free + crate.size * 2 <= order.rank", "depot.free 7 + crate.size 2 * 2 <= order.rank 3: false"},
		{"parentheses where they matter", "(depot.free - (crate.size - 1)) * 2 > 1", "(depot.free 7 - (crate.size 2 - 1)) * 2 > 1: true"},
		{"negations", "!(i > 2) == false", "!(i 3 > 2) == false: true"},
		{"objects have no words", "crate.order == order", "crate.order == order: true"},
		{"labels", "depot.labels['zone'] == 'west'", `depot.labels["zone"] east == "west": false`},
		{"params", "params.factor > 1.0", "params.factor 1.5 > 1.0: true"},
		{"a call", "depot.labels.zone.startsWith('w')", `depot.labels.zone {east}.startsWith("w"): false`},
		{"a loop", "depot.crates.all(c, c.size > 1)", "depot.crates.all(c, c.size > 1) true: true"},
		{"a choice", "i > 1 ? depot.free > 8 : b", "i 3 > 1 ? depot.free 7 > 8 : b: false"},
		{
			"conditions", "depot.free > 1 && (i > 4 || i == 3) && depot.free > 10 && i / j > 1",
			"depot.free > 1 && (i > 4 || i == 3) && depot.free > 10 && i / j > 1: false\n" +
				"  depot.free 7 > 1: true\n" +
				"  i > 4 || i == 3: true\n    i 3 > 4: false\n    i 3 == 3: true\n" +
				"  depot.free 7 > 10: false\n" +
				"  i / j > 1: ",
		},
		{"an error", "i / j > 1", "i 3 / j 0 > 1: error: division by zero"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, issues := Compile(s, source.Text{Value: test.expression}, rules.Bool())
			if issues != nil {
				t.Fatal(issues.Err())
			}
			var lines strings.Builder
			var write func(indent string, told Told)
			write = func(indent string, told Told) {
				fmt.Fprintf(&lines, "%s%s: %s\n", indent, told.Text, told.Value)
				for _, p := range told.Parts {
					write(indent+"  ", p)
				}
			}
			write("", e.Tell(roots, words))
			if got := strings.TrimSuffix(lines.String(), "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
