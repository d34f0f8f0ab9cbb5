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

// Doubts are what is wrong with an expression though its types are right, or may be. Errors: a literal that a field never is, and a
// call that fails whatever is there. Warnings: what fails where a map lacks a key that is written out, or a
// field is 0, and neither the expression nor one of the guards, without which it is not asked, looks first.
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

// doubts is one expression under examination.
type doubts struct {
	of     *Expr
	looked map[string]bool // texts of what some part compares, and keys of maps that some part asks for
	// literals are the parts that are made of literals, and of times of which any will do.
	literals map[int64]bool
	failed   map[int64]bool // parts in which a failure was reported
	// meter bounds what is evaluated, of all parts together: what is beyond it is not looked at.
	meter  *Meter
	issues source.Issues
}

// looks notes what a part of an expression compares, or asks the presence of.
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
	default: // compares nothing
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
	default: // neither fails nor compares
	}
}

// word reports a literal that a field of fixed words is compared with, and never is.
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

// member is the declared field that a part reads, nil where it is none.
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

// isLabels says whether a part is a map of an object's own, of which nobody knows what it holds.
func (d *doubts) isLabels(part ast.Expr) bool {
	m := d.member(part)
	return m != nil && m.Type.Kind() == types.MapKind && m.Reads == nil && m.Constant == nil
}

// missing warns of a key that nobody has looked for.
func (d *doubts) missing(part, of ast.Expr, key string) {
	if d.looked[keyText(d.of, of, key)] {
		return
	}
	field := textOf(d.of, of)
	d.report(source.Warning, part, 1, fmt.Sprintf("fails where %s has no %s", field, key),
		fmt.Sprintf("write %s[?%s].orValue(…), or look first: %s in %s", field, key, key, field))
}

// divisor reports a division by what is 0, or may be. Of doubles it gives a value all the same, which most places refuse.
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

// unconverted is what double() or int() is of.
func unconverted(e ast.Expr) ast.Expr {
	for e.Kind() == ast.CallKind && slices.Contains([]string{"double", "int"}, e.AsCall().FunctionName()) && len(e.AsCall().Args()) == 1 {
		e = e.AsCall().Args()[0]
	}
	return e
}

// measured says whether a part is a number as an object has it: a field, or a part of one, that is neither constant nor computed.
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

// failing reports a call of literals, and of times of which any will do, that fails.
func (d *doubts) failing(part ast.Expr) {
	if fails, reason := d.fails(part); fails {
		d.failed[part.ID()] = true
		if reason != "" {
			d.report(source.Error, part, 1, "always fails: "+reason, "")
		}
	}
}

// fails says whether a call fails always; the reason is "" where a part of it was reported.
func (d *doubts) fails(part ast.Expr) (fails bool, reason string) {
	c := part.AsCall()
	if slices.Contains([]string{operators.Conditional, operators.LogicalAnd, operators.LogicalOr}, c.FunctionName()) {
		return false, "" // they may leave a part alone
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

// literal says whether a part is made of literals, and of times of which any will do. That of its own parts is known.
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

// evaluated is a part in which every time is at; nil: it is not known.
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

// purse is an Activation with one meter for all.
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

// textOf is a part as it is written, with the same spaces for all.
func textOf(e *Expr, part ast.Expr) string {
	text, err := cel.ExprToString(part, e.checked.SourceInfo())
	if err != nil {
		return fmt.Sprintf("part %d", part.ID())
	}
	return text
}

// keyText stands for the presence of a key in a map.
func keyText(e *Expr, of ast.Expr, key string) string { return key + " in " + textOf(e, of) }

// quoted is a text as CEL writes it back.
func quoted(text string) string { return fmt.Sprintf("%q", text) }
