package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Refusal states that no node accepts the tasks of a class, and identifies the reasons.
type Refusal struct {
	class  *Class
	number uint64
}

// Refused returns why no node accepts a task, which was just computed.
func (v *Verdicts) Refused(t *model.Task) Refusal {
	c := v.Of(t)
	c.Rejections()
	return Refusal{c, c.rejections.number}
}

// StillRefused reports whether nodes reject a task as before. Only the nodes may have changed, not the task. If rows read only the objects
// of nodes, it checks only the free resources of the changed nodes.
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

// ofObjects reports whether no predicate of the class reads more of a node than its object.
func (c *Class) ofObjects() bool {
	for at, list := range c.Rows.predicates {
		if layer(at) > OfObject && len(list) > 0 {
			return false
		}
	}
	return true
}

// asItWas returns the verdict of a row if it is known without an evaluation, otherwise noVerdict.
func (c *Class) asItWas(row int32) int {
	x := &c.Cells[row]
	if x.object != c.v.nodes.Object[row]+1 {
		return noVerdict
	}
	return int(x.statics)
}

// Two numbers that are no verdicts: the verdict is unknown, and the row has no node.
const (
	noVerdict = -99
	noNode    = -98
)

// lastingClass reports whether a task stays in its class while neither the task nor its job changes.
func lastingClass(reads []rules.Read) bool {
	return !slices.ContainsFunc(reads, func(r rules.Read) bool {
		own := (r.Root == "task" || r.Root == "job") && r.Changes <= rules.ByObject
		return !own || slices.ContainsFunc(r.Steps, func(s rules.Step) bool {
			return s.Member.Reads != nil || !s.Member.Origin.Within(language.FromOwn&^language.FromTerms|language.ToJob)
		})
	})
}

// changedRows contains the rows that changed between two positions of the log of nodes.
type changedRows struct {
	from, to uint64
	rows     []int32
}

// changedSince lists the rows that changed since a position of the log, plus 1. The list is valid until the next call.
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
