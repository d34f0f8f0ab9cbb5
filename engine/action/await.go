package action

import (
	"math"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// kept is the places that a step keeps for jobs that were let in a moment ago and whose pods are on their way: who comes after them in
// the step's order takes nothing that they need. What such a job needs is known as a sum, its minResources, so that its minMember pods count
// as equal, and a node has room for so many of them; where they may not go is not known. Nothing is kept that is not there.
type kept struct {
	shapes []shape
	room   model.Resources              // what the nodes have idle, or will have, in sum, less what is kept
	queues map[*model.Queue]*model.Task // what is kept in a queue, as one task would ask for it
	was    struct {                     // as the present turn began
		slots []int64
		room  model.Resources
	}
}

// shape is pods of one size, of jobs for which places are kept.
type shape struct {
	of    *model.Job // the first of them
	size  model.Resources
	slots int64 // how many the nodes have room for
	kept  int64 // how many places are kept
}

// awaited says until when a step waits for a job's pods: for a while after it was let in, while fewer are there than must start together.
// The zero time: it does not.
func awaited(step *policy.Step, j *model.Job, now time.Time) (until time.Time) {
	if step.AwaitPods == 0 || j.AdmittedAt.IsZero() || !j.HasMinResources || j.Valid() >= j.MinMember {
		return until
	}
	if end := j.AdmittedAt.Add(step.AwaitPods); end.After(now) {
		return end
	}
	return until
}

// await keeps places for a job that is awaited and just had its turn, where there are enough of them. Each cycle looks anew.
func (x *Cycle) await(step *policy.Step, j *model.Job) {
	until := awaited(step, j, x.plan.Now)
	if until.IsZero() {
		return
	}
	x.s.Until(until)
	if at := &x.plan.KeptUntil; at.IsZero() || until.Before(*at) {
		*at = until
	}
	x.unsettled = true
	if x.kept == nil {
		x.kept = &kept{room: x.roomLeft(), queues: map[*model.Queue]*model.Task{}}
	}
	k := x.kept
	missing := j.MinMember - j.Ready() - j.Counts[model.Pipelined]
	size, all := x.missing(j, missing)
	i := slices.IndexFunc(k.shapes, func(s shape) bool { return s.size.Equal(size) })
	if i < 0 {
		i = len(k.shapes)
		k.shapes = append(k.shapes, shape{of: j, size: size, slots: x.slots(size)})
	}
	s := &k.shapes[i]
	if s.slots-s.kept < missing || !all.Fits(k.room) {
		return
	}
	asks := &model.Task{Job: j, Request: all, InitRequest: all, Template: &model.Template{}}
	if before := k.queues[j.Queue]; before != nil {
		asks.Request = all.Add(before.Request)
		asks.InitRequest = asks.Request
	}
	switch {
	case !step.Gate(policy.Allocatable):
	case x.s.MayAllocate(asks):
		k.queues[j.Queue] = asks
	case !j.AdmittedNow: // else what its queue deserves is from before the job was let in
		return
	}
	if s.kept += missing; s.kept == missing {
		s.of = j
	}
	k.room.AddIn(all, -1)
}

// missing is the mean size of the pods that a job must start with, and what so many of them ask for.
func (x *Cycle) missing(j *model.Job, pods int64) (size, all model.Resources) {
	size, all = j.MinResources.Clone(), j.MinResources.Clone()
	for i := range size {
		size[i] /= float64(j.MinMember)
		all[i] = size[i] * float64(pods)
	}
	size.Set(model.Pods, x.c.Dims.Unit(model.Pods))
	all.Set(model.Pods, float64(pods)*x.c.Dims.Unit(model.Pods))
	return size, all
}

// roomLeft is what all nodes that take pods have idle or will have.
func (x *Cycle) roomLeft() model.Resources {
	var sum model.Resources
	for _, row := range x.c.Nodes.ByOrder() {
		if !x.takes(row) {
			continue
		}
		for i := range x.c.Dims.Len() {
			sum.Set(i, sum.Get(i)+max(x.c.Nodes.FutureIdle(i, row), 0))
		}
	}
	return sum
}

func (x *Cycle) takes(row int32) bool {
	n := x.c.Nodes.Rows[row]
	return n.Ready && !n.Unschedulable
}

// slots is how many pods of a size the nodes have room for, on each as many as it takes whole.
func (x *Cycle) slots(size model.Resources) int64 {
	sum := int64(0)
	for _, row := range x.c.Nodes.ByOrder() {
		sum += x.slotsOn(row, size, nil)
	}
	return sum
}

// mostSlots on one node is as many as any node takes.
const mostSlots = 1 << 20

// slotsOn is how many of a size a node has room for beside a task that goes there.
func (x *Cycle) slotsOn(row int32, size, beside model.Resources) int64 {
	if !x.takes(row) {
		return 0
	}
	most := float64(mostSlots)
	for i, each := range size {
		if each > 0 {
			most = min(most, math.Floor((x.c.Nodes.FutureIdle(i, row)-beside.Get(i)+model.Slack)/each))
		}
	}
	return int64(max(most, 0))
}

// takeKept says for whom a task may not have the place on a node that was found for it; nil: it may, and has it from here on.
func (x *Cycle) takeKept(t *model.Task, row int32) *model.Job {
	k := x.kept
	if k == nil || len(k.shapes) == 0 {
		return nil
	}
	lost := func(s *shape) int64 { return x.slotsOn(row, s.size, nil) - x.slotsOn(row, s.size, t.Request) }
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
		if !x.s.MayAllocate(&model.Task{Job: asks.Job, Request: both, InitRequest: both, Template: asks.Template}) {
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

// keptFor words why a task did not get a place.
func keptFor(j *model.Job) model.Reason {
	return model.Reason{Table: "builtin", Rule: "await-pods", Text: "the place is kept for " + j.Title + ", which comes first and whose pods are being made"}
}
