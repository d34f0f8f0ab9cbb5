package rules

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// optionalFields reports fields of objects that are read with .? or through an optional. CEL looks for optional fields only in maps and
// messages. In an object it would find no field, whatever the field contains.
func (s *Scope) optionalFields(text source.Text, a *ast.AST) source.Issues {
	var out source.Issues
	visit := func(e ast.Expr) {
		operand, field := optionalRead(e)
		if operand == nil {
			return
		}
		t := a.GetType(operand.ID())
		through := t.TypeName() == "optional_type" && len(t.Parameters()) == 1
		if through {
			t = t.Parameters()[0]
		}
		o := s.ObjectOf(t)
		if o == nil || o.Leaf || !through && e.Kind() == ast.SelectKind {
			return
		}
		at := 0
		if r, ok := a.SourceInfo().GetOffsetRange(e.ID()); ok {
			at = int(r.Start)
		}
		at, width := wordAt([]rune(text.Value), at, field)
		if through {
			out = append(out, text.Issue(at, width, fmt.Sprintf("field %q of %s cannot be read through an optional", field, o.Name),
				"write .optMap(x, x."+field+")"))
			return
		}
		out = append(out, text.Issue(at, width, fmt.Sprintf("%s has field %q always; .? is for maps", o.Name, field),
			"write ."+field+", and compare it with null where it may be missing"))
	}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(visit))
	return out
}

// optionalRead returns the operand and the field of a possible read of an optional field, or nil for other expressions.
func optionalRead(e ast.Expr) (operand ast.Expr, field string) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.OptSelect {
			return c.Args()[0], constant(c.Args()[1])
		}
	default: // it reads nothing itself
	}
	return nil, ""
}
