package eval

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// doubtful returns a scope in which the name of a depot is one of three words. The scope has a function about windows of the day.
func doubtful(t *testing.T) *rules.Scope {
	v := testVocabulary()
	for _, m := range v.Objects[0].Members {
		if m.Name == "name" {
			m.Words = []string{"north", "south", "west"}
		}
	}
	v.Functions = append(v.Functions, &rules.Function{Name: "opens", Doc: "tests literals", Overloads: []rules.Overload{{
		ID: "test_opens", Args: []*cel.Type{cel.TimestampType, cel.StringType, cel.StringType}, Result: cel.BoolType,
		Eval: func(args ...ref.Val) ref.Val {
			if text := string(args[1].(types.String)); !strings.Contains(text, "-") {
				return types.NewErr("%q is no window", text)
			}
			return types.True
		},
	}}})
	l, err := rules.NewLanguage(v)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Scope(map[string]*cel.Type{
		"depot": depotType(), "crate": crateType(), "now": cel.TimestampType, "s": cel.StringType,
		"i": cel.IntType,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDoubts checks the issues of expressions that have correct types. want is empty or "SEVERITY: MESSAGE (HINT)". The places of such
// issues are tested in engine/session/testdata/issues.
func TestDoubts(t *testing.T) {
	s := doubtful(t)
	for _, test := range []struct{ expression, guard, want string }{
		{"depot.name == 'south'", "", ""},
		{"depot.name == 'suoth'", "", `error: name is never "suoth" (did you mean "south"?)`},
		{"'up' != crate.depot.name", "", `error: name is never "up" (it is one of north, south, west)`},
		{"depot.name in ['north', 'East']", "", `error: name is never "East" (it is one of north, south, west)`},
		{"depot.name == s || crate.name == 'suoth'", "", ""},

		{"opens(now, '8-9', 'Europe/Paris')", "", ""},
		{"opens(now, 'Europe/Paris', '8-9')", "", `error: always fails: "Europe/Paris" is no window`},
		{"opens(crate.since, 'Europe/Paris', '8-9') || i > 1", "", `error: always fails: "Europe/Paris" is no window`},
		{"opens(now, s, '8-9')", "", ""},
		{"now.getHours('Europe/Pris') > 1", "", `error: always fails: unknown time zone Europe/Pris`},
		{"now.getHours('Europe/Paris') > 1", "", ""},
		{"timestamp('2026-01-01T00:00:00Z') < now", "", ""},
		{"now - duration('1h') > crate.since", "", ""},

		{"i / 0 > 1", "", "error: is a division by 0"},
		{"1.5 / 0.0 > 1.0", "", "warning: is a division by 0"},
		{"1.5 / depot.places > 1.0", "", "warning: is a division by 0 where depot.places is 0 (look first: depot.places > 0 ? … : …)"},
		{"i % depot.places == 1", "", "warning: is a division by 0 where depot.places is 0 (look first: depot.places > 0 ? … : …)"},
		{"1.5 / double(depot.places) > 1.0", "", "warning: is a division by 0 where depot.places is 0 (look first: depot.places > 0 ? … : …)"},
		{
			"1.5 / depot.limit['a'] > 1.0", "",
			"warning: is a division by 0 where depot.limit[\"a\"] is 0 (look first: depot.limit[\"a\"] > 0 ? … : …)",
		},
		{"depot.places > 0 ? 1.5 / depot.places : 0.0", "", ""},
		{"1.5 / depot.places > 1.0", "depot.places != 0", ""},
		{"1.5 / (depot.places + 1) > 1.0", "", ""},
		{"1.5 / i > 1.0", "", ""},

		{"[1, 2][5] == i", "", "error: always fails: index out of bounds: 5"},
		{"[3].exists(n, now.getHours('Europe/Pris') > n)", "", `error: always fails: unknown time zone Europe/Pris`},
		{
			"crate.depot.places > 0 && [crate].all(c, i / c.depot.places > 1)", "",
			"warning: is a division by 0 where c.depot.places is 0 (look first: c.depot.places > 0 ? … : …)",
		},
		{"[crate].all(c, c.depot.places > 0 && i / c.depot.places > 1)", "", ""},

		{"depot.labels['zone'] == s", "", `warning: fails where depot.labels has no "zone" (write depot.labels[?"zone"].orValue(…), or look ` +
			`first: "zone" in depot.labels)`},
		{"depot.labels.zone == s", "", `warning: fails where depot.labels has no "zone" (write depot.labels[?"zone"].orValue(…), or look ` +
			`first: "zone" in depot.labels)`},
		{"depot.labels[s] == s", "", ""},
		{"'zone' in depot.labels && depot.labels['zone'] == s", "", ""},
		{"has(depot.labels.zone) && depot.labels['zone'] == s", "", ""},
		{"depot.labels['zone'] == s", "'zone' in depot.labels", ""},
		{"depot.labels[?'zone'].orValue('') == s", "", ""},
		{"{'a': 1}['a'] == i", "", ""},
		{
			"'zone' in crate.labels && depot.labels['zone'] == s", "",
			`warning: fails where depot.labels has no "zone" (write depot.labels[?"zone"].orValue(…), or look first: "zone" in depot.labels)`,
		},
	} {
		compile := func(text string) *Expr {
			e, issues := Compile(s, source.NewText(text), rules.Anything())
			if issues.Err() != nil {
				t.Fatalf("%s: %v", text, issues)
			}
			return e
		}
		var guards []*Expr
		if test.guard != "" {
			guards = append(guards, compile(test.guard))
		}
		var got []string
		e := compile(test.expression)
		for _, i := range e.Doubts(guards...) {
			text := fmt.Sprintf("%s: %s", i.Severity, i.Message)
			if i.Hint != "" {
				text += " (" + i.Hint + ")"
			}
			got = append(got, text)
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("%s where %s:\n got %s\nwant %s", test.expression, test.guard, strings.Join(got, "\n     "), test.want)
		}
	}
}

// TestDoubtsCostLittle checks that the check of an expression costs little, whatever the expression says. The check evaluates parts that
// consist of literals to find out whether they fail, but only small parts.
func TestDoubtsCostLittle(t *testing.T) {
	s := doubtful(t)
	for _, expression := range []string{
		"lists.range(900000).size()" + strings.Repeat(" + 1", 200) + " > i",
		"[" + strings.Repeat("'x'.replace('', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy').size(), ", 500) + "i].size() > 3",
		"1" + strings.Repeat(" + 1", 240) + " > i",
	} {
		e, issues := Compile(s, source.NewText(expression), rules.Bool())
		if issues.Err() != nil {
			t.Errorf("%.40s: %v", expression, issues)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		found := e.Doubts()
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; len(found) > 0 || made > 128<<20 || took > 5*time.Second {
			t.Errorf("%.40s: %v, %d MiB in %v", expression, found, made>>20, took)
		}
	}
}
