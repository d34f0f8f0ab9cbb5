package eval

import "github.com/google/cel-go/common/ast"

// Checked is the expression with the types of its parts, for who writes it in another dialect; nil for a part of another. It must not be
// changed.
func (e *Expr) Checked() *ast.AST { return e.checked }
