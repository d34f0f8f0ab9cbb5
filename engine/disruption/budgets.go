package disruption

import (
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Budgets counts, by budget, the tasks that leave though their pods do not show it. It follows the cluster by its log of tasks: a step
// costs the budgets of the one task.
type Budgets struct {
	c       *model.Cluster
	clock   uint64 // of the cluster
	version uint64 // of its budgets
	cursor  follow.Cursor[*model.Task]
	leaving map[*model.Task][]*model.Budget
	taken   map[*model.Budget]int64
}

// New counts nothing yet.
func New(c *model.Cluster) *Budgets { return &Budgets{c: c} }

// Of lists the budgets that are about a task, in name order.
func (x *Budgets) Of(t *model.Task) (out []*model.Budget) {
	for _, b := range x.c.Budgets.Of[t.Namespace] {
		if b.Holds(t) {
			out = append(out, b)
		}
	}
	return out
}

// Left is how many more of a budget's pods may go now; below 0 where more go than it allows.
func (x *Budgets) Left(b *model.Budget) int64 {
	x.sync()
	return b.Allowed - x.taken[b]
}

// sync brings the counts up to date. Where nothing changed it costs a comparison.
func (x *Budgets) sync() {
	c := x.c
	if x.cursor.Begun() && x.clock == c.Clock {
		return
	}
	x.clock = c.Clock
	entries, ok := x.cursor.Read(&c.TaskLog)
	if !ok {
		x.leaving, x.taken = map[*model.Task][]*model.Budget{}, map[*model.Budget]int64{}
		for _, t := range c.Tasks {
			x.update(t)
		}
		x.version = c.Budgets.Version
		return
	}
	for _, t := range entries {
		x.update(t)
	}
	if x.version != c.Budgets.Version {
		leaving := x.leaving
		x.version, x.taken, x.leaving = c.Budgets.Version, map[*model.Budget]int64{}, map[*model.Task][]*model.Budget{}
		for t := range leaving {
			x.update(t)
		}
	}
}

// update counts a task as it is now.
func (x *Budgets) update(t *model.Task) {
	for _, b := range x.leaving[t] {
		x.taken[b]--
	}
	delete(x.leaving, t)
	if x.c.Tasks[t.Key] != t || !leaves(t) {
		return
	}
	of := x.Of(t)
	x.leaving[t] = of
	for _, b := range of {
		x.taken[b]++
	}
}

// leaves reports whether this scheduler decided to evict a task, and its pod does not show it yet.
func leaves(t *model.Task) bool {
	return (t.Status == model.Releasing || t.Status == model.Gone) && t.Object.DeletionTimestamp == nil
}
