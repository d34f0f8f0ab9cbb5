package lint

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
)

// atom is a condition that compares a value with literals. The value is in a list, is not in it, or is above or below a literal.
type atom struct {
	text string // the source text
	of   string // the source text of the value
	sign string // in, !in, <, <=, >, >=
	with []any  // string, float64 or bool
}

// teller returns the source text of parts of one expression.
type teller struct{ *ast.AST }

func (t teller) text(part ast.Expr) string {
	text, err := cel.ExprToString(part, t.SourceInfo())
	if err != nil {
		return ""
	}
	return text
}

// written returns the operands of a part of an expression, as its author wrote them. For a macro, it returns the target and the arguments.
func (t teller) written(part ast.Expr) []ast.Expr {
	if call, macro := t.SourceInfo().GetMacroCall(part.ID()); macro {
		part = call
	}
	return rules.Children(part)
}

// operands returns the parts that a chain of one operator joins.
func operands(part ast.Expr, operator string) []ast.Expr {
	if part.Kind() != ast.CallKind || part.AsCall().FunctionName() != operator {
		return []ast.Expr{part}
	}
	var out []ast.Expr
	for _, arg := range part.AsCall().Args() {
		out = append(out, operands(arg, operator)...)
	}
	return out
}

// atoms returns conditions that are all true if an expression is true; with negated, if the expression is false.
func (t teller) atoms(part ast.Expr, negated bool) []atom {
	if part.Kind() != ast.CallKind {
		return t.truth(part, negated)
	}
	call := part.AsCall()
	joins := map[bool]string{false: operators.LogicalAnd, true: operators.LogicalOr}[negated]
	switch name := call.FunctionName(); name {
	case operators.LogicalNot:
		return t.atoms(call.Args()[0], !negated)
	case joins:
		var out []atom
		for _, arg := range call.Args() {
			out = append(out, t.atoms(arg, negated)...)
		}
		return out
	case operators.LogicalAnd, operators.LogicalOr, operators.Conditional:
		return nil
	case operators.In:
		return t.among(part, call.Args(), negated)
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return t.comparison(part, name, call.Args(), negated)
	}
	return t.truth(part, negated)
}

// truth returns the condition that a part is true, or false.
func (t teller) truth(part ast.Expr, negated bool) []atom {
	if part.Kind() == ast.LiteralKind {
		return nil
	}
	return []atom{{text: t.text(part), of: t.text(part), sign: "in", with: []any{!negated}}}
}

// among returns the condition that a value is in a list of literals, or is not.
func (t teller) among(part ast.Expr, args []ast.Expr, negated bool) []atom {
	if args[1].Kind() != ast.ListKind {
		return t.truth(part, negated)
	}
	a := atom{text: t.text(part), of: t.text(args[0]), sign: map[bool]string{false: "in", true: "!in"}[negated]}
	for _, x := range args[1].AsList().Elements() {
		v, ok := literal(x)
		if !ok {
			return nil
		}
		a.with = append(a.with, v)
	}
	return []atom{a}
}

func (t teller) comparison(part ast.Expr, operator string, args []ast.Expr, negated bool) []atom {
	sign := map[string]string{
		operators.Equals: "in", operators.NotEquals: "!in", operators.Less: "<", operators.LessEquals: "<=",
		operators.Greater: ">", operators.GreaterEquals: ">=",
	}[operator]
	v, ok := literal(args[1])
	of := args[0]
	if !ok {
		if v, ok = literal(args[0]); !ok {
			return nil
		}
		of = args[1]
		if turned := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]; turned != "" {
			sign = turned
		}
	}
	if negated {
		sign = map[string]string{"in": "!in", "!in": "in", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign]
	}
	return []atom{{text: t.text(part), of: t.text(of), sign: sign, with: []any{v}}}
}

func literal(part ast.Expr) (any, bool) {
	if part.Kind() != ast.LiteralKind {
		return nil, false
	}
	switch v := part.AsLiteral().(type) {
	case types.String:
		return string(v), true
	case types.Bool:
		return bool(v), true
	case types.Int:
		return float64(v), true
	case types.Uint:
		return float64(v), true
	case types.Double:
		return float64(v), true
	}
	return nil, false
}

// clash finds two conditions that exclude each other.
func clash(atoms []atom) (a, b atom, found bool) {
	for i, b := range atoms {
		for _, a := range atoms[:i] {
			if a.of == b.of && a.of != "" && excludes(a, b) {
				return a, b, true
			}
		}
	}
	return atom{}, atom{}, false
}

// excludes reports whether two conditions about one value cannot both be true.
func excludes(a, b atom) bool {
	switch {
	case a.sign == "in":
		return !slices.ContainsFunc(a.with, b.allows)
	case b.sign == "in":
		return excludes(b, a)
	case a.sign == "!in" || b.sign == "!in":
		return false
	case b.sign[0] == '>':
		return a.sign[0] == '<' && excludes(b, a)
	case a.sign[0] == b.sign[0]:
		return false
	}
	low, ok := a.with[0].(float64)
	high, also := b.with[0].(float64)
	return ok && also && (low > high || low == high && (a.sign == ">" || b.sign == "<"))
}

// allows reports whether the condition can be true for a value.
func (a atom) allows(v any) bool {
	switch a.sign {
	case "in":
		return slices.Contains(a.with, v)
	case "!in":
		return !slices.Contains(a.with, v)
	}
	x, ok := v.(float64)
	with, also := a.with[0].(float64)
	if !ok || !also {
		return true
	}
	return map[string]bool{"<": x < with, "<=": x <= with, ">": x > with, ">=": x >= with}[a.sign]
}
