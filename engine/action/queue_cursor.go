package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// queueCursor goes through the jobs of one queue in a walk: those that are parked and those that are not, in one order.
type queueCursor struct {
	order  *jobOrder                 // of those that are parked; nil: the step parks none
	heap   *session.Heap[*model.Job] // those that are not; nil: none
	placed int                       // how many were given their places
	// sought says that it is known whether there is a first of heap, and how many of order come before it.
	sought, first bool
	before        int
	// rec is the job that it is at: a parked one, or one that was taken from heap and has a rank.
	rec     *record
	parked  *parked
	rank    session.Ranked[*model.Job]
	version uint64 // of the job as its turn began
}

// advance goes to the next job; false: there is none.
func (c *queueCursor) advance(b *backlog) bool {
	if !c.sought {
		c.seek(b.s)
	}
	if c.parked = c.order.next(c.before); c.parked != nil {
		c.rec = c.parked.rec
		return true
	}
	c.sought = false
	if c.first {
		c.rank, _ = c.heap.TakeRanked()
		c.rec = b.records[c.rank.Of]
	}
	return c.first
}

// seek finds how many of those that are parked come before the first that is not.
func (c *queueCursor) seek(s *session.Session) {
	c.sought, c.first, c.before = true, false, 0
	if c.order != nil {
		c.before = len(c.order.jobs)
	}
	if c.heap == nil {
		return
	}
	var first *session.Ranked[*model.Job]
	if first, c.first = c.heap.First(); c.first && c.order != nil {
		c.before = c.order.before(s, first)
	}
}

// put has a job come back for another turn.
func (c *queueCursor) put(s *session.Session, j *model.Job) {
	if c.heap == nil {
		c.heap = s.Jobs()
	}
	c.heap.Put(j)
}
