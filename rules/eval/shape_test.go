package eval

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestShape checks the shape of an expression: a call with paths as arguments, a map over the elements of a list, or neither.
func TestShape(t *testing.T) {
	s := testScope(t)
	for _, test := range []struct{ name, expression, want string }{
		{"a method", "crate.goesInto(depot)", "call goesInto crate depot"},
		{"paths as arguments", "crate.depot.sorted(other.doors)", "call sorted crate.depot other.doors"},
		{"an argument that is no path", "depot.sorted(['a'])", ""},
		{"a test of presence", "size(has(depot.labels.a) ? [1] : [2])", ""},
		{"no call", "depot.free", ""},
		{"a map", "order.crates.map(c, c.size)", "each of order.crates"},
		{"a map to lists", "order.crates.map(c, [c.size, c.order.rank > 1 ? 1 : 0])", "each of order.crates"},
		{"a map with a loop inside", "order.crates.map(c, [1, 2].map(d, d + c.size).sum())", "each of order.crates"},
		{"a map with a loop inside that is counted", "order.crates.map(c, c.order.crates.map(d, d.size + c.size).sum())", ""},
		{"a map by params", "order.crates.map(c, double(c.size) * params.factor)", "each of order.crates"},
		{"a map that is counted", "order.crates.map(c, lists.range(c.size).size())", ""},
		{"a map of what is no path", "depot.crates.reverse().map(c, c.size)", ""},
		{"a map that filters", "order.crates.map(c, c.size > 1, c.size)", ""},
		{"a filter", "order.crates.filter(c, c.size > 1)", ""},
		{"a test of all", "order.crates.all(c, c.size > 1)", ""},
		{"a map by another root", "order.crates.map(c, c.size + depot.free)", ""},
		{"a map by another root, inside", "order.crates.map(c, words.map(w, w + s).size())", ""},
		{"more than a map", "order.crates.map(c, c.size).sum()", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, issues := Compile(s, source.NewText(test.expression), rules.Anything())
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			var got []string
			function, paths, ok := e.Call()
			if ok && !strings.HasPrefix(function, "_") {
				got = append([]string{"call", function}, paths...)
			}
			if each, ok := e.Each(); ok {
				got = append(got, "each of", each.Over)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

// TestConjuncts splits expressions that join paths by &&.
func TestConjuncts(t *testing.T) {
	s := testScope(t)
	for expression, want := range map[string]string{
		"b":                        "b",
		"b && order.turn":          "b order.turn",
		"b && (order.turn && b)":   "b order.turn b",
		"b || order.turn":          "none",
		"b && !order.turn":         "none",
		"b && order.rank > 1":      "none",
		"b && has(depot.labels.a)": "none",
		"order.name == 'x' && b":   "b", // an ignored field
		"'x' == order.name && b":   "none",
		"order.rank == 2 && b":     "none",
	} {
		e, issues := Compile(s, source.NewText(expression), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		got := "none"
		if paths, ok := e.Conjuncts("name"); ok {
			got = strings.Join(paths, " ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}
