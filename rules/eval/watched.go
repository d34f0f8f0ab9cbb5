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

// Watched is what the evaluations of an expression came to.
type Watched struct {
	// Asked is how often the expression was evaluated.
	Asked int
	// Conditions are the parts that decide what else of it is evaluated, and what it gives, in the order in which they are written:
	// operands of && and ||, what stands before ?, and the whole where it is true or false. The next operand of && is evaluated where one was
	// true, that of || where one was false; so the outcomes of the last operand are those of the whole, and those of a condition before ? are
	// its two sides. What literals and params alone decide is none.
	Conditions []*Condition
}

// Condition is a part of an expression that is true or false.
type Condition struct {
	Text string
	At   int // where it begins in the expression, in characters
	// True and False are how often it was.
	True, False int
}

// watching is the function that notes what a part gave. Nobody can write its name.
const watching = "@watched"

// Watch has the expression evaluated by cel-go alone from now on, and noted what it comes to. It changes the expression, and what it gives
// back, with each evaluation: it is for who compiled the expression for that, and evaluates it in one place at a time. What it gives is
// what it gave. An error: it is a part of another expression, or cannot be planned.
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
	numbers map[int64]int // of conditions, by the part's ID
}

// wholeExpression is the number of the whole, which is no condition's.
const wholeExpression = -1

// note is told what a part gave, and gives it on.
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

// condition finds the conditions of a part that is true or false.
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

// written are the parts of a part as its author wrote it: of a macro its target and arguments.
func (w *watcher) written(part ast.Expr) []ast.Expr {
	if call, macro := w.of.checked.SourceInfo().GetMacroCall(part.ID()); macro {
		part = call
	}
	return rules.Children(part)
}

// constant says that a part reads nothing but literals and params.
func (w *watcher) constant(part ast.Expr) bool {
	known := w.of.scope.Roots()
	local := false
	ast.PreOrderVisit(part, ast.NewExprVisitor(func(x ast.Expr) {
		local = local || x.Kind() == ast.IdentKind && !slices.Contains(known, x.AsIdent())
	}))
	reads, _ := w.of.scope.Reads(w.of.checked, part)
	return !local && len(reads.All) == 0
}

// start is where a part begins.
func (w *watcher) start(part ast.Expr) int {
	at := -1
	if r, ok := w.of.checked.SourceInfo().GetOffsetRange(part.ID()); ok {
		at = int(r.Start)
	}
	if call, macro := w.of.checked.SourceInfo().GetMacroCall(part.ID()); macro {
		part = call
	}
	if part.Kind() == ast.CallKind { // CEL has a call stand where its arguments open
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

// instrumented is the expression with each condition, and the whole, within a call that notes it.
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
	last       int64 // the largest ID
}

// wrap puts a part into a call. The call takes the part's place and ID, the part gets another one.
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
