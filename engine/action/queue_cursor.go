package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// queueBacklog is what a step remembers of one queue, with the cursor of the present walk.
type queueBacklog struct {
	of    *model.Queue
	order jobOrder // of those that are parked
	left  leaving
	queueCursor
}

// leaving is whether the step leaves the queue, as of the last time it was asked.
type leaving struct {
	known  bool
	sight  session.Sight
	answer policy.Answer
	outs   []*outcome // outcomes of jobs that were left out, one for each reason, at most mostReasons
}

// queueCursor goes through the jobs of one queue in a walk: those that are parked and those that are not, in one order.
type queueCursor struct {
	walked bool                      // the walk comes to the queue
	came   bool                      // it did already
	heap   *session.Heap[*model.Job] // those that are not parked; nil: none
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

// queueList is the queues of a step, in the order of their names.
type queueList struct {
	all     []*queueBacklog
	byQueue map[*model.Queue]*queueBacklog
	sorted  bool
	listed  []*model.Queue // by the cluster, when they were last looked at
}

func (l *queueList) reset() { *l = queueList{byQueue: map[*model.Queue]*queueBacklog{}} }

// at is what is remembered of a queue; nil: nothing.
func (l *queueList) at(q *model.Queue) *queueBacklog { return l.byQueue[q] }

// of is what is remembered of a queue, that of a new one with nothing.
func (l *queueList) of(q *model.Queue) *queueBacklog {
	x := l.byQueue[q]
	if x == nil {
		x = &queueBacklog{of: q}
		l.byQueue[q], l.sorted = x, false
		l.all = append(l.all, x)
	}
	return x
}

// inOrder lists them by name.
func (l *queueList) inOrder() []*queueBacklog {
	if !l.sorted {
		l.sorted = true
		slices.SortFunc(l.all, func(a, b *queueBacklog) int { return byName(a.of, b.of) })
	}
	return l.all
}

// follow drops the queues that are gone.
func (l *queueList) follow(c *model.Cluster) {
	now := c.QueuesByName()
	if sameList(l.listed, now) {
		return
	}
	l.listed = now
	l.all = slices.DeleteFunc(l.all, func(x *queueBacklog) bool {
		gone := c.Queues[x.of.Name] != x.of
		if gone {
			delete(l.byQueue, x.of)
		}
		return gone
	})
}

// advance goes to the next job; false: there is none.
func (c *queueBacklog) advance(b *backlog) bool {
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
func (c *queueBacklog) seek(s *session.Session) {
	c.sought, c.first, c.before = true, false, len(c.order.jobs)
	if c.heap == nil {
		return
	}
	var first *session.Ranked[*model.Job]
	if first, c.first = c.heap.First(); c.first {
		c.before = c.order.before(s, first)
	}
}

// put has a job come back for another turn.
func (c *queueBacklog) put(s *session.Session, j *model.Job) {
	if c.heap == nil {
		c.heap = s.Jobs()
	}
	c.heap.Put(j)
}
