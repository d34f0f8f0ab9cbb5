package bucket

import (
	"sort"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// present contains the nodes of the job's tasks, as of a version of the job.
type present struct {
	version uint64
	roles   map[int32]map[string]int // number of placed tasks, by node and role
	buckets []standing
}

// standing is the present state of a bucket.
type standing struct {
	placed  map[int32]int       // number of placed tasks, by node
	waiting map[*model.Task]int // the waiting tasks, each with its index among them
	first   []model.Resources   // by n, the sum of the requests of the first n waiting tasks
}

// Fit returns how many tasks of a task's bucket a node would have with the task. It counts the bucket's tasks on the node, minus the tasks
// of the job there from which the task should be apart. It adds as many waiting tasks, including the task, as fit together in the free
// resources. If they are too many, the last ones do not count. 0: the task itself does not fit.
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
	// the number of first tasks that fit, together with the task if it is none of them
	least := sort.Search(all, func(gone int) bool {
		if at < all-gone {
			return b.first[all-gone].Fits(free)
		}
		return b.first[all-gone].Add(t.Request).Fits(free)
	})
	return fit + x.come(all-least, at, waits)
}

// come returns how many tasks come if the first ones do.
func (x *Buckets) come(first, at int, waits bool) int {
	if waits && at >= first {
		return first + 1
	}
	return first
}

// present returns the present state. It computes it again if the job has changed.
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
