package live

import (
	"sync"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// change is an event for the loop: an object that exists or is gone, or the outcome of a write.
type change struct {
	op     model.Op
	object any
	seen   time.Time // set by the feed
	urgent bool      // set by the feed: the change can affect a decision
	whole  bool      // no related changes follow, so the loop need not wait for them
}

// feed stores the changes that informers and workers report, until the loop takes them.
type feed struct {
	// wake contains a token when there are new changes.
	wake chan struct{}

	mu      sync.Mutex
	changes []change
	spare   []change
	urgent  time.Time // time of the first change that can affect a decision; zero: none
	newest  time.Time // time of the newest such change
	whole   time.Time // time of the first such change without related changes; zero: none
	lazy    time.Time // time of the first change of any type; zero: none
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

// add stores a change. urgent means that the change can affect a decision.
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

// nudge requests a cycle although no object changed.
func (f *feed) nudge() {
	f.mu.Lock()
	f.stamp(true, time.Now())
	f.mu.Unlock()
	f.ring()
}

// stamp records the time of a change. It reports whether the loop must compute its next start again.
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

// arrivals contains the times at which changes came; zero: none came.
type arrivals struct {
	urgent, newest time.Time // the first and the newest that can affect a decision
	whole          time.Time // the first of them without related changes
	lazy           time.Time // the first of any type
}

func (f *feed) since() arrivals {
	f.mu.Lock()
	defer f.mu.Unlock()
	return arrivals{f.urgent, f.newest, f.whole, f.lazy}
}

// drain returns and removes all changes. The list is valid until the next call.
func (f *feed) drain() []change {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.changes
	clear(f.spare[:cap(f.spare)])
	f.changes, f.spare = f.spare[:0], out
	f.urgent, f.newest, f.whole, f.lazy = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return out
}
