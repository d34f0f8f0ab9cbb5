package rivals_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/rivals"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

type since = map[string]time.Time

func TestAJobIsATakerOnceAPodWentForIt(t *testing.T) {
	var b rivals.Book
	b.Evicted("a-0", "a", "b", at(0))
	same(t, b.Takers("a"), nil) // a-0 is still there
	same(t, b.Gone("a-0"), []string{"a"})
	same(t, b.Takers("a"), since{"b": at(0)})
	same(t, b.Takers("b"), nil)
	b.Evicted("a-1", "a", "b", at(40))
	same(t, b.Gone("a-1"), []string{"a"})
	same(t, b.Takers("a"), since{"b": at(40)})
}

func TestTakersOfTakersAreTakers(t *testing.T) {
	var b rivals.Book
	b.Evicted("a-0", "a", "b", at(0))
	b.Gone("a-0")
	b.Evicted("b-0", "b", "c", at(5))
	same(t, b.Gone("b-0"), []string{"a", "b"})
	same(t, b.Takers("a"), since{"b": at(0), "c": at(0)})
	same(t, b.Takers("b"), since{"c": at(5)})
	b.Evicted("a-1", "a", "d", at(3))
	b.Gone("a-1")
	b.Evicted("d-0", "d", "c", at(2))
	same(t, b.Gone("d-0"), []string{"a", "d"})
	same(t, b.Takers("a"), since{"b": at(0), "c": at(2), "d": at(3)})
	b.Evicted("c-0", "c", "a", at(9))
	same(t, b.Gone("c-0"), []string{"a", "b", "c", "d"})
	same(t, b.Takers("b"), since{"a": at(5), "c": at(5), "d": at(3)})
	same(t, b.Left("c"), []string{"a", "b", "d"})
	same(t, b.Takers("a"), since{"b": at(0), "d": at(3)})
}

func TestWhatIsNoEvictionOfOneJobForAnotherMakesNoTaker(t *testing.T) {
	for name, evicted := range map[string]func(b *rivals.Book){
		"itself":               func(b *rivals.Book) { b.Evicted("a-0", "a", "a", at(0)) },
		"nobody":               func(b *rivals.Book) { b.Evicted("a-0", "a", "", at(0)) },
		"refused, or it ended": func(b *rivals.Book) { b.Evicted("a-0", "a", "b", at(0)); b.Stays("a-0") },
		"not evicted":          func(*rivals.Book) {},
		"a left":               func(b *rivals.Book) { b.Evicted("a-0", "a", "b", at(0)); b.Left("a") },
		"b left":               func(b *rivals.Book) { b.Evicted("a-0", "a", "b", at(0)); b.Left("b") },
	} {
		t.Run(name, func(t *testing.T) {
			var b rivals.Book
			evicted(&b)
			same(t, b.Gone("a-0"), nil)
			same(t, b.Takers("a"), nil)
		})
	}
}

func TestWhoIsForgottenAfterADayIsTold(t *testing.T) {
	var b rivals.Book
	b.Evicted("a-0", "a", "b", at(0))
	b.Gone("a-0")
	b.Evicted("b-0", "b", "c", at(5))
	b.Gone("b-0")
	same(t, b.Forget(at(0).Add(rivals.Kept)), nil)
	same(t, b.Forget(at(1).Add(rivals.Kept)), nil) // within an hour of the last eviction
	same(t, b.Takers("a"), since{"b": at(0), "c": at(0)})
	same(t, b.Forget(at(61).Add(rivals.Kept)), []string{"a", "b"})
	same(t, b.Takers("a"), nil)
	same(t, b.Takers("b"), nil)
}

// evictions are the evictions that are not forgotten: when the last pod of one job was evicted for another.
type evictions map[pair]time.Time

type pair struct{ of, ours string }

var jobs = []string{"a", "b", "c", "d", "e", "f"}

// takers returns, for each pair of jobs, since when a way leads from one to the other. Of all ways, it takes the one whose earliest
// eviction is the latest.
func (e evictions) takers() evictions {
	out := maps.Clone(e)
	for _, via := range jobs {
		for _, of := range jobs {
			for _, ours := range jobs {
				there, first := out[pair{of, via}]
				on, then := out[pair{via, ours}]
				if on.After(there) {
					on = there
				}
				if first && then && out[pair{of, ours}].Before(on) {
					out[pair{of, ours}] = on
				}
			}
		}
	}
	maps.DeleteFunc(out, func(p pair, _ time.Time) bool { return p.of == p.ours })
	return out
}

// TestTakersAreWhomAWayLeadsTo notes and forgets evictions at random. The takers of a job are the jobs to which a way of remembered
// evictions leads. The book reports each job whose takers change.
func TestTakersAreWhomAWayLeadsTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b rivals.Book
		kept, before := evictions{}, evictions{}
		now, swept := noon, time.Time{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes")) * time.Minute)
			p := pair{rapid.SampledFrom(jobs).Draw(t, "of"), rapid.SampledFrom(jobs).Draw(t, "ours")}
			var told []string
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what == 0:
				told = append(b.Left(p.of), p.of)
				maps.DeleteFunc(kept, func(k pair, _ time.Time) bool { return k.of == p.of || k.ours == p.of })
			case what == 1 && now.Sub(swept) >= time.Hour:
				swept, told = now, b.Forget(now)
				maps.DeleteFunc(kept, func(_ pair, at time.Time) bool { return now.Sub(at) > rivals.Kept })
			case p.of != p.ours:
				b.Evicted(fmt.Sprint(i), p.of, p.ours, now)
				told, kept[p] = b.Gone(fmt.Sprint(i)), now
			}
			after := kept.takers()
			for _, of := range jobs {
				want := since{}
				changed := false
				for _, ours := range jobs {
					at, is := after[pair{of, ours}]
					if is {
						want[ours] = at
					}
					changed = changed || !at.Equal(before[pair{of, ours}])
				}
				if diff := cmp.Diff(want, b.Takers(of), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("takers of %s: -want +got\n%s", of, diff)
				}
				if changed && !slices.Contains(told, of) {
					t.Fatalf("the takers of %s have changed, and only %v were told of", of, told)
				}
			}
			before = after
		}
	})
}
