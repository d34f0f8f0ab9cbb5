package bucket

import (
	"sort"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// present is where the job's tasks are, as of a version of the job.
type present struct {
	version uint64
	roles   map[int32]map[string]int // tasks with a place, by node and role
	buckets []standing
}

// standing is how a bucket stands.
type standing struct {
	placed  map[int32]int       // tasks with a place, by node
	waiting map[*model.Task]int // those that wait, each with its place among them
	first   []model.Resources   // what so many of those that wait, the first ones, ask for
}

// Fit is how many tasks of its bucket a node has, or would have, with a task: those that are there, less those of the job on the node from
// which the task wants to be away, and as many of those that wait, the task among them, as have room together in what is free; where
// they are too many, the last do not come. 0: the task itself has no room.
func (x *Buckets) Fit(t *model.Task, index int, row int32, free model.Resources) int {
	if x == nil || index < 0 || index >= len(x.all) || !t.Request.Fits(free) {
		return 0
	}
	p := x.present()
	b := &p.buckets[index]
	fit := b.placed[row] - x.wishes.apartFrom(t.Role, p.roles[row])
	at, waits := b.waiting[t]
	all := len(b.waiting)
	if !waits {
		at = all
	}
	// so many of the first come, and the task, where it is none of them
	least := sort.Search(all, func(gone int) bool {
		if at < all-gone {
			return b.first[all-gone].Fits(free)
		}
		return b.first[all-gone].Add(t.Request).Fits(free)
	})
	return fit + x.come(all-least, at, waits)
}

// come is how many come, where the first so many do.
func (x *Buckets) come(first, at int, waits bool) int {
	if waits && at >= first {
		return first + 1
	}
	return first
}

// present is brought up to date where the job has changed since.
func (x *Buckets) present() *present {
	if p := x.now.Load(); p != nil && p.version == x.Job.Version {
		return p
	}
	p := &present{version: x.Job.Version, roles: map[int32]map[string]int{}, buckets: make([]standing, len(x.all))}
	for _, t := range x.Job.Tasks {
		if hasPlace(t) && t.Role != "" {
			if p.roles[t.Node] == nil {
				p.roles[t.Node] = map[string]int{}
			}
			p.roles[t.Node][t.Role]++
		}
	}
	for i, b := range x.all {
		s := standing{placed: map[int32]int{}, waiting: map[*model.Task]int{}, first: []model.Resources{{}}}
		for _, t := range b.tasks {
			switch {
			case hasPlace(t):
				s.placed[t.Node]++
			case t.Status == model.Pending:
				s.waiting[t] = len(s.waiting)
				s.first = append(s.first, s.first[len(s.first)-1].Add(t.Request))
			}
		}
		p.buckets[i] = s
	}
	x.now.Store(p)
	return p
}
