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

// Expr is a compiled expression. It is immutable, and concurrent evaluations are safe.
type Expr struct {
	Text  source.Text
	Type  *cel.Type
	Reads *rules.Reads
	// Ends are the paths in Reads that can be the value itself.
	Ends []rules.Read
	// Estimate is the estimate of one evaluation. A Metered expression runs with a budget (Purse).
	rules.Estimate
	steps int64 // of one evaluation without the iterations of its loops; only if it is metered
	// Passage describes how the value changes only because time passes.
	Passage
	// Part is the text of the expression if it is a part of another one.
	Part string

	// Interpreted states which part of the expression requires cel-go. It is "" if the expression is compiled.
	Interpreted string

	// ByRow is the first part of a compiled expression without a column form. It is "" if there is none, or if the expression does not read
	// the table's rows.
	ByRow string

	program cel.Program
	compiled
	scope   *rules.Scope // scope and checked are the source of the expression; nil for a part
	checked *ast.AST
}

// compiled contains the forms of an expression that does not require cel-go.
type compiled struct {
	kernel  kernel
	column  column
	numbers columnOf[float64] // the column as doubles
	names   []string          // names of roots, indexed by number
}

// At returns a copy of the expression for an equal text at another position. The NowParts are copies too, because a session finds the
// budget of an expression and of these parts by pointer.
func (e *Expr) At(text source.Text) *Expr {
	at := *e
	at.Text, at.NowParts = text, slices.Clone(e.NowParts)
	for i, part := range at.NowParts {
		at.NowParts[i] = part.At(text)
	}
	return &at
}

// Eval computes the value with the roots that vars resolves. An error is a *types.Err. It is fastest if vars is a Roots.
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

// Holds computes a bool. The second result is an error, or nil.
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

// Number computes an int or a double, as a double. The second result is an error, or nil.
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

// internal converts a panic in a function into an error, in the same form as cel-go.
func internal(failure any) ref.Val {
	if over, ok := failure.(*exceeded); ok {
		return over.err
	}
	return rules.Panic(failure)
}

// rooted prepares the roots of an evaluation.
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

// Interpret evaluates with cel-go alone. Compiled expressions must agree with it, and other expressions use it.
func (e *Expr) Interpret(vars cel.Activation) ref.Val {
	v, _ := e.interpret(vars)
	return v
}

// interpret also returns the cost, if cel-go counts it.
func (e *Expr) interpret(vars cel.Activation) (v ref.Val, cost *uint64) {
	v, details, err := e.program.Eval(vars)
	if err != nil && (v == nil || !types.IsError(v)) {
		v = types.WrapErr(err)
	}
	return v, details.ActualCost()
}

// interpretWithin evaluates with a budget whose steps cel-go counts.
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

// Constant reports whether the expression reads nothing except literals and params.
func (e *Expr) Constant() bool { return len(e.Reads.All) == 0 }

// Compile parses, checks and plans text. If an issue has severity Error, the Expr is nil.
func Compile(s *rules.Scope, text source.Text, want rules.Kind) (*Expr, source.Issues) {
	checked, issues := s.Check(text, want)
	if issues != nil {
		return nil, issues
	}
	native := checked.NativeRep()
	e := &Expr{Text: text, Type: checked.OutputType(), scope: s, checked: native}
	// An expression that is too expensive is refused before any part of it is computed, including constants.
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

// program lets cel-go plan an expression. If counted, an evaluation counts its cost, and ends when the cost exceeds CostLimit.
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

// compileKernel compiles an expression to closures and columns, if possible.
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

// costText formats a cost estimate. The largest number means that the cost is unknown to CEL.
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

// part returns a part of an expression as a separate Expr.
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
