package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Written returns a plan as text. It leaves out how often rows failed, because remembered results are not evaluated again, and whether the
// plan is the same as the last.
func Written(plan *model.Plan) (string, error) {
	p := *plan
	p.Errors = nil
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return "", fmt.Errorf("write a plan: %w", err)
	}
	// Data that JSON leaves out.
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

// OutOfSteps reports whether a row used up its budget of a cycle. How many steps it takes depends on what is remembered, so two
// implementations need not agree on such a plan.
func OutOfSteps(plan *model.Plan) bool {
	return slices.ContainsFunc(plan.Errors, func(e model.RuleError) bool { return e.OverBudget > 0 && strings.Contains(e.Text, "a cycle") })
}
