package eval

import (
	"cmp"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
)

// equalColumns returns the column of == or !=. Columns and closures compare unboxed values of the same types in the same order.

func equalColumns(a, b column, differ bool) column {
	switch {
	case a.strings != nil && b.strings != nil:
		return column{bools: pairwise(stringsOf, a.strings, b.strings, func(x, y []string, out []bool) { equalInto(x, y, out, differ) })}
	case a.ints != nil && b.ints != nil:
		return column{bools: pairwise(intsOf, a.ints, b.ints, func(x, y []int64, out []bool) { equalInto(x, y, out, differ) })}
	case a.number() != nil && b.number() != nil:
		return column{bools: pairwise(doublesOf, a.number(), b.number(), func(x, y []float64, out []bool) { equalInto(x, y, out, differ) })}
	case a.bools != nil && b.bools != nil:
		return column{bools: pairwise(boolsOf, a.bools, b.bools, func(x, y, out []bool) { equalInto(x, y, out, differ) })}
	}
	return column{}
}

func comparison(name string, a, b column) columnOf[bool] {
	switch {
	case !isOrder(name):
		return nil
	case a.ints != nil && b.ints != nil:
		return pairwise(intsOf, a.ints, b.ints, ordering[int64](name))
	case a.strings != nil && b.strings != nil:
		return pairwise(stringsOf, a.strings, b.strings, ordering[string](name))
	}
	x, y := a.number(), b.number()
	if x == nil || y == nil {
		return nil
	}
	return pairwise(doublesOf, x, y, ordering[float64](name))
}

func isOrder(name string) bool {
	return name == operators.Less || name == operators.LessEquals || name == operators.Greater || name == operators.GreaterEquals
}

func equalInto[T comparable](x, y []T, out []bool, differ bool) {
	for i := range out {
		out[i] = x[i] == y[i] != differ
	}
}

// ordering compares two vectors element by element. Go and CEL agree: NaN is neither less nor greater.
func ordering[T cmp.Ordered](name string) func(x, y []T, out []bool) {
	switch name {
	case operators.Less:
		return func(x, y []T, out []bool) {
			for i := range out {
				out[i] = x[i] < y[i]
			}
		}
	case operators.LessEquals:
		return func(x, y []T, out []bool) {
			for i := range out {
				out[i] = x[i] <= y[i]
			}
		}
	case operators.Greater:
		return func(x, y []T, out []bool) {
			for i := range out {
				out[i] = x[i] > y[i]
			}
		}
	}
	return func(x, y []T, out []bool) {
		for i := range out {
			out[i] = x[i] >= y[i]
		}
	}
}

// These functions return the vectors of a batch, by type.
func boolsOf(b *Batch) *vectors[bool]      { return &b.bools }
func intsOf(b *Batch) *vectors[int64]      { return &b.ints }
func doublesOf(b *Batch) *vectors[float64] { return &b.doubles }
func stringsOf(b *Batch) *vectors[string]  { return &b.strings }

// pairwise computes both sides, and then combines their elements.
func pairwise[T, U any](of func(*Batch) *vectors[T], a, c columnOf[T], f func(x, y []T, out []U)) columnOf[U] {
	return func(b *Batch, rows []int32, out []U) {
		v := of(b)
		x, y := v.take(len(rows)), v.take(len(rows))
		a(b, rows, x)
		c(b, rows, y)
		f(x, y, out)
		v.give(x)
		v.give(y)
	}
}

func arithmeticColumn(name string, a, b column) column {
	if a.ints != nil && b.ints != nil {
		f := integers(name)
		if f == nil {
			return column{}
		}
		return column{ints: checked(intsOf, a.ints, b.ints, f)}
	}
	x, y := a.number(), b.number()
	if x == nil || y == nil {
		return column{}
	}
	var f func(x, y, out []float64)
	switch name {
	case operators.Add:
		f = func(x, y, out []float64) {
			for i := range out {
				out[i] = x[i] + y[i]
			}
		}
	case operators.Subtract:
		f = func(x, y, out []float64) {
			for i := range out {
				out[i] = x[i] - y[i]
			}
		}
	case operators.Multiply:
		f = func(x, y, out []float64) {
			for i := range out {
				out[i] = x[i] * y[i]
			}
		}
	case operators.Divide:
		f = func(x, y, out []float64) {
			for i := range out {
				out[i] = x[i] / y[i]
			}
		}
	default:
		return column{}
	}
	return column{doubles: pairwise(doublesOf, x, y, f)}
}

// checked combines the elements with a function that may fail.
func checked[T any](of func(*Batch) *vectors[T], a, c columnOf[T], f func(x, y T) (T, ref.Val)) columnOf[T] {
	return func(b *Batch, rows []int32, out []T) {
		v := of(b)
		x, y := v.take(len(rows)), v.take(len(rows))
		a(b, rows, x)
		c(b, rows, y)
		for i := range out {
			z, err := f(x[i], y[i])
			if err != nil {
				b.fail(rows[i])
			}
			out[i] = z
		}
		v.give(x)
		v.give(y)
	}
}

// unaryColumn returns the column of a negation, or of a conversion between int and double.
func unaryColumn(name string, a column) column {
	switch {
	case name == operators.Negate && a.doubles != nil:
		return column{doubles: mappedColumn(doublesOf, a.doubles, func(x float64) (float64, ref.Val) { return -x, nil })}
	case name == operators.Negate && a.ints != nil:
		return column{ints: mappedColumn(intsOf, a.ints, negated)}
	case name == overloads.TypeConvertDouble && a.number() != nil:
		return column{doubles: a.number()}
	case name == overloads.TypeConvertInt && a.ints != nil:
		return a
	case name == overloads.TypeConvertInt && a.doubles != nil:
		return column{ints: mappedColumn(doublesOf, a.doubles, truncated)}
	}
	return column{}
}

func mappedColumn[T, U any](of func(*Batch) *vectors[T], a columnOf[T], f func(T) (U, ref.Val)) columnOf[U] {
	return func(b *Batch, rows []int32, out []U) {
		v := of(b)
		x := v.take(len(rows))
		a(b, rows, x)
		for i := range out {
			y, err := f(x[i])
			if err != nil {
				b.fail(rows[i])
			}
			out[i] = y
		}
		v.give(x)
	}
}
