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

// Call says that an expression is nothing but the call of that function with these paths, written queue.path; the
// target of a method is the first. false: it is something else.
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

// Comparison is one of two paths by their order.
type Comparison struct {
	Less, More string // what has to be the smaller for it to hold, and what the larger, or the same
}

// Comparisons are those of paths by their order on which it rests that an expression of true or false holds: it is one, or they are
// joined by &&, || and ?:.
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

// Conjuncts returns the paths that an expression joins by &&, written queue.path. ok is false if it contains anything else.
func (e *Expr) Conjuncts() (paths []string, ok bool) {
	if e.checked == nil {
		return nil, false
	}
	return conjuncts(e.checked.Expr())
}

func conjuncts(e ast.Expr) (paths []string, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.LogicalAnd {
		path, ok := pathText(e)
		return []string{path}, ok
	}
	for _, arg := range e.AsCall().Args() {
		of, ok := conjuncts(arg)
		if !ok {
			return nil, false
		}
		paths = append(paths, of...)
	}
	return paths, true
}

// pathText is a path of fields as text.
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

// Each is what a list is mapped by, of the element alone.
type Each struct {
	// Over is the path of the list.
	Over  string
	value func(rules.Roots) ref.Val
}

// Each says that an expression is path.map(x, …) where what is made of an element depends on nothing that has another name than
// the element itself, save params. false: it is something else, not compiled, or counted, which only whole evaluations are.
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

// Of is what an element is mapped to. A failure is a *types.Err.
func (e *Each) Of(vars rules.Roots, element ref.Val) (v ref.Val) {
	defer func() {
		if failure := recover(); failure != nil {
			v = internal(failure)
		}
	}()
	return e.value(&loop{Roots: vars, iter: element})
}

// mapBody is what the macro map makes of an element.
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

// only says that an expression names nothing but these, and what it binds itself.
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
