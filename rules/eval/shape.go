package eval

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Call reports that an expression is only the call of a function with paths as arguments, for example queue.path. The receiver of a method
// is the first path. ok is false for any other expression.
func (e *Expr) Call() (function string, paths []string, ok bool) {
	if e.checked == nil || e.checked.Expr().Kind() != ast.CallKind {
		return "", nil, false
	}
	c := e.checked.Expr().AsCall()
	for _, arg := range rules.ArgumentsOf(c) {
		path, ok := pathText(arg)
		if !ok {
			return "", nil, false
		}
		paths = append(paths, path)
	}
	return c.FunctionName(), paths, true
}

// Comparison compares two paths by their order.
type Comparison struct {
	Less, More string // the comparison is true if Less is smaller than More, or equal to it
}

// Comparisons returns the comparisons of paths that decide whether a bool expression is true. The expression is one comparison, or joins
// several with &&, || and ?:.
func (e *Expr) Comparisons() []Comparison {
	if e.checked == nil {
		return nil
	}
	return comparisons(e.checked.Expr())
}

func comparisons(e ast.Expr) (out []Comparison) {
	if e.Kind() != ast.CallKind {
		return nil
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.Conditional:
		for _, arg := range args {
			out = append(out, comparisons(arg)...)
		}
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		first, ok := pathText(args[0])
		second, okSecond := pathText(args[1])
		if strings.HasPrefix(e.AsCall().FunctionName(), "_>") {
			first, second = second, first
		}
		if ok && okSecond {
			out = append(out, Comparison{first, second})
		}
	}
	return out
}

// Conjuncts returns the paths that an expression joins with &&, for example queue.path. ok is false if it contains anything else, except
// comparisons of one of the ignored fields with a constant, for example queue.field == 'x'. It leaves these out.
func (e *Expr) Conjuncts(ignored ...string) (paths []string, ok bool) {
	if e.checked == nil {
		return nil, false
	}
	return conjuncts(e.checked.Expr(), ignored)
}

func conjuncts(e ast.Expr, ignored []string) (paths []string, ok bool) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Equals {
		args := e.AsCall().Args()
		isField := args[0].Kind() == ast.SelectKind && slices.Contains(ignored, args[0].AsSelect().FieldName())
		return nil, isField && args[1].Kind() == ast.LiteralKind
	}
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.LogicalAnd {
		path, ok := pathText(e)
		return []string{path}, ok
	}
	for _, arg := range e.AsCall().Args() {
		of, ok := conjuncts(arg, ignored)
		if !ok {
			return nil, false
		}
		paths = append(paths, of...)
	}
	return paths, true
}

// pathText returns a path of fields as text.
func pathText(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		of, ok := pathText(e.AsSelect().Operand())
		return of + "." + e.AsSelect().FieldName(), ok && !e.AsSelect().IsTestOnly()
	default:
		return "", false
	}
}

// Each is an expression that maps each element of a list and reads only the element.
type Each struct {
	// Over is the path of the list.
	Over  string
	value func(rules.Roots) ref.Val
}

// Each returns the Each of an expression path.map(x, …) whose result depends only on the element and params. It returns false for other
// expressions. It also returns false if the expression is not compiled, or is metered, because a budget applies to whole evaluations.
func (e *Expr) Each() (*Each, bool) {
	if e.checked == nil || e.kernel.value == nil || e.Metered || e.checked.Expr().Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := e.checked.Expr().AsComprehension()
	over, isPath := pathText(c.IterRange())
	of, isMap := mapBody(c)
	if !isPath || !isMap || !only(of, []string{c.IterVar(), "params"}) {
		return nil, false
	}
	k := &kerneler{scope: e.scope, ast: e.checked, locals: []loopNames{{accu: " ", iter: c.IterVar(), iter2: " "}}}
	out, err := k.compile(of)
	if err != nil {
		return nil, false
	}
	return &Each{over, out.value}, true
}

// Of returns the result for one element. An error is a *types.Err.
func (e *Each) Of(vars rules.Roots, element ref.Val) (v ref.Val) {
	defer func() {
		if failure := recover(); failure != nil {
			v = internal(failure)
		}
	}()
	return e.value(&loop{Roots: vars, iter: element})
}

// mapBody returns the expression that the macro map applies to each element.
func mapBody(c ast.ComprehensionExpr) (of ast.Expr, ok bool) {
	start, while, step := c.AccuInit(), c.LoopCondition(), c.LoopStep()
	isAccu := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar() }
	switch {
	case c.HasIterVar2(), !isAccu(c.Result()), start.Kind() != ast.ListKind, start.AsList().Size() != 0,
		while.Kind() != ast.LiteralKind, while.AsLiteral() != types.True, step.Kind() != ast.CallKind,
		step.AsCall().FunctionName() != operators.Add:
		return nil, false
	}
	args := step.AsCall().Args()
	if len(args) != 2 || !isAccu(args[0]) || args[1].Kind() != ast.ListKind {
		return nil, false
	}
	list := args[1].AsList()
	if list.Size() != 1 || len(list.OptionalIndices()) > 0 {
		return nil, false
	}
	return list.Elements()[0], true
}

// only reports whether an expression reads only the given names and variables that it defines itself.
func only(e ast.Expr, names []string) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return slices.Contains(names, strings.TrimPrefix(e.AsIdent(), "."))
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inside := append(slices.Clone(names), c.IterVar(), c.IterVar2(), c.AccuVar())
		return only(c.IterRange(), names) && only(c.AccuInit(), names) && only(c.LoopCondition(), inside) && only(c.LoopStep(), inside) &&
			only(c.Result(), inside)
	default:
		for _, child := range rules.Children(e) {
			if !only(child, names) {
				return false
			}
		}
		return true
	}
}
