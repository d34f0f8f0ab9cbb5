package answers

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Victim is a task that may be evicted for another, with the rows that allow it.
type Victim struct {
	Task *model.Task
	Lets []*policy.Rule
}

// Rows returns the rows that allow the eviction, as table/rule.
func (v *Victim) Rows() (rows []string) {
	for _, r := range v.Lets {
		rows = append(rows, r.Table+"/"+r.Name)
	}
	return rows
}

// Question asks which tasks may be evicted for a task.
type Question struct {
	Site, Scope string
	For         *model.Task
	Txn         *model.Txn // in which the tasks that a table allows to evict are gone while it evaluates the next task
}

// Victims returns the candidates that may be evicted, the first to be evicted first. A veto of any table protects a candidate. Otherwise
// the first tier that allows any eviction decides. In this tier, at least one table must allow the eviction and no table may forbid it.
// kept is the row that protects the first of the other candidates that a row protects; nil: there is none.
func (x *Answers) Victims(q Question, candidates []*model.Task) (out []Victim, kept *policy.Rule) {
	x.SortVictims(q, candidates)
	units, kept := x.Units(q, each(candidates))
	return slices.Concat(units...), kept
}

// Units returns the units of candidates that may be evicted, in their order. All tasks of a unit are evicted, or none.
func (x *Answers) Units(q Question, units [][]*model.Task) (out [][]Victim, kept *policy.Rule) {
	no := map[*model.Task]*policy.Rule{} // the first row that protects it
	out = x.units(q, units, no)
	for _, t := range slices.Concat(units...) {
		may := func(unit []Victim) bool { return slices.ContainsFunc(unit, func(v Victim) bool { return v.Task == t }) }
		if kept == nil && !slices.ContainsFunc(out, may) {
			kept = no[t]
		}
	}
	return out, kept
}

func (x *Answers) units(q Question, units [][]*model.Task, no map[*model.Task]*policy.Rule) (out [][]Victim) {
	rules := x.p.Rules(q.Site)
	vetoes := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return !r.Veto })
	units = slices.Clone(units)
	for _, table := range byTable(vetoes) {
		says := x.fold(q, table, units)
		note(no, says)
		units = slices.DeleteFunc(units, func(unit []*model.Task) bool {
			return slices.ContainsFunc(unit, func(t *model.Task) bool { return says[t].opinion == language.No })
		})
	}
	for len(rules) > 0 && len(out) == 0 {
		tier := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return r.Tier != rules[0].Tier })
		rules = rules[len(tier):]
		lets, kept := map[*model.Task][]*policy.Rule{}, map[*model.Task]bool{}
		for _, table := range byTable(tier) {
			says := x.fold(q, table, units)
			note(no, says)
			for t, said := range says {
				kept[t] = kept[t] || said.opinion == language.No
				lets[t] = append(lets[t], said.lets...)
			}
		}
		for _, unit := range units {
			var goes []Victim
			for _, t := range unit {
				if len(lets[t]) > 0 && !kept[t] {
					goes = append(goes, Victim{t, lets[t]})
				}
			}
			if len(goes) == len(unit) {
				out = append(out, goes)
			}
		}
	}
	return out
}

// each returns a unit for every task.
func each(tasks []*model.Task) (units [][]*model.Task) {
	for _, t := range tasks {
		units = append(units, []*model.Task{t})
	}
	return units
}

// Named returns the candidates that rows name, the first to be evicted first. Only the rows of the first tier that names a candidate count,
// and candidates with a veto are left out. Rows for which rests returns true are not asked.
func (x *Answers) Named(q Question, candidates []*model.Task, rests func(*policy.Rule) bool) (out []Victim) {
	x.SortVictims(q, candidates)
	rules := slices.DeleteFunc(slices.Clone(x.p.Rules(q.Site)), func(r *policy.Rule) bool { return r.Veto || rests(r) })
	var names []*model.Task
	by := map[*model.Task][]*policy.Rule{}
	for len(rules) > 0 && len(names) == 0 {
		tier := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return r.Tier != rules[0].Tier })
		rules = rules[len(tier):]
		for _, r := range tier {
			for t, said := range x.fold(q, []*policy.Rule{r}, each(candidates)) {
				by[t] = append(by[t], said.lets...)
			}
		}
		names = slices.DeleteFunc(slices.Clone(candidates), func(t *model.Task) bool { return len(by[t]) == 0 })
	}
	vetoes := slices.DeleteFunc(slices.Clone(x.p.Rules(q.Site)), func(r *policy.Rule) bool { return !r.Veto })
	for _, table := range byTable(vetoes) {
		says := x.fold(q, table, each(names))
		names = slices.DeleteFunc(names, func(t *model.Task) bool { return says[t].opinion == language.No })
	}
	for _, t := range names {
		out = append(out, Victim{t, by[t]})
	}
	return out
}

// byTable groups rows by their tables; they are already sorted by table.
func byTable(rules []*policy.Rule) (out [][]*policy.Rule) {
	for i, r := range rules {
		if i == 0 || rules[i-1].Table != r.Table || rules[i-1].Tier != r.Tier {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// said is the opinion of a table on a candidate, its rows that allow the eviction, and the first row that protects the candidate. A row
// with veto can only protect.
type said struct {
	opinion language.Opinion
	lets    []*policy.Rule
	no      *policy.Rule
}

// note records the rows that protect candidates, unless an earlier row did.
func note(no map[*model.Task]*policy.Rule, says map[*model.Task]said) {
	for t, said := range says {
		no[t] = cmp.Or(no[t], said.no)
	}
}

// fold evaluates the rows of one table for each candidate in turn. If the table permits the eviction of a candidate, the candidate counts
// as evicted while fold evaluates the next candidates. If the table protects one task of a unit, no task of the unit counts as evicted.
func (x *Answers) fold(q Question, table []*policy.Rule, units [][]*model.Task) map[*model.Task]said {
	start, says := q.Txn.Mark(), map[*model.Task]said{}
	for _, unit := range units {
		before, kept := q.Txn.Mark(), false
		for _, t := range unit {
			one, yes := said{opinion: language.Abstain}, false
			for _, r := range table {
				switch x.Opinion(r, x.Frame().OfVictim(q.For, t, q.Scope)) {
				case language.No:
					one.opinion, one.no = language.No, cmp.Or(one.no, r)
				case language.Yes:
					if yes = true; !r.Veto {
						one.lets = append(one.lets, r)
					}
				case language.Abstain:
				}
			}
			if yes && one.opinion != language.No {
				one.opinion = language.Yes
				q.Txn.Evict(t)
			}
			says[t], kept = one, kept || one.opinion == language.No
		}
		if kept {
			q.Txn.Rollback(before)
		}
	}
	q.Txn.Rollback(start)
	return says
}

// SortVictims sorts tasks so that the first to be evicted comes first: tasks without a PodGroup, then by the rows of victimOrder. If these
// are equal, the task whose queue, job and task order is last comes first.
func (x *Answers) SortVictims(q Question, list []*model.Task) {
	compare := x.victimOrder(q, list)
	slices.SortFunc(list, func(a, b *model.Task) int {
		return cmp.Or(compare(a, b, policy.VictimOrder, policy.QueueOrder, policy.JobOrder), policy.NeededFirst(b, a),
			compare(a, b, policy.TaskOrder), policy.TaskTie(b, a))
	})
}

// SortGangs sorts the first tasks of jobs so that the first job to be evicted comes first. It is like SortVictims, but without a difference
// in the order of jobs, the newest job comes first, and then the first by name.
func (x *Answers) SortGangs(q Question, list []*model.Task) {
	compare := x.victimOrder(q, list)
	slices.SortFunc(list, func(a, b *model.Task) int {
		return cmp.Or(compare(a, b, policy.VictimOrder, policy.QueueOrder, policy.JobOrder), b.Job.CreatedAt.Compare(a.Job.CreatedAt),
			cmp.Compare(a.Job.Key, b.Job.Key))
	})
}

// victimOrder returns a comparison of tasks by the rows of some sites. Tasks without a PodGroup come first.
func (x *Answers) victimOrder(q Question, list []*model.Task) func(a, b *model.Task, sites ...string) int {
	keys := map[*model.Task]map[string][]language.Key{}
	for _, t := range list {
		keys[t] = map[string][]language.Key{
			policy.VictimOrder: x.Keys(policy.VictimOrder, x.Frame().OfVictim(q.For, t, q.Scope)),
			policy.QueueOrder:  x.Keys(policy.QueueOrder, x.Frame().OfQueue(t.Job.Queue)),
			policy.JobOrder:    x.Keys(policy.JobOrder, x.Frame().OfJobAlone(t.Job)),
			policy.TaskOrder:   x.Keys(policy.TaskOrder, x.Frame().OfTaskAlone(t)),
		}
	}
	rows := func(site string, a, b *model.Task) int {
		for k, r := range x.p.Rules(site) {
			if c := r.Compare(&keys[a][site][k], &keys[b][site][k]); c != 0 {
				return c
			}
		}
		return 0
	}
	return func(a, b *model.Task, sites ...string) int {
		if a.Job.Orphan != b.Job.Orphan {
			return map[bool]int{true: -1, false: 1}[a.Job.Orphan]
		}
		c := 0
		for _, site := range sites {
			switch {
			case c != 0 || site == policy.JobOrder && a.Job == b.Job || site == policy.QueueOrder && a.Job.Queue == b.Job.Queue:
			case site == policy.VictimOrder:
				c = rows(site, a, b)
			case site == policy.QueueOrder:
				c = cmp.Or(rows(site, b, a), policy.QueueAge(b.Job.Queue, a.Job.Queue))
			default:
				c = rows(site, b, a)
			}
		}
		return c
	}
}
