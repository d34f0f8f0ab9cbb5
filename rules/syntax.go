package rules

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// ArgumentsOf lists the arguments of a call, with the receiver of a method first.
func ArgumentsOf(c ast.CallExpr) []ast.Expr {
	if c.IsMemberFunction() {
		return append([]ast.Expr{c.Target()}, c.Args()...)
	}
	return c.Args()
}

// StringLiteral returns the value of a string literal, or "" for any other expression.
func StringLiteral(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	s, _ := e.AsLiteral().(types.String)
	return string(s)
}

func constant(e ast.Expr) string {
	if e.Kind() == ast.LiteralKind {
		if s, ok := e.AsLiteral().(types.String); ok {
			return string(s)
		}
	}
	return ""
}

// Children returns the direct parts of an expression, or nil if the expression has none of these forms.
func Children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		out := slices.Clone(e.AsCall().Args())
		if e.AsCall().IsMemberFunction() {
			out = append(out, e.AsCall().Target())
		}
		return out
	case ast.ListKind:
		return e.AsList().Elements()
	default:
		return nil
	}
}
