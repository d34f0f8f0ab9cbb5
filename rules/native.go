package rules

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// Roots is an Activation that knows the roots of its language by number, which is faster than by name: the number is the
// root's place in Vocabulary.Roots. Root gives nil where the root is not known by number, or not now.
type Roots interface {
	cel.Activation
	Root(number int) any
}

// Rows is Roots of which one root, Vocabulary.Row, stands for one row of a table after the other.
type Rows interface {
	Roots
	// Point makes that root stand for a row.
	Point(row int32)
}

// Source is where an argument of a function comes from, in a column.
type Source struct {
	// Value is what it is for every row; nil: it differs.
	Value ref.Val
	// Row says that it is the row's object itself, Member that it is that member of the object.
	Row    bool
	Member *Member
}

// Native is an overload in forms that take no list of arguments and give a result without a box. Each may be nil, and
// gives what Eval gives; false says that Eval is to be asked, be it for an error only.
type Native struct {
	Bool   func(a, b, c ref.Val) (x, ok bool)
	Int    func(a, b, c ref.Val) (x int64, ok bool)
	Double func(a, b, c ref.Val) (x float64, ok bool)
	// Bools, Ints and Doubles compute many rows at once, out[i] for rows[i].
	Bools   func(t Rows, args []Source, rows []int32, out []bool) bool
	Ints    func(t Rows, args []Source, rows []int32, out []int64) bool
	Doubles func(t Rows, args []Source, rows []int32, out []float64) bool
}
