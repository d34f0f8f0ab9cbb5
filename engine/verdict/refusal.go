package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Refusal is that no node takes the tasks of a class, and why.
type Refusal struct {
	class  *Class
	number uint64
}

// Refused is why no node takes a task, which was just found.
func (v *Verdicts) Refused(t *model.Task) Refusal {
	c := v.Of(t)
	c.Rejections()
	return Refusal{c, c.rejections.number}
}

// StillRefused says that nodes refuse a task as they did, which is what it was but for what nodes say of it. Where rows read nothing of
// nodes but their objects, it is enough to look at the room of those that changed.
func (v *Verdicts) StillRefused(t *model.Task, r Refusal) bool {
	c := r.class
	if c.rejections.number != r.number || t.HasVolumes {
		return false
	}
	c.used, c.Task = v.Classes.cycle, t
	if v.Plan.lasting && t.GPUCount == 0 && c.ofObjects() && v.epoch() == c.epoch && c.rejections.stay(c.asItWas) {
		c.rejections.at = v.nodes.Log.Next() + 1
		return true
	}
	if v.Of(t) != c {
		return false
	}
	if _, found := c.Choose(); found {
		return false
	}
	c.Rejections()
	return c.rejections.number == r.number
}

// ofObjects says that no predicate of the class reads more of a node than its object.
func (c *Class) ofObjects() bool {
	for at, list := range c.Rows.predicates {
		if layer(at) > OfObject && len(list) > 0 {
			return false
		}
	}
	return true
}

// asItWas is a row's verdict where it is known without asking, else one that is none.
func (c *Class) asItWas(row int32) int {
	x := &c.Cells[row]
	if x.object != c.v.nodes.Object[row]+1 {
		return noVerdict
	}
	return int(x.statics)
}

// Two numbers that stand in no verdict: that it is not known, and that a row has no node.
const (
	noVerdict = -99
	noNode    = -98
)

// lastingClass says that a class that a task was of stays that while neither the task nor its job changes.
func lastingClass(reads []rules.Read) bool {
	return !slices.ContainsFunc(reads, func(r rules.Read) bool {
		own := (r.Root == "task" || r.Root == "job") && r.Changes <= rules.ByObject
		return !own || slices.ContainsFunc(r.Steps, func(s rules.Step) bool {
			return s.Member.Reads != nil || !s.Member.Origin.Within(language.FromOwn&^language.FromTerms|language.ToJob)
		})
	})
}

// changedRows are the rows that changed between two places of the log of nodes.
type changedRows struct {
	from, to uint64
	rows     []int32
}

// changedSince lists the rows that changed since a place of the log, plus 1. It is good until it is asked for again.
func (v *Verdicts) changedSince(at uint64) (rows []int32, known bool) {
	log, x := &v.nodes.Log, &v.changed
	to := log.Next() + 1
	if at == 0 || at <= log.Start {
		return nil, false
	}
	if x.from != at || x.to != to {
		x.from, x.to = at, to
		x.rows = append(x.rows[:0], log.Entries[at-1-log.Start:]...)
		slices.Sort(x.rows)
		x.rows = slices.Compact(x.rows)
	}
	return x.rows, true
}
