package eval

import "github.com/google/cel-go/common/ast"

// Checked returns the expression with the types of its parts, for programs that write it in another dialect. It returns nil for a part of
// another expression. The caller must not change the result.
func (e *Expr) Checked() *ast.AST { return e.checked }
