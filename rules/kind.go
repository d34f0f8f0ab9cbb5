package rules

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Kind is the type of result that a site requires of an expression.
type Kind struct {
	// Name is the kind as the author reads it: "true or false", "a number".
	Name string
	// Accepts reports whether a type is acceptable.
	Accepts func(*cel.Type) bool
}

func anyOf(kinds ...types.Kind) func(*cel.Type) bool {
	return func(t *cel.Type) bool { return slices.Contains(kinds, t.Kind()) }
}

// Bool returns the kind that accepts true or false.
func Bool() Kind { return Kind{"true or false", anyOf(types.BoolKind)} }

// Number returns the kind that accepts an int or a double.
func Number() Kind { return Kind{"a number", anyOf(types.IntKind, types.DoubleKind)} }

// String returns the kind that accepts a string.
func String() Kind { return Kind{"a string", anyOf(types.StringKind)} }

// Duration returns the kind that accepts a duration.
func Duration() Kind { return Kind{"a duration", anyOf(types.DurationKind)} }

// Anything returns the kind that accepts every type.
func Anything() Kind { return Kind{"anything", func(*cel.Type) bool { return true }} }

// Exactly returns the kind that accepts one type only.
func Exactly(t *cel.Type, name string) Kind {
	return Kind{name, func(got *cel.Type) bool { return got.IsExactType(t) }}
}

// SortKey returns the kind that accepts values with an order: a number, string, bool, timestamp, duration, or a list of them.
func SortKey() Kind {
	return Kind{"a sort key (number, string, bool, timestamp, duration, or a list of them)", sortable}
}

func sortable(t *cel.Type) bool {
	if t.Kind() == types.ListKind {
		return sortable(t.Parameters()[0])
	}
	return anyOf(types.BoolKind, types.IntKind, types.DoubleKind, types.StringKind, types.TimestampKind, types.DurationKind)(t)
}
