package rules

import (
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

type operation uint8

const (
	plus operation = iota
	minus
	times
	by
)

// arithmetic returns an operator that converts an int next to a double into a double, and then lets CEL compute. Overflow, division of an
// int by zero and similar errors are CEL's own errors.
func arithmetic(op operation) functions.BinaryOp {
	return func(l, r ref.Val) ref.Val {
		switch x := l.(type) {
		case types.Double:
			switch y := r.(type) {
			case types.Double:
				return floats(op, float64(x), float64(y))
			case types.Int:
				return floats(op, float64(x), float64(y))
			}
		case types.Int:
			if y, ok := r.(types.Double); ok {
				return floats(op, float64(x), float64(y))
			}
		}
		return general(op, l, r)
	}
}

func floats(op operation, x, y float64) ref.Val {
	switch op {
	case plus:
		return types.Double(x + y)
	case minus:
		return types.Double(x - y)
	case times:
		return types.Double(x * y)
	default:
		return types.Double(x / y)
	}
}

func general(op operation, l, r ref.Val) ref.Val {
	switch op {
	case plus:
		if a, ok := l.(traits.Adder); ok {
			if err := tooLarge("+", lengthOf(l)+lengthOf(r)); err != nil {
				return err
			}
			return a.Add(r)
		}
	case minus:
		if a, ok := l.(traits.Subtractor); ok {
			return a.Subtract(r)
		}
	case times:
		if a, ok := l.(traits.Multiplier); ok {
			return a.Multiply(r)
		}
	case by:
		if a, ok := l.(traits.Divider); ok {
			return a.Divide(r)
		}
	}
	return types.MaybeNoSuchOverloadErr(l)
}

// lengthOf returns the length of a string, bytes or a list in the unit that determines its memory: bytes or elements.
func lengthOf(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case traits.Lister:
		return SizeOf(v)
	}
	return 0
}
