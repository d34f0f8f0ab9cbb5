package language

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// natively adds forms without boxes to a function's only overload.
func natively(fn *rules.Function, forms func(constants []ref.Val) *rules.Native) *rules.Function {
	fn.Overloads[0].Native = forms
	return fn
}

// always returns forms that need no constants.
func always(n *rules.Native) func([]ref.Val) *rules.Native {
	return func([]ref.Val) *rules.Native { return n }
}

// ofTwo calls f with two arguments, without a box around the result.
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

// amountSource reads Resources: those of each row, or the same for all rows.
type amountSource struct {
	fixed model.Resources
	ofRow nodeAmount // used if at is not nil
}

// amountsOf returns how to read a Resources argument; false: it has another type.
func amountsOf(from rules.Source, known []nodeAmount) (src amountSource, ok bool) {
	if from.Member != nil {
		for _, a := range known {
			if a.Name == from.Member.Name {
				return amountSource{ofRow: a}, true
			}
		}
		return amountSource{}, false
	}
	a, ok := from.Value.(*Amounts)
	if !ok {
		return amountSource{}, false
	}
	return amountSource{fixed: a.Resources}, true
}

// fill writes one dimension, in internal units; 0 if it is absent.
func (src *amountSource) fill(n *model.Nodes, dim int, rows []int32, out []float64) {
	if src.ofRow.at != nil {
		src.ofRow.fill(n, dim, rows, out)
		return
	}
	fill(out, src.fixed.Get(dim))
}

// fitsColumn is Resources.Fits of a constant into the amounts of each row.
func fitsColumn(known []nodeAmount) func(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	return func(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
		a, okA := args[0].Value.(*Amounts)
		b, okB := amountsOf(args[1], known)
		if !okA || !okB {
			return false
		}
		w, d := worldOf(t), workspaceOf(t)
		fill(out, true)
		d.left = RoomFor(d.left, len(rows))
		for dim, want := range a.Resources {
			if want != want {
				continue
			}
			b.fill(&w.c.Nodes, dim, rows, d.left)
			for i, has := range d.left {
				out[i] = out[i] && want <= has+model.Slack
			}
		}
		return true
	}
}

// withinColumn is Resources.Within with the same dimensions for all rows.
func withinColumn(known []nodeAmount) func(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
	return func(t rules.Rows, args []rules.Source, rows []int32, out []bool) bool {
		a, okA := amountsOf(args[0], known)
		b, okB := amountsOf(args[1], known)
		dims, okD := args[2].Value.(*Amounts)
		if !okA || !okB || !okD {
			return false
		}
		w, d := worldOf(t), workspaceOf(t)
		fill(out, true)
		d.left, d.right = RoomFor(d.left, len(rows)), RoomFor(d.right, len(rows))
		for dim, counts := range dims.Resources {
			if !(counts > 0) {
				continue
			}
			a.fill(&w.c.Nodes, dim, rows, d.left)
			b.fill(&w.c.Nodes, dim, rows, d.right)
			for i := range out {
				out[i] = out[i] && !(d.left[i] > d.right[i])
			}
		}
		return true
	}
}

// RoomFor returns a slice of length n with arbitrary contents. It reuses old if possible.
func RoomFor[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:n]
	}
	return make([]T, n)
}

// resourceNames returns the names in a constant list of strings; false: it is not such a list.
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
