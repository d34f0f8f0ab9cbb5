package session

import (
	"cmp"
	"slices"
	"time"

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
func (v *Victim) Rows() []string {
	rows := make([]string, len(v.Lets))
	for i, r := range v.Lets {
		rows[i] = r.Table + "/" + r.Name
	}
	return rows
}

// Question is who may go for a task.
type Question struct {
	Site, Scope string
	For         *model.Task
	Txn         *model.Txn // in which those whom a table lets go are gone while it is asked about the next
}

// candidate is one of those that are asked about, with what was said of it so far.
type candidate struct {
	task *model.Task
	keys [4][]language.Key
	lets []*policy.Rule
	no   *policy.Rule // the first row to keep it
	kept bool
	// unit tells those who go or stay together, who stand next to each other.
	unit int
}

// Victims are those of some candidates that may go, the first to go first. A veto of any table is final, and lets nobody go; else the first
// tier decides that lets anybody go, and in it whom at least one table lets go and none keeps. kept is the row that keeps the first of the
// others that a row keeps; nil: there is none.
func (s *orders) Victims(q Question, tasks []*model.Task) (out []Victim, kept *policy.Rule) {
	if len(s.p.Rules(q.Site)) == 0 || len(tasks) == 0 {
		return nil, nil
	}
	return s.let(q, s.inVictimOrder(q, tasks))
}

// Units are those of some units of tasks that may go, in their order. All of a unit go, or none.
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

// let are those of some candidates that may go, in their order, and the row that keeps the first of the others that a row keeps.
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

// keepTogether keeps whole units of which one is kept.
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

// unitLen is how many of some candidates are of the unit of the first.
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

// unvetoed are the candidates that no veto keeps, with nothing said of them yet.
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

// tableLen is how many of some rows are of the table of the first.
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

// fold puts candidates to the rows of one table, one after the other; those whom it lets go are gone while it is asked about the next. Of
// units of several, those of which it keeps one are not.
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

// letsGo puts a candidate to the rows of one table; if they let it go, it is gone. It is false where they keep it.
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

// SortVictims puts those first who go first.
func (s *orders) SortVictims(q Question, tasks []*model.Task) {
	for i, c := range s.inVictimOrder(q, tasks) {
		tasks[i] = c.task
	}
}

// SortGangs puts the first tasks of jobs first whose jobs go first: as SortVictims, but that without a difference in the order of jobs
// those go first that were made last, and of those the first by name.
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

// inVictimOrder puts those first who go first: tasks without a PodGroup, then by the rows of victimOrder; without a difference those
// whose queue, job and task come last in their orders.
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

// candidates are some tasks with what orders them.
func (s *orders) candidates(q Question, tasks []*model.Task) []*candidate {
	list := make([]*candidate, len(tasks))
	for i, t := range tasks {
		c := &candidate{task: t}
		list[i] = c
		c.keys[0] = s.victimKeys(q, t)
		c.keys[1] = s.queueKeys(t.Job.Queue, nil)
		var until time.Time
		c.keys[2], until = s.jobKeys(t.Job, nil)
		s.ask.Until(until) // whoever asks comes to another end when they go in another order
		c.keys[3] = s.taskKeys(t)
	}
	return list
}

// compareVictims compares candidates as far as the order of jobs goes.
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
