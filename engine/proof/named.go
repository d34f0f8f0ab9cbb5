package proof

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// named checks those who go for no other's sake, as rows of a step that evicts name them, and gives the others. What is wrong of one where
// others go, too, or have places, may have been right when it was named.
func (x *Cycle) named(plan *model.Plan, victims []victim) (others []victim) {
	var tasks []*model.Task
	var named []victim
	for _, v := range victims {
		if v.evict.For == "" && x.names(v.evict.Action) {
			named, tasks = append(named, v), append(tasks, v.task)
			continue
		}
		others = append(others, v)
	}
	kind := Legal
	if len(others)+len(plan.Binds)+len(plan.Pipelines) > 0 {
		kind = AtEnd
	}
	x.tried(func() {
		for _, v := range named {
			x.c.Handle(v.task)
			x.giveBack(v)
		}
		awake := func(*policy.Rule) bool { return false }
		lets := x.Named(answers.Question{Site: policy.Victims, Txn: x.txn}, tasks, awake)
		for _, v := range named {
			at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.task })
			switch {
			case len(v.evict.Rows) == 0:
				x.violated(Certificate, "", v.task.Key, "the plan does not say by which rows")
			case at < 0:
				x.violated(kind, "", v.task.Key, "no row of victims names it")
			case !slices.ContainsFunc(lets[at].Lets, func(r *policy.Rule) bool { return r.Table+"/"+r.Name == v.evict.Rows[0] }):
				x.violated(kind, "", v.task.Key, "%s does not name it", v.evict.Rows[0])
			}
		}
	})
	return others
}

// names says whether an action has a step that evicts whom rows name.
func (x *Cycle) names(action string) bool {
	return slices.ContainsFunc(x.p.Actions, func(a *policy.Action) bool {
		return a.Name == action && slices.ContainsFunc(a.Steps, func(s *policy.Step) bool { return s.Verb.Name == policy.Evict })
	})
}
