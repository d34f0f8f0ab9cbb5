package beside

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestLedgerForgets checks that only affected jobs are kept after they are gone, up to a limit, and that the rest is counted.
func TestLedgerForgets(t *testing.T) {
	l := newLedger(nil)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	bound := func(side int, job, node string) {
		l.titles[job] = "title"
		l.jobs.Note(side, &model.Plan{Now: now, Binds: []model.Bind{{Task: job + "-0", Job: job, Queue: "q", Node: node}}})
	}
	there := map[string]bool{}
	for i := range 2 * mostKept {
		alike, apart := fmt.Sprintf("a/alike-%05d", i), fmt.Sprintf("a/apart-%05d", i)
		there[alike], there[apart] = true, true
		bound(other, alike, "n1")
		bound(celsius, alike, "n1")
		bound(other, apart, "n1")
		bound(celsius, apart, "n2")
	}
	pass := func(d time.Duration) {
		now = now.Add(d)
		l.close(func(job string) bool { return there[job] }, now, time.Second)
	}
	jobs := func() int { return len(slices.Collect(l.jobs.Jobs())) }
	pass(time.Minute)
	pass(time.Minute)
	if jobs() != 4*mostKept || len(l.otherwise()) != 2*mostKept {
		t.Errorf("%d jobs are known, %d of them fare otherwise, want %d and %d", jobs(), len(l.otherwise()), 4*mostKept, 2*mostKept)
	}
	clear(there)
	there["a/apart-00000"] = true
	pass(time.Second)
	pass(time.Second)
	if jobs() != 4*mostKept {
		t.Errorf("%d jobs are known within the grace, want %d", jobs(), 4*mostKept)
	}
	pass(time.Second)
	if all := l.otherwise(); jobs() != 1 || len(all) != mostKept+1 || l.closed.more != mostKept-1 || all[0].Job != "a/apart-00000" ||
		all[1].Elsewhere != 1 {
		t.Errorf("%d jobs are known, %d told and %d counted, first %+v", jobs(), len(all), l.closed.more, all[0])
	}
	if len(l.titles) != mostKept+1 || len(l.gone) != 0 {
		t.Errorf("%d titles and %d times are kept", len(l.titles), len(l.gone))
	}
	bound(other, "a/apart-00000", "n1") // the job continues
	delete(there, "a/apart-00000")
	pass(time.Second)
	there["a/apart-00000"] = true
	pass(time.Minute)
	if jobs() != 1 {
		t.Error("a job that is there again is forgotten")
	}
}
