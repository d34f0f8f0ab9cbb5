package policy

import (
	"container/heap"
	"time"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// followsTime says that arguments read the time, and only in comparisons and steps of which the next moment is known.
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

// timed knows when members of a sum bring something else though nothing but time moves.
type timed struct {
	on     bool
	now    time.Time         // when the sum was last brought up to date
	due    map[any]time.Time // of the members that will change
	queue  moments           // of due, and of what was due and is not any more
	passed int               // how often time changed a member
	first  time.Time         // when the member that is asked is due; zero: never, so far
}

// restart forgets all members.
func (t *timed) restart(now time.Time) { t.now, t.due, t.queue = now, map[any]time.Time{}, nil }

// begin is called before a member is asked, end after it, and watch after each of its arguments.
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
	case !t.due[of].Equal(t.first): // else it is in the queue already
		t.due[of] = t.first
		heap.Push(&t.queue, moment{t.first, of})
	}
}

// pass goes on to a moment, and asks the members again whose time has come; false: the moment lies in the past.
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
		ask(heap.Pop(&t.queue).(moment).of) //nolint:forcetypeassert // it holds nothing else
	}
}

// next is the first moment at which a member may bring something else; false: there is none.
func (t *timed) next() (time.Time, bool) {
	for len(t.queue) > 0 {
		if first := t.queue[0]; t.due[first.of].Equal(first.at) {
			return first.at, true
		}
		heap.Pop(&t.queue)
	}
	return time.Time{}, false
}

// moment is when a member is due.
type moment struct {
	at time.Time
	of any
}

// moments is a heap: the first is at the top.
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
