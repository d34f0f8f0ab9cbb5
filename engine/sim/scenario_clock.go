package sim

import (
	"fmt"
	"time"
)

// until runs cycles by the clock: for a duration, or until nothing happens. It prints each cycle with decisions that differ from those of
// the cycle before, with the time since the start of the scenario.
func (s *scenario) until(args []string) error {
	if err := s.inPolicy(); err != nil {
		return err
	}
	o := RunOptions{Idle: args[0] == "idle"}
	if !o.Idle {
		d, err := time.ParseDuration(args[0])
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is neither idle nor a duration; write it as 90s or 1h30m", args[0])
		}
		o.Until = s.world.now.Add(d)
	}
	if s.world.Policy.ReadsTime() {
		o.Every = time.Minute
	}
	var before []decision
	for range maxScenarioCycles {
		report, err := s.decide()
		if err != nil {
			return err
		}
		plan, lines := report.Plans[0], report.cycles[0].lines
		if news(plan, lines, before) {
			s.print(fmt.Sprintf("after %s\n", lasted(s.world.now.Sub(s.world.began))))
			s.print(compact(folded(lines)) + complaints(plan))
		}
		before = lines
		step, more := s.world.step(plan, o)
		if !more {
			return nil
		}
		if err := s.world.Advance(step); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d cycles were not enough", maxScenarioCycles)
}

// maxScenarioCycles is the maximum number of cycles of one verb in a scenario.
const maxScenarioCycles = 2000

// jobRunRows returns the jobs as table rows, with times since the start of the world.
func jobRunRows(w *World) [][]string {
	t := w.history.timeline(w.cluster)
	t.From = w.began
	return t.rows()
}
