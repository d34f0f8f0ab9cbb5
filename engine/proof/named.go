package proof

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// naming is the check of steps that evict the pods that rows name.
type naming struct{ *Cycle }

// check checks the victims that the rows of a naming step name, and that serve no other task. It returns the other victims. It evaluates
// the rows in the state in which the step named them.
func (x naming) check(victims []victim) (others []victim) {
	of := map[string][]victim{}
	for _, v := range victims {
		if v.evict.For == "" && x.names(v.evict.Action) {
			of[v.evict.Action] = append(of[v.evict.Action], v)
			continue
		}
		others = append(others, v)
	}
	rests := x.rests
	for _, action := range x.p.Pipeline {
		if !x.names(action) {
			continue
		}
		if named := of[action]; len(named) > 0 {
			x.tried(func() {
				x.undoFrom(victims, action)
				x.by(named, rests)
			})
		}
		rests = func(r *policy.Rule) bool { return x.rests(r) || r.Every > 0 } // this action has evaluated the row
	}
	return others
}

// by checks the victims that one action names.
func (x naming) by(named []victim, rests func(*policy.Rule) bool) {
	var tasks []*model.Task
	for _, v := range named {
		tasks = append(tasks, v.task)
	}
	lets := x.Named(answers.Question{Site: policy.Victims, Txn: x.txn}, tasks, rests)
	for _, v := range named {
		x.c.Handle(v.task)
		at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.task })
		switch {
		case len(v.evict.Rows) == 0:
			x.violated(Certificate, "", v.task.Key, "the plan does not say by which rows")
		case at < 0:
			x.violated(Legal, "", v.task.Key, "no row of victims names it")
		case !slices.ContainsFunc(lets[at].Lets, func(r *policy.Rule) bool { return r.Table+"/"+r.Name == v.evict.Rows[0] }):
			x.violated(Legal, "", v.task.Key, "%s does not name it", v.evict.Rows[0])
		}
	}
}

// rests reports whether the pause of a row was not over when the cycle began.
func (x naming) rests(r *policy.Rule) bool {
	last, known := x.fired[r.Table+"/"+r.Name]
	return r.Every > 0 && known && x.now.Before(last.Add(r.Every))
}

// undoFrom undoes what an action and the later actions did, and repeats what the earlier actions promised. Call it before promises are put
// back.
func (x naming) undoFrom(victims []victim, action string) {
	at := slices.Index(x.p.Pipeline, action)
	earlier := func(action string) bool { return slices.Index(x.p.Pipeline, action) < at }
	x.undoPlaces(func(action string) bool { return !earlier(action) })
	if !slices.ContainsFunc(x.p.Pipeline[:at], x.admits) {
		for _, a := range x.plan.Admits {
			if j := x.c.Jobs[a.Job]; j != nil {
				x.txn.Recall(j, false, j.PlacedNow)
			}
		}
	}
	for _, v := range victims {
		if !earlier(v.evict.Action) {
			x.giveBack(v)
		}
	}
	for _, t := range x.c.TasksByKey() {
		if t.Status == model.Gone {
			x.txn.Return(t, model.Releasing) // only steps with displace treat it as gone
		}
	}
	x.putBack(slices.DeleteFunc(slices.Clone(x.plan.Pipelines), func(b model.Bind) bool { return !earlier(b.Action) }), x.txn.Pipeline)
}

// undoPlaces makes the tasks wait again that some actions bound or held.
func (x *Cycle) undoPlaces(by func(action string) bool) {
	for _, b := range x.plan.Holds {
		if t := x.c.Tasks[b.Task]; t != nil && t.Status == model.Allocated && by(b.Action) {
			x.txn.Unplace(t)
		}
	}
	for _, b := range x.plan.Binds {
		if t := x.c.Tasks[b.Task]; t != nil && x.bound[t] && t.Status == model.Binding && by(b.Action) {
			x.txn.Leave(t)
			x.txn.Suppose(t, model.Pending)
			x.txn.Recall(t.Job, t.Job.AdmittedNow, t.Job.PlacedNow-1)
		}
	}
}

// names reports whether an action has a step that evicts the pods that rows name.
func (x *Cycle) names(action string) bool { return x.has(action, policy.Evict) }

// admits reports whether an action has a step that admits jobs.
func (x *Cycle) admits(action string) bool { return x.has(action, policy.Admit) }

// has reports whether an action has a step of a verb.
func (x *Cycle) has(action, verb string) bool {
	return slices.ContainsFunc(x.p.Actions, func(a *policy.Action) bool {
		return a.Name == action && slices.ContainsFunc(a.Steps, func(s *policy.Step) bool { return s.Verb.Name == verb })
	})
}
