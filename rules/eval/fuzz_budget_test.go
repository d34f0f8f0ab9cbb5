package eval

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// FuzzBudget compiles any expression and evaluates it over values that are far larger than the compiler expects. Neither may take more
// memory or time than the budget allows.
func FuzzBudget(f *testing.F) {
	for _, seed := range []string{
		"words.all(a, words.all(b, a != b + 'x'))", "words.map(w, words.map(v, [w, v, w + v])).flatten().distinct().size() > 3",
		"s.replace('', s).replace('t', s) == s",
		"[s].map(v, v + v).map(v, v + v).map(v, v + v).map(v, v + v)[0]", "words.map(w, s).join(s)",
		"s.split('').map(c, s.split(c)).flatten().join(s)", "'%s %d %.9f'.format([words, i, d])",
		"lists.range(i * 1000000).map(j, [j]).size()", "words.transformMap(i, w, w + s).transformList(k, v, v + v)",
		"sets.intersects(words, words.map(w, w + s))", "words.sortBy(w, w + s)[0]",
		"s.indexOf(s + 'x') + s.lastIndexOf('x')", "words.exists_one(w, s.contains(w)) || s.matches('(a|b)*c')",
		"optional.of(s).optMap(v, v + v).orValue(s)", "bytes(s + s) + bytes(s)", "{s: words}.map(k, {k: [k, k]})",
		"s.findAll('.').map(c, s.findAll(c)).flatten()", "words == words.map(w, w) && words in [words]", "s.find(s) + s.find('(a{1,99}){9}' + s)",
		"s.findAll('a.*b|a')", "s.matches('x') && s.findAll('n.*!|n').size() > 3", "s.indexOf(s + 'x', 3) + s.lastIndexOf(s.substring(i))",
		"s.split('').map(c, c.size()).distinct()",
		"lists.range(99).map(a, lists.range(99).map(b, [a, b, words])).flatten(9)",
	} {
		f.Add(seed)
	}
	scope := testScope(f)
	text := types.String(strings.Repeat("annotation ", 2_000))
	roots := testRoots(f, map[string]any{"words": longList(300, func(int) ref.Val { return text }), "s": text, "i": int64(1000)})
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 1<<9 || !utf8.ValidString(expression) {
			return // a longer text only takes more time
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		e, _ := Compile(scope, source.NewText(expression), rules.Anything())
		if e == nil {
			return
		}
		_ = e.Doubts()
		v := e.Eval(roots)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if v == nil {
			t.Fatal("no value")
		}
		made := after.TotalAlloc - before.TotalAlloc
		if raced() {
			made = 0 // the memory pools of patterns drop their content at random
		}
		if made > 512<<20 || took > 20*time.Second {
			t.Errorf("%s costs %d: %d MiB in %v, gives %.80s", expression, e.Cost.Max, made>>20, took, v)
		}
	})
}

// raced reports whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
