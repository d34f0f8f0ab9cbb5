package eval

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celsius-scheduler/celsius/rules"
)

// Budget limits what an evaluation of an expression may use at run time. It counts and reads no clock, so that the same evaluation always
// uses the same amount.
type Budget struct {
	// Steps has the same unit as CEL's costs: a simple operation, or the traversal of one element or of ten characters.
	Steps int64
	// Bytes counts the memory of all created strings, lists and maps, even if they are no longer in use.
	Bytes int64
}

// EvaluationBudget returns the budget of one evaluation.
func EvaluationBudget() Budget { return Budget{Steps: rules.CostLimit, Bytes: 4 << 20} }

// RoundSteps is the maximum number of steps for all evaluations of one row between two calls of Meter.Begin.
const RoundSteps = 10_000_000

// Meter counts what the evaluations of a row's expressions use. Only one goroutine may use it.
type Meter struct {
	each  Budget
	round int64
	left  Budget // of the present evaluation
	rest  int64  // remaining steps of the round
	dry   bool
}

// NewMeter returns a meter at the beginning of a round.
func NewMeter(each Budget, round int64) *Meter { return &Meter{each: each, round: round, rest: round} }

// Begin starts a round, for example a cycle.
func (m *Meter) Begin() { m.rest, m.dry = m.round, false }

// Dry reports whether an evaluation of this round ended or was refused because the steps of the round are used up.
func (m *Meter) Dry() bool { return m.dry }

// exceeded is the value of the panic that ends an evaluation over its budget, so that no loop continues.
type exceeded struct{ err ref.Val }

func (m *Meter) evaluate(steps int64) {
	m.left = m.each
	m.steps(steps)
}

func (m *Meter) steps(n int64) {
	m.left.Steps -= n
	m.rest -= n
	if m.rest < 0 {
		m.rest, m.dry = -1, true
	}
	switch {
	case m.left.Steps < 0:
		end("%d steps", m.each.Steps)
	case m.dry:
		end("%d steps a cycle, with all objects that it was asked about", m.round)
	}
}

// bytes counts created memory. Creating it also takes steps.
func (m *Meter) bytes(n int64) {
	m.left.Bytes -= n
	m.steps(n / boxBytes)
	if m.left.Bytes < 0 {
		end("%d bytes", m.each.Bytes)
	}
}

// end ends the evaluation with an error that names the exceeded limit.
func end(bound string, most int64) {
	panic(&exceeded{rules.OverBudget(bound, most)}) //nolint:forbidigo // an error as a value would be absorbed by || and by the loops of macros, which then go on; whoever began the evaluation recovers
}

// Purse is an Activation that provides meters for expressions. If the meter is nil, the expression gets a meter for this evaluation.
type Purse interface {
	Meter(e *Expr) *Meter
}

// metered is Roots with the meter of the evaluation.
type metered struct {
	rules.Roots
	meter *Meter
}

// within returns the roots for an evaluation with a meter.
func (e *Expr) within(vars cel.Activation, r rules.Roots) *metered {
	m := &metered{Roots: r}
	if p, ok := vars.(Purse); ok {
		m.meter = p.Meter(e)
	}
	if m.meter == nil {
		m.meter = NewMeter(EvaluationBudget(), RoundSteps)
	}
	return m
}

// meterOf returns the meter of an evaluation.
func meterOf(r rules.Roots) *Meter {
	switch r := r.(type) {
	case *loop:
		return r.meter
	case *metered:
		return r.meter
	}
	return NewMeter(EvaluationBudget(), RoundSteps)
}

// stepsOf returns how many steps parts take, without the iterations of their loops, which are counted separately.
func (k *kerneler) stepsOf(parts ...ast.Expr) int64 {
	sum := int64(0)
	for _, e := range parts {
		sum += k.stepsIn(e)
	}
	return sum
}

func (k *kerneler) stepsIn(e ast.Expr) int64 {
	switch e.Kind() {
	case ast.SelectKind:
		return 1 + k.stepsIn(e.AsSelect().Operand())
	case ast.CallKind:
		own := int64(1)
		if o := k.scope.Overload(k.ast.ReferenceMap()[e.ID()]); o != nil {
			own = int64(min(max(o.Cost, 1), rules.CostLimit)) //nolint:gosec // bounded
		}
		return own + k.stepsOf(rules.ArgumentsOf(e.AsCall())...)
	case ast.ListKind:
		return 2 + k.stepsOf(e.AsList().Elements()...)
	case ast.MapKind:
		sum := int64(2)
		for _, entry := range e.AsMap().Entries() {
			sum += k.stepsOf(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return sum
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return 1 + k.stepsOf(c.IterRange(), c.AccuInit(), c.Result())
	default:
		return 1
	}
}

// Approximate sizes in memory, in bytes.
const (
	boxBytes   = 16
	valueBytes = 32
)

// growthOf states how the work of a call grows with its arguments. 0 means that the work is constant, or that the declared cost is
// sufficient.
func (k *kerneler) growthOf(e ast.Expr, name string) rules.Growth {
	if g := rules.Walkers()[name]; g != 0 {
		return g
	}
	o := k.scope.Overload(k.ast.ReferenceMap()[e.ID()])
	switch {
	case name == "size" && k.typeOf(rules.ArgumentsOf(e.AsCall())[0]).Kind() != types.StringKind,
		name == operators.Add && k.typeOf(e).Kind() == types.ListKind, o != nil && !k.scope.Singleton(name):
		return 0
	}
	return rules.Linear
}

// counted returns a call of a library function or an operator with a meter. It counts the traversal before the call, and the created memory
// after it.
func (c *invocation) counted(args func(rules.Roots) ([]ref.Val, ref.Val), goesThrough rules.Growth) func(rules.Roots) ref.Val {
	search := rules.Searchers()[c.Name]
	return func(r rules.Roots) ref.Val {
		values, err := c.arguments(args, r)
		if err != nil {
			return err
		}
		m := meterOf(r)
		if search != nil {
			m.steps(search(values))
		} else {
			m.goThrough(goesThrough, values)
		}
		out := rules.Apply(c.F, values)
		m.made(c.Name, values, out)
		return out
	}
}

// goThrough counts the elements that a function traverses.
func (m *Meter) goThrough(g rules.Growth, values []ref.Val) {
	if g == 0 {
		return
	}
	m.steps(g.OfValues(values, m.left.Steps))
}

// actualCost tells cel-go the actual cost of library functions that traverse their arguments.
type actualCost struct {
	walkers   map[string]rules.Growth
	searchers map[string]func(args []ref.Val) int64
}

// CallCost implements interpreter.ActualCostEstimator.
func (c actualCost) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	g, search, sum := c.walkers[function], c.searchers[function], bytesOf(result)/boxBytes
	switch {
	case search != nil:
		sum += search(args)
	case g != 0:
		sum += g.OfValues(args, rules.CostLimit)
	default:
		return (&library.CostEstimator{}).CallCost(function, overload, args, result)
	}
	steps := uint64(sum) //nolint:gosec // not below 0
	return &steps
}

// made counts the memory that a function created.
func (m *Meter) made(function string, args []ref.Val, out ref.Val) {
	if function == operators.Add { // the first list is reused and not copied
		if l, ok := args[1].(traits.Lister); ok {
			m.bytes(valueBytes + boxBytes*rules.SizeOf(l))
			return
		}
	}
	m.bytes(bytesOf(out))
}

// bytesOf returns the size of a value, without the values in it.
func bytesOf(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return valueBytes + int64(len(v))
	case types.Bytes:
		return valueBytes + int64(len(v))
	case traits.Lister:
		return valueBytes + boxBytes*rules.SizeOf(v)
	case traits.Mapper:
		return valueBytes + 4*boxBytes*rules.SizeOf(v)
	}
	return 0
}
