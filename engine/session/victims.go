package session

import (
	"cmp"
	"slices"
	"time"

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
func (v *Victim) Rows() []string {
	rows := make([]string, len(v.Lets))
	for i, r := range v.Lets {
		rows[i] = r.Table + "/" + r.Name
	}
	return rows
}

// Question asks which tasks may be evicted for a task.
type Question struct {
	Site, Scope string
	For         *model.Task
	Txn         *model.Txn // in which the tasks that a table allows to evict are gone while it evaluates the next task
}

// candidate is a task that may become a victim, with the answers about it so far.
type candidate struct {
	task *model.Task
	keys [4][]language.Key
	lets []*policy.Rule
	no   *policy.Rule // the first row that protects it
	kept bool
	// unit identifies candidates that are evicted together or not at all. They are adjacent in the list.
	unit int
}

// Victims returns the candidates that may be evicted, the first to be evicted first. A veto of any table protects a candidate. Otherwise
// the first tier that allows any eviction decides. In this tier, at least one table must allow the eviction and no table may forbid it.
// kept is the row that protects the first of the other candidates that a row protects; nil: there is none.
func (s *orders) Victims(q Question, tasks []*model.Task) (out []Victim, kept *policy.Rule) {
	if len(s.p.Rules(q.Site)) == 0 || len(tasks) == 0 {
		return nil, nil
	}
	return s.let(q, s.inVictimOrder(q, tasks))
}

// Units returns the units of tasks that may be evicted, in their order. All tasks of a unit are evicted, or none.
func (s *orders) Units(q Question, units [][]*model.Task) (out [][]Victim, kept *policy.Rule) {
	var list []*candidate
	number := map[*model.Task]int{}
	for i, unit := range units {
		for _, t := range unit {
			list, number[t] = append(list, &candidate{task: t, unit: i}), i
		}
	}
	lets, kept := s.let(q, list)
	for i, v := range lets {
		if i == 0 || number[v.Task] != number[out[len(out)-1][0].Task] {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], v)
	}
	return out, kept
}

// let returns the candidates that may be evicted, in their order, and the row that protects the first of the other candidates.
func (s *orders) let(q Question, all []*candidate) (out []Victim, kept *policy.Rule) {
	rules := s.p.Rules(q.Site)
	list := s.unvetoed(q, slices.Clone(all))
	for len(rules) > 0 {
		for _, c := range list {
			c.lets, c.kept = nil, false
		}
		for tier := rules[0].Tier; len(rules) > 0 && rules[0].Tier == tier; {
			n := tableLen(rules)
			s.fold(q, rules[:n], list)
			rules = rules[n:]
		}
		for _, c := range list {
			c.kept = c.kept || len(c.lets) == 0
		}
		keepTogether(list)
		for _, c := range list {
			if !c.kept {
				out = append(out, Victim{c.task, c.lets})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	for _, c := range all {
		if (c.kept || len(out) == 0) && c.no != nil {
			return out, c.no
		}
	}
	return out, nil
}

// keepTogether protects all candidates of a unit if one of them is protected.
func keepTogether(list []*candidate) {
	for len(list) > 0 {
		n := unitLen(list)
		if slices.ContainsFunc(list[:n], func(c *candidate) bool { return c.kept }) {
			for _, c := range list[:n] {
				c.kept = true
			}
		}
		list = list[n:]
	}
}

// unitLen returns how many of the first candidates belong to the same unit.
func unitLen(list []*candidate) int {
	for i, c := range list {
		if c.unit != list[0].unit {
			return i
		}
	}
	return len(list)
}

// Named returns the candidates that rows name, the first to be evicted first. Only the rows of the first tier that names a candidate count,
// and candidates with a veto are left out. Rows for which rests returns true are not asked.
func (s *orders) Named(q Question, tasks []*model.Task, rests func(*policy.Rule) bool) (out []Victim) {
	rules := s.p.Rules(q.Site)
	if len(rules) == 0 || len(tasks) == 0 {
		return nil
	}
	all := s.inVictimOrder(q, tasks)
	var names []*candidate
	for i := 0; i < len(rules) && len(names) == 0; {
		for tier := rules[i].Tier; i < len(rules) && rules[i].Tier == tier; i++ {
			if r := rules[i]; !r.Veto && !rests(r) {
				s.fold(q, rules[i:i+1], all)
			}
		}
		for _, c := range all {
			if len(c.lets) > 0 {
				names = append(names, &candidate{task: c.task, unit: c.unit})
				out = append(out, Victim{c.task, c.lets})
			}
		}
	}
	names = s.unvetoed(q, names)
	return slices.DeleteFunc(out, func(v Victim) bool {
		return !slices.ContainsFunc(names, func(c *candidate) bool { return c.task == v.Task })
	})
}

// unvetoed returns the candidates that no veto protects.
func (s *orders) unvetoed(q Question, list []*candidate) []*candidate {
	for rules := s.p.Rules(q.Site); len(rules) > 0; {
		n := tableLen(rules)
		if table := vetoesOf(rules[:n]); len(table) > 0 {
			s.fold(q, table, list)
			keepTogether(list)
			list = slices.DeleteFunc(list, func(c *candidate) bool { return c.kept })
		}
		rules = rules[n:]
	}
	for _, c := range list {
		c.lets = nil
	}
	return list
}

// tableLen returns how many of the first rows belong to the same table and tier.
func tableLen(rules []*policy.Rule) int {
	i := slices.IndexFunc(rules, func(r *policy.Rule) bool { return r.Table != rules[0].Table || r.Tier != rules[0].Tier })
	if i < 0 {
		return len(rules)
	}
	return i
}

func vetoesOf(rules []*policy.Rule) (out []*policy.Rule) {
	for _, r := range rules {
		if r.Veto {
			out = append(out, r)
		}
	}
	return out
}

// fold evaluates the rows of one table for each candidate in turn. Candidates that the table allows to evict are gone while it evaluates
// the next candidate. If the table protects one candidate of a unit of several, none of the unit is gone.
func (s *orders) fold(q Question, table []*policy.Rule, list []*candidate) {
	start := q.Txn.Mark()
	f := s.ask.Frame()
	defer s.ask.Done()
	for len(list) > 0 {
		n := unitLen(list)
		before, no := q.Txn.Mark(), false
		for _, c := range list[:n] {
			no = !s.letsGo(q, table, f, c) || no
		}
		if no && n > 1 {
			q.Txn.Rollback(before)
		}
		list = list[n:]
	}
	q.Txn.Rollback(start)
}

// letsGo evaluates the rows of one table for a candidate. If they allow the eviction, the candidate is gone. false: they protect it.
func (s *orders) letsGo(q Question, table []*policy.Rule, f *language.Frame, c *candidate) bool {
	yes, no := false, false
	f.OfVictim(q.For, c.task, q.Scope)
	for _, r := range table {
		switch s.ask.Opinion(r, f) {
		case language.No:
			if no = true; c.no == nil {
				c.no = r
			}
		case language.Yes:
			if yes = true; !r.Veto {
				c.lets = append(c.lets, r)
			}
		case language.Abstain:
		}
	}
	c.kept = c.kept || no
	if yes && !no {
		q.Txn.Evict(c.task)
	}
	return !no
}

// SortVictims sorts tasks so that the first to be evicted comes first.
func (s *orders) SortVictims(q Question, tasks []*model.Task) {
	for i, c := range s.inVictimOrder(q, tasks) {
		tasks[i] = c.task
	}
}

// SortGangs sorts the first tasks of jobs so that the first job to be evicted comes first. It is like SortVictims, with another tie-break.
// Of jobs that are equal in the order of jobs, the job that was created last comes first, and then the first by name.
func (s *orders) SortGangs(q Question, tasks []*model.Task) {
	list := s.candidates(q, tasks)
	slices.SortFunc(list, func(a, b *candidate) int {
		x, y := a.task.Job, b.task.Job
		return cmp.Or(s.compareVictims(a, b), y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(x.Key, y.Key))
	})
	for i, c := range list {
		tasks[i] = c.task
	}
}

// inVictimOrder sorts tasks so that the first to be evicted comes first: tasks without a PodGroup, then by the rows of victimOrder. If
// these are equal, the task whose queue, job and task order is last comes first.
func (s *orders) inVictimOrder(q Question, tasks []*model.Task) []*candidate {
	list := s.candidates(q, tasks)
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(s.compareVictims(a, b), policy.NeededFirst(b.task, a.task), s.compareKeys(policy.TaskOrder, b.keys[3], a.keys[3]),
			policy.TaskTie(b.task, a.task))
	})
	for i, c := range list {
		c.unit = i
	}
	return list
}

// candidates returns candidates for some tasks, with their keys.
func (s *orders) candidates(q Question, tasks []*model.Task) []*candidate {
	list := make([]*candidate, len(tasks))
	for i, t := range tasks {
		c := &candidate{task: t}
		list[i] = c
		c.keys[0] = s.victimKeys(q, t)
		c.keys[1] = s.queueKeys(t.Job.Queue, nil)
		var until time.Time
		c.keys[2], until = s.jobKeys(t.Job, nil)
		s.ask.Until(until) // another order may lead to another decision
		c.keys[3] = s.taskKeys(t)
	}
	return list
}

// compareVictims compares candidates by PodGroup, victimOrder, queue and job, but not by task.
func (s *orders) compareVictims(a, b *candidate) int {
	x, y := a.task.Job, b.task.Job
	switch {
	case x.Orphan && !y.Orphan:
		return -1
	case y.Orphan && !x.Orphan:
		return 1
	}
	c := s.compareKeys(policy.VictimOrder, a.keys[0], b.keys[0])
	if c == 0 && x.Queue != y.Queue {
		c = cmp.Or(s.compareKeys(policy.QueueOrder, b.keys[1], a.keys[1]), policy.QueueAge(y.Queue, x.Queue))
	}
	if c == 0 && x != y {
		c = s.compareKeys(policy.JobOrder, b.keys[2], a.keys[2])
	}
	return c
}

func (s *orders) victimKeys(q Question, t *model.Task) []language.Key {
	f := s.ask.Frame().OfVictim(q.For, t, q.Scope)
	defer s.ask.Done()
	return s.keys(policy.VictimOrder, f, nil)
}
