package eval

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Stopwatch finds out what evaluations take, one at a time, by a clock of the caller's.
type Stopwatch struct {
	now   func() int64
	stack []running
	// what it takes itself of each call: within the time that it measures, and outside of it, which is measured of who called.
	within, outside float64
}

// running is an evaluation that has begun, with how long others took within it.
type running struct {
	of           *Timed
	start, inner int64
}

// Timed is what the evaluations of an expression took.
type Timed struct {
	// Evaluations are those of a column by their rows.
	Evaluations   int
	watch         *Stopwatch
	calls, inside int // of it, and of others within it
	nanos         int64
}

// NewStopwatch measures by a clock of nanoseconds, and what it takes to do so.
func NewStopwatch(now func() int64) *Stopwatch {
	w := &Stopwatch{now: now}
	const calls = 20_000
	t := &Timed{watch: w}
	nothing := timed(t, func(rules.Roots) (bool, ref.Val) { return true, nil })
	start := now()
	for range calls {
		_, _ = nothing(nil)
	}
	whole := now() - start
	w.within = float64(t.nanos) / calls
	w.outside = max(float64(whole)/calls-w.within, 0)
	return w
}

// Nanoseconds is how long the evaluations took, without what others took that they had evaluated.
func (t *Timed) Nanoseconds() float64 {
	return max(float64(t.nanos)-float64(t.calls)*t.watch.within-float64(t.inside)*t.watch.outside, 0)
}

// Reset forgets what was measured.
func (t *Timed) Reset() { t.Evaluations, t.calls, t.inside, t.nanos = 0, 0, 0, 0 }

// Time has all that evaluates an expression measured from now on. It changes the expression: it is for who compiled it for that, and
// evaluates one expression at a time.
func (w *Stopwatch) Time(e *Expr) *Timed {
	t := &Timed{watch: w}
	if e.kernel.value == nil {
		e.program = &timedProgram{e.program, t}
		return t
	}
	value := e.kernel.value
	e.kernel.value = func(r rules.Roots) ref.Val {
		defer w.begin(t, 1).end()
		return value(r)
	}
	e.kernel.boolean, e.kernel.integer, e.kernel.double = timed(t, e.kernel.boolean), timed(t, e.kernel.integer), timed(t, e.kernel.double)
	e.column.bools, e.numbers = timedColumn(t, e.column.bools), timedColumn(t, e.numbers)
	return t
}

func timed[T any](t *Timed, f func(rules.Roots) (T, ref.Val)) func(rules.Roots) (T, ref.Val) {
	if f == nil {
		return nil
	}
	return func(r rules.Roots) (T, ref.Val) {
		defer t.watch.begin(t, 1).end()
		return f(r)
	}
}

func timedColumn[T any](t *Timed, f columnOf[T]) columnOf[T] {
	if f == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) {
		defer t.watch.begin(t, len(rows)).end()
		f(b, rows, out)
	}
}

// timedProgram is what cel-go evaluates.
type timedProgram struct {
	cel.Program
	t *Timed
}

// Eval implements cel.Program.
func (p *timedProgram) Eval(vars any) (ref.Val, *cel.EvalDetails, error) {
	defer p.t.watch.begin(p.t, 1).end()
	return p.Program.Eval(vars)
}

// turn is one evaluation to be ended.
type turn struct {
	w     *Stopwatch
	depth int
}

func (w *Stopwatch) begin(t *Timed, evaluations int) turn {
	t.Evaluations += evaluations
	w.stack = append(w.stack, running{of: t, start: w.now()})
	return turn{w, len(w.stack) - 1}
}

func (x turn) end() {
	now := x.w.now()
	r := x.w.stack[x.depth]
	x.w.stack = x.w.stack[:x.depth]
	r.of.nanos += now - r.start - r.inner
	r.of.calls++
	if x.depth > 0 {
		outer := &x.w.stack[x.depth-1]
		outer.inner += now - r.start
		outer.of.inside++
	}
}
