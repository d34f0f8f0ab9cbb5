package rules

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// Roots is an Activation that also finds roots by number, which is faster than by name. The number is the root's index in Vocabulary.Roots.
// Root returns nil if the root has no number or is not available now.
type Roots interface {
	cel.Activation
	Root(number int) any
}

// Rows is a Roots in which one root, Vocabulary.Row, stands for each row of a table in turn.
type Rows interface {
	Roots
	// Point sets the row that the root stands for.
	Point(row int32)
}

// Source states where a function gets an argument from when it computes a column.
type Source struct {
	// Value is the value for every row, or nil if it differs between rows.
	Value ref.Val
	// Row is true if the argument is the row's object. Member is set if the argument is that member of the object.
	Row    bool
	Member *Member
}

// Native contains forms of an overload that take separate arguments and return an unboxed result. Each form may be nil, and returns the
// same value as Eval. If ok is false, the caller must call Eval, which may also return an error.
type Native struct {
	Bool   func(a, b, c ref.Val) (x, ok bool)
	Int    func(a, b, c ref.Val) (x int64, ok bool)
	Double func(a, b, c ref.Val) (x float64, ok bool)
	// Bools, Ints and Doubles compute many rows at once: out[i] belongs to rows[i].
	Bools   func(t Rows, args []Source, rows []int32, out []bool) bool
	Ints    func(t Rows, args []Source, rows []int32, out []int64) bool
	Doubles func(t Rows, args []Source, rows []int32, out []float64) bool
}
