package action

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// walk takes the jobs of a step, queue by queue, in the orders of the policy.
type walk struct {
	x      *Cycle
	lane   *lane
	queues *policy.Queues
	stands map[*model.Queue]*stand
	work   func(*model.Job) (again bool)
}

// stand is the jobs of one queue in a walk.
type stand struct {
	line   *line                    // those that are parked; nil: the lane parks none
	heap   *policy.Heap[*model.Job] // those that are not; nil: none
	placed int                      // how many were given their places
}

// walk gives the jobs that pass to work, which does one turn of a job and says whether the job comes back for another.
// A job for which the verb has nothing to do is not ordered. drop says whether to leave out the rest of a queue.
func (x *Cycle) walk(step *policy.Step, idle func(*model.Job) bool, drop func(*model.Queue) bool, work func(*model.Job) (again bool)) {
	w := &walk{x: x, lane: x.backlog.lanes[step], queues: x.s.Queues(), stands: map[*model.Queue]*stand{}, work: work}
	w.gather(step, idle)
	for {
		q, ok := w.queues.Take()
		if !ok {
			break
		}
		if drop(q) {
			w.drop(q)
			continue
		}
		if w.one(q) {
			w.queues.Put(q)
		}
	}
	for _, line := range w.lane.lines {
		line.close(x.s)
	}
}

// gather finds who is to be taken.
func (w *walk) gather(step *policy.Step, idle func(*model.Job) bool) {
	x, l := w.x, w.lane
	var queues []*model.Queue
	for _, r := range x.backlog.fresh {
		j := r.job
		if r.at[l.index] != nil || !j.Seated() {
			continue
		}
		if idle(j) || !x.jobPasses(step, policy.KeyJobs, j) {
			if l.kinds != nil {
				w.parking(r, nil)
			}
			continue
		}
		st := w.stands[j.Queue]
		if st == nil {
			st = &stand{heap: x.s.Jobs()}
			w.stands[j.Queue] = st
			queues = append(queues, j.Queue)
		}
		st.heap.Put(j)
	}
	for q := range l.lines {
		if w.stands[q] == nil {
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, func(a, b *model.Queue) int { return cmp.Compare(a.Name, b.Name) })
	for _, q := range w.open(queues) {
		w.queues.Put(q)
	}
}

// open makes the lines of queues ready, in their order, as the first job whose keys err is named. It drops the queues without jobs.
func (w *walk) open(queues []*model.Queue) []*model.Queue {
	l, s := w.lane, w.x.s
	if l.kinds == nil {
		return queues
	}
	order, _ := s.OrderEpoch()
	anew := order != l.order
	l.order = order
	return slices.DeleteFunc(queues, func(q *model.Queue) bool {
		line := l.open(q, w.x.plan.Now, anew)
		if st := w.stands[q]; st != nil {
			st.line = line
			return false
		}
		if line.head() == nil {
			return true
		}
		w.stands[q] = &stand{line: line}
		return false
	})
}

// first is the first job that is not parked, with how many of the line come before it; nil: there is none, and the whole line is to come.
func (w *walk) first(st *stand) (first *policy.Ranked[*model.Job], before int) {
	if st.line != nil {
		before = len(st.line.jobs)
	}
	if st.heap == nil {
		return nil, before
	}
	first, ok := st.heap.First()
	if !ok {
		return nil, before
	}
	if st.line != nil {
		before = st.line.before(w.x.s, first)
	}
	return first, before
}

// one gives turns to the jobs of a queue until something comes of one, and says whether that was so. Turns in vain leave
// the orders what they were.
func (w *walk) one(q *model.Queue) bool {
	now, st := w.x.s.Token(), w.stands[q]
	for {
		first, before := w.first(st)
		for p := st.line.next(before); p != nil; p = st.line.next(before) {
			if p.kind.holds(now) {
				w.pass(st, p, p.kind.out)
			} else if !w.parked(st, p) {
				return true
			}
		}
		if first == nil {
			return false
		}
		rank, _ := st.heap.TakeRanked()
		if vain := w.fresh(st, rank, now); !vain {
			return true
		}
	}
}

// parked tries a job that was tried in vain at another state.
func (w *walk) parked(st *stand, p *parked) (vain bool) {
	r := p.rec
	again, vain := w.try(st, r)
	if !vain {
		w.x.s.Until(p.rank.Until)
		if again {
			w.again(st, r.job)
		}
		return false
	}
	w.lane.settle(p.kind, gather(r.job, w.x.jottings, w.x.turnUndone))
	w.park(st, p, p.kind.out)
	return true
}

// fresh tries a job that is not parked. In vain it is, if it is of a kind.
func (w *walk) fresh(st *stand, rank policy.Ranked[*model.Job], now policy.Token) (vain bool) {
	j, l := rank.Of, w.lane
	r := w.x.backlog.records[j]
	if l.kinds != nil && l.tried == now && w.x.awaited(l.step, j).IsZero() {
		if k := l.kindOf(j); k.holds(now) {
			p := w.parking(r, k)
			p.rank = rank
			w.pass(st, p, k.out)
			return true
		}
	}
	again, vain := w.try(st, r)
	if vain {
		if k := l.kindOf(j); k != nil {
			l.settle(k, gather(j, w.x.jottings, w.x.turnUndone))
			p := w.parking(r, k)
			p.rank = rank
			w.park(st, p, k.out)
			return true
		}
	}
	w.x.s.Until(rank.Until)
	if again {
		st.heap.Put(j)
	}
	return vain
}

// parking is a new place in the lane for a job of a kind.
func (w *walk) parking(r *record, k *kind) *parked {
	p := w.x.backlog.slabs.parked.New()
	p.rec, p.kind = r, k
	r.at[w.lane.index] = p
	return p
}

// again lets a job that was parked come back for another turn.
func (w *walk) again(st *stand, j *model.Job) {
	if st.heap == nil {
		st.heap = w.x.s.Jobs()
	}
	st.heap.Put(j)
}

// try gives a job a turn. It was in vain where nothing of it is left.
func (w *walk) try(st *stand, r *record) (again, vain bool) {
	x, j := w.x, r.job
	x.enliven(r)
	x.ranked(st, r)
	x.jottings, x.turnUndone, x.unsettled = x.jottings[:0], -1, false
	version, content := j.Version, x.c.Content()
	again = w.work(j)
	vain = !again && x.c.Content() == content && !x.unsettled
	switch {
	case !vain: // the job is another now, for all steps
		r.leave()
		x.backlog.refresh(r)
		if len(x.plan.Binds)+len(x.plan.Admits) > 0 {
			x.txn.Commit() // the cycle will not be undone as a whole
		}
	case r.version == version:
		r.version = j.Version // touched, and as it was
	}
	return again, vain
}

// pass leaves a job parked unlooked at, as what comes of it is known.
func (w *walk) pass(st *stand, p *parked, out *outcome) {
	w.x.ranked(st, p.rec)
	if p.rec.live == w.x.backlog.cycle {
		w.x.tell(p.rec.job, out)
	}
	w.park(st, p, out)
}

// park notes what came of a parked job.
func (w *walk) park(st *stand, p *parked, out *outcome) {
	if p.out != out {
		p.out = out
		w.x.look(p.rec)
	}
	p.seen = w.x.backlog.cycle
	st.line.pass(p, w.x.s)
}

// drop notes for every job of a queue that is left out why.
func (w *walk) drop(q *model.Queue) {
	x, l := w.x, w.lane
	x.jottings = x.jottings[:0]
	why := &outcome{undone: -1, notes: []note{{ofJob, &model.Wait{Action: x.action, Reason: x.s.Overused(q).Reason()}}}}
	if known := l.drops[q]; known != nil && known.equal(why) {
		why = known
	}
	l.drops[q] = why
	nothing := &outcome{undone: -1}
	of := func(j *model.Job) *outcome {
		if j.Counts[model.Pending] > 0 {
			return why
		}
		return nothing
	}
	st := w.stands[q]
	for {
		first, before := w.first(st)
		for p := st.line.next(before); p != nil; p = st.line.next(before) {
			w.pass(st, p, of(p.rec.job))
		}
		if first == nil {
			return
		}
		rank, _ := st.heap.TakeRanked()
		r := x.backlog.records[rank.Of]
		if x.awaited(l.step, rank.Of).IsZero() { // else the step may have nothing to do for it in a while
			if k := l.kindOf(rank.Of); k != nil {
				p := w.parking(r, k)
				p.rank = rank
				w.pass(st, p, of(rank.Of))
				continue
			}
		}
		x.enliven(r)
		x.ranked(st, r)
		x.tell(rank.Of, of(rank.Of))
		x.s.Until(rank.Until)
	}
}

// ranked notes a job's place in its queue's order, as the first step has it that comes to it: among those that wait to be let in, or
// for nodes.
func (x *Cycle) ranked(st *stand, r *record) {
	if r.placed == x.backlog.cycle {
		return
	}
	r.placed = x.backlog.cycle
	st.placed++
	if place := st.placed; place != r.place {
		r.place = place
		x.look(r)
	}
}

// look has a job's waits told anew at the end of the cycle.
func (x *Cycle) look(r *record) {
	if r.looked != x.backlog.cycle {
		r.looked = x.backlog.cycle
		x.looked = append(x.looked, r)
	}
}

// enliven writes down what steps that passed a job in this cycle said of it, as it is to be looked at now.
func (x *Cycle) enliven(r *record) {
	if r.live == x.backlog.cycle {
		return
	}
	r.live = x.backlog.cycle
	x.look(r)
	for _, p := range r.at {
		if p != nil && p.seen == x.backlog.cycle {
			x.tell(r.job, p.out)
		}
	}
}
