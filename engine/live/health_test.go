package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// The health check of a leader fails if no cycle has ended for a minute while changes wait, because a cycle hangs. It does not fail for a
// question that hangs, because cycles go on. It does not fail for a standby replica, before the first cycle has ended, or while nothing
// changes.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name    string
		started bool // a first cycle has ended
		hang    func(r *rig, held chan struct{})
		change  bool
		fails   bool
	}{
		{name: "nothing changes", started: true},
		{name: "the first cycle does not end", hang: hangingCycle, change: true},
		{name: "a cycle does not end", started: true, hang: hangingCycle, change: true, fails: true},
		{name: "a question does not end", started: true, hang: hangingQuestion, change: true}, // it does not run in the loop
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				f := r.server
				r.looking = newLooking()
				s := &scheduler{o: Options{CycleTimeout: time.Minute, Period: r.period}}
				if err := s.alive(nil); err != nil {
					t.Errorf("a replica that stands by: %v", err)
				}
				held := make(chan struct{})
				defer close(held)
				if c.hang != nil && !c.started {
					c.hang(r, held)
				}
				s.loop = r.loop
				f.put(testNode("n1", "4"), testQueue("default"))
				f.deliver(-1)
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				go r.run(ctx)
				time.Sleep(5 * time.Second)
				if c.hang != nil && c.started {
					c.hang(r, held)
					synctest.Wait() // the loop is held before anything changes
				}
				if c.change {
					f.put(testGroup("g", 1), testPod("a", "g", "1"))
					f.deliver(-1)
				}
				time.Sleep(59 * time.Second)
				if err := s.alive(nil); err != nil {
					t.Errorf("before the time is over: %v", err)
				}
				time.Sleep(5 * time.Second)
				if err := s.alive(nil); (err != nil) != c.fails {
					t.Errorf("after the time is over: %v", err)
				}
			})
		})
	}
}

func hangingCycle(r *rig, held chan struct{}) {
	r.cluster.OnTurn = func(any) { <-held }
	r.feed.nudge()
}

func hangingQuestion(r *rig, held chan struct{}) {
	go func() { _ = r.Look(context.Background(), func(*explain.Cycle) { <-held }) }()
}
