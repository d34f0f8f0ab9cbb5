package eval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Doubts returns possible mistakes in an expression whose types are correct. Errors are literals that a field can never equal, and calls
// that always fail. Warnings are operations that fail if a map lacks a literal key or if a field is 0. There is no warning if the
// expression, or one of the guards that must be true first, checks this.
func (e *Expr) Doubts(guards ...*Expr) source.Issues {
	if e == nil || e.checked == nil {
		return nil
	}
	d := &doubts{
		of: e, looked: map[string]bool{}, literals: map[int64]bool{}, failed: map[int64]bool{},
		meter: NewMeter(EvaluationBudget(), rules.SmallCost),
	}
	for _, x := range append(guards, e) {
		if x != nil && x.checked != nil {
			ast.PreOrderVisit(x.checked.Expr(), ast.NewExprVisitor(func(part ast.Expr) { d.looks(x, part) }))
		}
	}
	ast.PostOrderVisit(e.checked.Expr(), ast.NewExprVisitor(d.visit))
	return d.issues
}

// doubts examines one expression.
type doubts struct {
	of     *Expr
	looked map[string]bool // texts of parts that are compared, and of map keys that are tested
	// literals are the parts that consist of literals, and of times whose value does not matter.
	literals map[int64]bool
	failed   map[int64]bool // parts with a reported failure
	// meter limits the evaluation of all parts together. Parts beyond the limit are not examined.
	meter  *Meter
	issues source.Issues
}

// looks records what a part of an expression compares, or tests with has() or in.
func (d *doubts) looks(e *Expr, part ast.Expr) {
	switch part.Kind() {
	case ast.SelectKind:
		if s := part.AsSelect(); s.IsTestOnly() {
			d.looked[keyText(e, s.Operand(), quoted(s.FieldName()))] = true
		}
	case ast.CallKind:
		args := part.AsCall().Args()
		switch part.AsCall().FunctionName() {
		case operators.In:
			d.looked[keyText(e, args[1], textOf(e, args[0]))] = true
		case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
			for _, arg := range args {
				d.looked[textOf(e, arg)] = true
			}
		}
	default: // it compares nothing
	}
}

func (d *doubts) visit(part ast.Expr) {
	d.literals[part.ID()] = d.literal(part)
	switch part.Kind() {
	case ast.SelectKind:
		if s := part.AsSelect(); !s.IsTestOnly() && d.isLabels(s.Operand()) {
			d.missing(part, s.Operand(), quoted(s.FieldName()))
		}
	case ast.CallKind:
		if d.failing(part); d.failed[part.ID()] {
			return
		}
		args := part.AsCall().Args()
		switch part.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			d.word(args[0], args[1])
			d.word(args[1], args[0])
		case operators.In:
			if args[1].Kind() == ast.ListKind {
				for _, element := range args[1].AsList().Elements() {
					d.word(args[0], element)
				}
			}
		case operators.Index:
			if _, written := textLiteral(args[1]); written && d.isLabels(args[0]) {
				d.missing(part, args[0], textOf(d.of, args[1]))
			}
		case operators.Divide, operators.Modulo:
			d.divisor(part, args[1])
		}
	default: // it neither fails nor compares
	}
}

// word reports a comparison of a field that has fixed values with a literal that is not one of them.
func (d *doubts) word(field, literal ast.Expr) {
	m := d.member(field)
	value, isText := textLiteral(literal)
	if m == nil || m.Words == nil || !isText || slices.Contains(m.Words, value) {
		return
	}
	hint := "it is one of " + strings.Join(m.Words, ", ")
	if near := source.Nearest(value, m.Words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.report(source.Error, literal, len([]rune(value))+2, fmt.Sprintf("%s is never %q", m.Name, value), hint)
}

func textLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// member returns the declared field that a part reads, or nil.
func (d *doubts) member(part ast.Expr) *rules.Member {
	if part.Kind() != ast.SelectKind || part.AsSelect().IsTestOnly() {
		return nil
	}
	o := d.of.scope.ObjectOf(d.of.checked.GetType(part.AsSelect().Operand().ID()))
	if o == nil {
		return nil
	}
	return o.Find(part.AsSelect().FieldName())
}

// isLabels reports whether a part is a map whose keys are not known, for example labels.
func (d *doubts) isLabels(part ast.Expr) bool {
	m := d.member(part)
	return m != nil && m.Type.Kind() == types.MapKind && m.Reads == nil && m.Constant == nil
}

// missing warns about a map key that the expression does not check.
func (d *doubts) missing(part, of ast.Expr, key string) {
	if d.looked[keyText(d.of, of, key)] {
		return
	}
	field := textOf(d.of, of)
	d.report(source.Warning, part, 1, fmt.Sprintf("fails where %s has no %s", field, key),
		fmt.Sprintf("write %s[?%s].orValue(…), or look first: %s in %s", field, key, key, field))
}

// divisor reports a division by 0, or by a value that may be 0. With doubles the division has a result, but most callers refuse it.
func (d *doubts) divisor(division, by ast.Expr) {
	if by.Kind() == ast.LiteralKind {
		if x, ok := plainNumber(by.AsLiteral()); ok && x == 0 {
			severity := source.Warning
			if d.of.checked.GetType(division.ID()).Kind() == types.IntKind {
				severity = source.Error
			}
			d.report(severity, by, 1, "is a division by 0", "")
		}
		return
	}
	bare := unconverted(by)
	text := textOf(d.of, bare)
	if !d.measured(bare) || d.looked[text] || d.looked[textOf(d.of, by)] {
		return
	}
	d.report(source.Warning, by, 1, fmt.Sprintf("is a division by 0 where %s is 0", text), fmt.Sprintf("look first: %s > 0 ? … : …", text))
}

func plainNumber(v ref.Val) (float64, bool) {
	switch v := v.(type) {
	case types.Int:
		return float64(v), true
	case types.Double:
		return float64(v), true
	}
	return 0, false
}

// unconverted returns the argument of double() or int().
func unconverted(e ast.Expr) ast.Expr {
	for e.Kind() == ast.CallKind && slices.Contains([]string{"double", "int"}, e.AsCall().FunctionName()) && len(e.AsCall().Args()) == 1 {
		e = e.AsCall().Args()[0]
	}
	return e
}

// measured reports whether a part is a number that an object stores: a field, or a part of one, that is neither constant nor computed.
func (d *doubts) measured(part ast.Expr) bool {
	if part.Kind() == ast.CallKind {
		c := part.AsCall()
		switch {
		case c.FunctionName() == operators.Index:
			part = c.Args()[0]
		case c.IsMemberFunction() && slices.Contains([]string{"get", "milli", "size"}, c.FunctionName()):
			part = c.Target()
		}
	}
	for part.Kind() == ast.SelectKind {
		m := d.member(part)
		if m == nil || m.Constant != nil || m.Reads != nil {
			return false
		}
		part = part.AsSelect().Operand()
		if part.Kind() == ast.IdentKind {
			return true
		}
	}
	return false
}

// failing reports a call that always fails, although its arguments are only literals, and times whose value does not matter.
func (d *doubts) failing(part ast.Expr) {
	if fails, reason := d.fails(part); fails {
		d.failed[part.ID()] = true
		if reason != "" {
			d.report(source.Error, part, 1, "always fails: "+reason, "")
		}
	}
}

// fails reports whether a call always fails. The reason is "" if a part of the call was already reported.
func (d *doubts) fails(part ast.Expr) (fails bool, reason string) {
	c := part.AsCall()
	if slices.Contains([]string{operators.Conditional, operators.LogicalAnd, operators.LogicalOr}, c.FunctionName()) {
		return false, "" // they may not evaluate a part
	}
	if slices.ContainsFunc(rules.ArgumentsOf(c), func(arg ast.Expr) bool { return d.failed[arg.ID()] }) {
		return true, ""
	}
	if !d.literals[part.ID()] {
		return false, ""
	}
	for _, at := range []time.Time{time.Unix(0, 0), time.Date(2026, time.July, 1, 12, 30, 0, 0, time.UTC)} {
		v := d.evaluated(part, at)
		if !types.IsError(v) || rules.Exceeded(v) {
			return false, ""
		}
		reason = fmt.Sprint(v)
	}
	return true, reason
}

// literal reports whether a part consists of literals, and of times whose value does not matter. Its own parts are already known.
func (d *doubts) literal(part ast.Expr) bool {
	inside := rules.Children(part)
	switch part.Kind() {
	case ast.LiteralKind:
		return true
	case ast.CallKind, ast.ListKind:
		return len(inside) > 0 && !slices.ContainsFunc(inside, func(x ast.Expr) bool { return !d.anyTime(x) && !d.literals[x.ID()] })
	default:
		return false
	}
}

func (d *doubts) anyTime(part ast.Expr) bool {
	return d.of.checked.GetType(part.ID()).Kind() == types.TimestampKind
}

// evaluated returns the value of a part if every time in it is at, or nil if that is not known.
func (d *doubts) evaluated(part ast.Expr, at time.Time) ref.Val {
	if d.meter.Dry() {
		return nil
	}
	factory := ast.NewExprFactory()
	sample := factory.CopyExpr(part)
	var replace func(inside []ast.Expr)
	replace = func(inside []ast.Expr) {
		for _, x := range inside {
			if d.anyTime(x) {
				x.SetKindCase(factory.NewLiteral(x.ID(), types.Timestamp{Time: at}))
			}
			replace(rules.Children(x))
		}
	}
	replace(rules.Children(sample))
	a := d.of.checked
	e := &Expr{scope: d.of.scope, Estimate: rules.Estimate{Metered: true}}
	e.compileKernel(d.of.scope, ast.NewCheckedAST(ast.NewAST(sample, a.SourceInfo()), a.TypeMap(), a.ReferenceMap()))
	if e.Interpreted != "" {
		return nil
	}
	return e.Eval(purse{cel.NoVars(), d.meter})
}

// purse is an Activation with one meter for all expressions.
type purse struct {
	cel.Activation
	meter *Meter
}

// Meter implements Purse.
func (p purse) Meter(*Expr) *Meter { return p.meter }

func (d *doubts) report(severity source.Severity, at ast.Expr, width int, message, hint string) {
	offset := 0
	if r, ok := d.of.checked.SourceInfo().GetOffsetRange(at.ID()); ok {
		offset = int(r.Start)
	}
	i := d.of.Text.Issue(offset, width, message, hint)
	i.Severity = severity
	d.issues = append(d.issues, i)
}

// textOf returns the text of a part with uniform spaces.
func textOf(e *Expr, part ast.Expr) string {
	text, err := cel.ExprToString(part, e.checked.SourceInfo())
	if err != nil {
		return fmt.Sprintf("part %d", part.ID())
	}
	return text
}

// keyText returns a text that identifies the test for a key in a map.
func keyText(e *Expr, of ast.Expr, key string) string { return key + " in " + textOf(e, of) }

// quoted formats a string in the same way as CEL.
func quoted(text string) string { return fmt.Sprintf("%q", text) }
