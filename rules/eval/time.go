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

// Passage is how a value changes by nothing but the passing of time.
type Passage struct {
	// NowParts are the largest parts that read only now; the value of the whole changes with time
	// only when one of theirs does. NowMoves: it may change at any time.
	NowParts []*Expr
	NowMoves bool
	// ticks are the parts whose values go in steps as time passes; restless: they do not tell of all that does.
	ticks    []tick
	restless bool
}

// Timely says whether the value may change by nothing but the passing of time.
func (p *Passage) Timely() bool { return p.NowMoves || len(p.NowParts) > 0 }

// Moves says whether it may do so in other ways than by its NowParts' values, which can be compared.
func (p *Passage) Moves() bool { return p.NowMoves || p.restless || len(p.ticks) > 0 }

// Next is the first moment after now at which the value may be another by nothing but the passing of time; false: there is none.
// It does not tell of NowParts that are no moments and no spans of time, whose values are to be compared, nor of computed members,
// which have a Next of their own.
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

// tick is a part of an expression that goes in steps while time passes: the whole units of a span of time, or
// which of two moments or spans is the larger.
type tick struct {
	a, b *Expr // b is nil for units
	unit time.Duration
	// rising says that a, or a less b, grows as time passes; else it shrinks.
	rising bool
	// twice says that they move against each other.
	twice bool
}

// in is how long the part stays as it is, at least; false: for ever. What errs stays so while nothing but time moves.
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
		return time.Duration(b - a), b >= a // at 0: from the next moment on it is larger
	}
	rest := a % int64(t.unit)
	if rest < 0 {
		rest += int64(t.unit)
	}
	switch {
	case t.rising && (a >= 0 || rest > 0):
		return t.unit - time.Duration(rest), true
	case t.rising:
		return 0, true // below 0 whole units end just after
	}
	return time.Duration(rest), true
}

// nanoseconds of a span, or of a moment since 1970. What does not fit is false.
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

// isTime says whether a part is a moment or a span of time.
func (t *ticker) isTime(e ast.Expr) bool {
	k := t.ast.GetType(e.ID()).Kind()
	return k == types.TimestampKind || k == types.DurationKind
}

func (t *ticker) walk(e ast.Expr) {
	reads, _ := t.scope.Reads(t.ast, e)
	switch {
	case !t.readsNow(e):
	case reads.Only("now") && !t.isTime(e): // its values are compared
	case t.step(e), t.comparison(e):
	case e.Kind() == ast.SelectKind:
		if operand := e.AsSelect().Operand(); t.readsNow(operand) {
			t.walk(operand)
		} // else a computed member, which has ticks of its own
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

// units are the functions that give the whole units of a span.
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

// step recognizes the whole units of a span that moves with time, also divided by a positive literal.
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

// comparison recognizes which of two is larger, one of which moves with time.
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
		return true // they move alike
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

// slope is how a moment or a span moves with time: by 0, by as much, or by as much the other way; false: not known.
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
