package live

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

// Numbers of files of a recording: one for everything, or so many that each contains the cycles of one second.
const (
	oneFile   = 1
	manyFiles = 1 << 40
)

// recordingTo records a loop and its plans until the returned end is called.
func recordingTo(folder string, files int64, l *loop) (plans map[uint64]*model.Plan, end func()) {
	plans = map[uint64]*model.Plan{}
	l.observe = func(_ *policy.Policy, plan *model.Plan, _ time.Time) { plans[l.cycle] = plan }
	l.record = recording.New(recording.Options{Folder: folder, Files: files}, l.intake.names, logr.Discard())
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.record.Run(ctx)
	}()
	return plans, func() {
		stop()
		<-done
	}
}

// playAgain repeats the recorded decisions, and compares each cycle.
func playAgain(t interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, folder string, plans map[uint64]*model.Plan,
) {
	t.Helper()
	files, err := recording.Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	cycles := 0
	p := recording.Player{After: func(x *recording.Moment) error {
		cycles++
		if !x.Same() {
			t.Fatalf("cycle %d is decided otherwise (-then +now):\n%s", x.Recorded.Number, cmp.Diff(plans[x.Recorded.Number], x.Plan))
		}
		return nil
	}}
	for _, file := range files {
		if err := p.Play(file); err != nil {
			t.Fatal(err)
		}
	}
	if cycles == 0 {
		t.Fatalf("no cycle is recorded")
	}
}

// recorded returns a rig whose cycles are repeated at the end of the test, in a bubble, from a checkpoint of the second before.
func recorded(t *testing.T, r *rig) *rig {
	t.Helper()
	folder := t.TempDir()
	plans, end := recordingTo(folder, manyFiles, r.loop)
	t.Cleanup(func() {
		end()
		if !t.Failed() && len(plans) > 0 {
			playAgain(t, folder, plans)
		}
	})
	return r
}
