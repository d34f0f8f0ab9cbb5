package action

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// backlog is the memory that remembers jobs from one cycle to the next. A cycle then tries only jobs that changed, and one waiting job of
// each kind: see stepBacklog.
type backlog struct {
	s *session.Session
	c *model.Cluster
	x *Cycle // the present cycle

	cursor  follow.Cursor[*model.Job]
	cycle   uint64
	local   bool   // the status of a job depends only on the job, its waits, the sizes of nodes and the limits of queues
	sizes   uint64 // Session.NodeSizes at the last statuses
	limits  uint64 // Cluster.QueueLimits at the last statuses
	ordered bool   // a job blocked its queue in the last cycle, so the plan depends on the order of jobs
	steps   []*stepBacklog
	bySteps map[*policy.Step]*stepBacklog
	records map[*model.Job]*record

	lists
	fresh  []*record // those of open for which some step has no answer yet, in key order
	looked []*record // whose waits and statuses are computed again in this cycle
	slabs  slabs
	dueNow []dueOrder // scratch memory
}

// lists contains the lists of plans, in the form in which plans share them.
type lists struct {
	listed statusList // statuses of jobs with a queue
	open   waitList   // waits of jobs that may wait for something
	queued queueStatuses
}

// slabs allocates the data about jobs.
type slabs struct {
	records slab.Of[record]
	at      slab.Of[*parked]
	parked  slab.Of[parked]
}

// record contains the data about one job.
type record struct {
	job     *model.Job
	queue   string // name of the queue, by which the record is sorted
	version uint64 // of the job, when last read, or after a turn without effect
	listed  bool
	open    bool
	isFresh bool
	// at states by step where the job is parked; nil: the step must try it, in this cycle or in each cycle.
	at []*parked

	place  int    // the position in its queue
	placed uint64 // the cycle that set place
	live   uint64 // the last cycle in which recall ran
	looked uint64 // the cycle that computes its waits again
	told   uint64 // the cycle that reported its status
	status *model.JobStatus
	untold bool         // no step gave a reason for some waiting task
	waits  []model.Wait // as of the last cycle
}

func newBacklog(s *session.Session) *backlog {
	b := &backlog{
		s: s, c: s.Cluster(), bySteps: map[*policy.Step]*stepBacklog{}, records: map[*model.Job]*record{},
		local: s.Local(policy.JobValid, policy.JobReady),
	}
	for _, a := range s.Policy().Actions {
		for _, step := range a.Steps {
			if l := b.bySteps[step]; l != nil {
				l.kinds = nil // the step is taken twice per cycle
				continue
			}
			b.bySteps[step] = newStepBacklog(b, a.Name, step, len(b.steps))
			b.steps = append(b.steps, b.bySteps[step])
		}
	}
	return b
}

func (b *backlog) of(step *policy.Step) attempts { return b.bySteps[step] }

// begin updates the records of jobs that changed since the last cycle, so that each step tries these jobs again.
func (b *backlog) begin(x *Cycle) {
	b.x = x
	b.ordered = false
	b.cycle++
	b.cursor.Follow(&b.c.JobLog, b.sync, b.reset)
	for _, l := range b.steps {
		l.beginCycle()
	}
	slices.SortFunc(b.fresh, byKey)
}

func byKey(a, b *record) int { return strings.Compare(a.job.Key, b.job.Key) }

func byQueue(a, b *record) int {
	if c := strings.Compare(a.queue, b.queue); c != 0 {
		return c
	}
	return byKey(a, b)
}

// reset starts again from all jobs.
func (b *backlog) reset() {
	clear(b.records)
	b.fresh = nil
	var listed, open []*record
	for _, l := range b.steps {
		l.reset()
	}
	for _, j := range b.c.JobsByKey() {
		r := b.record(j)
		r.queue, r.listed, r.version = j.QueueName, j.Seated(), j.Version
		if r.listed {
			listed = append(listed, r)
		}
		if r.open = report.MayWait(j); r.open {
			open = append(open, r)
			b.refresh(r)
		}
	}
	b.listed.reset(listed)
	b.open.reset(open)
}

// record creates the record of a job.
func (b *backlog) record(j *model.Job) *record {
	r := b.slabs.records.New()
	r.job, r.at = j, b.slabs.at.Slice(len(b.steps))
	b.records[j] = r
	return r
}

// sync updates the record of one job.
func (b *backlog) sync(j *model.Job) {
	r, there := b.records[j], b.c.Jobs[j.Key] == j
	if r == nil {
		if !there {
			return
		}
		r = b.record(j)
		r.version = j.Version + 1
	}
	if there && r.version == j.Version {
		return
	}
	r.version = j.Version
	b.listed.put(r, there && j.Seated())
	b.toOpen(r, there && report.MayWait(j))
	if !there {
		delete(b.records, j)
		r.forget()
	}
}

// forget empties the record of a job that is gone. Records are allocated in chunks, so the record would otherwise keep the job in memory.
func (r *record) forget() {
	if !r.isFresh && !r.listed && !r.open {
		*r = record{}
	}
}

// toOpen adds a changed job to the jobs that may wait, so that each step tries it, or removes it from them.
func (b *backlog) toOpen(r *record, open bool) {
	r.leave()
	if r.queue != r.job.QueueName {
		b.open.put(r, false)
	}
	r.queue = r.job.QueueName
	if b.open.put(r, open); open {
		b.refresh(r)
	}
}

// leave ends the parking of a job, so that each step tries it.
func (r *record) leave() {
	for i, p := range r.at {
		if p != nil {
			p.gone, r.at[i] = true, nil
		}
	}
}

func (b *backlog) refresh(r *record) {
	if !r.isFresh {
		r.isFresh = true
		b.fresh = append(b.fresh, r)
	}
}

// end closes a cycle. A job for which every step has an answer is no longer fresh.
func (b *backlog) end() {
	b.fresh = slices.DeleteFunc(b.fresh, func(r *record) bool {
		r.isFresh = r.open && (r.version != r.job.Version || r.untold || b.unasked(r))
		if b.records[r.job] != r {
			r.forget()
		}
		return !r.isFresh
	})
	clear(b.looked)
	b.looked, b.x = b.looked[:0], nil
}

// unasked reports whether some step must try a job in each cycle.
func (b *backlog) unasked(r *record) bool {
	for i, p := range r.at {
		if p == nil && !b.steps[i].never && r.job.Seated() {
			return true
		}
	}
	return false
}

// come prepares the turn of the job at a cursor.
func (b *backlog) come(c *queueBacklog) {
	b.recall(c.rec)
	b.ranked(c, c.rec)
}

// recall reports what the steps that skipped a job in this cycle have to report for it. It is called when the job gets a turn or its
// reasons are needed.
func (b *backlog) recall(r *record) {
	if r.live == b.cycle {
		return
	}
	r.live = b.cycle
	for _, p := range r.at {
		if p != nil && p.seen == b.cycle {
			b.x.tell(r.job, p.out)
		}
	}
}

// ranked records a job's position in the order of its queue. The first step that comes to the job determines it: among jobs that wait for
// admission, or for nodes.
func (b *backlog) ranked(c *queueBacklog, r *record) {
	if r.placed == b.cycle {
		return
	}
	r.placed = b.cycle
	c.placed++
	if place := c.placed; place != r.place {
		r.place = place
		b.look(r)
	}
}

// befell makes each step try a job again, because pods of it were evicted. A step that has not passed the job yet tries it in its new
// state.
func (b *backlog) befell(j *model.Job) {
	r := b.records[j]
	if r == nil {
		return
	}
	b.recall(r)
	b.look(r)
	for i, p := range r.at {
		c := b.steps[i].queues.at(j.Queue)
		if p != nil && p.kind != nil && p.seen != b.cycle && c != nil && c.walked && c.rec != r {
			c.put(b.s, j)
			c.sought = false
		}
	}
	r.leave()
	if r.open {
		b.refresh(r)
	}
}

func (b *backlog) blocked() { b.ordered = true }

// look makes the end of the cycle compute a job's waits again.
func (b *backlog) look(r *record) {
	if r.looked != b.cycle {
		r.looked = b.cycle
		b.looked = append(b.looked, r)
	}
}
