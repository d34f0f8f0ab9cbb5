package typed

import (
	"iter"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Variables are named expressions that rows share. Each of them may read earlier ones.
type Variables struct {
	names []string
	exprs []*eval.Expr
}

// VariablesType returns the type of the root `variables`.
func VariablesType() *cel.Type { return cel.ObjectType("Variables") }

// Add adds a variable after all others.
func (v *Variables) Add(name string, e *eval.Expr) {
	v.names, v.exprs = append(v.names, name), append(v.exprs, e)
}

// All returns the variables by name, in their order.
func (v *Variables) All() iter.Seq2[string, *eval.Expr] {
	return func(yield func(string, *eval.Expr) bool) {
		for i, name := range v.names {
			if !yield(name, v.exprs[i]) {
				return
			}
		}
	}
}

// Object returns a declaration of the variables so far.
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

// In returns the value of `variables` in an evaluation. Each variable is computed when it is first read.
func (v *Variables) In(in cel.Activation) ref.Val {
	return Computed(VariablesType(), &memo{of: v, in: in, got: make([]ref.Val, len(v.exprs))})
}

// memo contains the values of variables in one evaluation.
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

// Computed returns an object whose members are computed from a Go value.
func Computed(t *cel.Type, of any) ref.Val {
	return computedValue{newValue(&Schema{typ: t}, nil), of}
}

type computedValue struct {
	*value
	of any
}

// Value implements ref.Val.
func (v computedValue) Value() any { return v.of }
