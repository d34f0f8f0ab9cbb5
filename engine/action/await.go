package action

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// kept is the places that a step keeps for jobs that were let in a moment ago and whose pods are being made: who comes after them in
// the step's order takes nothing that they need. What a pod asks for is known before it is there, where it may not go is not. Nothing is
// kept that is not there.
type kept struct {
	c           *model.Cluster
	allocatable func(*model.Task) bool // the gate of that name; nil: the step does not heed it
	shapes      []shape
	room        model.Resources              // what the nodes have idle, or will have, in sum, less what is kept
	queues      map[*model.Queue]*model.Task // what is kept in a queue, as one task would ask for it
	was         struct {                     // as the present turn began
		slots []int64
		room  model.Resources
	}
}

// shape is pods that ask for the same, of jobs for which places are kept.
type shape struct {
	of    *model.Job // the first of them
	size  model.Resources
	slots int64 // how many the nodes have room for
	kept  int64 // how many places are kept
}

// alike is pods of one job that ask for the same.
type alike struct {
	size  model.Resources
	count int64
}

// awaited says until when a step waits for a job's pods: for a while after it was let in, while some are still to be made.
// The zero time: it does not. What was asked may be another then.
func (x *Cycle) awaited(step *policy.Step, j *model.Job) (until time.Time) {
	wait := step.Period(policy.KeyAwaitPods)
	if wait == 0 || j.AdmittedAt.IsZero() || len(j.Expected) == 0 {
		return until
	}
	if end := j.AdmittedAt.Add(wait); end.After(x.plan.Now) {
		x.s.Until(end)
		return end
	}
	return until
}

// await keeps places for a job that is awaited and just had its turn: for the pods without which it cannot start, if there is room for
// all of them, and for as many of the others as there is room for. Each cycle looks anew.
func (x *Cycle) await(step *policy.Step, j *model.Job) {
	until := x.awaited(step, j)
	least := j.MinMember - j.Ready() - j.Counts[model.Pipelined]
	if until.IsZero() || least > 0 && j.Valid() >= j.MinMember { // those that must start together are there, and could not
		return
	}
	if at := &x.plan.KeptUntil; at.IsZero() || until.Before(*at) {
		*at = until
	}
	x.result.unsettled = true
	if x.kept == nil {
		x.kept = x.keepPlaces(step)
	}
	x.kept.keepFor(j, least)
}

// keepPlaces begins to keep places for a step.
func (x *Cycle) keepPlaces(step *policy.Step) *kept {
	k := &kept{c: x.c, queues: map[*model.Queue]*model.Task{}}
	if step.Gate(policy.Allocatable) {
		k.allocatable = x.s.MayAllocate
	}
	k.room = k.roomLeft()
	return k
}

// keepFor keeps places for a job: for the least pods without which it cannot start, if there is room for all of them, and for as many of
// the others as there is room for.
func (k *kept) keepFor(j *model.Job, least int64) {
	must, others := divided(k.placeless(j, least > 0), least)
	if least > 0 && !k.keep(j, must...) {
		return
	}
	for _, p := range others {
		most := min(p.count, k.shapeOf(p.size).free())
		p.count = int64(sort.Search(int(most), func(n int) bool {
			_, ok := k.mayKeep(j, alike{p.size, int64(n) + 1})
			return !ok
		}))
		if p.count > 0 {
			k.keep(j, p)
		}
	}
}

// placeless is the pods of a job that are still to be made, after those that are there and without a place, if they are asked for.
func (k *kept) placeless(j *model.Job, there bool) []alike {
	var out []alike
	add := func(size model.Resources, count int64) {
		if i := slices.IndexFunc(out, func(p alike) bool { return p.size.Equal(size) }); i >= 0 {
			out[i].count += count
			return
		}
		out = append(out, alike{size, count})
	}
	for _, t := range j.Tasks {
		if there && t.Status == model.Pending && !t.Gated {
			add(t.Request, 1)
		}
	}
	for size, count := range k.c.Missing(j) {
		add(size, count)
	}
	return out
}

// divided is the first so many pods, none where there are fewer, and the others.
func divided(pods []alike, least int64) (must, others []alike) {
	for _, p := range pods {
		n := max(min(p.count, least), 0)
		if least -= n; n > 0 {
			must = append(must, alike{p.size, n})
		}
		if n < p.count {
			others = append(others, alike{p.size, p.count - n})
		}
	}
	if least > 0 {
		return nil, nil
	}
	return must, others
}

// keep keeps places for pods of a job, where there are enough for all of them.
func (k *kept) keep(j *model.Job, pods ...alike) bool {
	asks, ok := k.mayKeep(j, pods...)
	if !ok {
		return false
	}
	for _, p := range pods {
		s := k.shapeOf(p.size)
		if s.kept == 0 {
			s.of = j
		}
		s.kept += p.count
		k.room.AddIn(p.size.Scale(float64(p.count)), -1)
	}
	if asks != nil {
		k.queues[j.Queue] = asks
	}
	return true
}

// mayKeep says whether there are places for some pods of a job beside those that are kept, and what its queue is asked for with them;
// nil: its queue is not asked.
func (k *kept) mayKeep(j *model.Job, pods ...alike) (asks *model.Task, ok bool) {
	var all model.Resources
	for _, p := range pods {
		if k.shapeOf(p.size).free() < p.count {
			return nil, false
		}
		all = all.Add(p.size.Scale(float64(p.count)))
	}
	if len(pods) == 0 || !all.Fits(k.room) {
		return nil, false
	}
	if k.allocatable == nil {
		return nil, true
	}
	if before := k.queues[j.Queue]; before != nil {
		all = all.Add(before.Request)
	}
	asks = &model.Task{Job: j, Request: all, InitRequest: all, Template: &model.Template{}}
	if k.allocatable(asks) {
		return asks, true
	}
	return nil, j.AdmittedNow // what its queue deserves is from before it was let in
}

// shapeOf is the shape of pods of a size.
func (k *kept) shapeOf(size model.Resources) *shape {
	i := slices.IndexFunc(k.shapes, func(s shape) bool { return s.size.Equal(size) })
	if i < 0 {
		i = len(k.shapes)
		k.shapes = append(k.shapes, shape{size: size, slots: k.slots(size)})
	}
	return &k.shapes[i]
}

// free is how many places are not kept yet.
func (s *shape) free() int64 { return s.slots - s.kept }

// roomLeft is what all nodes that take pods have idle or will have.
func (k *kept) roomLeft() model.Resources {
	var sum model.Resources
	for _, row := range k.c.Nodes.ByOrder() {
		if !k.takes(row) {
			continue
		}
		for i := range k.c.Dims.Len() {
			sum.Set(i, sum.Get(i)+max(k.c.Nodes.FutureIdle(i, row), 0))
		}
	}
	return sum
}

func (k *kept) takes(row int32) bool {
	n := k.c.Nodes.Rows[row]
	return n.Ready && !n.Unschedulable
}

// slots is how many pods of a size the nodes have room for, on each as many as it takes whole.
func (k *kept) slots(size model.Resources) int64 {
	sum := int64(0)
	for _, row := range k.c.Nodes.ByOrder() {
		sum += k.slotsOn(row, size, nil)
	}
	return sum
}

// mostSlots on one node is as many as any node takes.
const mostSlots = 1 << 20

// slotsOn is how many of a size a node has room for beside a task that goes there.
func (k *kept) slotsOn(row int32, size, beside model.Resources) int64 {
	if !k.takes(row) {
		return 0
	}
	most := float64(mostSlots)
	for i, each := range size {
		if each > 0 {
			most = min(most, math.Floor((k.c.Nodes.FutureIdle(i, row)-beside.Get(i)+model.Slack)/each))
		}
	}
	return int64(max(most, 0))
}

// take says for whom a task may not have the place on a node that was found for it; nil: it may, and has it from here on.
func (k *kept) take(t *model.Task, row int32) *model.Job {
	if k == nil || len(k.shapes) == 0 {
		return nil
	}
	lost := func(s *shape) int64 { return k.slotsOn(row, s.size, nil) - k.slotsOn(row, s.size, t.Request) }
	for i := range k.shapes {
		if s := &k.shapes[i]; s.kept > 0 && s.slots-lost(s) < s.kept {
			return s.of
		}
	}
	if !t.Request.Fits(k.room) {
		return k.first()
	}
	if asks := k.queues[t.Job.Queue]; asks != nil {
		both := asks.Request.Add(t.Request)
		if !k.allocatable(&model.Task{Job: asks.Job, Request: both, InitRequest: both, Template: asks.Template}) {
			return asks.Job
		}
	}
	for i := range k.shapes {
		k.shapes[i].slots -= lost(&k.shapes[i])
	}
	k.room.AddIn(t.Request, -1)
	return nil
}

// first is the first for whom anything is kept.
func (k *kept) first() *model.Job {
	for i := range k.shapes {
		if k.shapes[i].kept > 0 {
			return k.shapes[i].of
		}
	}
	return nil
}

// begin notes how a turn found things.
func (k *kept) begin() {
	if k == nil {
		return
	}
	k.was.slots, k.was.room = k.was.slots[:0], k.room.Clone()
	for i := range k.shapes {
		k.was.slots = append(k.was.slots, k.shapes[i].slots)
	}
}

// undo has things as the turn found them.
func (k *kept) undo() {
	if k == nil {
		return
	}
	for i := range k.shapes {
		k.shapes[i].slots = k.was.slots[i]
	}
	k.room = k.was.room
}
