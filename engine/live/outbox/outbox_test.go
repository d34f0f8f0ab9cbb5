package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sent runs the waiting writes of an outbox one after another, and returns their order.
func sent(o *Outbox) string {
	var order []string
	for {
		waiting := o.Depths()
		if waiting == [numClasses]int{} {
			return strings.Join(order, " ")
		}
		e := o.take()
		order = append(order, e.key)
		e.do(context.Background())
		o.finish(e)
	}
}

func nothing(context.Context) {}

func TestOutboxOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		waited time.Duration
		want   string
	}{
		{"nothing starves", 0, "b0 b1 b2 b3 waiter " + bindings(4, 199) + " status " + bindings(199, 205) + " event"},
		{"what waited for long", lateAfter, "b0 b1 b2 b3 waiter " + bindings(4, 19) + " status " + bindings(19, 39) + " event " +
			bindings(39, 205)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := New(8)
				o.Put(Event, "event", nothing)
				o.Put(Status, "status", nothing)
				o.Put(Awaited, "waiter", nothing)
				<-time.After(c.waited)
				for i := range 205 {
					o.Put(Binding, fmt.Sprint("b", i), nothing)
				}
				if diff := cmp.Diff(c.want, sent(o)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// bindings returns the names of bindings in a range.
func bindings(from, to int) string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprint("b", i))
	}
	return strings.Join(names, " ")
}

func TestOutboxReplaces(t *testing.T) {
	o := New(1)
	var did []string
	say := func(what string) func(context.Context) {
		return func(context.Context) { did = append(did, what) }
	}
	o.Put(Status, "g", say("old"))
	o.Put(Status, "h", say("h"))
	o.Put(Status, "g", say("new"))
	o.Put(Status, "c", say("cancelled"))
	if !o.Cancel("c") || o.Cancel("c") {
		t.Error("cancel does not say whether there was anything")
	}
	o.Put(Awaited, "h", say("h, urgently"))
	sent(o)
	if diff := cmp.Diff([]string{"h, urgently", "new"}, did); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(o.entries) != 0 {
		t.Errorf("left behind: %v", o.entries)
	}
}

// Two writes of one object never run at once, and a write that is put meanwhile runs afterwards.
func TestOutboxOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := New(4)
		var mu sync.Mutex
		under, most, done := 0, 0, 0
		slow := func(context.Context) {
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			under--
			done++
			mu.Unlock()
		}
		finished := make(chan struct{})
		go func() { defer close(finished); o.Run(ctx) }()
		o.Put(Binding, "a", slow)
		synctest.Wait()
		o.Put(Binding, "a", slow)
		o.Put(Binding, "a", slow) // replaces the one before
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if most != 1 || done != 2 {
			t.Errorf("%d at once, %d in all", most, done)
		}
		o.Later(time.Second, Binding, "b", slow)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if done != 3 {
			t.Errorf("what was put off was not done: %d", done)
		}
		cancel()
		<-finished
		o.Put(Binding, "c", slow)
		if w := o.Depths(); w[Binding] != 0 {
			t.Error("taken after the end")
		}
	})
}

// A few slow writes are sent one after another. Slow writes never use all workers, so that a binding finds one.
func TestOutboxKeepsWorkersForBindings(t *testing.T) {
	for _, c := range []struct{ waiting, under int }{{1, 1}, {slowEach, 1}, {slowEach + 2, 2}, {20 * slowEach, 2}} {
		t.Run(fmt.Sprint(c.waiting), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := New(8)
				block := func(ctx context.Context) { <-ctx.Done() }
				for i := range c.waiting {
					o.Put(Class(int(Status)+i%2), fmt.Sprint("s", i), block)
				}
				finished := make(chan struct{})
				go func() { defer close(finished); o.Run(ctx) }()
				defer func() {
					ended := time.Now()
					cancel()
					<-finished
					if took := time.Since(ended); took != lastAnswers {
						t.Errorf("what was under way was cut off %s after the end, want %s", took, lastAnswers)
					}
				}()
				synctest.Wait()
				bound := false
				o.Put(Binding, "b", func(context.Context) { bound = true })
				synctest.Wait()
				if !bound {
					t.Error("a binding waits for statuses")
				}
				if w := o.Depths(); w[Status]+w[Event] != c.waiting-c.under {
					t.Errorf("of %d statuses and events %d wait, want %d under way", c.waiting, w[Status]+w[Event], c.under)
				}
			})
		})
	}
}

// Evictions are sent before statuses, one after every few bindings. They leave workers for bindings even if the API server is slow.
func TestEvictionsDoNotHoldUpBindings(t *testing.T) {
	o := New(8)
	o.Put(Status, "status", nothing)
	for i := range 2 {
		o.Put(Eviction, fmt.Sprint("evict", i), nothing)
	}
	for i := range 25 {
		o.Put(Binding, fmt.Sprint("b", i), nothing)
	}
	want := bindings(0, 10) + " evict0 " + bindings(10, 20) + " evict1 " + bindings(20, 25) + " status"
	if diff := cmp.Diff(want, sent(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := New(8)
		for i := range 9 {
			o.Put(Eviction, fmt.Sprint("evict", i), func(ctx context.Context) { <-ctx.Done() })
		}
		finished := make(chan struct{})
		go func() { defer close(finished); o.Run(ctx) }()
		defer func() { cancel(); <-finished }()
		synctest.Wait()
		bound := false
		o.Put(Binding, "b", func(context.Context) { bound = true })
		synctest.Wait()
		if w := o.Depths(); !bound || w[Eviction] != 7 {
			t.Errorf("bound: %t; %d evictions wait, want 7", bound, w[Eviction])
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	o := New(1)
	dropped := 0
	for i := range maxEvents + 5 {
		if !o.Put(Event, fmt.Sprint(i), nothing) {
			dropped++
		}
	}
	if w := o.Depths(); w[Event] != maxEvents || dropped != 5 {
		t.Errorf("%d wait, %d dropped", w[Event], dropped)
	}
}
