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
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// mostPast is the number of bound pods, and of evicted pods, for which the reasons stay in memory: about 3 MiB.
const mostPast = 5000

// looking contains the data that the loop and the questions about its cycles share.
//
// A question never runs in the loop. The loop only collects the data for a copy of the model (snapshot). The goroutine of the question
// creates the copy and computes the answer, so neither the size nor the failure of a question affects scheduling.
type looking struct {
	looks chan *look // nil: no questions are taken
	turn  chan struct{}

	// The loop owns these.
	plan    *model.Plan
	past    explain.Past
	objects recording.Objects // the objects of the model

	// The question that has the turn owns the copy.
	copied *copied
	expiry *time.Timer
	clock  func() time.Time
}

// look is a request for a snapshot.
type look struct {
	have version // the version of the copy that the question already has
	done chan snapshot
}

// version identifies the state of the model that a copy was created from.
type version struct {
	session *session.Session
	content uint64
	objects uint64
}

// snapshot is the data that the loop passes to a question between two cycles. The loop does not change it afterwards.
type snapshot struct {
	version
	err    error
	copy   *recording.Copy // nil: the question has a copy of this version
	starts session.Starts
	policy *policy.Policy
	plan   *model.Plan
	past   *explain.Past
	onTurn func(object any)
	failed func(p *recovery.Panic) // reports a panic of the question
}

// copied is a copy of the model, with the session that computes answers on it.
type copied struct {
	version
	session *session.Session
	begun   time.Time // when the cycle began that the session explains
}

// newLooking returns a looking that takes questions.
func newLooking() looking {
	return looking{
		looks: make(chan *look), turn: make(chan struct{}, 1), past: explain.Past{Most: mostPast}, clock: time.Now,
	}
}

const (
	// lookMost is the longest time for which a question may hold the loop. The snapshot is broken off after lookFor, because the loop checks
	// the time only after every few hundred objects.
	lookMost = 100 * time.Millisecond
	lookFor  = 60 * time.Millisecond
	// lookAgain is the wait after the first snapshot that was broken off. Each further wait is twice as long.
	lookAgain = 200 * time.Millisecond
	// copyKept is the time after the last question for which a copy of the model stays in memory.
	copyKept = 5 * time.Minute
)

// errSlow is the error of a snapshot that was broken off.
var errSlow = fmt.Errorf("the list of all objects takes longer than %s, and scheduling must not wait longer", lookMost)

// Look calls a function that examines the last cycle, and waits for it. The function gets a copy of the model as the cycle left it, and may
// try out changes there. It is broken off when ctx ends. Only one question runs at a time.
func (a *looking) Look(ctx context.Context, do func(*explain.Cycle)) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return errors.New("other questions are being answered; ask again")
	}
	at, err := a.snapshotFor(ctx)
	if err != nil {
		return err
	}
	began, whole := time.Now(), true
	p := recovery.Catch(recovery.Look, func() { whole, err = a.answer(ctx, at, do) })
	if p == nil && whole {
		a.keepCopy()
		return err
	}
	x := a.copied
	a.copied = nil // it may be half changed
	if p == nil {
		return fmt.Errorf("the answer was not complete after %s; ask a smaller question", time.Since(began).Round(time.Second))
	}
	if x != nil {
		p.Object = handled(x.session.Cluster().Turn)
	}
	at.failed(p)
	return fmt.Errorf("internal error: %w", p)
}

// snapshotFor asks the loop for a snapshot until it gets one.
func (a *looking) snapshotFor(ctx context.Context) (at snapshot, err error) {
	for wait := lookAgain; ; wait *= 2 {
		q := &look{done: make(chan snapshot, 1)}
		if a.copied != nil {
			q.have = a.copied.version
		}
		select {
		case a.looks <- q:
			at = <-q.done
		case <-ctx.Done():
			return at, errors.New("the scheduler is busy with a cycle; ask again")
		}
		if !errors.Is(at.err, errSlow) {
			return at, at.err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return at, fmt.Errorf("%w; ask again when the scheduler has more CPU", at.err)
		}
	}
}

// answer runs a function on a copy of the model. It returns false if ctx ended before the function was complete.
func (a *looking) answer(ctx context.Context, at snapshot, do func(*explain.Cycle)) (whole bool, err error) {
	if at.copy != nil {
		a.copied = nil // frees the memory, so that there is only one copy at a time
		c, err := at.copy.Cluster()
		if err != nil {
			return true, fmt.Errorf("copy the model: %w", err)
		}
		c.OnTurn = at.onTurn
		a.copied = &copied{version: at.version, session: session.New(c, at.policy)}
		a.copied.session.Spread(session.Split{Cores: 1}) // the other cores are for scheduling
		session.BeginWith(a.copied.session, at.starts)
	}
	s := a.copied.session
	return action.Whole(s.Cluster(), func() bool { return ctx.Err() != nil }, func() {
		if at.copy != nil || !a.copied.begun.Equal(at.plan.Now) {
			a.copied.begun = at.plan.Now
			s.Begin(at.plan.Now)
			if n := len(at.policy.Actions); n > 0 && !paused(at.policy) {
				s.SetAction(at.policy.Actions[n-1].Name)
			}
		}
		x := explain.New(s, at.plan)
		x.Past = at.past
		do(x)
	}), nil
}

// keepCopy keeps the copy for the next question, and drops it if no question comes within copyKept.
func (a *looking) keepCopy() {
	if a.expiry != nil {
		a.expiry.Stop()
	}
	a.expiry = time.AfterFunc(copyKept, func() {
		a.turn <- struct{}{}
		a.copied = nil
		<-a.turn
	})
}

// handled identifies the object that a question examined when it panicked.
func handled(turn any) recovery.Object {
	switch o := turn.(type) {
	case *model.Job:
		if id := idOf(o.Object); id != (recovery.Object{}) || len(o.Tasks) == 0 {
			return id
		}
		return idOf(o.Tasks[0].Object)
	case *model.Task:
		return idOf(o.Object)
	case *model.Queue:
		return idOf(o.Object)
	}
	return idOf(turn)
}

// noted stores the cycle's plan for questions.
func (l *loop) noted(plan *model.Plan) {
	if l.looks == nil {
		return
	}
	l.plan = plan
	l.past.Note(plan, l.stamp)
}

// look takes a snapshot for a question. It blocks the loop for at most lookMost and does not change the state of the loop.
func (l *loop) look(q *look) {
	l.place = recovery.Look
	failed := func(p *recovery.Panic) {
		l.metrics.panics.WithLabelValues(string(p.Place)).Inc()
		l.log.Error(nil, "a question about the last cycle cannot be answered", "object", p.Object.String(), "cause", p.Cause, "stack", p.Stack)
	}
	at, until := snapshot{err: errSlow}, l.clock().Add(lookFor)
	p := recovery.Catch(recovery.Look, func() {
		action.Whole(l.cluster, func() bool { return !l.clock().Before(until) }, func() { at = l.snapshot(q.have) })
	})
	if p != nil {
		failed(p)
		at = snapshot{err: fmt.Errorf("internal error: %w", p)}
	}
	at.failed = failed
	q.done <- at
}

func (l *loop) snapshot(have version) snapshot {
	s := l.decider.Session()
	if s == nil || l.plan == nil {
		return snapshot{err: errors.New("there was no cycle yet; ask again")}
	}
	at := snapshot{
		version: version{s, l.cluster.Content(), l.cluster.ObjectClock},
		policy:  s.Policy(), plan: l.plan, past: l.past.Clone(), onTurn: l.cluster.OnTurn,
	}
	if at.version != have {
		at.copy, at.starts = recording.CopyOf(l.cluster, &l.objects), session.StartsOf(s)
	}
	return at
}
