package eval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// inFile writes a text into a YAML file, as a literal block if possible, otherwise in double quotes. It returns the text as it is read from
// the file, and the lines of the file.
func inFile(t *testing.T, text string) (source.Text, []string) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"x: |2-\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n", "x: " + string(quoted) + "\n"} {
		docs, issues := source.Parse("f.yaml", []byte(file))
		if len(docs) != 1 || len(issues) > 0 {
			continue
		}
		if got := docs[0].Root.Get("x").Text(&issues); got.Value == text {
			return got, strings.Split(file, "\n")
		}
	}
	t.Skip("no YAML says it")
	return source.Text{}, nil
}

// FuzzCompile compiles any text as an expression. Nothing may panic, and every issue must lie inside the text. An expression that compiles
// must give a value of its declared type, or an error.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"true", "i + d * 2 >= e", "depot.labels[?'zone'].orValue('') == \"east\"", "order.crates.all(c, c.size < depot.free && c.depot == depot)",
		"now - crate.since > duration('10m')", "crate.limit['gold/bars'] / params.factor", "[1, 2].map(x, x * 2).sum()", "depot.lables",
		"crate.goesInto(depot) ? 1 :", "'a' + 1", "lot(s) < .5",
		"{'a': 1}.exists(k, k == s)", "words.map(w, w.size()).max()", "anything.x.y", "quantity('1Gi').isGreaterThan(quantity('1M'))",
		"isQuantity('1e-99999999')", "semver('1.2.3').major() > 0", "\"\\u00e9\\x41\"", "r'\\d+'.matches(s)",
		"math.greatest(i, d)", "{1: 'a', 2: 'b'}[i]", "now.getHours('Europe/Paris') >= 20",
		"now.getFullYear('Asia/Tokyo') * 10000 + now.getMonth('Asia/Tokyo') * 100 + now.getDate('Asia/Tokyo')",
		"now.getDayOfYear('America/New_York') - now.getDayOfMonth('UTC')",
		"now.getDayOfWeek('Pacific/Auckland') + now.getMinutes('Asia/Kolkata')", "now.getSeconds('Nowhere/Land') + now.getMilliseconds('UTC')",
		"now.getHours('-02:30')", "order.share + company.size", "optional.of(i).value()", "b'bytes'", "has(order.share)", "[1, 'a']", "1/0",
		"cel.@block([i], @index0)",
		"dyn(1) == 1.0", "depot.crates.map(c, c.order.crates.map(d, d.order.crates.map(e, e.name)))", "// nothing", "// kühl\n tru",
		"i in [1, 2, 3]", "format.dns1123Label().validate(s)",
	} {
		f.Add(seed)
	}
	scope, roots := testScope(f), testRoots(f, nil)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<11 || !utf8.ValidString(text) {
			t.Skip("takes only time, or cannot come out of a file")
		}
		written, lines := inFile(t, text)
		e, issues := Compile(scope, written, rules.Anything())
		for _, i := range issues {
			wellPlaced(t, i, lines)
		}
		if (e == nil) != (issues.Err() != nil) {
			t.Fatalf("expression %v and issues %v", e, issues)
		}
		if e == nil {
			return
		}
		v := e.Eval(roots)
		if v == nil {
			t.Fatal("no value")
		}
		if !types.IsError(v) && v != types.NullValue && plain(e.Type) && v.Type().TypeName() != e.Type.TypeName() {
			t.Errorf("%s gives %v, a %s, not the %s that it was said to give", text, v, v.Type(), e.Type)
		}
		watched(t, e, roots, len(text))
	})
}

// watched fails if an expression gives another value while it is watched, or if a condition lies outside of the expression.
func watched(t *testing.T, e *Expr, roots cel.Activation, size int) {
	t.Helper()
	plain := *e
	w, err := e.Watch()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(e.Interpret(roots)), fmt.Sprint(plain.Interpret(roots)); got != want {
		t.Errorf("watched it gives %s, else %s", got, want)
	}
	for _, c := range w.Conditions {
		if c.At < 0 || c.At >= size || c.Text == "" {
			t.Errorf("a condition lies outside of the expression: %+v", c)
		}
	}
}

// wellPlaced fails if an issue has no message or lies outside of the file.
func wellPlaced(t *testing.T, i source.Issue, lines []string) {
	t.Helper()
	if i.Message == "" || strings.Contains(i.Message, "!error!") {
		t.Errorf("a bad issue: %#v", i)
	}
	if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Width < 1 || i.Column+i.Width-2 > utf8.RuneCountInString(lines[i.Line-1]) {
		t.Errorf("an issue lies outside of the file: %s", i.Render())
	}
}

// plain reports whether a value of the type reports this same type as its own type.
func plain(t *cel.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.BytesKind, types.DurationKind,
		types.TimestampKind, types.ListKind, types.MapKind:
		return true
	default:
		return false
	}
}
