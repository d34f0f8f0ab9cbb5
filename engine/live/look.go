package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// mostPast is of how many pods that were bound, and of how many that were evicted, it is remembered why: some 3 MiB.
const mostPast = 5000

// looking is what is there for who asks about cycles.
type looking struct {
	looks chan *look // nil: nobody does
	plan  *model.Plan
	past  explain.Past
}

// look is somebody who looks at the last cycle.
type look struct {
	do   func(*explain.Cycle)
	done chan error
}

// newLooking is for those who ask.
func newLooking() looking {
	return looking{looks: make(chan *look), past: explain.Past{Most: mostPast}}
}

// Look has a function look at the last cycle, between two cycles, and waits for it.
func (a *looking) Look(ctx context.Context, do func(*explain.Cycle)) error {
	q := &look{do, make(chan error, 1)}
	select {
	case a.looks <- q:
		return <-q.done
	case <-ctx.Done():
		return errors.New("the scheduler is busy with a cycle; ask again")
	}
}

// noted remembers the cycle's plan for those who ask.
func (l *loop) noted(plan *model.Plan) {
	if l.looks == nil {
		return
	}
	l.plan = plan
	l.past.Note(plan, l.stamp)
}

const (
	// lookMost is how long a question may hold the loop. An answer is stopped after lookFor. The rest of the time is for
	// undoing the trial.
	lookMost = 100 * time.Millisecond
	lookFor  = 60 * time.Millisecond
	// learnFor is how long a question may take in addition for a cycle of which nothing is known: the first question for the next cycle as
	// things are, which later questions reuse, and a question about another policy, which only an administrator may ask.
	learnFor = 500 * time.Millisecond
)

// look answers a question about the last cycle. If that takes too long it is broken off, and the answer is an error. If it panics, the
// answer is an error that names the object. The object is not left out: scheduling did not fail at it, and a user who may only ask must
// not stop it.
func (l *loop) look(q *look) {
	l.cluster.Turn, l.place = nil, recovery.Look
	until, whole := time.Now().Add(lookFor), true
	enough := func() bool { return time.Now().After(until) }
	learn := func(do func()) {
		left := time.Until(until)
		until = time.Now().Add(learnFor)
		do()
		until = time.Now().Add(left)
	}
	p := recovery.Catch(recovery.Look, func() { whole = action.Whole(l.cluster, enough, func() { l.answer(q, learn) }) })
	switch {
	case p != nil:
	case !whole:
		l.decider.Forget()
		q.done <- fmt.Errorf("the answer takes longer than %s, for which scheduling waits; ask about less", lookMost)
		return
	default:
		return
	}
	p.Object = l.root(l.cluster.Turn)
	l.metrics.panics.WithLabelValues(string(p.Place)).Inc()
	l.log.Error(nil, "a question about the last cycle cannot be answered", "object", p.Object.String(), "cause", p.Cause, "stack", p.Stack)
	q.done <- fmt.Errorf("internal error: %w", p)
	l.rebuild() // a question may try something out
	l.feed.nudge()
}

func (l *loop) answer(q *look, learn func(func())) {
	s := l.decider.Session()
	if s == nil || l.plan == nil {
		q.done <- errors.New("there was no cycle yet; ask again")
		return
	}
	x := explain.New(s, l.plan)
	x.Past, x.Learn = &l.past, learn
	q.do(x)
	q.done <- nil
}
