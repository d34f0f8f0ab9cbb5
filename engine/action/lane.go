package action

import (
	"math"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// lane is what one step of an action remembers of jobs that it took in vain: they are parked, in the order of their queue.
// Those of one kind fare alike at the same state, so that of a kind one job is tried, and the others pass unlooked at.
// What comes out is what trying each would give.
type lane struct {
	s      *policy.Session
	step   *policy.Step
	action string
	index  int // of the step
	// kinds is nil where nothing can be remembered: each job is tried in each cycle.
	kinds *policy.Kinds
	never bool   // the step is never taken
	epoch string // of kinds
	order string // epoch of the order of jobs
	known map[string]*kind
	lines map[*model.Queue]*line
	tried policy.Token // at which some kind was tried in vain last
	drops map[*model.Queue]*outcome
}

// kind is jobs that the step cannot tell apart.
type kind struct {
	out *outcome
	at  policy.Token // of the state at which out came
}

// parked is a job in a lane.
type parked struct {
	rank policy.Ranked[*model.Job]
	rec  *record
	kind *kind    // nil: the step does not take the job
	out  *outcome // that the job's waits rest on
	seen uint64   // the cycle in which the walk passed it
	gone bool     // from the lane
}

// line is the parked jobs of one queue, in order: those from read on are to come in this walk, been those that have had their turn. Jobs that
// left the lane since are still in it.
type line struct {
	jobs, been []*parked
	read       int
	same       bool      // been is what was read of jobs so far, and not written down
	moved      bool      // been is not in order
	until      time.Time // the first moment at which some key may be another; zero: none
	dues       []int64   // such moments of each of jobs; of none after a walk
}

func newLane(s *policy.Session, action string, step *policy.Step, index int) *lane {
	l := &lane{s: s, action: action, step: step, index: index, kinds: s.Kinds(step)}
	if _, ok := s.OrderEpoch(); !ok {
		l.kinds = nil
	}
	if step.Jobs != nil && !s.LocalFilter(step.Jobs) {
		l.kinds = nil // who is left out may be taken although nothing of the job changes
	}
	if step.When != nil {
		if !step.When.Reads.Only("pipeline") {
			l.kinds = nil
		} else if runs, err := s.Condition(step.When); err == nil {
			l.never = !runs
		}
	}
	l.reset()
	return l
}

func (l *lane) reset() {
	l.known, l.lines, l.drops = map[string]*kind{}, map[*model.Queue]*line{}, map[*model.Queue]*outcome{}
}

// begin forgets what is not so any more.
func (l *lane) begin(b *backlog) {
	if l.kinds == nil {
		return
	}
	if epoch := l.kinds.Epoch(); epoch != l.epoch {
		l.epoch = epoch
		for _, q := range l.lines {
			for _, p := range q.jobs {
				if !p.gone {
					p.gone, p.rec.at[l.index] = true, nil
					b.refresh(p.rec)
				}
			}
		}
		l.reset()
	}
	count := 0
	for q, line := range l.lines {
		if count += len(line.jobs); b.c.Queues[q.Name] != q {
			delete(l.lines, q)
			delete(l.drops, q)
		}
	}
	if many := 64; len(l.known) > many+2*count {
		l.forget()
	}
}

// forget drops the kinds that no job is of.
func (l *lane) forget() {
	used := map[*kind]bool{}
	for _, line := range l.lines {
		for _, p := range line.jobs {
			used[p.kind] = true
		}
	}
	for key, k := range l.known {
		if !used[k] {
			delete(l.known, key)
		}
	}
}

// open makes a queue's line ready for a walk, its jobs in the order of this moment.
func (l *lane) open(q *model.Queue, now time.Time, anew bool) *line {
	x := l.lines[q]
	if x == nil {
		x = &line{}
		l.lines[q] = x
	}
	x.read, x.been, x.same = 0, x.been[:0], true
	if anew || !x.until.IsZero() && !now.Before(x.until) {
		x.rerank(l, now, anew)
	}
	x.until, x.dues = time.Time{}, x.dues[:0]
	return x
}

// rerank reads the keys again that may be others now, and says whether the order is another.
func (x *line) rerank(l *lane, now time.Time, anew bool) (moved bool) {
	all := anew || len(x.dues) != len(x.jobs)
	if all {
		x.dues = slices.Grow(x.dues[:0], len(x.jobs))[:len(x.jobs)]
	}
	inOrder, first, at := true, int64(never), instant(now) // who has other keys, between those beside it
	for i, due := range x.dues {
		if all || due <= at {
			if due = int64(never); !x.jobs[i].gone {
				inOrder = x.rerankAt(i, l, now, anew) && inOrder
				due = instant(x.jobs[i].rank.Until)
			}
			x.dues[i] = due
		}
		first = min(first, due)
	}
	x.until = time.Time{}
	if first != never {
		x.until = time.Unix(0, first)
	}
	if inOrder {
		return false
	}
	x.dues = x.dues[:0]
	return x.sort(l.s)
}

// rerankAt reads the keys of one job again if they may be others, and says whether it still is between those beside it.
func (x *line) rerankAt(i int, l *lane, now time.Time, anew bool) (inOrder bool) {
	p := x.jobs[i]
	if !anew && (p.rank.Until.IsZero() || now.Before(p.rank.Until)) {
		return true
	}
	p.rank, inOrder = l.s.Rank(p.rec.job), true
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
	return true
}

func (x *line) hold(p *parked) {
	if u := p.rank.Until; !u.IsZero() && (x.until.IsZero() || u.Before(x.until)) {
		x.until = u
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
	x.hold(p)
	if x.read < len(x.jobs) && x.jobs[x.read] == p {
		if x.read++; x.same {
			return
		}
	} else if x.write(); len(x.been) > 0 && s.Compare(&x.been[len(x.been)-1].rank, &p.rank) > 0 {
		x.moved = true // it had a turn, and its keys are others now
	}
	x.been = append(x.been, p)
}

// write writes down who has been.
func (x *line) write() {
	if x.same {
		x.been, x.same = append(x.been, x.jobs[:x.read]...), false
	}
}

// close ends a walk: what has been is what is parked.
func (x *line) close(s *policy.Session) {
	for p := x.head(); p != nil; p = x.head() {
		x.pass(p, s)
	}
	if !x.same {
		x.jobs, x.been = x.been, x.jobs[:0]
	}
	x.read = 0
	if x.moved {
		x.moved = false
		x.sort(s)
	}
}

// kindOf is the kind of a job; nil: it has none.
func (l *lane) kindOf(j *model.Job) *kind {
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

// settle notes what came of a kind at this state. Where it is what came before, it stays the same outcome.
func (l *lane) settle(k *kind, out *outcome) {
	l.tried = l.s.Token()
	k.at = l.tried
	if k.out == nil || !k.out.equal(out) {
		k.out = out
	}
}

// holds says that it is known what comes of a kind at this state.
func (k *kind) holds(now policy.Token) bool { return k != nil && k.out != nil && k.at == now }
