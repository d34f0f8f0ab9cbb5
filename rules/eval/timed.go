package eval

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Stopwatch measures how long evaluations take, one at a time, with a clock of the caller.
type Stopwatch struct {
	now   func() int64
	stack []running
	// overhead of each call in nanoseconds: within is part of the call's own time, and outside is part of the caller's time
	within, outside float64
}

// running is a started evaluation, with the time that nested evaluations took.
type running struct {
	of           *Timed
	start, inner int64
}

// Timed contains the measurements of an expression.
type Timed struct {
	// Evaluations is the number of evaluations. A column counts one for each row.
	Evaluations   int
	watch         *Stopwatch
	calls, inside int // number of calls, and of nested calls of others
	nanos         int64
}

// NewStopwatch returns a Stopwatch for a clock that returns nanoseconds. It first measures its own overhead.
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

// Nanoseconds returns the total time of the evaluations, without the time of nested evaluations of other expressions.
func (t *Timed) Nanoseconds() float64 {
	return max(float64(t.nanos)-float64(t.calls)*t.watch.within-float64(t.inside)*t.watch.outside, 0)
}

// Reset clears the measurements.
func (t *Timed) Reset() { t.Evaluations, t.calls, t.inside, t.nanos = 0, 0, 0, 0 }

// Time measures all evaluations of an expression from now on. It changes the expression. Therefore the caller must own the expression, and
// must evaluate one expression at a time.
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

// timedProgram is the measured program of cel-go.
type timedProgram struct {
	cel.Program
	t *Timed
}

// Eval implements cel.Program.
func (p *timedProgram) Eval(vars any) (ref.Val, *cel.EvalDetails, error) {
	defer p.t.watch.begin(p.t, 1).end()
	return p.Program.Eval(vars)
}

// turn is one evaluation that must be ended.
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
