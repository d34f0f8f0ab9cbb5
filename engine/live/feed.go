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
	lazy    time.Time // of the first change at all; zero: none
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

// add leaves a change. Urgent ones can make another decision possible.
func (f *feed) add(c change, urgent bool) {
	f.mu.Lock()
	c.seen, c.urgent = time.Now(), urgent
	f.changes = append(f.changes, c)
	wake := f.stamp(urgent, c.seen)
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

// since is when the first and the newest urgent change, and the first change of any kind, came; zero: none did.
func (f *feed) since() (urgent, newest, lazy time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.urgent, f.newest, f.lazy
}

// drain takes everything. The list is valid until the next call.
func (f *feed) drain() []change {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.changes
	clear(f.spare[:cap(f.spare)])
	f.changes, f.spare = f.spare[:0], out
	f.urgent, f.newest, f.lazy = time.Time{}, time.Time{}, time.Time{}
	return out
}
