package eval

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Watched contains the outcomes of an expression's evaluations.
type Watched struct {
	// Asked is how often the expression was evaluated.
	Asked int
	// Conditions are the parts that decide the result and which other parts are evaluated, in the order of the text. They are the operands of
	// && and ||, the condition before ?, and a whole expression of type bool. The next operand of && is evaluated if the one before it was
	// true, and the next operand of || if it was false. Therefore the outcomes of the last operand are those of the whole. The outcomes of a
	// condition before ? state which side was used. Parts that only literals and params decide are not conditions.
	Conditions []*Condition
}

// Condition is a part of an expression of type bool.
type Condition struct {
	Text string
	At   int // its start in the expression, in characters
	// True and False are how often it had that value.
	True, False int
}

// watching is the name of the function that records the value of a part. No author can write this name.
const watching = "@watched"

// Watch makes cel-go evaluate the expression from now on, and records the outcomes. Results stay the same. Each evaluation changes the
// expression and the returned Watched. Therefore the caller must own the expression, and must evaluate it in one place at a time. It
// returns an error if the expression is a part of another one, or cannot be planned.
func (e *Expr) Watch() (*Watched, error) {
	if e.checked == nil {
		return nil, errors.New("a part of an expression cannot be watched")
	}
	w := &watcher{of: e, numbers: map[int64]int{}}
	if root := e.checked.Expr(); e.Type.Kind() == types.BoolKind {
		w.condition(root)
	} else {
		w.find(root)
	}
	p, err := program(e.scope, w.instrumented(), e.Metered, cel.Functions(&functions.Overload{ //nolint:staticcheck // of one program alone
		Operator: watching, NonStrict: true, Binary: w.note,
	}))
	if err != nil {
		return nil, err
	}
	e.program, e.compiled = p, compiled{names: e.names}
	e.Interpreted, e.ByRow = "it is watched", "it is watched"
	return &w.Watched, nil
}

// watcher watches one expression.
type watcher struct {
	Watched
	of      *Expr
	numbers map[int64]int // of conditions, by the ID of the part
}

// wholeExpression is the number of the whole expression, which no condition has.
const wholeExpression = -1

// note records the value of a part, and returns it.
func (w *watcher) note(number, v ref.Val) ref.Val {
	switch n, _ := number.(types.Int); {
	case n == wholeExpression:
		w.Asked++
	case v == types.True:
		w.Conditions[n].True++
	case v == types.False:
		w.Conditions[n].False++
	}
	return v
}

// condition finds the conditions in a part of type bool.
func (w *watcher) condition(part ast.Expr) {
	if part.Kind() == ast.CallKind {
		switch name := part.AsCall().FunctionName(); name {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
			for _, arg := range part.AsCall().Args() {
				w.condition(arg)
			}
			return
		}
	}
	if !w.constant(part) {
		w.numbers[part.ID()] = len(w.Conditions)
		w.Conditions = append(w.Conditions, &Condition{Text: textOf(w.of, part), At: w.start(part)})
	}
	w.find(part)
}

// find finds the conditions within a part.
func (w *watcher) find(part ast.Expr) {
	parts := w.written(part)
	if joinOf(part) != "" {
		w.condition(part)
		return
	}
	if part.Kind() == ast.CallKind && part.AsCall().FunctionName() == operators.Conditional {
		w.condition(parts[0])
		parts = parts[1:]
	}
	for _, p := range parts {
		w.find(p)
	}
}

// written returns the parts of a part in the form that its author wrote: for a macro, its receiver and arguments.
func (w *watcher) written(part ast.Expr) []ast.Expr {
	if call, macro := w.of.checked.SourceInfo().GetMacroCall(part.ID()); macro {
		part = call
	}
	return rules.Children(part)
}

// constant reports whether a part reads only literals and params.
func (w *watcher) constant(part ast.Expr) bool {
	known := w.of.scope.Roots()
	local := false
	ast.PreOrderVisit(part, ast.NewExprVisitor(func(x ast.Expr) {
		local = local || x.Kind() == ast.IdentKind && !slices.Contains(known, x.AsIdent())
	}))
	reads, _ := w.of.scope.Reads(w.of.checked, part)
	return !local && len(reads.All) == 0
}

// start returns the position at which a part begins.
func (w *watcher) start(part ast.Expr) int {
	at := -1
	if r, ok := w.of.checked.SourceInfo().GetOffsetRange(part.ID()); ok {
		at = int(r.Start)
	}
	if call, macro := w.of.checked.SourceInfo().GetMacroCall(part.ID()); macro {
		part = call
	}
	if part.Kind() == ast.CallKind { // CEL gives the position of the opening parenthesis for a call
		name := part.AsCall().FunctionName()
		if before := strings.TrimRight(string([]rune(w.of.Text.Value)[:max(at, 0)]), " "); strings.HasSuffix(before, name) {
			at = utf8.RuneCountInString(before) - len(name)
		}
	}
	for _, p := range w.written(part) {
		if first := w.start(p); at < 0 || first >= 0 && first < at {
			at = first
		}
	}
	return at
}

// instrumented returns the expression in which each condition, and the whole, is the argument of a recording call.
func (w *watcher) instrumented() *ast.AST {
	a := w.of.checked
	i := &instrument{ExprFactory: ast.NewExprFactory(), types: maps.Clone(a.TypeMap()), references: maps.Clone(a.ReferenceMap())}
	root := i.CopyExpr(a.Expr())
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(x ast.Expr) {
		i.last = max(i.last, x.ID())
	}))
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(x ast.Expr) {
		if n, ok := w.numbers[x.ID()]; ok {
			i.wrap(x, n)
		}
	}))
	i.wrap(root, wholeExpression)
	return ast.NewCheckedAST(ast.NewAST(root, a.SourceInfo()), i.types, i.references)
}

// instrument changes a copy of an expression.
type instrument struct {
	ast.ExprFactory
	types      map[int64]*types.Type
	references map[int64]*ast.ReferenceInfo
	last       int64 // the largest ID so far
}

// wrap wraps a part in a call. The call gets the place and the ID of the part, and the part gets another ID.
func (i *instrument) wrap(part ast.Expr, number int) {
	of, id := part.ID(), i.last+1
	i.last += 2
	inner := i.NewUnspecifiedExpr(id)
	inner.SetKindCase(part)
	i.types[id] = i.types[of]
	if reference, ok := i.references[of]; ok {
		i.references[id] = reference
		delete(i.references, of)
	}
	part.SetKindCase(i.NewCall(of, watching, i.NewLiteral(i.last, types.Int(number)), inner))
}
