package eviction

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// barren remembers the nodes without candidates for tasks of a kind, each with its version at that time, plus 1.
type barren struct {
	kind string
	of   []uint64 // by row; nil: nothing is remembered
}

// begin selects the kind of tasks. It forgets the nodes of another kind.
func (x *barren) begin(kind string, known bool, rows int) {
	switch {
	case !known:
		x.of = nil
	case x.of == nil || x.kind != kind || len(x.of) != rows:
		x.kind, x.of = kind, slab.Resized(x.of, rows)
	}
}

// candidates returns the tasks on a node that may be evicted for a task, before the rows are evaluated. back reports that other tasks would
// qualify, but would take the resources back.
func (x *Search) candidates(t *model.Task, row int32) (out []*model.Task, back bool) {
	version := x.c.Nodes.Version[row] + 1
	if x.barren.of != nil && x.barren.of[row] == version {
		return nil, false
	}
	out, erred := x.who.Of(t, x.inScope(t, row, nil))
	if x.barren.of != nil && len(out) == 0 && !erred {
		x.barren.of[row] = version
	}
	all := len(out)
	out = x.unbarred(t, out)
	return out, len(out) < all
}

// inScope appends the tasks on a node that the step considers for a task.
func (x *Search) inScope(t *model.Task, row int32, out []*model.Task) []*model.Task {
	for _, v := range x.c.Nodes.Tasks[row] {
		if v.MayGo() && within(x.scope, t, v.Job) && !x.spared(v) && !x.isServed(t, v) {
			out = append(out, v)
		}
	}
	return out
}

// within reports whether the tasks of a job are in a step's scope, relative to a task.
func within(scope string, t *model.Task, j *model.Job) bool {
	switch scope {
	case policy.ScopeJob:
		return j == t.Job
	case policy.ScopeQueue:
		return j != t.Job && j.Queue == t.Job.Queue
	}
	return j.Queue != t.Job.Queue
}

// nobodyWithin reports whether no job in a step's scope holds resources on any node, so that no node need be searched. It covers the jobs
// of the task's queue.
func nobodyWithin(scope string, t *model.Task) bool {
	holds := func(j *model.Job) bool {
		return within(scope, t, j) && j.Counts[model.Binding]+j.Counts[model.Bound]+j.Counts[model.Running]+j.Counts[model.Unknown] > 0
	}
	switch scope {
	case policy.ScopeJob:
		return !holds(t.Job)
	case policy.ScopeQueue:
		for _, j := range t.Job.Queue.Jobs {
			if holds(j) {
				return false
			}
		}
		return true
	}
	return false
}
