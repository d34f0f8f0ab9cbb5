package session

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// Gates groups tasks for which the site allocatable answers the same in a step, each under the assumption that only this task is not
// placed.
type Gates struct {
	s     *Session
	alike bool // some tasks may have equal answers
	of    []rules.Read
	text  []byte
}

// NewGates returns the Gates of a session.
func NewGates(s *Session) *Gates {
	g := &Gates{s: s, alike: true}
	for _, r := range s.p.Rules(policy.Allocatable) {
		own, ok := ofHoldings(r.Reads)
		if !ok {
			return &Gates{s: s}
		}
		g.of = append(g.of, own...)
	}
	return g
}

// Kind returns a key: tasks with equal keys get equal answers, whichever of them is not placed. false: no other task has equal answers.
func (g *Gates) Kind(t *model.Task) (string, bool) {
	if !g.alike {
		return "", false
	}
	b := append(append(g.text[:0], t.Job.QueueName...), 0)
	b = language.Encode(b, g.s.Amounts(t.Request))
	b = encodeReads(b, g.s, t, g.of)
	g.text = b
	return string(b), true
}

// ofHoldings reports whether, of all that is read about a task, only what queues hold changes within a cycle. own are the other reads of
// the task and its job: only they distinguish two tasks with the same queue and the same request.
func ofHoldings(reads *rules.Reads) (own []rules.Read, ok bool) {
	for _, read := range reads.All {
		last, ofTask := policy.LastOf(read), read.Root == "task" || read.Root == "job"
		switch {
		case last == nil && !ofTask:
		case last == nil, read.Changes > rules.ByCycle && !holdings(read):
			return nil, false
		case !ofTask || read.Changes > rules.ByCycle || read.Steps[0].Member.Origin.Any(language.ToQueue):
		case policy.OfParts(read), policy.OfMembers(read), slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Each }):
			return nil, false
		default:
			own = append(own, read)
		}
	}
	return own, true
}

// holdings reports whether a read is of what a queue holds, on a path that does not change. A computed value also passes, because what it
// is computed from is among the reads as well.
func holdings(read rules.Read) bool {
	last := len(read.Steps) - 1
	for i, step := range read.Steps {
		if m := step.Member; m.Changes > rules.ByCycle && m.Reads == nil && (i < last || !m.Origin.Within(language.FromHeld)) {
			return false
		}
	}
	return true
}
