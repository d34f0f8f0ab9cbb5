package values

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// accounting returns the accounting functions, by name.
func accounting() map[string]func(x *Values, a *policy.Attribute, of ref.Val) ref.Val {
	return map[string]func(x *Values, a *policy.Attribute, of ref.Val) ref.Val{
		"sum":          (*Values).sum,
		"waterFill":    (*Values).waterFill,
		"quotaTree":    (*Values).quotaTree,
		"hdrf":         (*Values).shares,
		"typicalTasks": (*Values).typicalTasks,
		"answer":       (*Values).answer,
	}
}

// amounts evaluates an argument that gives Resources; without an argument, the result is empty.
func (x *Values) amounts(a *policy.Attribute, e *eval.Expr, f *language.Frame) (r model.Resources, err ref.Val) {
	if e == nil {
		return nil, nil
	}
	v := Eval(e, f)
	r, ok := language.AmountsOf(v)
	if !ok {
		x.fault("attributes", a.Table, a.Name, f, v)
		return nil, v
	}
	return r.Clone(), nil
}

// amountsInto evaluates several arguments, by name. It stops at the first error.
func (x *Values) amountsInto(
	a *policy.Attribute, args map[string]*eval.Expr, f *language.Frame, into map[string]*model.Resources,
) (err ref.Val) {
	for _, arg := range slices.Sorted(maps.Keys(into)) {
		if *into[arg], err = x.amounts(a, args[arg], f); err != nil {
			return err
		}
	}
	return nil
}

// answer returns the answer of an extender.
func (x *Values) answer(a *policy.Attribute, of ref.Val) ref.Val {
	return policy.AnswerOf(x.World(), a, of, Eval(a.Args["url"], x.Frame()))
}
