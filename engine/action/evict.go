package action

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// naming is the state of a step that evicts the tasks that rows name.
type naming struct {
	*Cycle
	step *policy.Step
}

// evict evicts the tasks that rows name.
func (x naming) evict() {
	if x.rests(x.step.Name(x.waits.Action), x.step.Period(policy.KeyEvery)) {
		return
	}
	resting, asked := map[*policy.Rule]bool{}, false
	for _, r := range x.s.Policy().Rules(policy.Victims) {
		resting[r] = x.rests(r.Table+"/"+r.Name, r.Every)
		asked = asked || !resting[r] && !r.Veto
	}
	if !asked {
		return
	}
	q := session.Question{Site: policy.Victims, Txn: x.txn}
	list := x.s.Named(q, x.candidates(), func(r *policy.Rule) bool { return resting[r] })
	for _, v := range x.within(list) {
		e := report.Named(v.Task, x.waits.Action, x.step.Via(), policy.Answer{Rule: v.Lets[0]}.Reason(), v.Rows())
		x.plan.Evicts = append(x.plan.Evicts, e)
		x.txn.Evict(v.Task)
		x.memory.jobs.befell(v.Task.Job)
	}
}

// rests reports whether the pause of a row or a step after its last evaluation is not over. If it is over, a new pause starts.
func (x naming) rests(name string, every time.Duration) bool {
	if every == 0 {
		return false
	}
	if last, known := x.c.Past.Fired[name]; known && x.plan.Now.Before(last.Add(every)) {
		x.s.Until(last.Add(every))
		return true
	}
	x.s.Until(x.plan.Now.Add(1)) // the pause applies from the next cycle on, and rows of lower tiers may then name other tasks
	x.txn.Fire(name, x.plan.Now)
	if x.plan.Fired == nil {
		x.plan.Fired = map[string]time.Time{}
	}
	x.plan.Fired[name] = x.plan.Now
	return false
}

// candidates returns the tasks for which the rows are evaluated.
func (x naming) candidates() (out []*model.Task) {
	for _, t := range x.c.TasksByKey() {
		switch {
		case !t.MayGo():
		case t.Spared.After(x.plan.Now):
			x.s.Until(t.Spared)
		default:
			out = append(out, t)
		}
	}
	out, _ = session.NewCandidates(x.s, x.step, x.warn).Of(nil, out)
	return out
}

// within returns as many victims as the budget permits.
func (x naming) within(list []session.Victim) []session.Victim {
	budget := x.step.Condition(policy.KeyBudget)
	if budget == nil {
		return list
	}
	most, err := x.s.Count(budget)
	if err != nil {
		x.warn(err.Error())
	}
	return list[:min(len(list), max(most, 0))]
}
