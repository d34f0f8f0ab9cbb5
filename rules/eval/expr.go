package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Expr is a compiled expression: immutable, and its evaluation shares nothing.
type Expr struct {
	Text  source.Text
	Type  *cel.Type
	Reads *rules.Reads
	// Ends are those paths among Reads that the value itself may be.
	Ends []rules.Read
	// Estimate is of one evaluation. What is Metered runs within a budget (Purse).
	rules.Estimate
	steps int64 // that one evaluation takes without its loops' turns; only of what is metered
	// Passage is how the value changes by nothing but the passing of time.
	Passage
	// Part is the text of an expression that is part of another.
	Part string

	// Interpreted says what in the expression leaves it to cel-go; "": it is compiled.
	Interpreted string

	// ByRow says which part of a compiled expression has no form by column; "": it has one, or does not read the table's rows.
	ByRow string

	program cel.Program
	compiled
	scope   *rules.Scope // with checked: what the expression was made of; nil for a part
	checked *ast.AST
}

// compiled is an expression that is not left to cel-go.
type compiled struct {
	kernel  kernel
	column  column
	numbers columnOf[float64] // the column as doubles
	names   []string          // of roots, by number
}

// At returns a copy of the expression for an equal text at another place. The NowParts are copies too, because a session finds the budget
// of an expression and of these parts by pointer.
func (e *Expr) At(text source.Text) *Expr {
	at := *e
	at.Text, at.NowParts = text, slices.Clone(e.NowParts)
	for i, part := range at.NowParts {
		at.NowParts[i] = part.At(text)
	}
	return &at
}

// Eval computes the value under the roots that vars resolves. A failure is a *types.Err. It is fastest where vars
// is a Roots.
func (e *Expr) Eval(vars cel.Activation) (v ref.Val) {
	switch {
	case e.kernel.value == nil && e.Metered:
		return e.interpretWithin(vars)
	case e.kernel.value == nil:
		return e.Interpret(vars)
	}
	defer func() {
		if failure := recover(); failure != nil {
			v = internal(failure)
		}
	}()
	return e.kernel.value(e.rooted(vars))
}

// Holds computes a bool; the second result is an error, nil for none.
func (e *Expr) Holds(vars cel.Activation) (x bool, err ref.Val) {
	if e.kernel.boolean == nil {
		v := e.Eval(vars)
		b, ok := v.(types.Bool)
		if !ok {
			return false, types.MaybeNoSuchOverloadErr(v)
		}
		return bool(b), nil
	}
	defer func() {
		if failure := recover(); failure != nil {
			x, err = false, internal(failure)
		}
	}()
	return e.kernel.boolean(e.rooted(vars))
}

// Number computes an int or a double, as a double; the second result is an error, nil for none.
func (e *Expr) Number(vars cel.Activation) (x float64, err ref.Val) {
	if e.kernel.double == nil && e.kernel.integer == nil {
		switch v := e.Eval(vars).(type) {
		case types.Double:
			return float64(v), nil
		case types.Int:
			return float64(v), nil
		default:
			return 0, types.MaybeNoSuchOverloadErr(v)
		}
	}
	defer func() {
		if failure := recover(); failure != nil {
			x, err = 0, internal(failure)
		}
	}()
	if e.kernel.double != nil {
		return e.kernel.double(e.rooted(vars))
	}
	i, err := e.kernel.integer(e.rooted(vars))
	return float64(i), err
}

// internal is the error that a panic becomes: of one in a function of ours, as cel-go has it.
func internal(failure any) ref.Val {
	if over, ok := failure.(*exceeded); ok {
		return over.err
	}
	return rules.Panic(failure)
}

// rooted begins an evaluation.
func (e *Expr) rooted(vars cel.Activation) rules.Roots {
	r, ok := vars.(rules.Roots)
	if !ok {
		r = named{vars, e.names}
	}
	if !e.Metered {
		return r
	}
	m := e.within(vars, r)
	m.meter.evaluate(e.steps)
	return m
}

// Interpret is Eval by cel-go alone: what compiled expressions must agree with, and what evaluates the others.
func (e *Expr) Interpret(vars cel.Activation) ref.Val {
	v, _ := e.interpret(vars)
	return v
}

// interpret gives the cost, too, where cel-go counts it.
func (e *Expr) interpret(vars cel.Activation) (v ref.Val, cost *uint64) {
	v, details, err := e.program.Eval(vars)
	if err != nil && (v == nil || !types.IsError(v)) {
		v = types.WrapErr(err)
	}
	return v, details.ActualCost()
}

// interpretWithin is interpret within a budget, of which cel-go keeps the steps.
func (e *Expr) interpretWithin(vars cel.Activation) (v ref.Val) {
	defer func() {
		if failure := recover(); failure != nil {
			v = internal(failure)
		}
	}()
	m := e.within(vars, nil).meter
	m.evaluate(0)
	v, cost := e.interpret(vars)
	if cost != nil {
		m.steps(int64(min(*cost, rules.CostLimit+1))) //nolint:gosec // bounded
	}
	return v
}

// Constant says whether nothing but literals and params is read.
func (e *Expr) Constant() bool { return len(e.Reads.All) == 0 }

// Compile parses, checks and plans text. On any issue of severity Error the Expr is nil.
func Compile(s *rules.Scope, text source.Text, want rules.Kind) (*Expr, source.Issues) {
	checked, issues := s.Check(text, want)
	if issues != nil {
		return nil, issues
	}
	native := checked.NativeRep()
	e := &Expr{Text: text, Type: checked.OutputType(), scope: s, checked: native}
	// What is too expensive is refused before anything of it is computed, constants included.
	var err error
	if e.Estimate, err = s.Estimate(checked); err != nil {
		return nil, source.Issues{text.Issue(0, 1, err.Error(), "")}
	}
	if e.Cost.Max > rules.CostLimit {
		return nil, source.Issues{
			tooExpensive(text, e.Cost.Max, rules.CostLimit, "",
				"avoid loops inside loops, and values that grow in a loop, or use a function of the language"),
		}
	}
	if e.program, err = program(s, native, false); err != nil {
		return nil, source.Issues{text.Issue(0, 1, err.Error(), "")}
	}
	e.Reads, e.Ends = s.Reads(native, native.Expr())
	e.Reads.Counted = e.Reads.Counted || e.Metered
	e.compileKernel(s, native)
	if e.Interpreted != "" && e.Cost.Max > rules.InterpretedLimit {
		return nil, source.Issues{tooExpensive(text, e.Cost.Max, rules.InterpretedLimit, " for what is interpreted ("+e.Interpreted+")",
			"write it without that, or with fewer loops; it then runs within a budget")}
	}
	if e.Interpreted != "" && e.Metered {
		if e.program, err = program(s, native, true); err != nil {
			return nil, source.Issues{text.Issue(0, 1, err.Error(), "")}
		}
	}
	return e, planNow(s, e, native)
}

// program has cel-go plan an expression; counted: it counts what an evaluation costs, and ends one that is over CostLimit.
func program(s *rules.Scope, a *ast.AST, counted bool, more ...cel.ProgramOption) (cel.Program, error) {
	options := append([]cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}, more...)
	if counted {
		options = append(options, cel.CostTracking(actualCost{rules.Walkers(), rules.Searchers()}), cel.CostLimit(rules.CostLimit))
	}
	return s.Program(a, options...) //nolint:wrapcheck // it is shown as it is, at its place
}

func tooExpensive(text source.Text, cost, limit uint64, why, hint string) source.Issue {
	return text.Issue(0, 1, fmt.Sprintf("may cost %s, over the limit of %d%s", costText(cost), limit, why), hint)
}

// compileKernel compiles an expression as far as that is possible.
func (e *Expr) compileKernel(s *rules.Scope, a *ast.AST) {
	k, err := kernelOf(s, a, e.Metered)
	if err != nil {
		e.Interpreted = err.Error()
		return
	}
	e.kernel, e.names = k, s.Roots()
	if e.Metered {
		e.steps = (&kerneler{scope: s, ast: a}).stepsOf(a.Expr())
	}
	columns, err := columnsOf(s, a, e.Metered)
	if err != nil {
		e.ByRow = err.Error()
		return
	}
	e.column, e.numbers, e.ByRow = columns, columns.number(), columns.byRow
}

// costText writes a cost estimate; CEL's unknown is the largest number.
func costText(c uint64) string {
	if c == math.MaxUint64 {
		return "any amount"
	}
	return fmt.Sprint(c)
}

func planNow(s *rules.Scope, e *Expr, a *ast.AST) source.Issues {
	parts, moving := s.NowParts(a, a.Expr())
	e.NowMoves = moving
	for _, part := range parts {
		x, err := e.part(s, a, part)
		if err != nil {
			return source.Issues{e.Text.Issue(0, 1, err.Error(), "")}
		}
		e.NowParts = append(e.NowParts, x)
	}
	if e.Timely() {
		t := &ticker{scope: s, ast: a, of: e}
		t.walk(a.Expr())
	}
	return nil
}

// part is a part of an expression as one of its own.
func (e *Expr) part(s *rules.Scope, a *ast.AST, part ast.Expr) (*Expr, error) {
	sub := ast.NewCheckedAST(ast.NewAST(part, a.SourceInfo()), a.TypeMap(), a.ReferenceMap())
	p, err := program(s, sub, e.Metered && e.Interpreted != "")
	if err != nil {
		return nil, err
	}
	text, err := cel.ExprToString(part, a.SourceInfo())
	if err != nil {
		text = e.Text.Value
	}
	x := &Expr{
		Text: e.Text, Part: text, Type: a.GetType(part.ID()), Reads: &rules.Reads{}, program: p,
		Estimate: rules.Estimate{Metered: e.Metered},
	}
	x.compileKernel(s, sub)
	return x, nil
}
