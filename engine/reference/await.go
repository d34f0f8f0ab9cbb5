package reference

import (
	"math"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// kept is the places that a step keeps for jobs that were let in a moment ago and whose pods are being made: who comes after them in
// the step's order takes nothing that they need. What a pod asks for is known before it is there, where it may not go is not.
type kept struct {
	shapes []shape
	room   model.Resources              // what the nodes have idle, or will have, in sum, less what is kept
	queues map[*model.Queue]*model.Task // what is kept in a queue, as one task would ask for it
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

func (k *kept) clone() *kept {
	if k == nil {
		return nil
	}
	return &kept{slices.Clone(k.shapes), k.room.Clone(), k.queues}
}

// awaited says until when a step waits for a job's pods: for a while after it was let in, while some are still to be made. The zero
// time: it does not.
func (x *cycle) awaited(step *policy.Step, j *model.Job) (until time.Time) {
	wait := step.Period(policy.KeyAwaitPods)
	if end := j.AdmittedAt.Add(wait); wait > 0 && !j.AdmittedAt.IsZero() && len(j.Expected) > 0 && end.After(x.plan.Now) {
		return end
	}
	return until
}

// await keeps places for a job that is awaited and just had its turn: for the pods without which it cannot start, if there is room for
// all of them, and for as many of the others as there is room for.
func (x *cycle) await(step *policy.Step, j *model.Job) {
	until := x.awaited(step, j)
	least := j.MinMember - j.Ready() - j.Counts[model.Pipelined]
	if until.IsZero() || least > 0 && j.Valid() >= j.MinMember { // those that must start together are there, and could not
		return
	}
	if at := &x.plan.KeptUntil; at.IsZero() || until.Before(*at) {
		*at = until
	}
	if x.kept == nil {
		x.kept = &kept{room: x.roomLeft(), queues: map[*model.Queue]*model.Task{}}
	}
	must, others := divided(x.placeless(j, least > 0), least)
	if least > 0 && !x.keepFor(step, j, must...) {
		return
	}
	for _, p := range others {
		most := alike{p.size, 0}
		for most.count < p.count {
			if _, ok := x.mayKeep(step, j, alike{p.size, most.count + 1}); !ok {
				break
			}
			most.count++
		}
		if most.count > 0 {
			x.keepFor(step, j, most)
		}
	}
}

// placeless is the pods of a job that are still to be made, after those that are there and without a place, if they are asked for.
func (x *cycle) placeless(j *model.Job, there bool) (out []alike) {
	add := func(size model.Resources, count int64) {
		i := slices.IndexFunc(out, func(p alike) bool { return p.size.Equal(size) })
		if i < 0 {
			out, i = append(out, alike{size: size}), len(out)
		}
		out[i].count += count
	}
	for _, t := range j.Tasks {
		if there && t.Status == model.Pending && !t.Gated {
			add(t.Request, 1)
		}
	}
	for size, count := range x.c.Missing(j) {
		add(size, count)
	}
	return out
}

// divided is the first so many pods, none where there are fewer, and the others.
func divided(pods []alike, least int64) (must, others []alike) {
	for _, p := range pods {
		n := max(min(p.count, least), 0)
		least -= n
		if n > 0 {
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

// keepFor keeps places for pods of a job, where there are enough for all of them.
func (x *cycle) keepFor(step *policy.Step, j *model.Job, pods ...alike) bool {
	asks, ok := x.mayKeep(step, j, pods...)
	if !ok {
		return false
	}
	if asks != nil {
		x.kept.queues[j.Queue] = asks
	}
	for _, p := range pods {
		s := x.shapeOf(p.size)
		if s.kept == 0 {
			s.of = j
		}
		s.kept += p.count
		x.kept.room.AddIn(p.size.Scale(float64(p.count)), -1)
	}
	return true
}

// mayKeep says whether there are places for some pods of a job beside those that are kept, and what its queue is asked for with them;
// nil: its queue is not asked.
func (x *cycle) mayKeep(step *policy.Step, j *model.Job, pods ...alike) (asks *model.Task, ok bool) {
	var all model.Resources
	for _, p := range pods {
		if s := x.shapeOf(p.size); s.slots-s.kept < p.count {
			return nil, false
		}
		all = all.Add(p.size.Scale(float64(p.count)))
	}
	if len(pods) == 0 || !all.Fits(x.kept.room) {
		return nil, false
	}
	if !step.Gate(policy.Allocatable) {
		return nil, true
	}
	if before := x.kept.queues[j.Queue]; before != nil {
		all = all.Add(before.Request)
	}
	asks = &model.Task{Job: j, Request: all, InitRequest: all, Template: &model.Template{}}
	if x.all(policy.Allocatable, x.world().Frame().OfTask(asks)).Yes {
		return asks, true
	}
	return nil, j.AdmittedNow // what its queue deserves is from before it was let in
}

func (x *cycle) shapeOf(size model.Resources) *shape {
	k := x.kept
	i := slices.IndexFunc(k.shapes, func(s shape) bool { return s.size.Equal(size) })
	if i < 0 {
		i = len(k.shapes)
		k.shapes = append(k.shapes, shape{size: size})
		for _, row := range x.c.Nodes.ByOrder() {
			k.shapes[i].slots += x.slots(row, size, nil)
		}
	}
	return &k.shapes[i]
}

// roomLeft is what all nodes that take pods have idle or will have.
func (x *cycle) roomLeft() (sum model.Resources) {
	for _, row := range x.c.Nodes.ByOrder() {
		for i := range x.c.Dims.Len() {
			if x.takes(row) {
				sum.Set(i, sum.Get(i)+max(x.c.Nodes.FutureIdle(i, row), 0))
			}
		}
	}
	return sum
}

func (x *cycle) takes(row int32) bool {
	n := x.c.Nodes.Rows[row]
	return n.Ready && !n.Unschedulable
}

// mostSlots on one node is as many as any node takes.
const mostSlots = 1 << 20

// slots is how many pods of a size a node has room for beside a task that goes there.
func (x *cycle) slots(row int32, size, beside model.Resources) int64 {
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
func (x *cycle) takeKept(t *model.Task, row int32) *model.Job {
	k := x.kept
	if k == nil || len(k.shapes) == 0 {
		return nil
	}
	lost := func(s *shape) int64 { return x.slots(row, s.size, nil) - x.slots(row, s.size, t.Request) }
	for i := range k.shapes {
		if s := &k.shapes[i]; s.kept > 0 && s.slots-lost(s) < s.kept {
			return s.of
		}
	}
	if !t.Request.Fits(k.room) {
		for _, s := range k.shapes {
			if s.kept > 0 {
				return s.of
			}
		}
		return nil
	}
	if asks := k.queues[t.Job.Queue]; asks != nil {
		both := asks.Request.Add(t.Request)
		if !x.all(policy.Allocatable, x.world().Frame().OfTask(&model.Task{Job: asks.Job, Request: both, InitRequest: both, Template: asks.Template})).Yes {
			return asks.Job
		}
	}
	for i := range k.shapes {
		k.shapes[i].slots -= lost(&k.shapes[i])
	}
	k.room.AddIn(t.Request, -1)
	return nil
}
