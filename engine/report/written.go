package report

import (
	"encoding/json"
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Written is a plan as text, with all that it says but how often rows erred, as what is remembered is not asked again, and whether it
// is the same as the last.
func Written(plan *model.Plan) (string, error) {
	p := *plan
	p.Errors = nil
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return "", fmt.Errorf("write a plan: %w", err)
	}
	// What JSON leaves out.
	for i := range p.Waits {
		if w := &p.Waits[i]; w.Tried != nil {
			data = fmt.Appendf(data, "\n%s tried %+v", w.Job, *w.Tried)
		}
	}
	for _, j := range p.Jobs {
		if j.Condition != nil {
			data = fmt.Appendf(data, "\n%s %s", j.Job, j.Condition.Cause)
		}
	}
	return fmt.Sprintf("%s\nkept until %s", data, p.KeptUntil), nil
}
