package explain

import (
	"maps"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Past contains the newest decisions about pods, by key: about the last pods that were bound, and the last that were evicted. Most limits
// their number.
type Past struct {
	Most   int
	binds  decided[model.Bind]
	evicts decided[model.Evict]
}

// Decided is a part of a plan, and where it comes from.
type Decided[T any] struct {
	What   T
	Policy string // NAME@GENERATION
	At     time.Time
}

// decided contains the last decision about each pod, in two halves. When the young half is full, it replaces the old one.
type decided[T any] struct{ young, old map[string]*Decided[T] }

func (d *decided[T]) note(most int, pod string, what *Decided[T]) {
	if d.young == nil || len(d.young) >= (most+1)/2 {
		d.old, d.young = d.young, map[string]*Decided[T]{}
	}
	d.young[pod] = what
}

func (d *decided[T]) of(pod string) *Decided[T] {
	if what := d.young[pod]; what != nil {
		return what
	}
	return d.old[pod]
}

// Clone returns a copy that does not change when Note is called.
func (p *Past) Clone() *Past {
	out := &Past{Most: p.Most}
	out.binds = decided[model.Bind]{maps.Clone(p.binds.young), maps.Clone(p.binds.old)}
	out.evicts = decided[model.Evict]{maps.Clone(p.evicts.young), maps.Clone(p.evicts.old)}
	return out
}

// Note remembers the decisions of a plan. policy is its policy, as NAME@GENERATION.
func (p *Past) Note(plan *model.Plan, policy string) {
	for i := range plan.Binds {
		p.binds.note(p.Most, plan.Binds[i].Task, &Decided[model.Bind]{plan.Binds[i], policy, plan.Now})
	}
	for i := range plan.Evicts {
		p.evicts.note(p.Most, plan.Evicts[i].Task, &Decided[model.Evict]{plan.Evicts[i], policy, plan.Now})
	}
}
