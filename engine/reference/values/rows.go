package values

import (
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Eval evaluates an expression with cel-go. If its cost may be large, each evaluation has a budget, counted in the steps of its compiled
// form, and exceeding it is an error. In the engine, the evaluations of a row in a cycle also share a budget. The reference has
// no such budget, because it depends on how often a row is evaluated.
func Eval(e *eval.Expr, f *language.Frame) ref.Val {
	if e.Metered {
		return e.Eval(f)
	}
	return e.Interpret(f)
}

// Opinion evaluates a row of a yes-or-no site. It abstains if the guard is false. If the row fails, the opinion is that of its onError.
func (x *Values) Opinion(r *policy.Rule, f *language.Frame) language.Opinion {
	v := x.value(r, f)
	switch v {
	case nil:
		return language.Abstain
	case types.True:
		return language.Yes
	case types.False:
		return language.No
	}
	x.fault(r.Site.Name, r.Table, r.Name, f, v)
	deny := policy.Denial(r.Site)
	switch r.OnError {
	case "deny":
		return deny
	case "allow":
		return language.Yes + language.No - deny
	}
	return language.Abstain
}

// Number evaluates a row of scores. NaN: it has no opinion, or failed.
func (x *Values) Number(r *policy.Rule, f *language.Frame) float64 {
	v := x.value(r, f)
	if v == nil {
		return math.NaN()
	}
	n, ok := language.Number(v)
	if ok {
		if n, err := policy.Score(n); err == nil {
			return n
		} else {
			v = err
		}
	}
	x.fault(r.Site.Name, r.Table, r.Name, f, v)
	return math.NaN()
}

// value returns the value of a row: nil if its guard is false, an error if the guard or the row fails.
func (x *Values) value(r *policy.Rule, f *language.Frame) ref.Val {
	if r.When != nil {
		if held := Eval(r.When, f); held != types.True {
			if held == types.False {
				return nil
			}
			return held
		}
	}
	return Eval(r.Expression, f)
}

// Text returns why a row rejects its subject: its message, its expression, or its error.
func (x *Values) Text(r *policy.Rule, f *language.Frame) string {
	if v := x.value(r, f); types.IsError(v) {
		return fmt.Sprintf("erred: %v", v)
	}
	if r.Message == nil {
		return r.Expression.Text.Value + " does not hold"
	}
	return r.Message.Words(func(e *eval.Expr) ref.Val { return Eval(e, f) })
}

// Keys returns an object's sort keys by the rows of a site. A key that fails, or has no order, is empty.
func (x *Values) Keys(site string, f *language.Frame) []language.Key {
	var out []language.Key
	for _, r := range x.p.Rules(site) {
		var k language.Key
		if v := x.value(r, f); v != nil {
			var ok bool
			if k, ok = language.KeyOf(v); !ok {
				x.fault(r.Site.Name, r.Table, r.Name, f, v)
				k = language.Key{}
			}
		}
		out = append(out, k)
	}
	return out
}
