package session

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// show returns a value as in the text of a row.
func show(v ref.Val) string {
	if o, ok := v.(*celtypes.Optional); ok {
		if !o.HasValue() {
			return "none"
		}
		return "some " + show(o.GetValue())
	}
	return language.Text(v)
}

// TestResourceFunctions checks the functions of Resources, for amounts a, b and c (docs/rule-language.md, Of Resources).
func TestResourceFunctions(t *testing.T) {
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	r := language.ResourcesType()
	scope, err := lang.Scope(map[string]*cel.Type{"a": r, "b": r, "c": r})
	if err != nil {
		t.Fatal(err)
	}
	const gpu = "nvidia.com/gpu"
	for _, test := range []struct{ a, b, c, expression, want string }{
		{"cpu=1 memory=1Gi", "cpu=1 memory=1Gi", "", "a.fits(b)", "true"},
		{"cpu=1001m", "cpu=1", "", "a.fits(b)", "false"},
		{"cpu=1", "cpu=999m memory=9Gi", "", "a.fits(b)", "false"},
		{"cpu=0 memory=1Gi", "memory=1Gi", "", "a.fits(b)", "true"},
		{gpu + "=1", "cpu=9", "", "a.fits(b)", "false"},            // missing in b is 0
		{"cpu=1", "cpu=1", "", "a.fits(b.scale(0.99995))", "true"}, // within the slack of a tenth of a milli-core
		{"cpu=1", "cpu=1", "", "a.fits(b.scale(0.9998))", "false"},
		{"cpu=0", "cpu=1", "cpu=2", "a.fits(b - c)", "false"}, // a request of 0 does not fit a negative amount
		{"", "cpu=1", "", "a.fits(b)", "true"},
		{"", "", "", "a.fits(b)", "true"},

		{"cpu=1 memory=9Gi", "cpu=1 memory=1Gi", "cpu=1", "a.within(b, c)", "true"}, // only the dimensions of c count
		{"cpu=1 memory=9Gi", "cpu=1 memory=1Gi", "cpu=1 memory=1", "a.within(b, c)", "false"},
		{"cpu=1", "cpu=1", "cpu=1", "a.within(b.scale(0.99995), c)", "false"}, // strict
		{"cpu=1", "memory=1", "cpu=0", "a.within(b, c)", "true"},
		{"cpu=1", "memory=1", "cpu=1", "a.within(b, c)", "false"}, // missing in b is 0

		{"cpu=2 memory=1", "cpu=1 memory=1", "cpu=1 memory=1", "a.withinAny(b, c)", "true"},
		{"cpu=2 memory=1", "cpu=1 memory=1", "cpu=1", "a.withinAny(b, c)", "false"},
		{"cpu=0", "cpu=0", "cpu=1", "a.withinAny(b, c)", "false"}, // 0 within 0 does not count
		{"cpu=0", "cpu=1", "cpu=1", "a.withinAny(b, c)", "true"},

		{"cpu=2", "cpu=1", "cpu=1", "a.exceedsAny(b, c)", "true"},
		{"cpu=2", "cpu=1", "memory=1", "a.exceedsAny(b, c)", "false"},
		{"cpu=2", "memory=1", "cpu=1", "a.exceedsAny(b, c)", "false"}, // b sets no limit
		{"cpu=2", "cpu=0", "cpu=1", "a.exceedsAny(b, c)", "false"},    // cpu 0 is no limit
		{gpu + "=2", gpu + "=0", gpu + "=1", "a.exceedsAny(b, c)", "true"},

		{"cpu=1 pods=1", "memory=1 pods=1", "", "a.overlaps(b)", "false"}, // pods do not count
		{"cpu=1", "cpu=1", "", "a.overlaps(b)", "true"},
		{"cpu=0", "cpu=1", "", "a.overlaps(b)", "false"},

		{"cpu=1 memory=1Gi", "cpu=2 pods=3", "", "a + b", "cpu 3, memory 1Gi, pods 3"},
		{"cpu=1 memory=1Gi", "cpu=3 pods=3", "", "a - b", "cpu -2, memory 1Gi, pods -3"},
		{"cpu=3 memory=1Gi", "cpu=1 memory=2Gi pods=3", "", "a.over(b)", "cpu 2"},
		{"cpu=3 memory=1Gi", "cpu=1 pods=3", "", "a.min(b)", "cpu 1"}, // missing counts as 0
		{"cpu=3 memory=1Gi", "cpu=1 pods=3", "", "a.cap(b)", "cpu 1, memory 1Gi"},
		{"cpu=3 memory=1Gi", "cpu=5 pods=3", "", "a.max(b)", "cpu 5, memory 1Gi, pods 3"},
		{"cpu=3 memory=1Gi", "", "", "a.scale(0.5)", "cpu 1.5, memory 512Mi"},
		{"cpu=3 memory=1Gi", "", "", "a.scale(2)", "cpu 6, memory 2Gi"},
		{"cpu=1 memory=1Gi pods=1", "cpu=9 " + gpu + "=1", "", "a.only(b)", "cpu 1"},
		{"cpu=1 memory=0", "cpu=2", "", "(a - b).positive()", "nothing"},
		{"cpu=1 pods=1", "", "", "a.omit('pods')", "cpu 1"},
		{"cpu=1", "", "", "a.omit('pods')", "cpu 1"},
		{"cpu=2 pods=5", "cpu=2 pods=4", "cpu=1 pods=1", "a.within(b, c.omit('pods'))", "true"},
		{"cpu=1", "memory=1", "", "(a - b).positive()", "cpu 1"},

		{"cpu=1 memory=4Gi", "cpu=4 memory=8Gi", "", "a.share(b)", "0.5"},
		{"cpu=1 " + gpu + "=1", "cpu=4", "", "a.share(b)", "0.25"}, // only b's dimensions
		{"cpu=1", "cpu=0", "", "a.share(b)", "1"},
		{"cpu=0", "cpu=0", "", "a.share(b)", "0"},
		{"", "cpu=4", "", "a.share(b)", "0"},
		{"cpu=8", "cpu=4", "", "a.share(b)", "2"},

		{"pods=1", "", "", "a.isEmpty()", "true"},
		{"cpu=1m", "", "", "a.isEmpty()", "false"},
		{"", "", "", "a.isEmpty() && resources().isEmpty()", "true"},
		{"cpu=1500m memory=1Gi", "", "", "a.get('cpu') + a.cpu", "3"},
		{"cpu=1500m memory=1Gi", "", "", "a['memory'] == 1073741824.0 && a.memory == a.get('memory')", "true"},
		{gpu + "=2", "", "", "a['" + gpu + "'] + a['example.com/none']", "2"},
		{
			"cpu=1500m memory=1Gi " + gpu + "=2", "", "",
			"string(a.milli('cpu')) + ' ' + string(a.milli('" + gpu + "')) + ' ' + string(a.milli('none'))", "1500 2000 0",
		},
		{"memory=2", "", "", "a.milli('memory')", "2000"},
		{"cpu=0 " + gpu + "=1", "", "", "'cpu' in a && '" + gpu + "' in a && !('memory' in a) && !('none' in a)", "true"},
		{"cpu=1", "cpu=1000m", "", "a == b", "true"},
		{"cpu=1", "cpu=1 memory=0", "", "a == b", "false"}, // an absent amount is not 0
		{"cpu=1", "cpu=2", "", "a != b", "true"},
		{"cpu=1", "", "", "resources() + a", "cpu 1"},
		{"cpu=1", "", "", "(resources() + a).fits(a) && resources().max(a).cpu == 1.0", "true"},
		{"cpu=1", "", "", "resources()['cpu']", "0"},
		{"cpu=1", "", "", "a.scale(0)", "nothing"},
	} {
		t.Run(test.expression+" of "+test.a, func(t *testing.T) {
			names := &language.Dims{Dims: model.NewDims(), Shared: new(bool)}
			give := func(text string) ref.Val {
				return &language.Amounts{Resources: names.Resources(amountList(text)), Dims: names}
			}
			roots, err := cel.NewActivation(map[string]any{"a": give(test.a), "b": give(test.b), "c": give(test.c)})
			if err != nil {
				t.Fatal(err)
			}
			e, issues := eval.Compile(scope, source.NewText(test.expression), rules.Anything())
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			if got := show(e.Eval(roots)); got != test.want {
				t.Errorf("a %s, b %s, c %s: got %s, want %s", test.a, test.b, test.c, got, test.want)
			}
		})
	}
}

// TestAmountsAreExact checks that amounts are exact: milli-cores represent numbers that doubles do not.
func TestAmountsAreExact(t *testing.T) {
	names := &language.Dims{Dims: model.NewDims(), Shared: new(bool)}
	tenth := &language.Amounts{Resources: names.Resources(amountList("cpu=100m")), Dims: names}
	sum := &language.Amounts{Dims: names}
	for range 3 {
		sum = sum.Add(tenth).(*language.Amounts)
	}
	if three := names.Resources(amountList("cpu=300m")); !sum.Resources.Within(three, three) || !three.Within(sum.Resources, three) {
		t.Errorf("0.1 + 0.1 + 0.1 is %s", fmt.Sprint(sum.Resources))
	}
}
