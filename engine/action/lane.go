package action

import (
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

func newLane(s *policy.Session, action string, step *policy.Step, index int) *lane {
	l := &lane{s: s, action: action, step: step, index: index, kinds: s.Kinds(step)}
	if _, ok := s.OrderEpoch(); !ok {
		l.kinds = nil
	}
	if jobs := step.Condition(policy.KeyJobs); jobs != nil && !s.LocalFilter(jobs) {
		l.kinds = nil // who is left out may be taken although nothing of the job changes
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
