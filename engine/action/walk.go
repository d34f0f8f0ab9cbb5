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
	heaps  map[*model.Queue]*policy.Heap[*model.Job] // jobs that are not parked
	work   func(*model.Job) (again bool)
}

// walk gives the jobs that pass to work, which does one turn of a job and says whether the job comes back for another.
// A job for which the verb has nothing to do is not ordered. drop says whether to leave out the rest of a queue.
func (x *Cycle) walk(step *policy.Step, idle func(*model.Job) bool, drop func(*model.Queue) bool, work func(*model.Job) (again bool)) {
	clear(x.turns)
	w := &walk{x: x, lane: x.backlog.lanes[step], queues: x.s.Queues(), heaps: map[*model.Queue]*policy.Heap[*model.Job]{}, work: work}
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
		line.close(w.lane.index)
	}
}

// gather finds who is to be taken.
func (w *walk) gather(step *policy.Step, idle func(*model.Job) bool) {
	x, l := w.x, w.lane
	var queues []*model.Queue
	for _, r := range x.backlog.fresh {
		j := r.job
		if r.at[l.index] != nil || j.Orphan || j.Queue == nil {
			continue
		}
		if idle(j) || !x.jobPasses(step, j) {
			if l.kinds != nil {
				r.at[l.index] = &parked{rec: r}
			}
			continue
		}
		if w.heaps[j.Queue] == nil {
			w.heaps[j.Queue] = x.s.Jobs()
			queues = append(queues, j.Queue)
		}
		w.heaps[j.Queue].Put(j)
	}
	if l.kinds != nil {
		order, _ := x.s.OrderEpoch()
		for _, q := range queues {
			l.open(q, x.plan.Now, order != l.order)
		}
		for q := range l.lines {
			if w.heaps[q] == nil && l.open(q, x.plan.Now, order != l.order).head(l.index) != nil {
				queues = append(queues, q)
			}
		}
		l.order = order
	}
	slices.SortFunc(queues, func(a, b *model.Queue) int { return cmp.Compare(a.Name, b.Name) })
	for _, q := range queues {
		w.queues.Put(q)
	}
}

// next is who comes next in a queue: a job that is parked, or else the first of the heap; both are nil where nobody is left.
func (w *walk) next(q *model.Queue) (line *line, p *parked, heap *policy.Heap[*model.Job]) {
	if line = w.lane.lines[q]; line != nil {
		p = line.head(w.lane.index)
	}
	if heap = w.heaps[q]; heap == nil {
		return line, p, nil
	}
	first, ok := heap.First()
	switch {
	case !ok:
		return line, p, nil
	case p != nil && w.x.s.Compare(&p.rank, first) < 0:
		return line, p, nil
	}
	return line, nil, heap
}

// one gives turns to the jobs of a queue until something comes of one, and says whether that was so. Turns in vain leave
// the orders what they were.
func (w *walk) one(q *model.Queue) bool {
	now := w.x.s.Token()
	for {
		line, p, heap := w.next(q)
		vain := true
		switch {
		case p == nil && heap == nil:
			return false
		case p == nil:
			rank, _ := heap.TakeRanked()
			vain = w.fresh(rank, line, heap, now)
		case p.kind.holds(now):
			w.pass(line, p, p.kind.out)
		default:
			vain = w.parked(line, p)
		}
		if !vain {
			return true
		}
	}
}

// parked tries a job that was tried in vain at another state.
func (w *walk) parked(line *line, p *parked) (vain bool) {
	r := p.rec
	again, vain := w.try(r)
	if !vain {
		w.x.s.Until(p.rank.Until)
		if again {
			w.again(r.job)
		}
		return false
	}
	w.lane.settle(p.kind, gather(r.job, w.x.jottings, w.x.turnUndone))
	w.park(line, p, p.kind.out)
	return true
}

// fresh tries a job that is not parked. In vain it is, if it is of a kind.
func (w *walk) fresh(rank policy.Ranked[*model.Job], line *line, heap *policy.Heap[*model.Job], now policy.Token) (vain bool) {
	j, l := rank.Of, w.lane
	r := w.x.backlog.records[j]
	if l.kinds != nil && l.tried == now {
		if k := l.kindOf(j); k.holds(now) {
			p := &parked{rank: rank, rec: r, kind: k}
			r.at[l.index] = p
			w.pass(line, p, k.out)
			return true
		}
	}
	again, vain := w.try(r)
	if vain {
		if k := l.kindOf(j); k != nil {
			l.settle(k, gather(j, w.x.jottings, w.x.turnUndone))
			p := &parked{rank: rank, rec: r, kind: k}
			r.at[l.index] = p
			w.park(line, p, k.out)
			return true
		}
	}
	w.x.s.Until(rank.Until)
	if again {
		heap.Put(j)
	}
	return vain
}

// again lets a job that was parked come back for another turn.
func (w *walk) again(j *model.Job) {
	if w.heaps[j.Queue] == nil {
		w.heaps[j.Queue] = w.x.s.Jobs()
	}
	w.heaps[j.Queue].Put(j)
}

// try gives a job a turn. It was in vain where nothing of it is left.
func (w *walk) try(r *record) (again, vain bool) {
	x, j := w.x, r.job
	x.enliven(r)
	x.ranked(r)
	x.jottings, x.turnUndone = x.jottings[:0], -1
	version, content := j.Version, x.c.Content()
	again = w.work(j)
	vain = !again && x.c.Content() == content
	switch {
	case !vain: // the job is another now, for all steps
		clear(r.at)
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
func (w *walk) pass(line *line, p *parked, out *outcome) {
	w.x.ranked(p.rec)
	if p.rec.live == w.x.backlog.cycle {
		w.x.tell(p.rec.job, out)
	}
	w.park(line, p, out)
}

// park notes what came of a parked job.
func (w *walk) park(line *line, p *parked, out *outcome) {
	if p.out != out {
		p.out = out
		w.x.look(p.rec)
	}
	p.seen = w.x.backlog.cycle
	line.pass(p)
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
	for {
		line, p, heap := w.next(q)
		switch {
		case p == nil && heap == nil:
			return
		case p != nil:
			w.pass(line, p, of(p.rec.job))
			continue
		}
		rank, _ := heap.TakeRanked()
		r := x.backlog.records[rank.Of]
		if k := l.kindOf(rank.Of); k != nil {
			p := &parked{rank: rank, rec: r, kind: k}
			r.at[l.index] = p
			w.pass(line, p, of(rank.Of))
			continue
		}
		x.enliven(r)
		x.ranked(r)
		x.tell(rank.Of, of(rank.Of))
		x.s.Until(rank.Until)
	}
}

// ranked notes a job's place in its queue's order, as the first step has it that comes to it: among those that wait to be let in, or
// for nodes.
func (x *Cycle) ranked(r *record) {
	if r.placed == x.backlog.cycle {
		return
	}
	r.placed = x.backlog.cycle
	x.turns[r.job.Queue]++
	if place := x.turns[r.job.Queue]; place != r.place {
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
