package typed

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Variables are named expressions that rows share, each of which may read those before it.
type Variables struct {
	names []string
	exprs []*eval.Expr
}

// VariablesType is the type of the root `variables`.
func VariablesType() *cel.Type { return cel.ObjectType("Variables") }

// Add adds one.
func (v *Variables) Add(name string, e *eval.Expr) {
	v.names, v.exprs = append(v.names, name), append(v.exprs, e)
}

// Object declares those so far.
func (v *Variables) Object() *rules.Object {
	o := &rules.Object{Name: VariablesType().TypeName(), Type: VariablesType()}
	for i, name := range v.names {
		o.Members = append(o.Members, &rules.Member{
			Name: name, Type: v.exprs[i].Type, Changes: rules.ByObject,
			Get: func(of any) ref.Val {
				m, ok := of.(*memo)
				if !ok {
					return types.NewErr("no variables")
				}
				return m.get(i)
			},
		})
	}
	return o
}

// In is the value of `variables` in an evaluation: each is computed when it is first read.
func (v *Variables) In(in cel.Activation) ref.Val {
	m := &memo{of: v, in: in, got: make([]ref.Val, len(v.exprs))}
	return memoValue{newValue(&Schema{typ: VariablesType()}, nil), m}
}

// memo are the values of variables in one evaluation.
type memo struct {
	of  *Variables
	in  cel.Activation
	got []ref.Val
}

func (m *memo) get(i int) ref.Val {
	if m.got[i] == nil {
		m.got[i] = m.of.exprs[i].Eval(m.in)
	}
	return m.got[i]
}

// memoValue is a memo as the language sees it.
type memoValue struct {
	*value
	memo *memo
}

// Value implements ref.Val.
func (v memoValue) Value() any { return v.memo }
