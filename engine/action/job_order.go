package action

import (
	"math"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// jobOrder contains the parked jobs of one queue, in order. This walk has yet to come to the jobs from read on; been contains those that
// had their turn. Jobs that are no longer parked are still in it.
type jobOrder struct {
	jobs, been []*parked
	read       int
	same       bool // been equals the first read jobs, and is not stored
	moved      bool // been is not sorted
	// due is, for each of jobs, the earliest moment at which its keys may change. beenDue is the same for been.
	due, beenDue []int64
	firsts       []int64   // the earliest moment of each block of due
	until        time.Time // the earliest moment of all; zero: none
}

// block is the number of jobs per block. If the earliest moment of a block is in the future, its jobs need not be read.
const block = 64

// open prepares the jobs for a walk, in their present order. anew: all keys may have changed.
func (o *jobOrder) open(s *session.Session, now time.Time, anew bool) {
	o.read, o.been, o.beenDue, o.same = 0, o.been[:0], o.beenDue[:0], true
	if anew || !o.until.IsZero() && !now.Before(o.until) {
		o.rerank(s, now, anew)
	}
}

// rerank reads the keys again that may have changed, and reports whether the order changed.
func (o *jobOrder) rerank(s *session.Session, now time.Time, anew bool) (moved bool) {
	inOrder, at := true, instant(now) // each job with new keys is still between its neighbours
	for k, first := range o.firsts {
		if !anew && first > at {
			continue
		}
		for i := k * block; i < min((k+1)*block, len(o.due)); i++ {
			if !anew && o.due[i] > at {
				continue
			}
			if o.due[i] = never; !o.jobs[i].gone {
				inOrder = o.rerankAt(i, s, now, anew) && inOrder
				o.due[i] = instant(o.jobs[i].rank.Until)
			}
		}
		o.firsts[k] = slices.Min(o.due[k*block : min((k+1)*block, len(o.due))])
	}
	if !inOrder && o.sort(s) {
		o.divide()
		return true
	}
	o.hold()
	return false
}

// rerankAt reads the keys of one job again if they may have changed, and reports whether it is still between its neighbours.
func (o *jobOrder) rerankAt(i int, s *session.Session, now time.Time, anew bool) (inOrder bool) {
	p := o.jobs[i]
	if !anew && (p.rank.Until.IsZero() || now.Before(p.rank.Until)) {
		return true
	}
	s.Rank(&p.rank)
	inOrder = true
	for k := max(i, 1); k <= min(i+1, len(o.jobs)-1); k++ {
		inOrder = inOrder && s.Compare(&o.jobs[k-1].rank, &o.jobs[k].rank) <= 0
	}
	return inOrder
}

// never is an instant that does not come.
const never = math.MaxInt64

// instant returns a time in nanoseconds since 1970; never for the zero time, and for times that are too large.
func instant(t time.Time) int64 {
	if t.IsZero() || t.Unix() >= never/int64(time.Second) {
		return never
	}
	return t.UnixNano()
}

// sort sorts the jobs, and reports whether their order changed.
func (o *jobOrder) sort(s *session.Session) (moved bool) {
	before := func(a, b *parked) int { return s.Compare(&a.rank, &b.rank) }
	if slices.IsSortedFunc(o.jobs, before) {
		return false
	}
	slices.SortFunc(o.jobs, before)
	for i, p := range o.jobs {
		o.due[i] = instant(p.rank.Until)
	}
	return true
}

// divide computes the earliest moment of each block.
func (o *jobOrder) divide() {
	o.firsts = o.firsts[:0]
	for due := range slices.Chunk(o.due, block) {
		o.firsts = append(o.firsts, slices.Min(due))
	}
	o.hold()
}

// hold computes the earliest moment of all.
func (o *jobOrder) hold() {
	first := int64(never)
	for _, due := range o.firsts {
		first = min(first, due)
	}
	if o.until = (time.Time{}); first != never {
		o.until = time.Unix(0, first)
	}
}

// head returns the first parked job that this walk has yet to come to; nil: there is none.
func (o *jobOrder) head() *parked { return o.next(len(o.jobs)) }

// next returns the first parked job that this walk has yet to come to, among those before an index; nil: there is none.
func (o *jobOrder) next(before int) *parked {
	if o == nil {
		return nil
	}
	for ; o.read < before; o.read++ {
		p := o.jobs[o.read]
		if !p.gone {
			return p
		}
		o.write()
		*p = parked{gone: true} // nothing refers to it any more, and it must not keep the job in memory
	}
	return nil
}

// before returns how many parked jobs come before a job that is not parked.
func (o *jobOrder) before(s *session.Session, r *session.Ranked[*model.Job]) int {
	n, _ := slices.BinarySearchFunc(o.jobs[o.read:], r, func(p *parked, r *session.Ranked[*model.Job]) int { return s.Compare(&p.rank, r) })
	return o.read + n
}

// pass keeps a job parked that the walk comes to, or parks one.
func (o *jobOrder) pass(p *parked, s *session.Session) {
	var due int64
	if o.read < len(o.jobs) && o.jobs[o.read] == p {
		if o.read++; o.same {
			return
		}
		due = o.due[o.read-1]
	} else {
		o.write()
		if due = instant(p.rank.Until); len(o.been) > 0 && s.Compare(&o.been[len(o.been)-1].rank, &p.rank) > 0 {
			o.moved = true // it had a turn, and its keys changed
		}
	}
	o.been, o.beenDue = append(o.been, p), append(o.beenDue, due)
}

// write stores the jobs that had their turn.
func (o *jobOrder) write() {
	if o.same {
		o.been, o.beenDue, o.same = append(o.been, o.jobs[:o.read]...), append(o.beenDue, o.due[:o.read]...), false
	}
}

// close ends a walk: the jobs that had their turn are now the parked jobs.
func (o *jobOrder) close(s *session.Session) {
	for p := o.head(); p != nil; p = o.head() {
		o.pass(p, s)
	}
	o.read = 0
	if o.same {
		return
	}
	o.jobs, o.been = o.been, o.jobs[:0]
	o.due, o.beenDue = o.beenDue, o.due[:0]
	if o.moved {
		o.moved = false
		o.sort(s)
	}
	o.divide()
}
