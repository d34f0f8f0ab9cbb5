package disruption

import (
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Budgets counts, by budget, the tasks that leave although their pods do not show it. It follows the cluster by its log of tasks. A step
// costs as much as the changed task has budgets.
type Budgets struct {
	c       *model.Cluster
	clock   uint64 // of the cluster
	version uint64 // of its budgets
	cursor  follow.Cursor[*model.Task]
	leaving map[*model.Task][]*model.Budget
	taken   map[*model.Budget]int64
}

// New returns Budgets without any counts.
func New(c *model.Cluster) *Budgets { return &Budgets{c: c} }

// Of lists the budgets that apply to a task, in name order.
func (x *Budgets) Of(t *model.Task) (out []*model.Budget) {
	for _, b := range x.c.Budgets.Of[t.Namespace] {
		if b.Holds(t) {
			out = append(out, b)
		}
	}
	return out
}

// Left returns how many more of a budget's pods may be evicted now; below 0 if more leave than it allows.
func (x *Budgets) Left(b *model.Budget) int64 {
	x.sync()
	return b.Allowed - x.taken[b]
}

// sync updates the counts. If nothing changed, it costs one comparison.
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

// update counts a task in its present state.
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
