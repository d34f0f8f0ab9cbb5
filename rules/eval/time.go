package eval

import (
	"math"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Passage describes how a value changes only because time passes.
type Passage struct {
	// NowParts are the largest parts that read only now. The whole value changes with time only when the value of one of them changes.
	// NowMoves states that the value may change at any time.
	NowParts []*Expr
	NowMoves bool
	// ticks are the parts whose values change in steps as time passes. restless states that other parts change with time, too.
	ticks    []tick
	restless bool
}

// Timely reports whether the value may change only because time passes.
func (p *Passage) Timely() bool { return p.NowMoves || len(p.NowParts) > 0 }

// Moves reports whether the value may also change in ways other than through the values of its NowParts.
func (p *Passage) Moves() bool { return p.NowMoves || p.restless || len(p.ticks) > 0 }

// Next returns the first time after now at which the value may change only because time passes, or false if there is none. It does not
// cover NowParts that are neither timestamps nor durations: callers compare their values. It also does not cover computed members, which
// have a Next of their own.
func (p *Passage) Next(vars cel.Activation, now time.Time) (time.Time, bool) {
	const always = time.Nanosecond
	if p.restless {
		return now.Add(always), true
	}
	first := time.Duration(math.MaxInt64)
	for i := range p.ticks {
		if in, ok := p.ticks[i].in(vars); ok {
			first = min(first, max(in, always))
		}
	}
	return now.Add(first), first < math.MaxInt64
}

// tick is a part of an expression that changes in steps while time passes. It is either the whole units of a duration, or the comparison of
// two timestamps or durations.
type tick struct {
	a, b *Expr // b is nil for units
	unit time.Duration
	// rising states that a, or a minus b, grows as time passes. Otherwise it shrinks.
	rising bool
	// twice states that a and b move in opposite directions.
	twice bool
}

// in returns the minimum time until the part changes, or false if it never changes. An error stays the same while only time passes.
func (t *tick) in(vars cel.Activation) (time.Duration, bool) {
	a, ok := nanoseconds(t.a.Eval(vars))
	if !ok {
		return 0, false
	}
	if t.b != nil {
		b, ok := nanoseconds(t.b.Eval(vars))
		if !ok {
			return 0, false
		}
		if !t.rising {
			a, b = b, a
		}
		if t.twice {
			return time.Duration(b/2 - a/2 - 1), b >= a
		}
		return time.Duration(b - a), b >= a // at 0: a is larger from the next moment on
	}
	rest := a % int64(t.unit)
	if rest < 0 {
		rest += int64(t.unit)
	}
	switch {
	case t.rising && (a >= 0 || rest > 0):
		return t.unit - time.Duration(rest), true
	case t.rising:
		return 0, true // below 0, a whole unit ends just after this moment
	}
	return time.Duration(rest), true
}

// nanoseconds returns the length of a duration, or the time of a timestamp since 1970. It returns false if that does not fit.
func nanoseconds(v ref.Val) (int64, bool) {
	switch x := v.(type) {
	case types.Duration:
		return int64(x.Duration), true
	case types.Timestamp:
		if y := x.Year(); y < 1700 || y > 2200 {
			return 0, false
		}
		return x.UnixNano(), true
	}
	return 0, false
}

// ticker finds the ticks of an expression.
type ticker struct {
	scope *rules.Scope
	ast   *ast.AST
	of    *Expr
}

func (t *ticker) readsNow(e ast.Expr) bool {
	return t.scope.ReadsNow(t.ast, e)
}

// isTime reports whether a part is a timestamp or a duration.
func (t *ticker) isTime(e ast.Expr) bool {
	k := t.ast.GetType(e.ID()).Kind()
	return k == types.TimestampKind || k == types.DurationKind
}

func (t *ticker) walk(e ast.Expr) {
	reads, _ := t.scope.Reads(t.ast, e)
	switch {
	case !t.readsNow(e):
	case reads.Only("now") && !t.isTime(e): // callers compare its values
	case t.step(e), t.comparison(e):
	case e.Kind() == ast.SelectKind:
		if operand := e.AsSelect().Operand(); t.readsNow(operand) {
			t.walk(operand)
		} // otherwise it is a computed member, which has its own ticks
	case e.Kind() == ast.CallKind, e.Kind() == ast.ListKind:
		found := false
		for _, child := range rules.Children(e) {
			if t.readsNow(child) {
				t.walk(child)
				found = true
			}
		}
		t.of.restless = t.of.restless || !found || slices.Contains(t.scope.Declared(t.ast, e), "now")
	default:
		t.of.restless = true
	}
}

// units returns the unit of a function that returns the whole units of a duration, or 0.
func units(function string) time.Duration {
	switch function {
	case overloads.TimeGetHours:
		return time.Hour
	case overloads.TimeGetMinutes:
		return time.Minute
	case overloads.TimeGetSeconds:
		return time.Second
	}
	return 0
}

// step recognizes the whole units of a duration that changes with time, optionally divided by a positive literal.
func (t *ticker) step(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	c, by := e.AsCall(), int64(1)
	if args := c.Args(); c.FunctionName() == operators.Divide && args[0].Kind() == ast.CallKind && args[1].Kind() == ast.LiteralKind {
		n, ok := args[1].AsLiteral().(types.Int)
		if !ok || n <= 0 || n > math.MaxInt32 {
			return false
		}
		c, by = args[0].AsCall(), int64(n)
	}
	unit := units(c.FunctionName())
	if unit == 0 || !c.IsMemberFunction() || t.ast.GetType(c.Target().ID()).Kind() != types.DurationKind || int64(unit) > math.MaxInt64/by {
		return false
	}
	slope, ok := t.slope(c.Target())
	if !ok || slope == 0 {
		return false
	}
	a, err := t.of.part(t.scope, t.ast, c.Target())
	if err != nil {
		return false
	}
	t.of.ticks = append(t.of.ticks, tick{a: a, unit: unit * time.Duration(by), rising: slope > 0})
	return true
}

// comparison recognizes a comparison of two values of which at least one changes with time.
func (t *ticker) comparison(e ast.Expr) bool {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 || e.AsCall().IsMemberFunction() {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals, operators.NotEquals:
	default:
		return false
	}
	args := e.AsCall().Args()
	if !t.isTime(args[0]) || !t.isTime(args[1]) {
		return false
	}
	left, ok := t.slope(args[0])
	right, also := t.slope(args[1])
	if !ok || !also {
		return false
	}
	if left == right {
		return true // both change in the same way
	}
	a, err := t.of.part(t.scope, t.ast, args[0])
	if err != nil {
		return false
	}
	b, err := t.of.part(t.scope, t.ast, args[1])
	if err != nil {
		return false
	}
	t.of.ticks = append(t.of.ticks, tick{a: a, b: b, rising: left > right, twice: left*right < 0})
	return true
}

// slope returns how a timestamp or a duration changes with time: 0 for not at all, 1 for the same direction, -1 for the opposite direction.
// It returns false if that is not known.
func (t *ticker) slope(e ast.Expr) (int, bool) {
	if !t.readsNow(e) {
		return 0, true
	}
	if e.Kind() == ast.IdentKind && e.AsIdent() == "now" {
		return 1, true
	}
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 || e.AsCall().IsMemberFunction() {
		return 0, false
	}
	c := e.AsCall()
	a, ok := t.slope(c.Args()[0])
	b, also := t.slope(c.Args()[1])
	switch {
	case !ok || !also:
		return 0, false
	case c.FunctionName() == operators.Add:
		a += b
	case c.FunctionName() == operators.Subtract:
		a -= b
	default:
		return 0, false
	}
	return a, a >= -1 && a <= 1
}
