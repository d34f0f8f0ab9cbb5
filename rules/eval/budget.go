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

// Budget is what evaluations of an expression may use at run time. It counts, and asks no clock: the same evaluation uses the same
// each time.
type Budget struct {
	// Steps are of the size of CEL's units of cost: a simple operation, an element or ten characters gone through.
	Steps int64
	// Bytes are those of the strings, lists and maps that are made, whether they are still in use or not.
	Bytes int64
}

// EvaluationBudget is what one evaluation may use.
func EvaluationBudget() Budget { return Budget{Steps: rules.CostLimit, Bytes: 4 << 20} }

// RoundSteps is how many steps the evaluations of one row may take together between two calls of Meter.Begin.
const RoundSteps = 10_000_000

// Meter counts what the evaluations of a row's expressions use. It has one owner; goroutines that evaluate at once have one each.
type Meter struct {
	each  Budget
	round int64
	left  Budget // of the evaluation under way
	rest  int64  // steps of the round
	dry   bool
}

// NewMeter gives a meter at the beginning of a round.
func NewMeter(each Budget, round int64) *Meter { return &Meter{each: each, round: round, rest: round} }

// Begin starts a round, such as a cycle.
func (m *Meter) Begin() { m.rest, m.dry = m.round, false }

// Dry says that an evaluation of this round ended, or was refused, because the round's steps are used up.
func (m *Meter) Dry() bool { return m.dry }

// exceeded is what an evaluation panics with that is over its budget, so that no loop goes on.
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

// bytes counts what was made. To make it takes steps, too.
func (m *Meter) bytes(n int64) {
	m.left.Bytes -= n
	m.steps(n / boxBytes)
	if m.left.Bytes < 0 {
		end("%d bytes", m.each.Bytes)
	}
}

// end ends the evaluation with an error that says which bound it is over.
func end(bound string, most int64) {
	panic(&exceeded{rules.OverBudget(bound, most)}) //nolint:forbidigo // an error as a value would be absorbed by || and by the loops of macros, which then go on; whoever began the evaluation recovers
}

// Purse is an Activation that has meters for the expressions that need one. nil: the expression gets one for this evaluation.
type Purse interface {
	Meter(e *Expr) *Meter
}

// metered is Roots beside the meter of the evaluation.
type metered struct {
	rules.Roots
	meter *Meter
}

// within gives the roots for an evaluation that is counted.
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

// meterOf is the meter of an evaluation that is counted.
func meterOf(r rules.Roots) *Meter {
	switch r := r.(type) {
	case *loop:
		return r.meter
	case *metered:
		return r.meter
	}
	return NewMeter(EvaluationBudget(), RoundSteps)
}

// stepsOf is how many steps a part takes without the turns of its loops, which count for themselves.
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

// Sizes of what lies in memory, about.
const (
	boxBytes   = 16
	valueBytes = 32
)

// growthOf says how what a call goes through grows with its arguments, 0: it takes as long whatever they are, or does with what its
// declaration says that it costs.
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

// counted is a call of a library's function or of an operator that is counted: what it goes through before, what it made after it.
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

// goThrough counts what a function goes through.
func (m *Meter) goThrough(g rules.Growth, values []ref.Val) {
	if g == 0 {
		return
	}
	m.steps(g.OfValues(values, m.left.Steps))
}

// actualCost tells cel-go what the functions of libraries took that go through their arguments.
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

// made counts what a function made.
func (m *Meter) made(function string, args []ref.Val, out ref.Val) {
	if function == operators.Add { // of lists the first is taken as it is
		if l, ok := args[1].(traits.Lister); ok {
			m.bytes(valueBytes + boxBytes*rules.SizeOf(l))
			return
		}
	}
	m.bytes(bytesOf(out))
}

// bytesOf is how large a value is, without what lies in it.
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
