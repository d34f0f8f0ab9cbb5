package live

import (
	"sync"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// change is something that the loop has to know: an object that is there, is gone, or the outcome of a write.
type change struct {
	op     model.Op
	object any
	seen   time.Time // set by the feed
	urgent bool      // set by the feed: it can make another decision possible
	whole  bool      // nothing belongs together with it: there is nothing to wait for
}

// feed is where informers and workers leave what changed, and where the loop takes it from.
type feed struct {
	// wake has a token when there is something new.
	wake chan struct{}

	mu      sync.Mutex
	changes []change
	spare   []change
	urgent  time.Time // of the first change that can matter to a decision; zero: none
	newest  time.Time // of the newest of them
	whole   time.Time // of the first of them with which nothing belongs together; zero: none
	lazy    time.Time // of the first change at all; zero: none
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

// add leaves a change. Urgent ones can make another decision possible.
func (f *feed) add(c change, urgent bool) {
	f.mu.Lock()
	c.seen, c.urgent = time.Now(), urgent
	f.changes = append(f.changes, c)
	wake := f.stamp(urgent, c.seen)
	if urgent && c.whole && f.whole.IsZero() {
		f.whole, wake = c.seen, true
	}
	f.mu.Unlock()
	if wake {
		f.ring()
	}
}

// nudge asks for a cycle though no object changed.
func (f *feed) nudge() {
	f.mu.Lock()
	f.stamp(true, time.Now())
	f.mu.Unlock()
	f.ring()
}

// stamp notes that something came. It says whether the loop has to look at its clock again.
func (f *feed) stamp(urgent bool, now time.Time) bool {
	first := false
	if f.lazy.IsZero() {
		f.lazy, first = now, true
	}
	if urgent && f.urgent.IsZero() {
		f.urgent, first = now, true
	}
	if urgent {
		f.newest = now
	}
	return first
}

func (f *feed) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// arrivals are when changes came; zero: none did.
type arrivals struct {
	urgent, newest time.Time // the first and the newest that can matter to a decision
	whole          time.Time // the first of them with which nothing belongs together
	lazy           time.Time // the first of any kind
}

func (f *feed) since() arrivals {
	f.mu.Lock()
	defer f.mu.Unlock()
	return arrivals{f.urgent, f.newest, f.whole, f.lazy}
}

// drain takes everything. The list is valid until the next call.
func (f *feed) drain() []change {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.changes
	clear(f.spare[:cap(f.spare)])
	f.changes, f.spare = f.spare[:0], out
	f.urgent, f.newest, f.whole, f.lazy = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return out
}
