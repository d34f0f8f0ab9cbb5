package bucket

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Buckets contains the buckets of a job. The tasks of each bucket do not change after the creation. Fit uses the present state.
type Buckets struct {
	Job     *model.Job
	Version uint64 // of the job at the creation
	wishes  *wishes
	in      map[*model.Task]int
	all     []*bucket
	largest int
	now     atomic.Pointer[present]
}

// bucket contains tasks that belong together.
type bucket struct {
	index   int
	tasks   []*model.Task // in the order in which they joined
	roles   map[string]int
	waiting int
	need    float64 // of the waiting tasks: milli-cores, MiB, and thousandths of all other resources
	joined  int     // number of tasks that joined
}

// Of puts the tasks of a job into buckets. It returns nil if the job has no such annotations, or if they name a role that the job does not
// have. First, the placed tasks form one bucket per node. Then the other tasks join, by rank and name. Each joins the bucket with the
// strongest attraction; among equals, the bucket with the smallest need of waiting tasks. A task never joins a bucket that it should be
// apart from.
func Of(j *model.Job) *Buckets {
	if !Written(j) {
		return nil
	}
	w, ok := wishesOf(j)
	if !ok {
		return nil
	}
	x := &Buckets{Job: j, Version: j.Version, wishes: w, in: map[*model.Task]int{}}
	var placed, waiting []*model.Task
	for _, t := range j.Tasks {
		switch {
		case w.strength[t.Role] == 0:
		case hasPlace(t):
			placed = append(placed, t)
		case t.Status == model.Pending:
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(placed, func(a, b *model.Task) int {
		return cmp.Or(strings.Compare(a.NodeName, b.NodeName), strings.Compare(a.Key, b.Key))
	})
	slices.SortFunc(waiting, func(a, b *model.Task) int {
		r, s := w.rank(a.Role), w.rank(b.Role)
		return cmp.Or(slices.Compare(r[:], s[:]), strings.Compare(a.Key, b.Key))
	})
	for i, t := range placed {
		if i == 0 || placed[i-1].NodeName != t.NodeName {
			x.begin()
		}
		x.join(t, len(x.all)-1, 0)
	}
	o := newOffers(x, waiting)
	for _, t := range waiting {
		best, drawn := o.best(t.Role)
		if best == nil || drawn < 0 {
			best = x.begin()
		}
		x.join(t, best.index, need(t))
		o.joined(t.Role, best)
	}
	return x
}

func hasPlace(t *model.Task) bool { return t.HoldsResources() || t.Status == model.Pipelined }

func (x *Buckets) begin() *bucket {
	b := &bucket{index: len(x.all), roles: map[string]int{}}
	x.all = append(x.all, b)
	return b
}

func (x *Buckets) join(t *model.Task, index int, need float64) {
	b := x.all[index]
	x.in[t] = index
	b.tasks = append(b.tasks, t)
	b.roles[t.Role]++
	b.joined++
	if t.Status == model.Pending {
		b.waiting++
		b.need += need
	}
	x.largest = max(x.largest, len(b.tasks))
}

// need returns a task's request as one number: a core, a GiB and one unit of any other resource count the same.
func need(t *model.Task) float64 {
	sum := 0.0
	for i := range t.Request {
		switch {
		case !t.Request.Has(i) || i == model.Pods:
		case i == model.Memory:
			sum += t.Request[i] / (1 << 20)
		default:
			sum += t.Request[i]
		}
	}
	return sum
}

// Index returns the bucket of a task; -1 for none.
func (x *Buckets) Index(t *model.Task) int {
	if x == nil {
		return -1
	}
	i, ok := x.in[t]
	if !ok {
		return -1
	}
	return i
}

// Waiting returns how many tasks of a bucket waited when it was created.
func (x *Buckets) Waiting(index int) int {
	if x == nil || index < 0 || index >= len(x.all) {
		return 0
	}
	return x.all[index].waiting
}

// Rank returns the position of tasks of a role in a bucket: the smaller one comes first.
func (x *Buckets) Rank(role string) [2]int {
	if x == nil {
		return [2]int{}
	}
	return x.wishes.rank(role)
}

// Largest returns the number of tasks in the largest bucket.
func (x *Buckets) Largest() int {
	if x == nil {
		return 0
	}
	return x.largest
}

// offers finds, for each role whose tasks join buckets, the bucket with the strongest attraction.
type offers struct {
	x     *Buckets
	left  map[string]int    // number of tasks that have not joined yet, by role
	roles map[string]*offer // roles of which some tasks have joined, and some have not
}

// offer is a heap of the buckets for a role, the best first. An entry that is older than its bucket is ignored.
type offer struct {
	x    *Buckets
	role string
	list []entry
}

type entry struct {
	drawn, index, joined int
	need                 float64
}

func newOffers(x *Buckets, waiting []*model.Task) *offers {
	o := &offers{x, map[string]int{}, map[string]*offer{}}
	for _, t := range waiting {
		o.left[t.Role]++
	}
	return o
}

// best returns the bucket with the strongest attraction for a role, nil if there is none.
func (o *offers) best(role string) (b *bucket, drawn int) {
	of := o.roles[role]
	if of == nil {
		of = &offer{x: o.x, role: role}
		o.roles[role] = of
		for _, b := range o.x.all {
			of.list = append(of.list, of.entry(b))
		}
		heap.Init(of)
	}
	for len(of.list) > 0 {
		top := of.list[0]
		if b := o.x.all[top.index]; b.joined == top.joined {
			return b, top.drawn
		}
		heap.Pop(of)
	}
	return nil, 0
}

// joined records that a task of a role has joined a bucket.
func (o *offers) joined(role string, b *bucket) {
	if o.left[role]--; o.left[role] == 0 {
		delete(o.roles, role)
	}
	for _, of := range o.roles { // in any order: each has a heap of its own
		heap.Push(of, of.entry(b))
	}
}

func (of *offer) entry(b *bucket) entry {
	return entry{of.x.wishes.drawn(of.role, b.roles), b.index, b.joined, b.need}
}

func (of *offer) Len() int { return len(of.list) }

func (of *offer) Less(i, j int) bool {
	a, b := of.list[i], of.list[j]
	return cmp.Or(b.drawn-a.drawn, cmp.Compare(a.need, b.need), a.index-b.index) < 0
}

func (of *offer) Swap(i, j int) { of.list[i], of.list[j] = of.list[j], of.list[i] }

func (of *offer) Push(x any) { of.list = append(of.list, x.(entry)) }

func (of *offer) Pop() any {
	last := len(of.list) - 1
	e := of.list[last]
	of.list = of.list[:last]
	return e
}
