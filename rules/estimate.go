package rules

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/library"
)

// The limits of the cost of one evaluation, by the static estimate, in CEL's units. One unit is a simple operation, or the traversal of ten
// characters or of one element.
const (
	// CostLimit is the maximum cost of any row.
	CostLimit = 1_000_000
	// InterpretedLimit is the maximum cost of a row that cel-go evaluates. It is lower because cel-go does not count bytes, and counts the
	// cost of a call only after the call.
	InterpretedLimit = 20_000
	// SmallCost is the maximum cost of a row that runs without a budget.
	SmallCost = 10_000
)

// Growth states how the work of a function grows with the sizes of its arguments.
type Growth uint8

// The work of a function grows with the sum (Linear) or with the product (Quadratic) of the sizes of its arguments.
const (
	Linear Growth = iota + 1
	Quadratic
)

// Walkers returns the library functions that traverse or create lists and strings, and that CEL's own estimate gets wrong. CEL has no
// estimate for some of them. For others it does not know how large the elements of a list may have become.
func Walkers() map[string]Growth {
	return map[string]Growth{
		"distinct": Quadratic, "sets.contains": Quadratic, "sets.equivalent": Quadratic, "sets.intersects": Quadratic,
		"indexOf": Quadratic, "lastIndexOf": Quadratic, // in strings; in lists the second argument is an element
		"slice": Linear, "flatten": Linear, "sort": Linear, "@sortByAssociatedKeys": Linear, "reverse": Linear, "lists.range": Linear,
		"isSorted": Linear, "sum": Linear, "max": Linear, "min": Linear,
		"format": Linear, "join": Linear, "replace": Linear, "split": Linear, "strings.quote": Linear, "charAt": Linear, mapInsert: Linear,
	}
}

// estimator tells CEL the sizes of values and the costs of our functions.
type estimator struct {
	scope   *Scope
	sizes   map[int64]*Size
	walkers map[string]Growth
}

// Estimate is what is known about an evaluation before it runs.
type Estimate struct {
	// Cost of one evaluation, in CEL's units.
	Cost checker.CostEstimate
	// Size is the maximum size of the value.
	Size *Size
	// Metered is true if the evaluation must count its cost, because the cost is not small or cannot be foreseen.
	Metered bool
}

// Estimate estimates one evaluation of a checked expression.
func (s *Scope) Estimate(checked *cel.Ast) (e Estimate, err error) {
	a := checked.NativeRep()
	sizes := s.sizesOf(a)
	if e.Cost, err = s.cost(checked, sizes); err != nil {
		return e, err
	}
	e.Size, e.Metered = sizes[a.Expr().ID()], e.Cost.Max > SmallCost || s.unforeseen(a)
	return e, nil
}

// cost estimates what one evaluation costs.
func (s *Scope) cost(checked *cel.Ast, sizes map[int64]*Size) (checker.CostEstimate, error) {
	// The environment is not used here: its libraries have estimates of their own, which only use the lengths of outermost lists.
	cost, err := checker.Cost(checked.NativeRep(), &estimator{s, sizes, Walkers()})
	if err != nil {
		return cost, err //nolint:wrapcheck // it is told of as it is
	}
	cost.Max = plusOf(cost.Max, s.computedCost(checked.NativeRep()))
	return cost, nil
}

// unforeseen reports whether the estimate cannot foresee how much an evaluation creates. This is the case if an expression joins or splits
// strings and has loops whose lengths depend on strings that it reads. It is also the case if the length of a list is a number that is not
// a literal, or if an expression multiplies lengths that it reads.
func (s *Scope) unforeseen(a *ast.AST) bool {
	loops, grows, more := false, false, false
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops = true
		case ast.CallKind:
			k := a.GetType(e.ID()).Kind()
			name := e.AsCall().FunctionName()
			grows = grows || bounds(name) != nil || name == "split" || name == operators.Add && (k == types.StringKind || k == types.BytesKind)
			more = more || name == listsRange && e.AsCall().Args()[0].Kind() != ast.LiteralKind || multiplies(e)
		default:
		}
	}))
	return loops && grows || more
}

// computedCost returns the total cost of the computed members that an expression computes again on each read.
func (s *Scope) computedCost(a *ast.AST) (sum uint64) {
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.SelectKind {
			return
		}
		if o := s.ObjectOf(a.GetType(e.AsSelect().Operand().ID())); o != nil {
			if m := o.Find(e.AsSelect().FieldName()); m != nil {
				sum = plusOf(sum, m.Cost)
			}
		}
	}))
	return sum
}

// EstimateSize implements checker.CostEstimator.
func (c *estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if e := node.Expr(); e != nil && c.sizes[e.ID()] != nil {
		return &checker.SizeEstimate{Min: 0, Max: c.sizes[e.ID()].most}
	}
	return &checker.SizeEstimate{Min: 0, Max: defaultBound}
}

// EstimateCallCost implements checker.CostEstimator.
func (c *estimator) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if target != nil {
		args = append([]checker.AstNode{*target}, args...)
	}
	sizes := make([]*Size, len(args))
	for i, a := range args {
		sizes[i] = c.sizes[a.Expr().ID()]
	}
	cost := uint64(0)
	if o := c.scope.lang.overloads[overload]; o != nil {
		cost = max(o.Cost, 1) + operatorCost(function, o, sizes)
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: max(o.Cost, 1), Max: cost}}
	}
	if function == operators.In && sizes[1].element() != nil && sizes[1].of.of != nil { // otherwise CEL's own cost applies
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: sizes[1].walk()}}
	}
	if n, ok := rangeOf(function, args); ok {
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: plusOf(1, n)}}
	}
	if g := c.walkers[function]; g != 0 {
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: plusOf(1, g.of(sizes))}}
	}
	rest := args
	if target != nil {
		rest = args[1:]
	}
	e := (&library.CostEstimator{SizeEstimator: c}).EstimateCallCost(function, overload, target, rest)
	if e != nil {
		e.ResultSize = nil // the computed sizes apply instead
	}
	return e
}

// rangeOf returns how many elements a call of lists.range creates, if its argument is a literal.
func rangeOf(function string, args []checker.AstNode) (uint64, bool) {
	if function != listsRange {
		return 0, false
	}
	return integerLiteral(args[0].Expr())
}

// of returns how many steps a function needs that traverses its arguments.
func (g Growth) of(args []*Size) uint64 {
	sum, product := uint64(0), uint64(1)
	for _, a := range args {
		sum, product = plusOf(sum, a.walk()), timesOf(product, a.walk())
	}
	if g == Quadratic && len(args) == 1 {
		product = timesOf(args[0].length(), product)
	}
	if g == Quadratic {
		return product
	}
	return sum
}

// operatorCost returns the cost of an operator in addition to one unit: strings that it joins are copied, and values that it compares are
// traversed.
func operatorCost(function string, o *Overload, args []*Size) uint64 {
	switch function {
	case operators.Add:
		if k := o.Result.Kind(); k == types.StringKind || k == types.BytesKind {
			return plusOf(args[0].length(), args[1].length()) / charsPerStep
		}
	case operators.Equals, operators.NotEquals:
		return min(args[0].walk(), args[1].walk()) - 1
	}
	return 0
}
