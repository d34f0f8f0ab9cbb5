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
	order jobOrder // of the parked jobs
	left  leaving
	queueCursor
}

// leaving records whether the step skips the queue, as of the last evaluation.
type leaving struct {
	known  bool
	sight  session.Sight
	answer policy.Answer
	outs   []*outcome // outcomes of skipped jobs, one for each reason, at most mostReasons
}

// queueCursor iterates over the jobs of one queue in a walk, parked or not, in one order.
type queueCursor struct {
	walked bool                      // the walk includes the queue
	came   bool                      // the walk has reached it
	heap   *session.Heap[*model.Job] // jobs that are not parked; nil: none
	placed int                       // number of jobs that have a position
	// sought states that first and before are known: whether heap has a first job, and how many of order come before it.
	sought, first bool
	before        int
	// rec is the present job: a parked job, or a job that was taken from heap, with its rank.
	rec     *record
	parked  *parked
	rank    session.Ranked[*model.Job]
	version uint64 // of the job at the beginning of its turn
}

// queueList contains the queues of a step, in the order of their names.
type queueList struct {
	all     []*queueBacklog
	byQueue map[*model.Queue]*queueBacklog
	sorted  bool
	listed  []*model.Queue // the cluster's list at the last update
}

func (l *queueList) reset() { *l = queueList{byQueue: map[*model.Queue]*queueBacklog{}} }

// at returns what is remembered of a queue; nil: nothing.
func (l *queueList) at(q *model.Queue) *queueBacklog { return l.byQueue[q] }

// of returns what is remembered of a queue, and adds the queue if it is new.
func (l *queueList) of(q *model.Queue) *queueBacklog {
	x := l.byQueue[q]
	if x == nil {
		x = &queueBacklog{of: q}
		l.byQueue[q], l.sorted = x, false
		l.all = append(l.all, x)
	}
	return x
}

// inOrder lists the queues by name.
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

// advance moves to the next job; false: there is none.
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

// seek computes how many parked jobs come before the first job that is not parked.
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

// put gives a job another turn.
func (c *queueBacklog) put(s *session.Session, j *model.Job) {
	if c.heap == nil {
		c.heap = s.Jobs()
	}
	c.heap.Put(j)
}
