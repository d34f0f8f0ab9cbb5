package live

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// progress stores when cycles of the loop began and ended. The loop writes it, and the health check reads it.
type progress struct {
	began atomic.Int64 // when the running cycle began, in nanoseconds since 1970; 0: none runs
	ended atomic.Int64 // when the last cycle ended; 0: none has ended
}

// begin notes the start of a cycle.
func (p *progress) begin(now time.Time) { p.began.Store(now.UnixNano()) }

// end notes the end of a cycle.
func (p *progress) end(now time.Time) {
	p.ended.Store(now.UnixNano())
	p.began.Store(0)
}

// stuck returns an error if changes have waited for longer than most while no cycle ended. The parameter waiting is the time since when
// changes wait that no cycle has taken in; zero: none wait. The changes of a running cycle wait for its end. Before the first cycle has
// ended, nothing is stuck.
func (p *progress) stuck(waiting, now time.Time, most time.Duration) error {
	ended, since := p.ended.Load(), p.began.Load()
	if ended == 0 {
		return nil
	}
	if !waiting.IsZero() && (since == 0 || waiting.UnixNano() < since) {
		since = waiting.UnixNano()
	}
	if since == 0 {
		return nil
	}
	if took := now.Sub(time.Unix(0, max(since, ended))); took > most {
		return fmt.Errorf("no cycle has ended for %s, and changes wait", took.Round(time.Second))
	}
	return nil
}

// alive fails while this scheduler leads and its cycles are stuck. A replica that stands by, and one that starts, never fails.
func (s *scheduler) alive(*http.Request) error {
	s.mu.Lock()
	l := s.loop
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.stuck(l.feed.since().lazy, time.Now(), max(s.o.CycleTimeout, 2*s.o.Period))
}
