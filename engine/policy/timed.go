package policy

import (
	"container/heap"
	"time"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// followsTime reports whether arguments read the time, and only in comparisons and steps with a known next change.
func followsTime(args map[string]*eval.Expr) bool {
	timely := false
	for _, e := range args {
		if !e.Timely() {
			continue
		}
		timely = true
		if e.NowMoves {
			return false
		}
		for _, part := range e.NowParts {
			if part.Part != "now" {
				return false
			}
		}
	}
	return timely
}

// timed tracks when time alone changes what members add to a sum.
type timed struct {
	on     bool
	now    time.Time         // when the sum was last brought up to date
	due    map[any]time.Time // when each member changes next
	queue  moments           // the moments of due, and moments that no longer apply
	passed int               // how often time has changed a member
	first  time.Time         // when the member under evaluation changes next; zero: never, so far
}

// restart forgets all members, and begins at now. It counts what time has changed since.
func (t *timed) restart(now time.Time) {
	if next, ok := t.next(); now.Before(t.now) || ok && !next.After(now) {
		t.passed++
	}
	t.now, t.due, t.queue = now, map[any]time.Time{}, nil
}

// begin is called before a member is evaluated, watch after each of its arguments, and end after the member.
func (t *timed) begin() { t.first = time.Time{} }

func (t *timed) watch(e *eval.Expr, f *language.Frame) {
	if !t.on || !e.Timely() {
		return
	}
	if next, ok := e.Next(f, t.now); ok && (t.first.IsZero() || next.Before(t.first)) {
		t.first = next
	}
}

func (t *timed) end(of any) {
	switch {
	case !t.on:
	case t.first.IsZero():
		delete(t.due, of)
	case !t.due[of].Equal(t.first): // otherwise the queue contains it already
		t.due[of] = t.first
		heap.Push(&t.queue, moment{t.first, of})
	}
	t.shrink()
}

// shrink removes outdated moments, so that the queue's length stays proportional to the number of members.
func (t *timed) shrink() {
	const few = 64
	if len(t.queue) <= few+2*len(t.due) {
		return
	}
	kept := make(moments, 0, len(t.due))
	for _, m := range t.queue {
		if t.due[m.of].Equal(m.at) {
			kept = append(kept, m)
		}
	}
	heap.Init(&kept)
	t.queue = kept
}

// pass advances to now, and calls ask for each member that time changes by then. It returns false if now is in the past.
func (t *timed) pass(now time.Time, ask func(of any)) bool {
	if !t.on {
		return true
	}
	if now.Before(t.now) {
		return false
	}
	t.now = now
	for {
		next, ok := t.next()
		if !ok || next.After(now) {
			return true
		}
		t.passed++
		ask(heap.Pop(&t.queue).(moment).of) //nolint:forcetypeassert // the queue contains only moments
	}
}

// next returns the first moment at which time may change a member. It returns false if time changes no member.
func (t *timed) next() (time.Time, bool) {
	for len(t.queue) > 0 {
		if first := t.queue[0]; t.due[first.of].Equal(first.at) {
			return first.at, true
		}
		heap.Pop(&t.queue)
	}
	return time.Time{}, false
}

// moment is the time at which a member changes next.
type moment struct {
	at time.Time
	of any
}

// moments is a heap with the earliest moment at the top.
type moments []moment

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i].at.Before(m[j].at) }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface.
func (m *moments) Push(x any) { *m = append(*m, x.(moment)) } //nolint:forcetypeassert // as above

// Pop implements heap.Interface.
func (m *moments) Pop() any {
	last := len(*m) - 1
	x := (*m)[last]
	(*m)[last] = moment{}
	*m = (*m)[:last]
	return x
}
