package eval

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestReads checks what an expression reads. Each entry of want is a path, followed by how often its value changes. Nothing follows if it
// never changes.
func TestReads(t *testing.T) {
	s := testScope(t)
	for _, test := range []struct{ name, expression, want string }{
		{"nothing", "1 + 2 == 3", ""},
		{"a root alone", "i > 1 && s == 'x'", "i, s"},
		{"a member", "depot.places > 1", "depot.places with its object"},
		{"a path", "crate.order.rank > 1", "crate.order.rank with its object"},
		{"the path is as quick as its quickest step", "crate.depot.places > 1", "crate.depot.places with every step"},
		{"one read once", "depot.free + depot.free + depot.free > 1", "depot.free with every step"},
		{
			"a constant key", "depot.labels['zone'] == 'x' || depot.labels.rack == 'y'",
			`depot.labels["rack"] with its object, depot.labels["zone"] with its object`,
		},
		{"an optional key", "depot.labels[?'zone'].orValue('') == ''", `depot.labels["zone"] with its object`},
		{"an optional member of a map", "depot.labels.?zone.orValue('') == ''", `depot.labels["zone"] with its object`},
		{"a key that is read itself", "depot.labels[s] == 'x'", "depot.labels with its object, s"},
		{"a presence test", "has(depot.labels.zone)", `depot.labels["zone"] with its object`},
		{"in a map", "'zone' in depot.labels", "depot.labels with its object"},
		{
			"a value with parts is read whole, by its key", "crate.limit['gold/bars'] > 1 && crate.limit.weight > 2",
			`crate.limit["gold/bars"] with its object, crate.limit["weight"] with its object`,
		},
		{"an operator reads its operands whole", "crate.limit.heavier(depot.limit)", "crate.limit with its object, depot.limit with its object"},
		{"an index of a list", "order.crates[0].size > 1", "order.crates with its object, order.crates[].size with its object"},
		{
			"a comprehension", "order.crates.all(c, c.size < depot.free)",
			"depot.free with every step, order.crates with its object, order.crates[].size with its object",
		},
		{
			"a filtered list keeps its paths", "order.crates.filter(c, c.size > 1).map(c, c.name).size() > 0",
			"order.crates with its object, order.crates[] with its object, order.crates[].name with its object, order.crates[].size with its object",
		},
		{
			"nested comprehensions", "depot.crates.exists(c, c.order.crates.exists(o, o.size > c.size))",
			"depot.crates with every step, depot.crates[].order.crates with every step, depot.crates[].order.crates[].size with every step, " +
				"depot.crates[].size with every step",
		},
		{
			"objects by way of those of a list", "depot.crates.map(c, c.order).all(o, o.done > 1)",
			"depot.crates with every step, depot.crates[].order with every step, depot.crates[].order[].done with every step",
		},
		{
			"objects of the list's type by way of its own", "depot.crates.map(c, c.order.crates[0]).all(c, c.size > 1)",
			"depot.crates with every step, depot.crates[].order.crates with every step, depot.crates[].order.crates[] with every step, " +
				"depot.crates[].order.crates[].size with every step",
		},
		{
			"an object by way of an optional one", "depot.crates.first().optMap(c, c.order).optMap(o, o.done).orValue(1) > 1",
			"depot.crates with every step, depot.crates[] with every step, depot.crates[].order with every step, " +
				"depot.crates[].order.done with every step",
		},
		{"a comprehension over strings", "depot.doors.exists(d, d == s)", "depot.doors with its object, s"},
		{"a variable that hides a root", "words.exists(s, s == 'x')", "words"},
		{"two variables", "order.crates.all(n, c, c.size > n)", "order.crates with its object, order.crates[].size with its object"},
		{"a map's key and value", "depot.labels.all(k, v, k != v)", "depot.labels with its object"},
		{"an object by condition", "(b ? depot : other).free > 0", "b, depot.free with every step, other.free with every step"},
		{"a condition's value", "(i > 0 ? depot.free : crate.size) > 1", "crate.size with its object, depot.free with every step, i"},
		{"a function says what it reads", "crate.goesInto(depot)", "crate.size with its object, depot.free with every step"},
		{
			"a function that reads hidden members, through a list", "crate.stampedFor(depot)",
			"crate.stamp with its object, depot.crates[].stamp with every step",
		},
		{"a function that reads a global", "lot(crate.name) > 0.5", "company.seed, crate.name"},
		{
			"an argument that the function does not name is read whole", "depot.sorted(depot.doors).size() > 0",
			"depot.doors with its object, depot.labels with its object",
		},
		{
			"a function of CEL reads its arguments", "depot.name.startsWith(s) && size(depot.doors) > 1",
			"depot.doors with its object, depot.name, s",
		},
		{
			"an object through a function's path", "crate.goesInto(order.crates[0].depot)",
			"crate.size with its object, order.crates with its object, order.crates[].depot.free with every step",
		},
		{
			"a computed field is what it reads, and itself", "order.share > 0.5",
			"company.size once a cycle (through), order.done with every step (through), order.share with every step",
		},
		{
			"a computed field of another's", "crate.order.share > 0.5",
			"company.size once a cycle (through), crate.order.done with every step (through), crate.order.share with every step",
		},
		{
			"a computed field of list elements", "depot.crates.all(c, c.order.share < 1.0)",
			"company.size once a cycle (through), depot.crates with every step, depot.crates[].order.done with every step (through), " +
				"depot.crates[].order.share with every step",
		},
		{
			"the objects of a computed list", "order.heap.all(c, c.size > 1)",
			"order.heap with its object, order.heap[].size with its object, order.rank with its object (through)",
		},
		{
			"a computed field of the objects of a computed list", "order.heap.all(c, c.order.share > 0.5)",
			"company.size once a cycle (through), order.heap with its object, order.heap[].order.done with every step (through), " +
				"order.heap[].order.share with every step, order.rank with its object (through)",
		},
		{
			"the objects of a list that a function hands on", "depot.crates.reverse().slice(0, 1).all(c, c.size > 1)",
			"depot.crates with every step, depot.crates[].size with every step",
		},
		{
			"an object that a function takes from a list", "depot.crates.first().optMap(c, c.size).orValue(1) > 1",
			"depot.crates with every step, depot.crates[] with every step, depot.crates[].size with every step",
		},
		{
			"lists joined", "(depot.crates + order.crates).exists(c, c.size > 1)",
			"depot.crates with every step, depot.crates[].size with every step, order.crates with its object, order.crates[].size with its object",
		},
		{
			"objects in a list of one's own", "[depot, other].exists(x, x.free > 1)",
			"depot, depot.free with every step, other, other.free with every step",
		},
		{"params are constants", "crate.size > params.factor", "crate.size with its object"},
		{"a list and a map of reads", "[crate.size, i].size() + {s: j}.size() > 0", "crate.size with its object, i, j, s"},
		{"objects compared", "crate.depot == depot", "crate.depot with every step, depot"},
		{"what changes within a turn", "order.turn", "order.turn within a turn or fold"},
		{"time", "now - crate.since > duration('1h')", "crate.since with its object, now"},
		{"what is folded away is still read", "true || b", "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, issues := Compile(s, source.NewText(test.expression), rules.Anything())
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			var got []string
			for _, r := range e.Reads.All {
				text := r.String()
				if r.Changes != rules.Static {
					text += " " + r.Changes.String()
				}
				if r.Through {
					text += " (through)"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.expression, diff)
			}
		})
	}
}

func TestReadsSets(t *testing.T) {
	s := testScope(t)
	reads := func(expression string) *rules.Reads {
		e, issues := Compile(s, source.NewText(expression), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		return e.Reads
	}
	all := reads("now - crate.since > duration('1h') && depot.free > i")
	if diff := cmp.Diff([]string{"crate", "depot", "i", "now"}, all.Roots()); diff != "" {
		t.Error(diff)
	}
	if all.Changes() != rules.ByStep || reads("1 == 1").Changes() != rules.Static ||
		reads("order.turn && order.rank > 1").Changes() != rules.ByFold {
		t.Error("the changes of a set are not those of its quickest read")
	}
	if !all.Only("crate", "depot", "i", "now", "more") || all.Only("crate", "depot", "now") || !reads("1 == 1").Only() {
		t.Error("Only does not say whether other roots are read")
	}
	union := &rules.Reads{}
	union.Add(reads("depot.free > 1"))
	union.Add(reads("depot.free > i"))
	union.Add(nil)
	if diff := cmp.Diff([]string{"depot.free", "i"}, union.Strings()); diff != "" {
		t.Error(diff)
	}
	// The expression order.done reads the field itself. Then the field is not only read on the way to a computed field.
	union.Add(reads("order.share > 0.1"))
	union.Add(reads("order.done > 1"))
	for _, r := range union.All {
		if r.String() == "order.done" && r.Through {
			t.Error("order.done is read for itself, but Through")
		}
	}
	if e, _ := Compile(s, source.NewText("1 + 1"), rules.Anything()); !e.Constant() {
		t.Error("1 + 1 is not constant")
	}
	if e, _ := Compile(s, source.NewText("params.factor * 2"), rules.Anything()); !e.Constant() {
		t.Error("params.factor * 2 is not constant")
	}
}

// TestNowParts checks which parts of an expression change with time only.
func TestNowParts(t *testing.T) {
	s := testScope(t)
	for _, test := range []struct {
		expression, parts string
		moves             bool
	}{
		{"depot.free > 1", "", false},
		{"now.getHours('UTC') >= 20 || depot.free > 1", `now.getHours("UTC") >= 20`, false},
		{"now.getHours('UTC') >= 20 || now.getHours('UTC') < 6", `now.getHours("UTC") >= 20 || now.getHours("UTC") < 6`, false},
		{"(now.getHours('UTC') < 6 || depot.free > 1) && now.getDayOfWeek() != 0", `now.getDayOfWeek() != 0|now.getHours("UTC") < 6`, false},
		{"now.getHours('UTC') > crate.size", `now.getHours("UTC")`, false},
		{"now - crate.since > duration('10m')", "now", false}, // the part is now itself, which always changes
		{"order.crates.all(c, now - c.since > duration('1h'))", "", true},
		{"[1, 2].exists(h, now.getHours() == h) || b", "[1, 2].exists(h, now.getHours() == h)", false},
		{"b ? now.getHours() > 1 : now.getMinutes() > 1", "now.getHours() > 1|now.getMinutes() > 1", false},
		{"[now.getHours(), i].max() > 3", "now.getHours()", false},
		{"{'h': now.getHours()}['h'] > i", "{\"h\": now.getHours()}[\"h\"]", false},
		{"{'h': now.getHours() + i}['h'] > 1", "", true},
	} {
		e, issues := Compile(s, source.NewText(test.expression), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		parts := map[string]bool{}
		for _, p := range e.NowParts {
			parts[p.Part] = true
		}
		got := slices.Sorted(maps.Keys(parts))
		if strings.Join(got, "|") != test.parts || e.NowMoves != test.moves {
			t.Errorf("%s: parts %q, moves %t; want %q, %t", test.expression, strings.Join(got, "|"), e.NowMoves, test.parts, test.moves)
		}
	}
}

// TestNowPartsEvaluate checks that a part can be evaluated alone.
func TestNowPartsEvaluate(t *testing.T) {
	e, issues := Compile(testScope(t), source.NewText("crate.size > 1 && now.getFullYear() == 1"), rules.Bool())
	if issues.Err() != nil || len(e.NowParts) != 1 {
		t.Fatalf("%v, %d parts", issues, len(e.NowParts))
	}
	if got := written1(e.NowParts[0].Eval(testRoots(t, nil))); got != "bool true" {
		t.Error(got)
	}
}

// TestCostLimit checks that nested loops over long lists are refused, with their cost. Single loops and bounded loops are accepted.
func TestCostLimit(t *testing.T) {
	s := testScope(t)
	for _, test := range []struct{ expression, want string }{
		{"depot.crates.all(c, c.size > 1)", ""},
		{"depot.crates.all(c, depot.doors.exists(d, d == c.name))", ""},
		{
			"depot.crates.all(c, depot.crates.all(d, c.size == d.size || c.name == d.name))",
			"may cost 4983811, over the limit of 1000000; avoid loops inside loops, and values that grow in a loop, or use a function of the " +
				"language",
		},
		{"depot.crates.all(c, c.order.crates.all(d, d.order.crates.all(e, e.size == c.size)))", "over the limit"},
		{"words.all(a, words.all(b, words.all(c, words.all(d, a + b != c + d))))", "over the limit"},
	} {
		e, issues := Compile(s, source.NewText(test.expression), rules.Anything())
		switch {
		case test.want == "" && issues.Err() != nil:
			t.Error(issues)
		case test.want != "" && (len(issues) != 1 || !strings.Contains(issues[0].Error(), test.want)):
			t.Errorf("%s: got %v, want %s", test.expression, issues, test.want)
		case test.want == "" && (e.Cost.Max == 0 || e.Cost.Max > rules.CostLimit):
			t.Errorf("%s costs %d", test.expression, e.Cost.Max)
		}
	}
	small, _ := Compile(s, source.NewText("order.crates.all(c, c.size > 1)"), rules.Anything())
	large, _ := Compile(s, source.NewText("depot.crates.all(c, c.size > 1)"), rules.Anything())
	if small.Cost.Max >= large.Cost.Max {
		t.Errorf("a loop over at most 64 costs %d, over at most 512 %d", small.Cost.Max, large.Cost.Max)
	}
	if lot, _ := Compile(s, source.NewText("lot('x')"), rules.Anything()); lot.Cost.Max < 10 {
		t.Errorf("a function of cost 10 costs %d", lot.Cost.Max)
	}
}
