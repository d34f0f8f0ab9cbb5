package eval

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/celsius-scheduler/celsius/rules"
)

// Told describes one evaluation of an expression, or of a part of it, for people.
type Told struct {
	// Text is the expression with the value after each field and call: queue.allocated.cpu 48 + 16 <= queue.capability.cpu 60.
	Text string `json:"text"`
	// Value is the result. It is "" if the part was not evaluated, because an earlier part decided the result.
	Value string `json:"value,omitempty"`
	// Join is && or || if the expression consists of Parts that it joins.
	Join  string `json:"join,omitempty"`
	Parts []Told `json:"parts,omitempty"`
}

// Tell evaluates an expression with cel-go, as Interpret does, and returns the results of its parts. words converts a value to text, or
// returns false if no text would help. Tell is for single questions, because it plans the expression again.
func (e *Expr) Tell(vars cel.Activation, words func(ref.Val) (string, bool)) Told {
	t := &teller{of: e, words: words}
	if e.checked == nil {
		return Told{Text: strings.TrimSpace(e.Text.Value), Value: t.told(e.Eval(vars))}
	}
	// The budget is that of an interpreted expression, even if the expression has a compiled form.
	p, err := e.scope.Program(e.checked, cel.EvalOptions(cel.OptTrackState), cel.CostTracking(actualCost{rules.Walkers(), rules.Searchers()}),
		cel.CostLimit(rules.CostLimit))
	if err != nil {
		return Told{Text: strings.TrimSpace(e.Text.Value), Value: t.told(e.Eval(vars))}
	}
	v, details, err := p.Eval(vars)
	if err != nil && (v == nil || !types.IsError(v)) {
		v = types.WrapErr(err)
	}
	t.state = details.State()
	out := t.tell(e.checked.Expr())
	out.Value = t.told(v)
	return out
}

// teller describes one evaluation.
type teller struct {
	of    *Expr
	words func(ref.Val) (string, bool)
	state interpreter.EvalState
}

// tell describes a part. If conditions are joined, it describes each of them.
func (t *teller) tell(part ast.Expr) Told {
	out := Told{}
	if v, ok := t.state.Value(part.ID()); ok {
		out.Value = t.told(v)
	}
	if join := joinOf(part); join != "" {
		out.Join = join
		for _, p := range joined(part, join, nil) {
			out.Parts = append(out.Parts, t.tell(p))
		}
		out.Text = textOf(t.of, part)
		return out
	}
	out.Text = t.text(part, false)
	return out
}

// joinOf returns && or || for a call of that operator, and "" for any other part.
func joinOf(part ast.Expr) string {
	if part.Kind() != ast.CallKind {
		return ""
	}
	switch name := part.AsCall().FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		sign, _ := operators.FindReverse(name)
		return sign
	}
	return ""
}

// joined returns the parts that a chain of the same operator joins.
func joined(part ast.Expr, join string, out []ast.Expr) []ast.Expr {
	if joinOf(part) != join {
		return append(out, part)
	}
	for _, arg := range part.AsCall().Args() {
		out = joined(arg, join, out)
	}
	return out
}

// text formats a part with the values that it read. valued adds its result, unless the operator makes it obvious.
func (t *teller) text(part ast.Expr, valued bool) string {
	if part.Kind() == ast.CallKind {
		call := part.AsCall()
		switch name, args := call.FunctionName(), call.Args(); {
		case name == operators.Conditional:
			return t.within(args[0], name, true) + " ? " + t.within(args[1], name, true) + " : " + t.within(args[2], name, true)
		case name == operators.LogicalNot || name == operators.Negate:
			sign, _ := operators.FindReverse(name)
			return sign + t.within(args[0], name, false)
		case len(args) == 2 && name != operators.Index && name != operators.OptIndex:
			if sign, ok := operators.FindReverseBinaryOperator(name); ok {
				return t.within(args[0], name, false) + " " + sign + " " + t.within(args[1], name, true)
			}
		}
	}
	text := t.call(part)
	// The result of a call is shown only within another expression. The value of a field is always shown.
	if words, ok := t.gave(part); ok && (valued || part.Kind() != ast.CallKind) {
		if strings.ContainsAny(words, " ,") {
			words = "{" + words + "}"
		}
		return text + " " + words
	}
	return text
}

// gave returns the result of a part in words. It returns false for literals, and if there are no words.
func (t *teller) gave(part ast.Expr) (words string, ok bool) {
	if slices.Contains([]ast.ExprKind{ast.LiteralKind, ast.ListKind, ast.MapKind, ast.StructKind}, part.Kind()) {
		return "", false
	}
	v, ok := t.state.Value(part.ID())
	if !ok {
		return "", false
	}
	return t.words(v)
}

// call formats a part that is not an operator. A call contains the values of its arguments. Other parts are as their author wrote them.
func (t *teller) call(part ast.Expr) string {
	if _, macro := t.of.checked.SourceInfo().GetMacroCall(part.ID()); macro || part.Kind() != ast.CallKind {
		return textOf(t.of, part)
	}
	call := part.AsCall()
	if name := call.FunctionName(); operators.Precedence(name) > 0 || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "@") {
		return textOf(t.of, part)
	}
	args := make([]string, len(call.Args()))
	for i, arg := range call.Args() {
		args[i] = t.text(arg, true)
	}
	text := call.FunctionName() + "(" + strings.Join(args, ", ") + ")"
	if !call.IsMemberFunction() {
		return text
	}
	target := call.Target()
	if words, ok := t.gave(target); ok && target.Kind() != ast.CallKind {
		return textOf(t.of, target) + " {" + words + "}." + text
	}
	return t.within(target, operators.Index, false) + "." + text
}

// within returns the text of an operator's argument, in parentheses if they are needed. In CEL a smaller precedence binds tighter.
// Operators of equal precedence are evaluated from left to right.
func (t *teller) within(part ast.Expr, operator string, right bool) string {
	text := t.text(part, true)
	if part.Kind() != ast.CallKind {
		return text
	}
	inner, outer := operators.Precedence(part.AsCall().FunctionName()), operators.Precedence(operator)
	if inner > outer || inner == outer && right {
		return "(" + text + ")"
	}
	return text
}

// told returns the result of an expression in words.
func (t *teller) told(v ref.Val) string {
	if types.IsError(v) {
		return "error: " + v.(*types.Err).Error()
	}
	if text, ok := t.words(v); ok {
		return text
	}
	return v.Type().TypeName()
}
