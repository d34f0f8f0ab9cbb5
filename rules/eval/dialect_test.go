package eval

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// evaluate compiles and evaluates an expression in testScope. It returns the value with its type, for example "int 3" or "error …".
func evaluate(t *testing.T, s *rules.Scope, roots cel.Activation, expression string) string {
	t.Helper()
	e, issues := Compile(s, source.NewText(expression), rules.Anything())
	if issues.Err() != nil {
		return "issue " + strings.Split(issues[0].Error(), ";")[0]
	}
	return written1(e.Eval(roots))
}

func written1(v ref.Val) string {
	if types.IsError(v) {
		return "error " + fmt.Sprint(v)
	}
	switch x := v.(type) {
	case *types.Optional:
		if !x.HasValue() {
			return "none"
		}
		return "some " + written1(x.GetValue())
	case interface{ Size() ref.Val }:
		if v.Type() == types.ListType || v.Type() == types.MapType {
			return fmt.Sprintf("%s of %v", v.Type().TypeName(), x.Size())
		}
	}
	return fmt.Sprintf("%s %v", v.Type().TypeName(), v.Value())
}

// TestNumbersMix checks that int and double mix in arithmetic and in comparisons. The result of mixed arithmetic is a double.
func TestNumbersMix(t *testing.T) {
	s, roots := testScope(t), testRoots(t, map[string]any{"i": int64(7), "j": int64(2), "d": 1.5, "e": -2.0, "u": uint64(3)})
	for _, test := range [][2]string{
		{"i + d", "double 8.5"},
		{"d + i", "double 8.5"},
		{"i - d", "double 5.5"},
		{"d - i", "double -5.5"},
		{"i * d", "double 10.5"},
		{"d * i", "double 10.5"},
		{"i / d", "double 4.666666666666667"},
		{"d / j", "double 0.75"},
		{"i / j", "int 3"}, // the division of two ints stays an int
		{"-i / j", "int -3"},
		{"i % j", "int 1"},
		{"i + j", "int 9"},
		{"d + e", "double -0.5"},
		{"u + u", "uint 6"},
		{"2 * d + 1", "double 4"},
		{"1 + i * d - 0.5 / j", "double 11.25"},
		{"i == 7.0", "bool true"},
		{"7.0 == i", "bool true"},
		{"i != 7.5", "bool true"},
		{"i == u", "bool false"},
		{"u == 3", "bool true"},
		{"i < d", "bool false"},
		{"i <= 7.0", "bool true"},
		{"d > e && j >= 2.0", "bool true"},
		{"e < i", "bool true"},
		{"u < 3.5", "bool true"},
		{"9007199254740993 == 9007199254740992.0", "bool true"}, // a double cannot hold the difference
		{"1.0 / 0", "double +Inf"},
		{"0 / 0.0 == 0 / 0.0", "bool false"}, // NaN
		{"(b ? 1 : 2) + 0.5", "double 1.5"},
		{"[1.0, 2.5].map(x, x * 2)[1]", "double 5"},
		{"[1, 2].map(x, x * d).sum()", "double 4.5"},
		{"dyn(1) + dyn(0.5)", "double 1.5"},
		{"dyn(1) == dyn(1.0)", "bool true"},
		{"'a' + 'b'", "string ab"},
		{"[1] + [2, 3]", "list of 3"},
		{"b'a' + b'b' == b'ab'", "bool true"},
		{"now + duration('1h') - now == duration('3600s')", "bool true"},
		{"duration('1h') + duration('1m') > duration('60m')", "bool true"},
		{"crate == crate && depot == other", "bool true"},
		{"crate.depot == depot", "bool true"},
		{"{'a': 1} == {'a': 1}", "bool true"},
		{"[1, 2] != [1, 3]", "bool true"},
		{"type(i) == int", "bool true"},
		{"null == null", "bool true"},
		{"crate.since == null", "bool true"},
		{"optional.of(1) == optional.of(1)", "bool true"},
		{"quantity('1k') == quantity('1000')", "bool true"},
		{"isQuantity('1e-99999999') || isQuantity('1e1.5')", "bool false"},
		{
			"quantity('1e-99999999') == quantity('0')",
			"error \"1e-99999999\" must be a quantity such as 500m or 16Gi, with an exponent of at most 3 digits",
		},
		{"i + u", "issue the operator + does not take (int, uint)"},
		{"i + s", "issue the operator + does not take (int, string)"},
		{"i % d", "issue the operator % does not take (int, double)"},
		{"crate == depot", "issue the operator == does not take (Crate, Depot)"},
		{"s == i", "issue the operator == does not take (string, int)"},
		{"[1, 2.5]", "issue must be an int, found a double"},
	} {
		if got := evaluate(t, s, roots, test[0]); got != test[1] {
			t.Errorf("%s gives %s, want %s", test[0], got, test[1])
		}
	}
}

// TestErrors checks that errors are the error values of CEL. The operators && and || ignore an error if the other side decides the result.
func TestErrors(t *testing.T) {
	s, roots := testScope(t), testRoots(t, map[string]any{"i": int64(math.MaxInt64), "j": int64(math.MinInt64), "d": 0.0})
	for _, test := range [][2]string{
		{"i + 1", "error integer overflow"},
		{"j - 1", "error integer overflow"},
		{"i * 2", "error integer overflow"},
		{"j / -1", "error integer overflow"},
		{"-j", "error integer overflow"},
		{"uint(0) - uint(1)", "error unsigned integer overflow"},
		{"i / 0", "error division by zero"},
		{"i % 0", "error modulus by zero"},
		{"int(1e30 + d)", "error integer overflow"},
		{"int(1e30)", "issue integer overflow"}, // a constant is computed at compile time
		{"depot.labels['none']", "error no such key: none"},
		{"[1, 2][5]", "error index out of bounds: 5"},
		{"int(depot.name) == 1", "error type conversion error from 'string' to 'int'"},
		{"optional.none().value()", "error optional.none() dereference"},
		{"depot.labels['none'] == 'x' || true", "bool true"},
		{"true || depot.labels['none'] == 'x'", "bool true"},
		{"depot.labels['none'] == 'x' && false", "bool false"},
		{"i / 0 == 1 || false", "error division by zero"},
		{"i / 0 == 1 && true", "error division by zero"},
		{"true ? 1 : i / 0", "int 1"},
		{"[0, 1].exists(x, 1 / x == 1)", "bool true"},
		{"[0, 2].all(x, 1 / x == 1)", "bool false"},
		{"[0, 1].all(x, 1 / x == 1)", "error division by zero"},
		{"duration('x') == duration('1s')", "issue is not a duration"},
		{"'a'.matches('(')", "issue is not a regular expression"},
		{"timestamp('x') == now", "issue is not a time"},
	} {
		if got := evaluate(t, s, roots, test[0]); got != test[1] {
			t.Errorf("%s gives %s, want %s", test[0], got, test[1])
		}
	}
}

// TestLibraries checks that each library is available, with the functions of its version.
func TestLibraries(t *testing.T) {
	s, roots := testScope(t), testRoots(t, nil)
	for _, test := range []struct{ library, expression, want string }{
		{"standard", "words.filter(w, w.startsWith('a')).size()", "int 1"},
		{"standard", "has(depot.labels.zone) && !has(depot.labels.rack)", "bool true"},
		{"standard", "timestamp('2026-07-05T12:00:00Z').getHours('Europe/Paris')", "int 14"},
		{"optionals", "depot.labels[?'rack'].orValue('none')", "string none"},
		{"optionals", "depot.labels.?zone.orValue('none')", "string east"},
		{"optionals", "order.crates[?0].optMap(c, c.name).orValue('none')", "string c1"},
		{"optionals", "order.crates[?1].optMap(c, c.name)", "none"},
		{"optionals", "depot.labels[?'zone'].optMap(z, z + '!').orValue('')", "string east!"},
		{"optionals", "optional.ofNonZeroValue(0).hasValue()", "bool false"},
		{"strings", "'a,b'.split(',')[1].upperAscii().replace('B', 'c').substring(0)", "string c"},
		{"strings", "'%d of %s'.format([1, 'x'])", "string 1 of x"},
		{"strings", "['a', 'b'].join('-')", "string a-b"},
		{"sets", "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 3]) && sets.equivalent([1, 1], [1])", "bool true"},
		{"lists", "[3, 1, 2].sort()[0] + [[1], [2]].flatten()[1] + [1, 1].distinct().size() + lists.range(3).reverse()[0]", "int 6"},
		{"lists", "[3, 1].sortBy(x, -x)[0]", "int 3"},
		{"math", "math.greatest(1, 2.5) + math.least(2, 0.5)", "double 3"},
		{"math", "math.ceil(1.2) + math.abs(-1.0) + math.sign(-2.0) + math.sqrt(4)", "double 4"},
		{"math", "math.bitAnd(6, 3)", "int 2"},
		{"two-variable comprehensions", "[5, 6].all(n, x, n + 5 == x)", "bool true"},
		{"two-variable comprehensions", "{'a': 1}.transformList(k, v, k + string(v))[0]", "string a1"},
		{"two-variable comprehensions", "['x'].transformMapEntry(n, x, {x: n})['x']", "int 0"},
		{"Kubernetes lists", "[1, 2].sum() + [3, 1].max() + [3, 1].min() + ['a', 'b'].indexOf('b')", "int 8"},
		{"Kubernetes lists", "['a', 'b'].isSorted()", "bool true"},
		{"regex", "'abc 123'.find('[0-9]+') + 'a1b2'.findAll('[0-9]')[1]", "string 1232"},
		{"quantity", "quantity('1.5Gi').add(quantity('512Mi')).isGreaterThan(quantity('1Gi'))", "bool true"},
		{"quantity", "quantity('2k').asInteger()", "int 2000"},
		{"URL", "url('https://a.b:80/c').getHostname()", "string a.b"},
		{"IP", "ip('192.168.0.1').family()", "int 4"},
		{"CIDR", "cidr('192.168.0.0/24').containsIP('192.168.0.1')", "bool true"},
		{"format", "format.dns1123Label().validate('Not_One').hasValue()", "bool true"},
		{"semver", "semver('1.10.0').isGreaterThan(semver('1.9.0'))", "bool true"},
	} {
		if got := evaluate(t, s, roots, test.expression); got != test.want {
			t.Errorf("library %s: %s gives %s, want %s", test.library, test.expression, got, test.want)
		}
	}
	shown := map[string]bool{}
	for _, l := range rules.Libraries() {
		shown[l.Name] = true
		names, err := l.Names()
		if err != nil || l.Doc == "" || len(names) == 0 {
			t.Errorf("library %s: %v, doc %q, %d names", l.Name, err, l.Doc, len(names))
		}
	}
	if len(shown) != len(rules.Libraries()) {
		t.Error("two libraries of one name")
	}
}

// TestRedeclaredOperatorsLoseNothing checks that each operator that the dialect declares again still accepts every signature of CEL. The
// test uses one sample value of each type.
func TestRedeclaredOperatorsLoseNothing(t *testing.T) {
	samples := map[string]string{
		"int": "1", "uint": "1u", "double": "1.5", "string": "'x'", "bytes": "b'x'", "bool": "true",
		"timestamp": "timestamp('2026-01-05T12:00:00Z')", "duration": "duration('1s')",
		"list": "[1]", "map": "{'a': 1}", "null": "null", "optional": "optional.of(1)", "type": "int",
		"quantity": "quantity('1')", "ip": "ip('127.0.0.1')", "cidr": "cidr('10.0.0.0/8')", "semver": "semver('1.0.0')", "url": "url('http://a')",
	}
	theirs, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	s := testScope(t)
	for _, operator := range []string{"+", "-", "*", "/", "==", "!="} {
		for _, a := range slices.Sorted(maps.Keys(samples)) {
			for _, b := range slices.Sorted(maps.Keys(samples)) {
				expression := samples[a] + " " + operator + " " + samples[b]
				want, iss := theirs.Compile(expression)
				if iss.Err() != nil {
					continue
				}
				got, issues := Compile(s, source.NewText(expression), rules.Anything())
				if issues.Err() != nil {
					t.Errorf("Kubernetes takes %s, we do not: %v", expression, issues)
					continue
				}
				if got.Type.String() != want.OutputType().String() {
					t.Errorf("%s is a %s, in Kubernetes a %s", expression, got.Type, want.OutputType())
				}
			}
		}
	}
}

// numeric draws a random expression of one type. The expression never mixes int and double.
func numeric(t *rapid.T, kind string, depth int) string {
	leaf := map[string][]string{"int": {"i", "j", "0", "1", "-3", "9223372036854775807"}, "double": {"d", "e", "0.0", "-0.5", "1e300"}}[kind]
	if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom(leaf).Draw(t, "value")
	}
	a := numeric(t, kind, depth-1)
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return "(" + truth(t, depth-1) + " ? " + a + " : " + numeric(t, kind, depth-1) + ")"
	case 1:
		return "-(" + a + ")"
	}
	ops := []string{"+", "-", "*", "/"}
	if kind == "int" {
		ops = append(ops, "%")
	}
	return "(" + a + " " + rapid.SampledFrom(ops).Draw(t, "operator") + " " + numeric(t, kind, depth-1) + ")"
}

func truth(t *rapid.T, depth int) string {
	if depth <= 0 {
		return rapid.SampledFrom([]string{"true", "false", "b", "s == 'text'", "'x' in words", "depot_free > i"}).Draw(t, "truth")
	}
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return "!(" + truth(t, depth-1) + ")"
	case 1:
		return "(" + truth(t, depth-1) + " && " + truth(t, depth-1) + ")"
	case 2:
		return "(" + truth(t, depth-1) + " || " + truth(t, depth-1) + ")"
	}
	kind := rapid.SampledFrom([]string{"int", "double"}).Draw(t, "kind")
	operator := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(t, "comparison")
	return "(" + numeric(t, kind, depth-1) + " " + operator + " " + numeric(t, kind, depth-1) + ")"
}

// TestPlainExpressionsAreCEL checks that the dialect equals CEL where int and double do not mix: the values and the errors are the same.
func TestPlainExpressionsAreCEL(t *testing.T) {
	l := testLanguage(t)
	roots := map[string]*cel.Type{
		"i": cel.IntType, "j": cel.IntType, "d": cel.DoubleType, "e": cel.DoubleType, "b": cel.BoolType,
		"s": cel.StringType, "words": cel.ListType(cel.StringType), "depot_free": cel.IntType,
	}
	s, err := l.Scope(roots)
	if err != nil {
		t.Fatal(err)
	}
	var opts []cel.EnvOption
	for name, typ := range roots {
		opts = append(opts, cel.Variable(name, typ))
	}
	plainCEL, err := cel.NewEnv(opts...)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		expression := truth(t, 4)
		if rapid.Bool().Draw(t, "numeric") {
			expression = numeric(t, rapid.SampledFrom([]string{"int", "double"}).Draw(t, "kind"), 4)
		}
		values := map[string]any{
			"i": rapid.SampledFrom([]int64{0, 1, -1, 7, math.MinInt64}).Draw(t, "i"), "j": rapid.Int64Range(-3, 3).Draw(t, "j"),
			"d": rapid.SampledFrom([]float64{0, 1.5, math.Inf(1), math.NaN()}).Draw(t, "d"), "e": -2.5, "b": rapid.Bool().Draw(t, "b"), "s": "text",
			"words": []string{"x"}, "depot_free": int64(4),
		}
		checked, iss := plainCEL.Compile(expression)
		if iss.Err() != nil {
			t.Fatalf("%s: %v", expression, iss.Err())
		}
		program, err := plainCEL.Program(checked)
		if err != nil {
			t.Fatal(err)
		}
		want := "error"
		if v, _, err := program.Eval(values); err == nil {
			want = written1(v)
		} else {
			want += " " + err.Error()
		}
		e, issues := Compile(s, source.NewText(expression), rules.Anything())
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues)
		}
		activation, err := cel.NewActivation(values)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, written1(e.Eval(activation))); diff != "" {
			t.Fatalf("%s over %v (-CEL +ours):\n%s", expression, values, diff)
		}
	})
}
