package eviction

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// barren are the nodes of which nobody could go for tasks of a kind, each with its version then, plus 1.
type barren struct {
	kind string
	of   []uint64 // by row; nil: nothing is remembered
}

// begin has what is remembered be of a kind.
func (x *barren) begin(kind string, known bool, rows int) {
	switch {
	case !known:
		x.of = nil
	case x.of == nil || x.kind != kind || len(x.of) != rows:
		x.kind, x.of = kind, slab.Resized(x.of, rows)
	}
}

// candidates are those on a node that the rows are asked about for a task. back says that there are others, who would take the room back.
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

// inScope appends those on a node at whom the step looks for a task.
func (x *Search) inScope(t *model.Task, row int32, out []*model.Task) []*model.Task {
	for _, v := range x.c.Nodes.Tasks[row] {
		if v.MayGo() && within(x.scope, t, v.Job) && !x.spared(v) && !x.isServed(t, v) {
			out = append(out, v)
		}
	}
	return out
}

// within says whether tasks of a job lie in a step's scope, seen from a task.
func within(scope string, t *model.Task, j *model.Job) bool {
	switch scope {
	case policy.ScopeJob:
		return j == t.Job
	case policy.ScopeQueue:
		return j != t.Job && j.Queue == t.Job.Queue
	}
	return j.Queue != t.Job.Queue
}

// nobodyWithin says that no job of a task's queue in a step's scope holds a place anywhere, so that no node need be looked at.
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
