package action

import (
	"math"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// line is the parked jobs of one queue, in order: those from read on are to come in this walk, been those that have had their turn. Jobs that
// left the lane since are still in it.
type line struct {
	jobs, been []*parked
	read       int
	same       bool // been is what was read of jobs so far, and not written down
	moved      bool // been is not in order
	// due is, of each of jobs, the first moment at which its keys may be others, at the latest; beenDue is that of been.
	due, beenDue []int64
	firsts       []int64   // the first of each block of due
	until        time.Time // the first of all; zero: none
}

// block is of how many jobs the first moment is known, so that those for which it is not due need not be looked at.
const block = 64

// open makes a queue's line ready for a walk, its jobs in the order of this moment.
func (l *lane) open(q *model.Queue, now time.Time, anew bool) *line {
	x := l.lines[q]
	if x == nil {
		x = &line{}
		l.lines[q] = x
	}
	x.read, x.been, x.beenDue, x.same = 0, x.been[:0], x.beenDue[:0], true
	if anew || !x.until.IsZero() && !now.Before(x.until) {
		x.rerank(l, now, anew)
	}
	return x
}

// rerank reads the keys again that may be others now, and says whether the order is another.
func (x *line) rerank(l *lane, now time.Time, anew bool) (moved bool) {
	inOrder, at := true, instant(now) // who has other keys, between those beside it
	for k, first := range x.firsts {
		if !anew && first > at {
			continue
		}
		for i := k * block; i < min((k+1)*block, len(x.due)); i++ {
			if !anew && x.due[i] > at {
				continue
			}
			if x.due[i] = never; !x.jobs[i].gone {
				inOrder = x.rerankAt(i, l, now, anew) && inOrder
				x.due[i] = instant(x.jobs[i].rank.Until)
			}
		}
		x.firsts[k] = slices.Min(x.due[k*block : min((k+1)*block, len(x.due))])
	}
	if !inOrder && x.sort(l.s) {
		x.divide()
		return true
	}
	x.hold()
	return false
}

// rerankAt reads the keys of one job again if they may be others, and says whether it still is between those beside it.
func (x *line) rerankAt(i int, l *lane, now time.Time, anew bool) (inOrder bool) {
	p := x.jobs[i]
	if !anew && (p.rank.Until.IsZero() || now.Before(p.rank.Until)) {
		return true
	}
	l.s.Rank(&p.rank)
	inOrder = true
	for k := max(i, 1); k <= min(i+1, len(x.jobs)-1); k++ {
		inOrder = inOrder && l.s.Compare(&x.jobs[k-1].rank, &x.jobs[k].rank) <= 0
	}
	return inOrder
}

// never is an instant that does not come.
const never = math.MaxInt64

// instant is a time in nanoseconds since 1970, never for the zero time, and where there are not so many.
func instant(t time.Time) int64 {
	if t.IsZero() || t.Unix() >= never/int64(time.Second) {
		return never
	}
	return t.UnixNano()
}

// sort puts the jobs in order, and says whether they were not.
func (x *line) sort(s *policy.Session) (moved bool) {
	before := func(a, b *parked) int { return s.Compare(&a.rank, &b.rank) }
	if slices.IsSortedFunc(x.jobs, before) {
		return false
	}
	slices.SortFunc(x.jobs, before)
	for i, p := range x.jobs {
		x.due[i] = instant(p.rank.Until)
	}
	return true
}

// divide finds the first moment of each block.
func (x *line) divide() {
	x.firsts = x.firsts[:0]
	for due := range slices.Chunk(x.due, block) {
		x.firsts = append(x.firsts, slices.Min(due))
	}
	x.hold()
}

// hold finds the first of all.
func (x *line) hold() {
	first := int64(never)
	for _, due := range x.firsts {
		first = min(first, due)
	}
	if x.until = (time.Time{}); first != never {
		x.until = time.Unix(0, first)
	}
}

// head is the first parked job that is still to come; nil: there is none.
func (x *line) head() *parked { return x.next(len(x.jobs)) }

// next is the first that is still to come of those before a place in the line; nil: there is none.
func (x *line) next(before int) *parked {
	if x == nil {
		return nil
	}
	for ; x.read < before; x.read++ {
		p := x.jobs[x.read]
		if !p.gone {
			return p
		}
		x.write()
		*p = parked{gone: true} // nobody looks at it any more, and it is to keep no job
	}
	return nil
}

// before is how many of the line come before a job that is not in it.
func (x *line) before(s *policy.Session, r *policy.Ranked[*model.Job]) int {
	n, _ := slices.BinarySearchFunc(x.jobs[x.read:], r, func(p *parked, r *policy.Ranked[*model.Job]) int { return s.Compare(&p.rank, r) })
	return x.read + n
}

// pass leaves a job parked that was to come, or parks one.
func (x *line) pass(p *parked, s *policy.Session) {
	var due int64
	if x.read < len(x.jobs) && x.jobs[x.read] == p {
		if x.read++; x.same {
			return
		}
		due = x.due[x.read-1]
	} else {
		x.write()
		if due = instant(p.rank.Until); len(x.been) > 0 && s.Compare(&x.been[len(x.been)-1].rank, &p.rank) > 0 {
			x.moved = true // it had a turn, and its keys are others now
		}
	}
	x.been, x.beenDue = append(x.been, p), append(x.beenDue, due)
}

// write writes down who has been.
func (x *line) write() {
	if x.same {
		x.been, x.beenDue, x.same = append(x.been, x.jobs[:x.read]...), append(x.beenDue, x.due[:x.read]...), false
	}
}

// close ends a walk: what has been is what is parked.
func (x *line) close(s *policy.Session) {
	for p := x.head(); p != nil; p = x.head() {
		x.pass(p, s)
	}
	x.read = 0
	if x.same {
		return
	}
	x.jobs, x.been = x.been, x.jobs[:0]
	x.due, x.beenDue = x.beenDue, x.due[:0]
	if x.moved {
		x.moved = false
		x.sort(s)
	}
	x.divide()
}
