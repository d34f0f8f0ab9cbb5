package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// RunOptions limits a run of a world. The zero value runs one cycle.
type RunOptions struct {
	// Cycles is the number of cycles, one second apart; 0: one. With Until or Idle it is the maximum; 0: 10,000.
	Cycles int
	// Until makes the clock advance from event to event. The run ends at this time, after a last cycle.
	Until time.Time
	// Idle makes the clock advance from event to event, until no event is left and a cycle decides nothing.
	Idle bool
	// Every is the maximum time between two cycles while jobs wait and Until is not reached. 0: one minute if the policy reads the time, else
	// no limit.
	Every time.Duration
	// Recorder records the cycles for Report.WriteRecorded; nil: the report keeps all plans.
	Recorder Recorder
}

// SetUntil makes the run follow the clock: for a duration (8h), until a time (2026-01-31T12:00:00Z), or until nothing happens (idle). It
// returns an error for any other text.
func (o *RunOptions) SetUntil(text string, now time.Time) error {
	if o.Idle = text == "idle"; o.Idle {
		return nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		o.Until = now.Add(d)
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !t.After(now) {
		return fmt.Errorf("%s is neither a duration, as 8h, nor a time after the first cycle, as 2026-01-31T12:00:00Z, nor idle", text)
	}
	o.Until = t
	return nil
}

// maxCycles is the default maximum number of cycles in a run by the clock.
const maxCycles = 10_000

// Run runs cycles one second apart and reports on them.
func (w *World) Run(cycles int) (*Report, error) {
	return w.RunFor(RunOptions{Cycles: cycles})
}

// RunFor runs cycles and reports on them.
//
// If Idle or Until is set, the run follows the simulated clock. The next cycle starts one second after a cycle that admitted, bound or
// evicted. It also does so after a cycle in which a PodGroup changed its phase while a job waits. Otherwise the next cycle starts at the
// next event, such as the arrival, the end or the removal of a pod.
func (w *World) RunFor(o RunOptions) (*Report, error) {
	r := &Report{
		APIVersion: manifest.WorldVersion, Kind: "Report", world: w, timed: o.Idle || !o.Until.IsZero(),
		gauges: gauges{of: map[[2]string]*UseOverTime{}}, recorder: o.Recorder,
	}
	most := cmp.Or(o.Cycles, 1)
	if r.timed {
		most = cmp.Or(o.Cycles, maxCycles)
	}
	r.several = most > 1
	if o.Every == 0 && w.Policy != nil && w.Policy.ReadsTime() {
		o.Every = time.Minute
	}
	for {
		plan, err := w.Cycle()
		if err != nil {
			return nil, err
		}
		if r.add(plan); r.failed != nil {
			return nil, r.failed
		}
		step, more := cycleLength, true
		if r.timed {
			step, more = w.step(plan, o)
		}
		if r.Timeline.Stopped = r.timed && more && r.Timeline.Cycles >= most; !more || r.Timeline.Cycles >= most {
			r.finish(plan)
			return r, nil
		}
		if err := w.Advance(step); err != nil {
			return nil, err
		}
	}
}

// moves reports whether a plan changes anything.
func moves(plan *model.Plan) bool { return len(plan.Admits)+len(plan.Binds)+len(plan.Evicts) > 0 }

// news reports whether a cycle's lines differ for users from those of the cycle before.
func news(plan *model.Plan, lines, before []decision) bool {
	if moves(plan) {
		return true
	}
	told := make(map[decision]bool, len(before))
	for _, d := range before {
		told[d.plain()] = true
	}
	return slices.ContainsFunc(lines, func(d decision) bool { return !told[d.plain()] })
}

// lasted returns a duration as text: 1m instead of 1m0s.
func lasted(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// step returns the time until the next cycle of a run by the clock. more is false if there is none.
func (w *World) step(plan *model.Plan, o RunOptions) (d time.Duration, more bool) {
	at, more := w.nextEvent()
	sooner := func(t time.Time) {
		if !more || t.Before(at) {
			at, more = t, true
		}
	}
	if !plan.KeptUntil.IsZero() {
		sooner(plan.KeptUntil)
	}
	switch {
	case moves(plan) || w.turned && len(plan.Waits) > 0:
		at, more = w.now.Add(cycleLength), true
	case o.Every > 0 && len(plan.Waits) > 0 && !o.Until.IsZero():
		sooner(w.began.Add((w.now.Sub(w.began)/o.Every + 1) * o.Every))
	}
	if !o.Until.IsZero() {
		if !w.now.Before(o.Until) {
			return 0, false
		}
		sooner(o.Until)
	}
	return at.Sub(w.now), more
}

// rows returns the jobs as table rows, with times since the start of the run.
func (t Timeline) rows() [][]string {
	rows := [][]string{{"JOB", "QUEUE", "PODS", "SUBMITTED", "STARTED", "FINISHED", "WAITED"}}
	evictions := slices.ContainsFunc(t.Jobs, func(j JobRun) bool { return j.Evicted > 0 })
	if evictions {
		rows[0] = append(rows[0], "EVICTED")
	}
	since := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return lasted(at.Sub(t.From))
	}
	for _, j := range t.Jobs {
		waited := "-"
		if j.Started != nil {
			waited = lasted(max(j.Started.Sub(j.Submitted), 0))
		}
		row := []string{j.Job, j.Queue, fmt.Sprint(j.Pods), since(&j.Submitted), since(j.Started), since(j.Finished), waited}
		if evictions {
			row = append(row, fmt.Sprint(j.Evicted))
		}
		rows = append(rows, row)
	}
	return rows
}

// text returns the timeline as text.
func (t Timeline) text() string {
	var out strings.Builder
	out.WriteString(explain.Columns("", t.rows()))
	fmt.Fprintf(&out, "\n%s in %s", explain.Count(t.Cycles, "cycle"), lasted(t.To.Sub(t.From)))
	if n := len(slices.DeleteFunc(slices.Clone(t.Jobs), func(j JobRun) bool { return j.Finished != nil })); n > 0 {
		fmt.Fprintf(&out, "; %s had not finished", explain.Count(n, "job"))
	}
	if t.Stopped {
		out.WriteString("; stopped there, with more to come")
	}
	return out.String() + "\n"
}
