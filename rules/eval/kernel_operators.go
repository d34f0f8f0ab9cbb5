package eval

import (
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules"
)

// junctionKernel compiles && or ||. A constant side either decides the result or is dropped.
func junctionKernel(a, b kernel, both bool) kernel {
	for _, side := range [][2]kernel{{a, b}, {b, a}} {
		if x, ok := side[0].constant.(types.Bool); ok {
			if bool(x) != both {
				return constantKernel(cel.BoolType, x)
			}
			return boolKernel(side[1].truth())
		}
	}
	if both {
		return boolKernel(and(a.truth(), b.truth()))
	}
	return boolKernel(or(a.truth(), b.truth()))
}

// and implements CEL's &&: false on either side decides the result, whatever the other side is.
func and(a, b func(rules.Roots) (bool, ref.Val)) func(rules.Roots) (bool, ref.Val) {
	return func(r rules.Roots) (bool, ref.Val) {
		x, err := a(r)
		if err == nil && !x {
			return false, nil
		}
		y, second := b(r)
		switch {
		case second == nil && !y:
			return false, nil
		case err != nil:
			return false, err
		}
		return y, second
	}
}

// or implements CEL's ||: true on either side decides the result.
func or(a, b func(rules.Roots) (bool, ref.Val)) func(rules.Roots) (bool, ref.Val) {
	return func(r rules.Roots) (bool, ref.Val) {
		x, err := a(r)
		if err == nil && x {
			return true, nil
		}
		y, second := b(r)
		switch {
		case second == nil && y:
			return true, nil
		case err != nil:
			return false, err
		}
		return y, second
	}
}

func conditional(t *cel.Type, parts []kernel) kernel {
	when, yes, no := parts[0].truth(), parts[1], parts[2]
	if x, ok := parts[0].constant.(types.Bool); ok {
		out := no
		if x {
			out = yes
		}
		out.literal = false
		return out
	}
	k := kernel{value: func(r rules.Roots) ref.Val {
		x, err := when(r)
		switch {
		case err != nil:
			return err
		case x:
			return yes.value(r)
		}
		return no.value(r)
	}}
	switch t.Kind() {
	case types.BoolKind:
		k.boolean = either(when, yes.boolean, no.boolean)
	case types.IntKind:
		k.integer = either(when, yes.integer, no.integer)
	case types.DoubleKind:
		k.double = either(when, yes.double, no.double)
	case types.StringKind:
		k.str = either(when, yes.str, no.str)
	default: // it has no typed form
	}
	return k
}

func either[T any](when func(rules.Roots) (bool, ref.Val), yes, no func(rules.Roots) (T, ref.Val)) func(rules.Roots) (T, ref.Val) {
	if yes == nil || no == nil {
		return nil
	}
	return func(r rules.Roots) (T, ref.Val) {
		x, err := when(r)
		switch {
		case err != nil:
			var none T
			return none, err
		case x:
			return yes(r)
		}
		return no(r)
	}
}

// optional finds an element that may be missing.
func (k *kerneler) optional(e ast.Expr, parts []kernel) (kernel, error) {
	of := k.typeOf(e.AsCall().Args()[0])
	if of.Kind() != types.MapKind && of.Kind() != types.ListKind {
		return kernel{}, uncompiled{"[?…] on " + rules.TypeName(of)}
	}
	v, key := parts[0].value, parts[1].value
	return kernel{value: func(r rules.Roots) ref.Val {
		x, found, err := find(v(r), key(r))
		switch {
		case err != nil:
			return err
		case found:
			return types.OptionalOf(x)
		}
		return types.OptionalNone
	}}, nil
}

func orValue(t *cel.Type, parts []kernel) kernel {
	of, otherwise := parts[0].value, parts[1]
	return valueKernel(t, func(r rules.Roots) ref.Val {
		switch v := of(r).(type) {
		case *types.Err:
			return v
		case *types.Optional:
			if v.HasValue() {
				return v.GetValue()
			}
			return otherwise.value(r)
		}
		return types.NoSuchOverloadErr()
	})
}

// equality compares two values. If the evaluation is counted, the traversal of texts and lists is counted, too.
func (k *kerneler) equality(a, b kernel, differ bool) kernel {
	if !k.metered || a.number() != nil || b.number() != nil || a.boolean != nil {
		return equals(a, b, differ)
	}
	x, y := boxed(a), boxed(b)
	return boolKernel(func(r rules.Roots) (bool, ref.Val) {
		v, err := x(r)
		if err != nil {
			return false, err
		}
		w, err := y(r)
		if err != nil {
			return false, err
		}
		m := meterOf(r)
		m.steps(min(rules.Walked(v, m.left.Steps), rules.Walked(w, m.left.Steps)))
		return types.Equal(v, w) == types.True != differ, nil
	})
}

// equals compares numbers and strings unboxed, and everything else in the same way as CEL.
func equals(a, b kernel, differ bool) kernel {
	switch {
	case a.str != nil && b.str != nil:
		return boolKernel(compared(a.str, b.str, func(x, y string) bool { return x == y != differ }))
	case a.integer != nil && b.integer != nil:
		return boolKernel(compared(a.integer, b.integer, func(x, y int64) bool { return x == y != differ }))
	case a.number() != nil && b.number() != nil:
		return boolKernel(compared(a.number(), b.number(), func(x, y float64) bool { return x == y != differ }))
	case a.boolean != nil && b.boolean != nil:
		return boolKernel(compared(a.boolean, b.boolean, func(x, y bool) bool { return x == y != differ }))
	}
	return boolKernel(compared(boxed(a), boxed(b), func(x, y ref.Val) bool { return types.Equal(x, y) == types.True != differ }))
}

// boxed returns a kernel's value and its error separately.
func boxed(k kernel) func(rules.Roots) (ref.Val, ref.Val) {
	return func(r rules.Roots) (ref.Val, ref.Val) {
		v := k.value(r)
		if types.IsError(v) {
			return nil, v
		}
		return v, nil
	}
}

func compared[T any](a, b func(rules.Roots) (T, ref.Val), holds func(x, y T) bool) func(rules.Roots) (bool, ref.Val) {
	return func(r rules.Roots) (bool, ref.Val) {
		x, err := a(r)
		if err != nil {
			return false, err
		}
		y, err := b(r)
		if err != nil {
			return false, err
		}
		return holds(x, y), nil
	}
}

// unboxedOperator compiles arithmetic and order of numbers, and order of strings. It returns false for anything else.
func unboxedOperator(name string, parts []kernel) (kernel, bool) {
	switch len(parts) {
	case 1:
		return unary(name, parts[0])
	case 2:
	default:
		return kernel{}, false
	}
	if name == operators.In {
		return inConstants(parts[0], parts[1])
	}
	if o, ok := orders()[name]; ok {
		return o.compile(parts[0], parts[1])
	}
	return arithmeticKernel(name, parts[0], parts[1])
}

func arithmeticKernel(name string, a, b kernel) (kernel, bool) {
	if a.integer != nil && b.integer != nil {
		f := integers(name)
		if f == nil {
			return kernel{}, false
		}
		return intKernel(combined(a.integer, b.integer, f)), true
	}
	x, y, f := a.number(), b.number(), doubles(name)
	if x == nil || y == nil || f == nil {
		return kernel{}, false
	}
	return doubleKernel(combined(x, y, f)), true
}

func (o order) compile(a, b kernel) (kernel, bool) {
	if a.integer != nil && b.integer != nil {
		return boolKernel(compared(a.integer, b.integer, o.integers)), true
	}
	if a.str != nil && b.str != nil {
		return boolKernel(compared(a.str, b.str, o.strings)), true
	}
	x, y := a.number(), b.number()
	if x == nil || y == nil {
		return kernel{}, false
	}
	return boolKernel(compared(x, y, o.doubles)), true // Go and CEL agree: NaN is neither less nor greater
}

type order struct {
	integers func(x, y int64) bool
	doubles  func(x, y float64) bool
	strings  func(x, y string) bool
}

func orders() map[string]order {
	return map[string]order{
		operators.Less: {
			func(x, y int64) bool { return x < y }, func(x, y float64) bool { return x < y }, func(x, y string) bool { return x < y },
		},
		operators.LessEquals: {
			func(x, y int64) bool { return x <= y }, func(x, y float64) bool { return x <= y }, func(x, y string) bool { return x <= y },
		},
		operators.Greater: {
			func(x, y int64) bool { return x > y }, func(x, y float64) bool { return x > y }, func(x, y string) bool { return x > y },
		},
		operators.GreaterEquals: {
			func(x, y int64) bool { return x >= y }, func(x, y float64) bool { return x >= y }, func(x, y string) bool { return x >= y },
		},
	}
}

func combined[T any](a, b func(rules.Roots) (T, ref.Val), f func(x, y T) (T, ref.Val)) func(rules.Roots) (T, ref.Val) {
	return func(r rules.Roots) (T, ref.Val) {
		x, err := a(r)
		if err != nil {
			return x, err
		}
		y, err := b(r)
		if err != nil {
			return x, err
		}
		return f(x, y)
	}
}

func doubles(name string) func(x, y float64) (float64, ref.Val) {
	switch name {
	case operators.Add:
		return func(x, y float64) (float64, ref.Val) { return x + y, nil }
	case operators.Subtract:
		return func(x, y float64) (float64, ref.Val) { return x - y, nil }
	case operators.Multiply:
		return func(x, y float64) (float64, ref.Val) { return x * y, nil }
	case operators.Divide:
		return func(x, y float64) (float64, ref.Val) { return x / y, nil }
	}
	return nil
}

// integers computes operations that do not overflow. CEL computes the rest, to get CEL's errors.
func integers(name string) func(x, y int64) (int64, ref.Val) {
	switch name {
	case operators.Add:
		return func(x, y int64) (int64, ref.Val) {
			if sum := x + y; (sum > x) == (y > 0) {
				return sum, nil
			}
			return boxedInt(types.Int(x).Add(types.Int(y)))
		}
	case operators.Subtract:
		return func(x, y int64) (int64, ref.Val) {
			if d := x - y; (d < x) == (y > 0) {
				return d, nil
			}
			return boxedInt(types.Int(x).Subtract(types.Int(y)))
		}
	case operators.Multiply:
		return func(x, y int64) (int64, ref.Val) {
			const small = math.MaxInt32
			if -small <= x && x <= small && -small <= y && y <= small {
				return x * y, nil
			}
			return boxedInt(types.Int(x).Multiply(types.Int(y)))
		}
	case operators.Divide:
		return func(x, y int64) (int64, ref.Val) {
			if y > 0 {
				return x / y, nil
			}
			return boxedInt(types.Int(x).Divide(types.Int(y)))
		}
	case operators.Modulo:
		return func(x, y int64) (int64, ref.Val) {
			if y > 0 {
				return x % y, nil
			}
			return boxedInt(types.Int(x).Modulo(types.Int(y)))
		}
	}
	return nil
}

func boxedInt(v ref.Val) (int64, ref.Val) {
	if x, ok := v.(types.Int); ok {
		return int64(x), nil
	}
	return 0, types.MaybeNoSuchOverloadErr(v)
}

// unary compiles a negation, or a conversion between int and double.
func unary(name string, a kernel) (kernel, bool) {
	switch {
	case name == operators.Negate && a.double != nil:
		return doubleKernel(mapped(a.double, func(x float64) (float64, ref.Val) { return -x, nil })), true
	case name == operators.Negate && a.integer != nil:
		return intKernel(mapped(a.integer, negated)), true
	case name == overloads.TypeConvertDouble && a.number() != nil:
		return doubleKernel(a.number()), true
	case name == overloads.TypeConvertInt && a.integer != nil:
		return a, true
	case name == overloads.TypeConvertInt && a.double != nil:
		return intKernel(mapped(a.double, truncated)), true
	}
	return kernel{}, false
}

func mapped[T, U any](a func(rules.Roots) (T, ref.Val), f func(T) (U, ref.Val)) func(rules.Roots) (U, ref.Val) {
	return func(r rules.Roots) (U, ref.Val) {
		x, err := a(r)
		if err != nil {
			var none U
			return none, err
		}
		return f(x)
	}
}

func negated(x int64) (int64, ref.Val) {
	if x == math.MinInt64 {
		return boxedInt(types.Int(x).Negate())
	}
	return -x, nil
}

func truncated(x float64) (int64, ref.Val) {
	const safe = 1 << 62
	if -safe < x && x < safe {
		return int64(x), nil
	}
	return boxedInt(types.Double(x).ConvertToType(types.IntType))
}

// inConstants compiles the search for a string in a list of constants. As in cel-go, `in` with an empty list literal is always false, even
// for an error.
func inConstants(a, b kernel) (kernel, bool) {
	l, ok := b.constant.(traits.Lister)
	if ok && b.literal && l.Size() == types.IntZero {
		return constantKernel(cel.BoolType, types.False), true
	}
	if !ok || a.str == nil {
		return kernel{}, false
	}
	var words []string
	for it := l.Iterator(); it.HasNext() == types.True; {
		s, ok := it.Next().(types.String)
		if !ok {
			return kernel{}, false
		}
		words = append(words, string(s))
	}
	f := a.str
	return boolKernel(func(r rules.Roots) (bool, ref.Val) {
		x, err := f(r)
		return err == nil && slices.Contains(words, x), err
	}), true
}
