package reference

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// evict evicts the tasks that rows name.
func (x *cycle) evict(step *policy.Step) {
	if x.rests(step.Name(x.waits.Action), step.Period(policy.KeyEvery)) {
		return
	}
	var candidates []*model.Task
	for _, t := range x.c.TasksByKey() {
		if !t.MayGo() || t.Spared.After(x.plan.Now) {
			continue
		}
		if f := x.Frame().OfVictim(nil, t, ""); x.Condition(step.Condition(policy.KeyCandidates), f, "pod "+t.Key+": ") {
			candidates = append(candidates, t)
		}
	}
	resting := map[*policy.Rule]bool{}
	for _, r := range x.p.Rules(policy.Victims) {
		resting[r] = x.rests(r.Table+"/"+r.Name, r.Every)
	}
	named := x.Named(answers.Question{Site: policy.Victims, Txn: x.txn}, candidates, func(r *policy.Rule) bool { return resting[r] })
	if budget := step.Condition(policy.KeyBudget); budget != nil {
		named = named[:min(len(named), max(x.Count(budget), 0))]
	}
	for _, v := range named {
		x.plan.Evicts = append(x.plan.Evicts, report.Named(v.Task, x.waits.Action, step.Via(), policy.Answer{Rule: v.Lets[0]}.Reason(), v.Rows()))
		x.txn.Evict(v.Task)
	}
}

// rests reports whether the pause of a row or a step after its last evaluation is not over. If it is over, a new pause starts.
func (x *cycle) rests(name string, every time.Duration) bool {
	if every == 0 {
		return false
	}
	if last, known := x.c.Past.Fired[name]; known && x.plan.Now.Before(last.Add(every)) {
		return true
	}
	x.txn.Fire(name, x.plan.Now)
	if x.plan.Fired == nil {
		x.plan.Fired = map[string]time.Time{}
	}
	x.plan.Fired[name] = x.plan.Now
	return false
}
