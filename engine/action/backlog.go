package action

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// backlog is what is remembered of jobs from one cycle to the next, so that a cycle looks at those that changed, and at one
// of each kind of those that wait: see lane. It follows the cluster by its log of jobs.
type backlog struct {
	s *policy.Session
	c *model.Cluster

	begun   bool
	cursor  uint64 // in JobLog
	cycle   uint64
	local   bool // a job's status is told by the job and its waits alone
	steps   []*policy.Step
	lanes   map[*policy.Step]*lane
	records map[*model.Job]*record

	listed  []*record // jobs with a queue, in key order
	open    []*record // jobs that may wait for something, by queue and key
	touched []*record // jobs with a queue that changed
	fresh   []*record // those of open that not every step has its answer for, in key order

	statuses []*model.JobStatus // of listed; what plans have of it is never changed in place
	owned    bool               // no plan has statuses yet
	waits    []model.Wait       // of open; never changed in place
	changed  bool               // waits are to be listed anew
	slabs    slabs
	dueNow   []dueLine // reused
}

// slabs are where what is kept of jobs is made.
type slabs struct {
	records  model.Slab[record]
	at       model.Slab[*parked]
	parked   model.Slab[parked]
	statuses model.Slab[model.JobStatus]
	scores   model.Slab[model.RowScore]
	texts    model.Texts
}

// record is one job.
type record struct {
	job     *model.Job
	queue   string // its name, by which the record is sorted
	version uint64 // of the job, as last seen, or left by a turn in vain
	listed  bool
	open    bool
	isFresh bool
	// at is, by step, where the job is parked; nil: the step is yet to come to it, or must come to it in each cycle.
	at []*parked

	place  int    // in its queue's order
	placed uint64 // the cycle that gave it
	live   uint64 // the cycle whose notes have it
	looked uint64 // the cycle that tells its waits anew
	told   uint64 // the cycle that told its status
	status *model.JobStatus
	untold bool         // no step had a word for some waiting task
	waits  []model.Wait // as of the last cycle
}

// backlogOf is the session's, made at the first call.
func backlogOf(s *policy.Session) *backlog {
	if b, ok := s.Kept.(*backlog); ok {
		return b
	}
	b := &backlog{
		s: s, c: s.Cluster(), lanes: map[*policy.Step]*lane{}, records: map[*model.Job]*record{},
		local: s.Local(policy.JobValid, policy.JobReady),
	}
	for _, a := range s.Policy().Actions {
		for _, step := range a.Steps {
			if l := b.lanes[step]; l != nil {
				l.kinds = nil // it is taken twice a cycle
				continue
			}
			b.lanes[step] = newLane(s, a.Name, step, len(b.steps))
			b.steps = append(b.steps, step)
		}
	}
	s.Kept = b
	return b
}

// begin opens a cycle: records of jobs that changed since are brought up to date, and each step is to look at them again.
func (b *backlog) begin() {
	b.cycle++
	entries, ok := b.c.JobLog.Since(b.cursor)
	if !b.begun || !ok || b.s.NoCache {
		b.reset()
	} else {
		for _, j := range entries {
			b.sync(j)
		}
	}
	b.begun, b.cursor = true, b.c.JobLog.Next()
	for _, l := range b.lanes {
		l.begin(b)
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

// reset begins anew, with a look at every job.
func (b *backlog) reset() {
	clear(b.records)
	b.listed, b.open, b.fresh, b.waits, b.changed = nil, nil, nil, nil, true
	for _, l := range b.lanes {
		l.reset()
	}
	for _, j := range b.c.JobsByKey() {
		r := b.record(j)
		r.queue, r.listed, r.version = j.QueueName, j.Seated(), j.Version
		if r.listed {
			b.listed = append(b.listed, r)
		}
		if r.open = mayWait(j); r.open {
			b.open = append(b.open, r)
			b.refresh(r)
		}
	}
	slices.SortFunc(b.open, byQueue)
	b.statuses, b.owned, b.touched = make([]*model.JobStatus, len(b.listed)), true, slices.Clone(b.listed)
}

// record makes a job's record.
func (b *backlog) record(j *model.Job) *record {
	r := b.slabs.records.New()
	r.job, r.at = j, b.slabs.at.Slice(len(b.steps))
	b.records[j] = r
	return r
}

// sync brings one job's record up to date.
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
	b.list(r, there && j.Seated())
	b.toOpen(r, there && mayWait(j))
	if !there {
		delete(b.records, j)
		r.forget()
	}
}

// forget lets go of a job that is gone, so that what is made together with its record does not keep it.
func (r *record) forget() {
	if !r.isFresh && !r.listed && !r.open {
		*r = record{}
	}
}

// list puts a job among those that have a status, or takes it from there.
func (b *backlog) list(r *record, listed bool) {
	if listed {
		b.touched = append(b.touched, r)
	}
	if r.listed == listed {
		return
	}
	r.listed = listed
	i, _ := slices.BinarySearchFunc(b.listed, r, byKey)
	b.own()
	if r.status = nil; listed {
		b.listed = slices.Insert(b.listed, i, r)
		b.statuses = slices.Insert(b.statuses, i, nil)
		return
	}
	b.listed = slices.Delete(b.listed, i, i+1)
	b.statuses = slices.Delete(b.statuses, i, i+1)
}

// toOpen puts a job that changed among those that may wait, for each step to look at it, or takes it from there.
func (b *backlog) toOpen(r *record, open bool) {
	r.leave()
	if moved := r.queue != r.job.QueueName; r.open && (moved || !open) {
		i, _ := slices.BinarySearchFunc(b.open, r, byQueue)
		b.open = slices.Delete(b.open, i, i+1)
		b.changed = b.changed || len(r.waits) > 0
		r.open, r.waits = false, nil
	}
	r.queue = r.job.QueueName
	if !open {
		return
	}
	if !r.open {
		r.open = true
		i, _ := slices.BinarySearchFunc(b.open, r, byQueue)
		b.open = slices.Insert(b.open, i, r)
	}
	b.refresh(r)
}

// leave takes a job out of all lanes: each step is to look at it.
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

// end closes a cycle: what every step has its answer for is fresh no more.
func (b *backlog) end() {
	b.fresh = slices.DeleteFunc(b.fresh, func(r *record) bool {
		r.isFresh = r.open && (r.version != r.job.Version || r.untold || b.unasked(r))
		if b.records[r.job] != r {
			r.forget()
		}
		return !r.isFresh
	})
}

// unasked says that some step must come to a job in each cycle.
func (b *backlog) unasked(r *record) bool {
	for i, p := range r.at {
		if p == nil && !b.lanes[b.steps[i]].never && r.job.Seated() {
			return true
		}
	}
	return false
}

// mayWait says whether a job can have something to wait for: to be let in, for nodes, or for what is being released.
func mayWait(j *model.Job) bool {
	if j.Orphan {
		return j.Counts[model.Pending] > 0 && slices.ContainsFunc(j.Tasks, func(t *model.Task) bool { return !t.Foreign })
	}
	return j.Phase == model.PhasePending || j.TaskCount() == 0 || len(j.Expected) > 0 || j.Counts[model.Pending]+j.Counts[model.Pipelined]+j.Counts[model.Allocated] > 0
}
