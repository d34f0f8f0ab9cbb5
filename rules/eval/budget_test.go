package eval

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// nested nests an expression: it puts a text around start, this number of times.
func nested(start, around string, times int) string {
	for range times {
		start = strings.ReplaceAll(around, "%s", start)
	}
	return start
}

// TestGrowthIsRefused checks that an expression whose value doubles again and again is refused at compile time. This must hold for each way
// to write it. Nothing of it may be computed before.
func TestGrowthIsRefused(t *testing.T) {
	s := testScope(t)
	for _, expression := range []string{
		nested("s", "[%s].map(v, v + v)[0]", 30) + " == s",
		nested("'x'", "[%s].map(v, v + v)[0]", 40) + " == s",
		nested("words", "[%s].map(v, v + v)[0]", 30) + ".all(w, w == s)",
		"b || " + nested("[1]", "[%s].map(v, [v, v])[0]", 30) + ".distinct().size() > 3",
		nested("s", "[%s].map(v, v.replace('a', v))[0]", 6) + " == s",
		nested("s", "%s.replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')", 8) + " == s",
		nested("s", "[%s].map(v, [v, v].join(v))[0]", 30) + " == s",
		strings.ReplaceAll(nested("s", "[%s].map(v, '@@'.format([v, v]))[0]", 30), "@", "%s") + " == s",
		nested("words", "[%s].map(v, [v, v].flatten())[0]", 30) + ".size() > 3",
		nested("s", "[%s].map(v, (v + v).lowerAscii().trim().substring(1))[0]", 30) + " == s",
		nested("s", "optional.of(%s).optMap(v, v + v).orValue('')", 30) + " == s",
		nested("s", "{'a': %s}.map(k, {'a': %s}[k])[0]", 1) + " == " + nested("s", "{'a': %s}.transformList(k, v, v + v)[0]", 30),
		nested("s", "[%s].map(v, v + v).first().value()", 30) + " == s",
		nested("s", "[%s].map(v, v + v).last().orValue('')", 30) + " == s",
		nested("s", "[%s].map(v, v.replace('', v)).min()", 8) + " == s",
		nested("s", "[%s].map(v, v.replace('', v)).max()", 8) + " == s",
		nested("s", "{'a': %s}.transformMap(k, v, v + v)['a']", 30) + " == s",
		nested("s", "(%s).split('').map(c, c + s + s + s + s).join('')", 6) + " == s",
		"lists.range(1000000000).all(i, i >= 0)",
		"[" + strings.Repeat("lists.range(100000), ", 100) + "[1]].size() > 3", // constants, which are computed at compile time
		"words.all(a, words.all(b, words.all(c, words.all(d, a + b != c + d))))",
	} {
		start := time.Now()
		e, issues := Compile(s, source.NewText(expression), rules.Anything())
		if e != nil || len(issues) != 1 || !strings.Contains(issues.Error(), "over the limit of") {
			cost := "nothing"
			if e != nil {
				cost = costText(e.Cost.Max)
			}
			t.Errorf("%s: costs %s, %v", expression[:min(len(expression), 80)], cost, issues)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: refused after %v", expression[:min(len(expression), 80)], took)
		}
	}
}

func longList(n int, of func(i int) ref.Val) ref.Val {
	list := make([]ref.Val, n)
	for i := range list {
		list[i] = of(i)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

// TestBudgetAtRunTime evaluates expressions over values that are larger than the compiler expected. Each evaluation must end with an error
// at the budget, and must take little time and memory.
func TestBudgetAtRunTime(t *testing.T) {
	s := testScope(t)
	text := types.String(strings.Repeat("annotation ", 20_000))
	words := longList(4000, func(i int) ref.Val { return types.String(fmt.Sprint("word ", i)) })
	long := longList(64, func(int) ref.Val { return text })
	const steps, bytes, one = "exceeded its budget of 1000000 steps", "exceeded its budget of 4194304 bytes", "in one value: "
	for _, test := range []struct {
		expression string
		words      ref.Val
		want       string
	}{
		{"words.all(a, words.all(b, a != b + 'x'))", words, steps},
		{"words.map(a, words.exists(b, a == b && b == a)).size() > 0", words, steps},
		{"words.map(w, w + 'x' + w + w).size() > 1", long, bytes},
		{"words.distinct().size() == 3", words, steps},
		{"words.map(w, words.map(v, v + w)).size() == 3", words, bytes},
		{"words.exists(w, words.exists(v, v < w))", long, steps},
		{"words.map(w, words.map(v, [w, w, w, w, w, w])).size() == 3", longList(300, func(int) ref.Val { return text }), bytes}, //nolint:dupword // the words are meant
		{"words.map(w, words.filter(v, v < w)).size() == 3 && words.sort() == words", words, steps},
		{"s.replace('', s) == s", words, one + "replace"},
		{"words.map(w, s).join(s) == s", long, steps},
		{"s.split('').join(s) == s", words, one + "join"},
		{"'%s%s%s%s%s%s%s%s'.format([s, s, s, s, s, s, s, s]) == s", words, one + "format"}, //nolint:dupword // the words are meant
		{"lists.range(int(d * 1e9)).size() > 3", words, one + "lists.range"},
		{"lists.range(int(d * 5e5)).size() > 3", words, bytes},
		{"s.matches(s + '(a|b)*')", words, steps},
		{"words.all(a, a != s + 'x' && !a.matches('y'))", words, steps}, // is interpreted
		{"s.find(s) == s", words, steps},
		{"s.findAll(s) == words", words, steps},
		{"s.findAll('a.*!|a') == words", words, steps},
		{"s.findAll('a.*!|a', 100000) == words", words, steps},
		{"s.matches('n') && s.findAll('a.*!|a') == words", words, steps},
		{"s.find('(.{1,100}){1,10}' + s.substring(0, 2)) != ''", words, steps},
		{"s.substring(0, 20000).split('').all(c, s.size() > 4)", words, steps},
		{"s.substring(0, 20000).split('').all(c, s.charAt(5) != c + c)", words, steps},
		{"s.substring(0, 20000).split('').all(c, s.substring(4) != c)", words, bytes},
		{"s.substring(0, 20000).split('').all(c, !isURL(s))", words, steps},
		{"s.substring(0, 20000).split('').all(c, bytes(s).size() > 2)", words, bytes},
		{"s.findAll('[a-z]').all(c, bytes(s).size() > 2)", words, bytes},
		{"s.indexOf(s.substring(1000)) == 3", words, steps},
		{"s.indexOf(s.substring(1000), 3) == 3", words, steps},
		{"s.lastIndexOf(s.substring(1000)) == 3", words, steps},
		{"s.lastIndexOf(s.substring(1000), 100000) == 3", words, steps},
		{"words.map(w, w.size()).distinct().size() == 3", words, steps},
		{"sets.contains(words.map(w, w.size()), words.map(w, w.size() + 1))", words, steps},
		{"s.matches('x') && s.replace('', s) == s || s.replace(' ', s) == s", words, one + "replace"},
	} {
		e, issues := Compile(s, source.NewText(test.expression), rules.Bool())
		if issues.Err() != nil {
			t.Error(issues)
			continue
		}
		vars := testRoots(t, map[string]any{"words": test.words, "s": text, "d": 1.5})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		v := e.Eval(vars)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if got := fmt.Sprint(v); !types.IsError(v) || !strings.Contains(got, test.want) {
			t.Errorf("%s (cost %d): got %s, want %q", test.expression, e.Cost.Max, got, test.want)
		}
		// With the race detector, memory pools do not return memory. So the memory is not checked.
		if made := after.TotalAlloc - before.TotalAlloc; !raced() && made > 256<<20 || took > 5*time.Second {
			t.Errorf("%s: %d MiB in %v", test.expression, made>>20, took)
		}
	}
}

// TestRoundOfSteps checks that all evaluations of a row in one round share the steps of the round. When the steps are used up, each further
// evaluation fails at once, until the next round.
func TestRoundOfSteps(t *testing.T) {
	s := testScope(t)
	e, issues := Compile(s, source.NewText("words.all(a, words.all(b, a != b + 'x'))"), rules.Bool())
	if issues.Err() != nil || !e.Metered {
		t.Fatal(issues, "or not metered")
	}
	words := longList(100, func(i int) ref.Val { return types.String(fmt.Sprint("word ", i)) })
	p := purse{testRoots(t, map[string]any{"words": words}), NewMeter(EvaluationBudget(), 1_000_000)}
	for round := range 2 {
		p.meter.Begin()
		fine := 0
		for range 30 {
			if x, err := e.Holds(p); err == nil && x {
				fine++
			} else if !rules.Exceeded(err) || !strings.Contains(fmt.Sprint(err), "1000000 steps a cycle") {
				t.Fatal(err)
			}
		}
		if fine < 5 || fine > 20 || !p.meter.Dry() {
			t.Errorf("round %d: %d evaluations, steps are left: %v", round, fine, !p.meter.Dry())
		}
	}
}

// TestRoundOfStepsInterpreted checks that interpreted expressions also take their steps from the round.
func TestRoundOfStepsInterpreted(t *testing.T) {
	s := testScope(t)
	e, issues := Compile(s, source.NewText("words.all(a, a.matches('word') && a + 'x' != a)"), rules.Bool())
	if issues.Err() != nil || !e.Metered || e.Interpreted == "" {
		t.Fatal(issues, "or not metered, or compiled")
	}
	words := longList(1000, func(i int) ref.Val { return types.String(fmt.Sprint("word ", i)) })
	p := purse{testRoots(t, map[string]any{"words": words}), NewMeter(EvaluationBudget(), 100_000)}
	for range 2 {
		p.meter.Begin()
		fine := 0
		for range 100 {
			if x, err := e.Holds(p); err == nil && x {
				fine++
			} else if !rules.Exceeded(err) || !strings.Contains(fmt.Sprint(err), "100000 steps a cycle") {
				t.Fatal(err)
			}
		}
		if fine < 3 || fine > 30 {
			t.Errorf("%d evaluations", fine)
		}
	}
}

// TestSmallIsNotMetered checks that the steps of a small expression are not counted.
func TestSmallIsNotMetered(t *testing.T) {
	s := testScope(t)
	for _, expression := range []string{"i + d * 2 >= e", "crate.labels.exists(k, k == s)", "words.exists(w, w == s)"} {
		if e, issues := Compile(s, source.NewText(expression), rules.Anything()); issues.Err() != nil || e.Metered {
			t.Errorf("%s: %v, costs %v", expression, issues, e)
		}
	}
}

// TestProductsAreMetered checks calls whose cost is the product of two lengths. Their steps are counted unless the expression contains one
// of the two as a literal. This also holds if the estimate is small, because texts in a cluster can have any length. A call that goes
// through a text once is not counted.
func TestProductsAreMetered(t *testing.T) {
	s := testScope(t)
	for expression, metered := range map[string]bool{
		"s.find(crate.labels['x']) != ''": true, "s.find('a+b*') != ''": false,
		"s.findAll(crate.labels['x']).size() > 1": true, "s.findAll('[a-z]+').size() > 1": false, "s.findAll('a.*b|a').size() > 1": true,
		"s.matches(crate.labels['x'])": true, "s.matches('a|b')": false,
		"s.indexOf(crate.labels['x']) > 1": true, "s.indexOf('x') > 1": false, "'x'.indexOf(s) > 1": false,
		"s.lastIndexOf(crate.labels['x']) > 1": true, "s.lastIndexOf('x') > 1": false,
		"words.indexOf(s) > 1": true, "words.map(w, size(w)).distinct().size() > 1": true,
		"sets.contains([1, 2], [i])": false, "s.contains(crate.labels['x'])": false,
		"s.split(',').all(c, s.size() > 1)": true, "s.split(',')[0] == 'x'": false,
	} {
		e, issues := Compile(s, source.NewText(expression), rules.Bool())
		if issues.Err() != nil {
			t.Error(issues)
		} else if e.Metered != metered {
			t.Errorf("%s (cost %d): metered: %v", expression, e.Cost.Max, e.Metered)
		}
	}
}
