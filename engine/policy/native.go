package policy

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// natively gives a function's one overload the forms that need no boxes.
func natively(fn *rules.Function, forms func(constants []ref.Val) *rules.Native) *rules.Function {
	fn.Overloads[0].Native = forms
	return fn
}

// always is for forms that need no constants.
func always(n *rules.Native) func([]ref.Val) *rules.Native {
	return func([]ref.Val) *rules.Native { return n }
}

// ofTwo computes two arguments without a box around the result.
func ofTwo[A, B, X any](f func(a A, b B) X) func(a, b, c ref.Val) (X, bool) {
	return func(a, b, _ ref.Val) (x X, ok bool) {
		p, okP := a.(A)
		q, okQ := b.(B)
		if !okP || !okQ {
			return x, false
		}
		return f(p, q), true
	}
}

// scoreForms are those of a score of a node, its first argument, for a task, its second.
func scoreForms(f func(n *model.Nodes, row int32, t *model.Task, dims *model.Dims) float64) *rules.Native {
	return &rules.Native{
		Double: ofTwo(func(n *nodeView, t *taskView) float64 { return f(&n.s.c.Nodes, n.of.Row, t.of, n.s.c.Dims) }),
		Doubles: func(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
			t, ok := args[1].Value.(*taskView)
			if !ok || !args[0].Row {
				return false
			}
			c := sessionOf(r).c
			for i, row := range rows {
				out[i] = f(&c.Nodes, row, t.of, c.Dims)
			}
			return true
		},
	}
}

// amountReader reads one dimension of Resources, which are those of a row or the same for all.
type amountReader struct {
	fixed model.Resources
	at    func(n *model.Nodes, dim int, row int32) float64
}

func (a *amountReader) get(n *model.Nodes, dim int, row int32) float64 {
	if a.at != nil {
		return a.at(n, dim, row)
	}
	return a.fixed.Get(dim)
}

// reader is how an argument that is Resources is read; false: it is another kind of value.
func reader(from rules.Source) (r amountReader, ok bool) {
	if from.Member != nil {
		for _, a := range nodeAmounts() {
			if a.name == from.Member.Name {
				return amountReader{at: a.at}, true
			}
		}
		return amountReader{}, false
	}
	a, ok := from.Value.(*amounts)
	if !ok {
		return amountReader{}, false
	}
	return amountReader{fixed: a.r}, true
}

// fitsColumn is Resources.Fits of what is the same for all rows into what is the row's.
func fitsColumn(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	a, okA := args[0].Value.(*amounts)
	b, okB := reader(args[1])
	if !okA || !okB || b.at == nil {
		return false
	}
	n := &sessionOf(t).c.Nodes
	for i := range out {
		out[i] = true
	}
	for dim, want := range a.r {
		if want != want {
			continue
		}
		for i, row := range rows {
			out[i] = out[i] && want <= b.at(n, dim, row)+model.Slack
		}
	}
	return true
}

// withinColumn is Resources.Within where the dimensions are the same for all rows.
func withinColumn(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	a, okA := reader(args[0])
	b, okB := reader(args[1])
	dims, okD := args[2].Value.(*amounts)
	if !okA || !okB || !okD {
		return false
	}
	n := &sessionOf(t).c.Nodes
	for i := range out {
		out[i] = true
	}
	for dim, counts := range dims.r {
		if !(counts > 0) {
			continue
		}
		for i, row := range rows {
			out[i] = out[i] && !(a.get(n, dim, row) > b.get(n, dim, row))
		}
	}
	return true
}

// resourceNames are the names of a constant list of strings; false: it is no such list.
func resourceNames(v ref.Val) (names []resourceName, ok bool) {
	l, ok := v.(traits.Lister)
	if !ok {
		return nil, false
	}
	for it := l.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, false
		}
		names = append(names, dimension(string(name)))
	}
	return names, true
}
