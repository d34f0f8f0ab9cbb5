package action

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// stepBacklog is what one step of an action remembers of jobs that it tried without effect. They are parked, in the order of their queue.
// Jobs of the same kind have equal outcomes at the same state. So the step tries one job of a kind, and skips the others.
type stepBacklog struct {
	b      *backlog
	s      *session.Session
	step   *policy.Step
	action string
	index  int // of the step in its action
	// kinds is nil if nothing can be remembered: each cycle tries each job.
	kinds *session.Kinds
	// fates are the kinds of jobs and tasks within a walk. They do not depend on the order of jobs.
	fates   *session.Kinds
	never   bool   // the step is never taken
	epoch   string // the epoch of kinds
	order   string // epoch of the order of jobs
	known   map[string]*kind
	queues  queueList
	refused session.Token    // of the state at which some kind was last tried without effect
	outlook *session.Outlook // nil: kinds are tried again after every change of the cluster's content
}

// kind contains the outcome of jobs that the step cannot distinguish.
type kind struct {
	out   *outcome
	at    session.Token // of the state at which out was computed
	rests rests
}

// parked is a job that a step need not try.
type parked struct {
	rank session.Ranked[*model.Job]
	rec  *record
	kind *kind    // nil: the step does not take the job
	out  *outcome // from which the job's waits follow
	seen uint64   // the cycle in which the walk passed it
	gone bool     // the job is no longer parked
}

func newStepBacklog(b *backlog, action string, step *policy.Step, index int) *stepBacklog {
	s := b.s
	l := &stepBacklog{b: b, s: s, action: action, step: step, index: index, kinds: s.Kinds(step), outlook: session.OutlookOf(s, step)}
	l.fates = l.kinds
	if _, ok := s.OrderEpoch(); !ok {
		l.kinds = nil
	}
	if jobs := step.Condition(policy.KeyJobs); jobs != nil && !s.LocalFilter(jobs) {
		l.kinds = nil // a job that is left out may be taken although it does not change
	}
	if when := step.Condition(policy.KeyWhen); when != nil {
		if !when.Reads.Only("pipeline") {
			l.kinds = nil
		} else if runs, err := s.Condition(when); err == nil {
			l.never = !runs
		}
	}
	l.reset()
	return l
}

func (l *stepBacklog) reset() {
	l.known = map[string]*kind{}
	l.queues.reset()
}

// beginCycle forgets what is no longer valid.
func (l *stepBacklog) beginCycle() {
	l.queues.follow(l.b.c)
	if l.kinds == nil {
		return
	}
	if l.outlook != nil {
		l.outlook.Begin()
	}
	if epoch := l.kinds.Epoch(); epoch != l.epoch {
		l.epoch = epoch
		for _, q := range l.queues.all {
			for _, p := range q.order.jobs {
				if !p.gone {
					p.gone, p.rec.at[l.index] = true, nil
					l.b.refresh(p.rec)
				}
			}
		}
		l.reset()
	}
	count := 0
	for _, q := range l.queues.all {
		count += len(q.order.jobs)
	}
	if many := 64; len(l.known) > many+2*count {
		l.forget()
	}
}

// forget drops the kinds without jobs.
func (l *stepBacklog) forget() {
	used := map[*kind]bool{}
	for _, q := range l.queues.all {
		for _, p := range q.order.jobs {
			used[p.kind] = true
		}
	}
	for key, k := range l.known {
		if !used[k] {
			delete(l.known, key)
		}
	}
}

// kindOf returns the kind of a job; nil: it has none.
func (l *stepBacklog) kindOf(j *model.Job) *kind {
	if l.kinds == nil {
		return nil
	}
	key, ok := l.kinds.Of(j)
	if !ok {
		return nil
	}
	k := l.known[key]
	if k == nil {
		k = &kind{}
		l.known[key] = k
	}
	return k
}

// settle records the outcome of a kind at this state. An equal outcome keeps the old pointer.
func (l *stepBacklog) settle(k *kind, out *outcome) {
	l.refused = l.s.Token()
	k.at = l.refused
	if k.out == nil || !k.out.equal(out) {
		k.out = out
	}
}

// stands reports whether the outcome of a parked job is still valid, although the cluster's content changed.
func (l *stepBacklog) stands(p *parked, now session.Token) bool {
	k, j := p.kind, p.rec.job
	if !k.rests.known || p.rec.version != j.Version || l.b.x.hasForced(j) || !k.rests.stand(l.outlook, j) {
		return false
	}
	k.at, l.refused = now, now
	return true
}

// holds reports whether the outcome of a kind is known at this state.
func (k *kind) holds(now session.Token) bool { return k != nil && k.out != nil && k.at == now }

// begin collects the jobs to try.
func (l *stepBacklog) begin(takes func(*model.Job) bool) []*model.Queue {
	for _, r := range l.b.fresh {
		j := r.job
		if r.at[l.index] != nil || !j.Seated() {
			continue
		}
		if !takes(j) {
			if l.kinds != nil {
				l.park(r, nil)
			}
			continue
		}
		l.queues.of(j.Queue).put(l.s, j)
	}
	return l.open()
}

func byName(a, b *model.Queue) int { return cmp.Compare(a.Name, b.Name) }

// open prepares the orders of queues, one after the other, because the first error names its job. It returns the queues with jobs.
func (l *stepBacklog) open() (queues []*model.Queue) {
	anew := false
	if l.kinds != nil {
		epoch, _ := l.s.OrderEpoch()
		anew = epoch != l.order
		l.order = epoch
	}
	for _, q := range l.queues.inOrder() {
		if l.kinds != nil {
			q.order.open(l.s, l.b.x.plan.Now, anew)
		}
		if q.heap != nil || q.order.head() != nil {
			q.walked = true
			queues = append(queues, q.of)
		}
	}
	return queues
}

func (l *stepBacklog) next(q *model.Queue) *model.Job {
	c, now := l.queues.at(q), l.s.Token()
	for c.advance(l.b) {
		p := c.parked
		if p == nil {
			p = l.parkKnown(c, now)
		}
		if p == nil || !p.kind.holds(now) && (p.kind == nil || !l.stands(p, now)) {
			l.b.come(c)
			c.version = c.rec.job.Version
			return c.rec.job
		}
		l.pass(c, p, p.kind.out)
		if p.kind.out.blocks {
			l.drop(q, l.b.x.behind(p.rec.job))
		}
	}
	return nil
}

// parkKnown parks a job if its outcome at this state is known; nil: it is not.
func (l *stepBacklog) parkKnown(c *queueBacklog, now session.Token) *parked {
	j := c.rank.Of
	if l.kinds == nil || l.refused != now || !l.b.x.awaited(l.step, j).IsZero() || l.b.x.hasForced(j) {
		return nil
	}
	k := l.kindOf(j)
	if !k.holds(now) {
		return nil
	}
	return l.parkAt(c, k)
}

func (l *stepBacklog) tried(j *model.Job, again, effect bool) {
	c, x := l.queues.at(j.Queue), l.b.x
	r, p, rank := c.rec, c.parked, &c.rank
	var k *kind
	switch {
	case effect: // the job changed for all steps
		c.sought = false
		r.leave()
		l.b.refresh(r)
		l.b.look(r)
	case p != nil:
		k = p.kind
	default:
		k = l.kindOf(j)
	}
	if !effect && r.version == c.version {
		r.version = j.Version // it was touched, but has the same content
	}
	if k != nil {
		l.settle(k, x.result.outcome(j))
		l.rest(k, j)
		if p == nil {
			p = l.parkAt(c, k)
		}
		l.stay(c, p, k.out)
		return
	}
	l.b.look(r) // nothing is remembered, so the waits may have changed
	if p != nil {
		rank = &p.rank
	}
	l.s.Until(rank.Until)
	if again {
		c.put(l.s, j)
	}
}

// rest records what the outcome of a kind depends on, if that is less than the whole content of the cluster.
func (l *stepBacklog) rest(k *kind, j *model.Job) {
	x := l.b.x
	k.rests.known = l.looksOut() && !x.result.open && !x.result.erred && x.awaited(l.step, j).IsZero()
	if k.rests.known {
		k.rests.note(l.outlook, j, x.result.refused)
	}
}

// looksOut reports whether it is worthwhile to compare only what a queue reads: there are other queues.
func (l *stepBacklog) looksOut() bool { return l.outlook != nil && len(l.queues.all) > 1 }

// dropped evaluates whether to skip a queue, unless everything that the answer depends on is unchanged. If the queue comes up again in a
// walk, it always evaluates, because the queue has changed.
func (l *stepBacklog) dropped(q *model.Queue, ask func(*model.Queue) policy.Answer) policy.Answer {
	c := l.queues.at(q)
	if c.came || l.kinds == nil || !l.looksOut() || len(l.s.Policy().Rules(policy.Overused)) == 0 {
		c.left.known = false
		return ask(q)
	}
	c.came = true
	now := l.outlook.Of(q)
	if c.left.known && c.left.sight == now {
		return c.left.answer
	}
	errors := l.s.Errors()
	c.left.answer = ask(q)
	c.left.sight, c.left.known = now, l.s.Errors() == errors
	return c.left.answer
}

func (l *stepBacklog) alike(j *model.Job) (string, bool) {
	if l.fates == nil {
		return "", false
	}
	return l.fates.Of(j)
}

func (l *stepBacklog) alikeInTurn(t *model.Task) (string, bool) {
	if l.fates == nil {
		return "", false
	}
	return l.fates.OfTask(t)
}

// because returns the outcome of a job that is skipped for a reason. It reuses an equal outcome that is remembered.
func (l *leaving) because(action string, reason model.Reason) *outcome {
	why := &outcome{undone: -1, notes: []note{{task: ofJob, wait: &model.Wait{Action: action, Reason: reason}}}}
	if i := slices.IndexFunc(l.outs, why.equal); i >= 0 {
		return l.outs[i]
	}
	if len(l.outs) == mostReasons {
		l.outs = nil
	}
	l.outs = append(l.outs, why)
	return why
}

// mostReasons limits the outcomes that leaving remembers. One walk leaves out the jobs of a queue for at most two reasons.
const mostReasons = 4

// drop records why each remaining job of a queue is skipped.
func (l *stepBacklog) drop(q *model.Queue, why func(*model.Job) model.Reason) {
	x := l.b.x
	x.result.reset()
	c := l.queues.at(q)
	nothing := &outcome{undone: -1}
	for c.advance(l.b) {
		out := nothing
		if j := c.rec.job; report.Dropped(j) {
			out = c.left.because(x.waits.Action, why(j))
		}
		p := c.parked
		if p == nil && x.awaited(l.step, c.rank.Of).IsZero() { // otherwise the step may not need to try it for a while
			if k := l.kindOf(c.rank.Of); k != nil {
				p = l.parkAt(c, k)
			}
		}
		if p != nil {
			l.pass(c, p, out)
			continue
		}
		l.b.come(c)
		l.b.look(c.rec)
		x.tell(c.rec.job, out)
		l.s.Until(c.rank.Until)
	}
}

func (l *stepBacklog) end() {
	for _, q := range l.queues.all {
		if q.order.close(l.s); q.walked {
			q.queueCursor = queueCursor{}
		}
	}
}

// park makes the step skip a job of a kind until the job changes.
func (l *stepBacklog) park(r *record, k *kind) *parked {
	p := l.b.slabs.parked.New()
	p.rec, p.kind = r, k
	r.at[l.index] = p
	return p
}

// parkAt parks the job at a cursor, at its position in the order.
func (l *stepBacklog) parkAt(c *queueBacklog, k *kind) *parked {
	p := l.park(c.rec, k)
	p.rank = c.rank
	return p
}

// pass skips a parked job, because its outcome is known.
func (l *stepBacklog) pass(c *queueBacklog, p *parked, out *outcome) {
	l.b.ranked(c, p.rec)
	if p.rec.live == l.b.cycle {
		l.b.x.tell(p.rec.job, out)
	}
	l.stay(c, p, out)
}

// stay records the outcome of a parked job.
func (l *stepBacklog) stay(c *queueBacklog, p *parked, out *outcome) {
	if p.out != out {
		p.out = out
		l.b.look(p.rec)
	}
	p.seen = l.b.cycle
	c.order.pass(p, l.s)
}
