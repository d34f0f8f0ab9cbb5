package answers

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Victim is a task that may go for another, with the rows that let it.
type Victim struct {
	Task *model.Task
	Lets []*policy.Rule
}

// Rows are those that let it go, as table/rule.
func (v *Victim) Rows() (rows []string) {
	for _, r := range v.Lets {
		rows = append(rows, r.Table+"/"+r.Name)
	}
	return rows
}

// Question is who may go for a task.
type Question struct {
	Site, Scope string
	For         *model.Task
	Txn         *model.Txn // in which those whom a table lets go are gone while it is asked about the next
}

// Victims are those of some candidates that may go, the first to go first. A veto of any table is final, and lets nobody go; else the first tier decides that
// lets anybody go, and in it whom at least one table lets go and none keeps.
func (x *Answers) Victims(q Question, candidates []*model.Task) (out []Victim) {
	x.sortVictims(q, candidates)
	rules := x.p.Rules(q.Site)
	vetoes := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return !r.Veto })
	for _, table := range byTable(vetoes) {
		says := x.fold(q, table, candidates)
		candidates = slices.DeleteFunc(candidates, func(t *model.Task) bool { return says[t].opinion == language.No })
	}
	for len(rules) > 0 && len(out) == 0 {
		tier := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return r.Tier != rules[0].Tier })
		rules = rules[len(tier):]
		lets, kept := map[*model.Task][]*policy.Rule{}, map[*model.Task]bool{}
		for _, table := range byTable(tier) {
			for t, said := range x.fold(q, table, candidates) {
				kept[t] = kept[t] || said.opinion == language.No
				lets[t] = append(lets[t], said.lets...)
			}
		}
		for _, t := range candidates {
			if len(lets[t]) > 0 && !kept[t] {
				out = append(out, Victim{t, lets[t]})
			}
		}
	}
	return out
}

// Named are those of some candidates whom rows name, the first to go first: of the first tier that names anybody, without those whom a veto
// keeps. Rows that rest are left out.
func (x *Answers) Named(q Question, candidates []*model.Task, rests func(*policy.Rule) bool) (out []Victim) {
	x.sortVictims(q, candidates)
	rules := slices.DeleteFunc(slices.Clone(x.p.Rules(q.Site)), func(r *policy.Rule) bool { return r.Veto || rests(r) })
	var names []*model.Task
	by := map[*model.Task][]*policy.Rule{}
	for len(rules) > 0 && len(names) == 0 {
		tier := slices.DeleteFunc(slices.Clone(rules), func(r *policy.Rule) bool { return r.Tier != rules[0].Tier })
		rules = rules[len(tier):]
		for _, r := range tier {
			for t, said := range x.fold(q, []*policy.Rule{r}, candidates) {
				by[t] = append(by[t], said.lets...)
			}
		}
		names = slices.DeleteFunc(slices.Clone(candidates), func(t *model.Task) bool { return len(by[t]) == 0 })
	}
	vetoes := slices.DeleteFunc(slices.Clone(x.p.Rules(q.Site)), func(r *policy.Rule) bool { return !r.Veto })
	for _, table := range byTable(vetoes) {
		says := x.fold(q, table, names)
		names = slices.DeleteFunc(names, func(t *model.Task) bool { return says[t].opinion == language.No })
	}
	for _, t := range names {
		out = append(out, Victim{t, by[t]})
	}
	return out
}

// byTable parts rows by their tables, which are in order.
func byTable(rules []*policy.Rule) (out [][]*policy.Rule) {
	for i, r := range rules {
		if i == 0 || rules[i-1].Table != r.Table || rules[i-1].Tier != r.Tier {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// said is what a table says of a candidate, and its rows that let it go; one with veto only keeps.
type said struct {
	opinion language.Opinion
	lets    []*policy.Rule
}

// fold puts candidates to the rows of one table, one after the other; those whom it lets go are gone while it is asked about the next.
func (x *Answers) fold(q Question, table []*policy.Rule, candidates []*model.Task) map[*model.Task]said {
	start, says := q.Txn.Mark(), map[*model.Task]said{}
	for _, t := range candidates {
		one, yes := said{opinion: language.Abstain}, false
		for _, r := range table {
			switch x.Opinion(r, x.Frame().OfVictim(q.For, t, q.Scope)) {
			case language.No:
				one.opinion = language.No
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
		says[t] = one
	}
	q.Txn.Rollback(start)
	return says
}

// sortVictims puts those first who go first: tasks without a PodGroup, then by the rows of victimOrder; without a difference those whose
// queue, job and task come last in their orders.
func (x *Answers) sortVictims(q Question, list []*model.Task) {
	keys := map[*model.Task][4][]language.Key{}
	sites := []string{policy.VictimOrder, policy.QueueOrder, policy.JobOrder, policy.TaskOrder}
	for _, t := range list {
		about := []*language.Frame{
			x.Frame().OfVictim(q.For, t, q.Scope), x.Frame().OfQueue(t.Job.Queue), x.Frame().OfJobAlone(t.Job), x.Frame().OfTaskAlone(t),
		}
		var of [4][]language.Key
		for i, site := range sites {
			of[i] = x.Keys(site, about[i])
		}
		keys[t] = of
	}
	compare := func(i int, a, b *model.Task) int {
		for k, r := range x.p.Rules(sites[i]) {
			if c := r.Compare(&keys[a][i][k], &keys[b][i][k]); c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortFunc(list, func(a, b *model.Task) int {
		if a.Job.Orphan != b.Job.Orphan {
			return map[bool]int{true: -1, false: 1}[a.Job.Orphan]
		}
		c := compare(0, a, b)
		if a.Job.Queue != b.Job.Queue {
			c = cmp.Or(c, compare(1, b, a), policy.QueueAge(b.Job.Queue, a.Job.Queue))
		}
		if a.Job != b.Job {
			c = cmp.Or(c, compare(2, b, a))
		}
		return cmp.Or(c, compare(3, b, a), policy.TaskTie(b, a))
	})
}
