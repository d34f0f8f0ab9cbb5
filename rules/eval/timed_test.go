package eval

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestTime checks that evaluations are counted and that their results do not change. This also holds for interpreted expressions.
func TestTime(t *testing.T) {
	s, roots := testScope(t), testRoots(t, map[string]any{"i": types.Int(3)})
	clock := int64(0)
	w := NewStopwatch(func() int64 { clock += 10; return clock })
	for _, text := range []string{"i > 2", "i + 1", "d * 2.0", "depot.labels.?zone.orValue('') == 'east'", "'a' + s"} {
		e, issues := Compile(s, source.Text{Value: text}, rules.Anything())
		if issues != nil {
			t.Fatal(issues.Err())
		}
		want := fmt.Sprint(e.Eval(roots))
		timed := w.Time(e)
		for range 3 {
			if got := fmt.Sprint(e.Eval(roots)); got != want {
				t.Errorf("%s gives %s, else %s", text, got, want)
			}
		}
		// Each reading of the clock takes 10. The only time is that of the stopwatch itself, so the result is 0.
		if timed.Evaluations != 3 || timed.Nanoseconds() != 0 {
			t.Errorf("%s: %d evaluations, %v ns", text, timed.Evaluations, timed.Nanoseconds())
		}
		if timed.Reset(); timed.Evaluations != 0 {
			t.Errorf("%s: %d evaluations after a reset", text, timed.Evaluations)
		}
	}
}

// TestTimeWithin checks an evaluation inside another one. Its time belongs to the inner evaluation only.
func TestTimeWithin(t *testing.T) {
	clock := int64(0)
	w := NewStopwatch(func() int64 { clock++; return clock })
	inner, outer := &Timed{watch: w}, &Timed{watch: w}
	work := func(n int64) { clock += n }
	f := timed(inner, func(rules.Roots) (bool, ref.Val) { work(100); return true, nil })
	g := timed(outer, func(rules.Roots) (bool, ref.Val) {
		work(1000)
		for range 2 {
			_, _ = f(nil)
		}
		return true, nil
	})
	_, _ = g(nil)
	if a, b := inner.Nanoseconds(), outer.Nanoseconds(); math.Abs(a-200) > 1 || math.Abs(b-1000) > 1 ||
		inner.Evaluations != 2 || outer.Evaluations != 1 {
		t.Errorf("inner %v ns in %d, outer %v ns in %d", a, inner.Evaluations, b, outer.Evaluations)
	}
}
