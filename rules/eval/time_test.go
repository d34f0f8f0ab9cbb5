package eval

import (
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// at returns the roots at the moment now. The crate exists since the moment since.
func at(t testing.TB, now, since time.Time) cel.Activation {
	t.Helper()
	crate := &thing{crateType(), map[string]ref.Val{"since": types.Timestamp{Time: since}, "size": types.Int(3)}}
	return testRoots(t, map[string]any{"now": types.Timestamp{Time: now}, "crate": crate})
}

// TestNext checks how long a value stays valid while only time passes.
func TestNext(t *testing.T) {
	t.Parallel()
	s := testScope(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	since := now.Add(-(7*time.Minute + 20*time.Second))
	const never = -1
	for _, test := range []struct {
		expression string
		want       time.Duration
	}{
		{"crate.size > 2", never},
		{"(now - crate.since).getMinutes() > 3", 40 * time.Second},
		{"(now - crate.since).getMinutes() / 10 + crate.size > 3", 2*time.Minute + 40*time.Second},
		{"(now - crate.since).getMinutes() / crate.size > 3", 40 * time.Second},
		{"(now - crate.since).getSeconds() > 3", time.Second},
		{"(crate.since - now).getMinutes() > 3", 40 * time.Second},
		{"(now - crate.since).getHours() + (now - crate.since).getMinutes() > 3", 40 * time.Second},
		{"now - crate.since > duration('10m')", 2*time.Minute + 40*time.Second},
		{"duration('10m') >= now - crate.since", 2*time.Minute + 40*time.Second},
		{"now > crate.since + duration('8m') && crate.size > 2", 40 * time.Second},
		{"now - crate.since > crate.since - now + duration('16m')", 40*time.Second - 1},
		{"now - crate.since > duration('5m')", never},
		{"now - duration('1m') > now", never},
		{"now - crate.since == duration('10m')", 2*time.Minute + 40*time.Second},
		{"now.getHours('Europe/Paris') >= 20 || crate.size > 2", never}, // the values of this part are compared
		{"now.getHours() >= 20 && now - crate.since > duration('10m')", 2*time.Minute + 40*time.Second},
		{"string(now - crate.since) == ''", time.Nanosecond},
		{"[now].exists(n, n > crate.since)", time.Nanosecond},
		{"(now - crate.since).getMilliseconds() > 3", time.Nanosecond},
	} {
		e, issues := Compile(s, source.Text{Value: test.expression}, rules.Anything())
		if issues.Err() != nil {
			t.Fatalf("%s: %v", test.expression, issues)
		}
		got := time.Duration(never)
		if next, ok := e.Next(at(t, now, since), now); ok {
			got = next.Sub(now)
		}
		if got != test.want {
			t.Errorf("%s: holds for %v, want %v", test.expression, got, test.want)
		}
	}
}

// TestNextIsNotTooLate checks that the value does not change before the moment that Next returns, for any moments.
func TestNextIsNotTooLate(t *testing.T) {
	t.Parallel()
	s := testScope(t)
	var exprs []*Expr
	for _, text := range []string{
		"(now - crate.since).getMinutes()", "(crate.since - now).getMinutes()", "(now - crate.since).getSeconds() / 7",
		"(crate.since - now).getHours() / 2",
		"now - crate.since > duration('10m')", "now - crate.since >= duration('10m')", "crate.since - now < duration('-3s')",
		"now == crate.since + duration('2s')",
		"now - crate.since > crate.since - now", "crate.since - now <= now - crate.since", "now - duration('1s') != crate.since",
		"[(now - crate.since).getMinutes(), (now + duration('1h') - crate.since).getHours()]",
	} {
		e, issues := Compile(s, source.Text{Value: text}, rules.Anything())
		if issues.Err() != nil || e.restless {
			t.Fatalf("%s: %v, restless %v", text, issues, e.restless)
		}
		exprs = append(exprs, e)
	}
	rapid.Check(t, func(r *rapid.T) {
		e := rapid.SampledFrom(exprs).Draw(r, "expression")
		now := time.Unix(1_800_000_000, 0).UTC()
		unit := rapid.SampledFrom([]time.Duration{1, time.Second / 2, time.Second, time.Minute, time.Hour}).Draw(r, "unit")
		since := now.Add(unit*time.Duration(rapid.Int64Range(-90, 90).Draw(r, "since")) + time.Duration(rapid.Int64Range(-2, 2).Draw(r, "odd")))
		last := now.Add(100 * time.Hour)
		if next, ok := e.Next(at(t, now, since), now); ok {
			last = next.Add(-1)
		}
		then := now.Add(time.Duration(rapid.Int64Range(0, int64(last.Sub(now))).Draw(r, "then")))
		for _, moment := range []time.Time{then, last} {
			if a, b := e.Eval(at(t, now, since)), e.Eval(at(t, moment, since)); a.Equal(b) != types.True {
				r.Fatalf("%s since %v is %v, and after %v %v", e.Text.Value, since.Sub(now), a, moment.Sub(now), b)
			}
		}
	})
}
