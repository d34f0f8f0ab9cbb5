package proof

import (
	"cmp"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// ofGang reports whether a promise was made by a step that frees resources for several tasks of a job at once.
func (p *promise) ofGang() bool {
	return p.step != nil && p.step.Word(policy.KeyUnit) == policy.UnitGang
}

// takesGangs reports whether an action has a step that evicts gangs as a whole.
func (x *Cycle) takesGangs(action string) bool {
	return slices.ContainsFunc(x.displacing(action), func(s *policy.Step) bool { return s.Word(policy.KeyUnit) == policy.UnitGang })
}

// displacing returns the steps of an action with displace.
func (x *Cycle) displacing(action string) (out []*policy.Step) {
	for _, a := range x.p.Actions {
		for _, s := range a.Steps {
			if a.Name == action && s.Verb.Name == policy.Displace {
				out = append(out, s)
			}
		}
	}
	return out
}

// onlyByGangs reports whether only actions evict pods of a job that evict gangs as a whole, or the pods that gangs can spare.
func (x *Cycle) onlyByGangs(victims []victim, j *model.Job) bool {
	return !slices.ContainsFunc(victims, func(v victim) bool {
		return v.task.Job == j && slices.ContainsFunc(x.displacing(v.evict.Action), func(s *policy.Step) bool {
			return s.Word(policy.KeyUnit) != policy.UnitGang
		})
	})
}

// need returns the promises that one action made to a gang together, if the promise last is the last of them.
func (x *Cycle) need(all []*promise, last int) (out []*promise) {
	same := func(p *promise) bool { return p.task.Job == all[last].task.Job && p.by() == all[last].by() }
	if slices.ContainsFunc(all[last+1:], same) {
		return nil
	}
	for _, p := range all[:last+1] {
		if same(p) {
			out = append(out, p)
		}
	}
	return out
}

// by returns the action that evicts pods for the promise, or otherwise the action that promised the place.
func (p *promise) by() string {
	if len(p.victims) > 0 {
		return p.victims[0].evict.Action
	}
	return p.bind.Action
}

// goingFor returns the victims for a need, in the order of the plan.
func goingFor(need []*promise) (out []victim) {
	for _, p := range need {
		out = append(out, p.victims...)
	}
	slices.SortFunc(out, func(a, b victim) int { return cmp.Compare(a.place, b.place) })
	return out
}

// units groups victims that are evicted together: those of a whole job, or one alone.
func units(victims []victim) (out [][]victim) {
	of := map[*model.Job]int{}
	for _, v := range victims {
		if at, known := of[v.task.Job]; known && v.evict.Whole {
			out[at] = append(out[at], v)
			continue
		}
		if v.evict.Whole {
			of[v.task.Job] = len(out)
		}
		out = append(out, []victim{v})
	}
	return out
}

// checkGang checks the promises to a gang at the end of the cycle, after the last of them.
func (x *Cycle) checkGang(all []*promise, last int, known []Violation) {
	need := x.need(all, last)
	if len(goingFor(need)) == 0 {
		return
	}
	x.World().Run(need[0].by())
	found := x.found(func() { x.asOf(all, need[0].by(), func() { x.certifiedGang(all, need, true) }) })
	x.wrong = append(x.wrong, atEnd(known, found)...)
	for _, unit := range units(goingFor(need)) {
		if x.stops() {
			return
		}
		x.wholeGoes(unit)
		if e := unit[0].evict; e.NeededFor != "" && !slices.ContainsFunc(all, func(p *promise) bool { return p.task.Key == e.NeededFor }) {
			x.violated(Certificate, e.For, e.Task, "it is needed for %s, which is not promised anything", e.NeededFor)
		}
		if !goesWhole(all, unit[0].task.Job) || unit[0].evict.Whole {
			x.neededUnit(all, unit)
		}
	}
	x.idleForGang(all[slices.Index(all, need[0]):], need)
}

// certifiedGang checks what the plan states about the victims of a need: which rows permit each eviction, and why a promise would be
// refused if the pod, or its whole gang, stayed. At the end of the action, other rows than those that the plan names may refuse it.
func (x *Cycle) certifiedGang(all, need []*promise, end bool) {
	victims := goingFor(need)
	if len(victims) == 0 {
		return
	}
	x.legalForGang(need, victims)
	for _, unit := range units(victims) {
		first := unit[0]
		for _, v := range unit {
			if e := v.evict; len(e.Rows) == 0 || e.Reason.Table+"/"+e.Reason.Rule != e.Rows[0] {
				x.violated(Certificate, e.For, v.task.Key, "the plan does not say by which rows, or by another one first")
			}
			if v.evict.For != first.evict.For || v.evict.Needed != first.evict.Needed {
				x.violated(Certificate, v.evict.For, v.task.Key, "of its gang, which goes as a whole, the plan says that %s goes for another reason",
					first.task.Key)
			}
		}
		at := slices.IndexFunc(all, func(p *promise) bool { return p.task.Key == cmp.Or(first.evict.NeededFor, first.evict.For) })
		if at < 0 {
			continue // promised later: checked at the end
		}
		if why := first.evict.Needed; !x.isRefused(all[at], need, unit, why, end) {
			x.violated(Certificate, all[at].task.Key, first.task.Key, "were it spared, %q of %s would not refuse node %s",
				strings.Trim(why.Table+"/"+why.Rule, "/"), why.Site, all[at].bind.Node)
		}
	}
}

// isRefused reports whether a promise of a need would be rejected for a reason without the eviction of a unit. A job can have several
// turns, so it tries this with all promises of the need, and with only the first ones. At the end, any reason is sufficient.
func (x *Cycle) isRefused(p *promise, need []*promise, unit []victim, why model.Reason, end bool) (is bool) {
	if why.Text == "" {
		return false
	}
	for first := len(need); first > 0 && !is; first-- {
		x.tried(func() {
			x.txn.Unplace(p.task)
			for _, v := range unit {
				x.giveBack(v)
			}
			for _, later := range need[first:] {
				if later != p {
					x.txn.Unplace(later.task)
				}
				for _, v := range later.victims {
					if v.task.Status == model.Gone {
						x.giveBack(v)
					}
				}
			}
			is = x.rowRefuses(p, why) || end && x.refuses(p, p.row) != ""
		})
	}
	return is
}

// legalForGang evaluates the rows again: they must permit the victims of a need, in the order of the plan. These victims are the only
// candidates.
func (x *Cycle) legalForGang(need []*promise, victims []victim) {
	step, t := need[len(need)-1].step, need[0].task // the step of the other promises may not be known yet
	scope := step.Word(policy.KeyScope)
	x.tried(func() {
		beyond := measured{x}.beyond(t, victims)
		for _, p := range need {
			x.txn.Unplace(p.task)
		}
		var asked [][]*model.Task
		for i, v := range victims {
			x.giveBack(v)
			if i == 0 || !v.evict.Whole || !victims[i-1].evict.Whole || victims[i-1].task.Job != v.task.Job {
				asked = append(asked, nil)
			}
			asked[len(asked)-1] = append(asked[len(asked)-1], v.task)
		}
		measured{x}.due(step, need...)
		for _, v := range victims {
			if !x.Condition(step.Condition(policy.KeyCandidates), x.Frame().OfVictim(t, v.task, scope), "") || v.task.Spared.After(x.now) {
				x.violated(Candidate, t.Key, v.task.Key, "the step is not about it")
			}
		}
		going, _ := x.Units(answers.Question{Site: step.Word(policy.KeyVictims), Scope: scope, For: t, Txn: x.txn}, asked)
		lets := slices.Concat(going...)
		letsOf := make([][]*policy.Rule, len(victims))
		for i, v := range victims {
			at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.task })
			if at < 0 {
				x.violated(Legal, t.Key, v.task.Key, "the rows of %s do not let it", step.Word(policy.KeyVictims))
				continue
			}
			letsOf[i] = lets[at].Lets
			measured{x}.along(step, t, v, letsOf[i])
			for _, row := range v.evict.Rows {
				if !slices.ContainsFunc(letsOf[i], func(r *policy.Rule) bool { return r.Table+"/"+r.Name == row }) {
					x.violated(Row, t.Key, v.task.Key, "%s does not let it", row)
				}
			}
		}
		measured{x}.falls(step, t, victims, letsOf, beyond)
	})
}

// goesWhole reports whether the rest of a job is evicted as a whole. In that case its remaining pods are of no use.
func goesWhole(all []*promise, j *model.Job) bool {
	return slices.ContainsFunc(all, func(p *promise) bool {
		return slices.ContainsFunc(p.victims, func(v victim) bool { return v.task.Job == j && v.evict.Whole })
	})
}

// wholeGoes checks that no pod stays of a job that is evicted as a whole.
func (x *Cycle) wholeGoes(unit []victim) {
	if !unit[0].evict.Whole {
		return
	}
	for _, t := range unit[0].task.Job.Tasks {
		if t.HoldsResources() && x.was(t).HoldsResources() && !x.bound[t] {
			x.violated(Gang, unit[0].evict.For, unit[0].task.Key, "as the whole of its gang, of which %s stays", t.Key)
			return
		}
	}
}

// neededUnit checks that a unit is needed. Without its eviction, a promise on its nodes must fail, whichever devices each has, or rows or
// gates must reject any other promise.
func (x *Cycle) neededUnit(all []*promise, unit []victim) {
	x.tried(func() {
		var there []*promise
		for _, p := range all {
			if slices.ContainsFunc(unit, func(v victim) bool { return v.task.NodeName == p.bind.Node }) {
				there = append(there, p)
				x.txn.Unplace(p.task)
			}
		}
		for _, v := range unit {
			x.giveBack(v)
		}
		for _, p := range there {
			if x.refuses(p, p.row) != "" {
				return
			}
			x.again(p, p.row)
		}
		for _, p := range all {
			refuses := false
			x.tried(func() { // as if all other promises were already in place
				x.txn.Unplace(p.task)
				refuses = x.gateRefuses(p) != "" || slices.ContainsFunc(x.p.Predicates(), func(r *policy.Rule) bool {
					return x.Opinion(r, x.Frame().OfTask(p.task).OnNode(p.row)) == language.No
				})
			})
			if refuses {
				return
			}
		}
		x.violated(Needed, unit[0].evict.For, unit[0].task.Key, "all that is promised would be there without that")
	})
}

// idleForGang checks that there were not enough free resources for all of a need before its evictions and later ones: placing each task on
// the first node that accepts it must fail.
func (x *Cycle) idleForGang(later, need []*promise) {
	x.tried(func() {
		x.undo(later, func(*promise) bool { return true })
		if _, fit := x.firstFit(need); fit {
			x.violated(Idle, need[0].task.Key, "", "all of its gang that is promised room fits where nobody has to go for it")
		}
	})
}
