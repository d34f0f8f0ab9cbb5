package rivals_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/celsius-scheduler/celsius/engine/rivals"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func TestJobsAreRivalsOnceAPodOfEachWentForTheOther(t *testing.T) {
	var b rivals.Book
	b.Evicted("a-0", "a", "b", at(0))
	same(t, b.Gone("a-0"), nil)
	b.Evicted("b-0", "b", "a", at(5))
	same(t, b.Of("a"), nil) // b-0 is still there
	same(t, b.Gone("b-0"), []string{"b", "a"})
	same(t, b.Of("a"), []string{"b"})
	same(t, b.Of("b"), []string{"a"})
	since, rivals := b.Since("a", "b")
	same(t, rivals, true)
	same(t, since, at(5))

	b.Evicted("a-1", "a", "b", at(40))
	same(t, b.Gone("a-1"), []string{"a", "b"})
	since, _ = b.Since("b", "a")
	same(t, since, at(40))
}

func TestWhatIsNoEvictionOfOneJobForAnotherMakesNoRivals(t *testing.T) {
	for name, back := range map[string]func(b *rivals.Book){
		"a third":     func(b *rivals.Book) { b.Evicted("b-0", "b", "c", at(5)) },
		"itself":      func(b *rivals.Book) { b.Evicted("b-0", "b", "b", at(5)) },
		"nobody":      func(b *rivals.Book) { b.Evicted("b-0", "b", "", at(5)) },
		"refused":     func(b *rivals.Book) { b.Evicted("b-0", "b", "a", at(5)); b.Stays("b-0") },
		"ended first": func(b *rivals.Book) { b.Evicted("b-0", "b", "a", at(5)); b.Stays("b-0") },
		"not evicted": func(*rivals.Book) {},
		"a day later": func(b *rivals.Book) { b.Evicted("b-0", "b", "a", at(5).Add(rivals.Kept)) },
		"a left":      func(b *rivals.Book) { b.Left("a"); b.Evicted("b-0", "b", "a", at(5)) },
		"b left":      func(b *rivals.Book) { b.Evicted("b-0", "b", "a", at(5)); b.Left("b") },
	} {
		t.Run(name, func(t *testing.T) {
			var b rivals.Book
			b.Evicted("a-0", "a", "b", at(0))
			b.Gone("a-0")
			back(&b)
			same(t, b.Gone("b-0"), nil)
			same(t, b.Of("a"), nil)
			same(t, b.Of("b"), nil)
		})
	}
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestWhoIsForgottenAfterADayIsTold(t *testing.T) {
	var b rivals.Book
	b.Evicted("a-0", "a", "b", at(0))
	b.Gone("a-0")
	b.Evicted("b-0", "b", "a", at(5))
	b.Gone("b-0")
	same(t, b.Forget(at(0).Add(rivals.Kept)), nil)
	same(t, b.Forget(at(1).Add(rivals.Kept)), nil) // within an hour of the last time
	same(t, b.Of("b"), []string{"a"})
	same(t, b.Forget(at(61).Add(rivals.Kept)), []string{"a", "b"})
	same(t, b.Of("b"), nil)
	same(t, b.Of("a"), nil)
}
