package language

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// views are those that a world has of the cluster's objects: of a task, a job and a queue by its slot, of a node by its row. Each is good
// until its object goes, or is another.
type views struct {
	tasks   follow.BySlot[*TaskView]
	jobs    follow.BySlot[*JobView]
	queues  follow.BySlot[*QueueView]
	nodes   follow.BySlot[*NodeView]
	objects uint64     // the cluster's ObjectClock, of which they are good
	spare   []TaskView // that are still to be used, for tasks of spareOf
	spareOf *model.Job
}

// LimitViews drops those that are not good any more.
func (w *World) LimitViews() {
	if w.views.objects != w.c.ObjectClock {
		w.dropViews()
	}
}

func (w *World) dropViews() {
	w.views.objects = w.c.ObjectClock
	w.views.tasks.Follow(&w.c.Slots.Tasks)
	w.views.jobs.Follow(&w.c.Slots.Jobs)
	w.views.queues.Follow(&w.c.Slots.Queues)
	w.views.nodes.Follow(&w.c.Nodes.Slots)
}

// Share lets several goroutines evaluate at once, until Shared is false again. They make views, each of objects of its own.
func (w *World) Share() {
	w.LimitViews()
	w.views.tasks.Grow(w.c.Slots.Tasks.Len())
	w.views.jobs.Grow(w.c.Slots.Jobs.Len())
	w.views.queues.Grow(w.c.Slots.Queues.Len())
	w.views.nodes.Grow(w.c.Nodes.Slots.Len())
	w.Shared = true
}

// TaskView is a task as rows see it.
func (w *World) TaskView(t *model.Task) *TaskView {
	if w.views.objects != w.c.ObjectClock {
		w.dropViews()
	}
	if v := w.views.tasks.Get(t.Slot); v != nil && v.Of == t {
		return v
	}
	return w.newTaskView(t)
}

func (w *World) newTaskView(t *model.Task) *TaskView {
	var v *TaskView
	if w.Shared {
		v = &TaskView{View: View[model.Task]{Memos: make([]Memo, w.layout.Memos.Task)}}
	} else {
		v = w.views.roomFor(t.Job)
		v.Memos = w.memoRoom.Slice(w.layout.Memos.Task)
	}
	v.Of, v.World, v.typ = t, w, w.typ.task
	w.views.tasks.Set(t.Slot, v)
	return v
}

// mostSpareViews is how many views of tasks are made at once. They keep each other, and the tasks they are of, so they are of one job,
// whose tasks come and go together.
const mostSpareViews = 8

// roomFor is a view for a task of a job.
func (x *views) roomFor(j *model.Job) *TaskView {
	if len(x.spare) == 0 || x.spareOf != j {
		x.spare, x.spareOf = make([]TaskView, min(max(j.Counts[model.Pending], 1), mostSpareViews)), j
	}
	v := &x.spare[0]
	x.spare = x.spare[1:]
	return v
}

// JobView is a job as rows see it.
func (w *World) JobView(j *model.Job) *JobView {
	w.LimitViews()
	if v := w.views.jobs.Get(j.Slot); v != nil && v.Of == j {
		return v
	}
	v := &JobView{View: View[model.Job]{Of: j, World: w, typ: w.typ.job, Memos: w.memoRoom.Slice(w.layout.Memos.Job)}}
	w.views.jobs.Set(j.Slot, v)
	return v
}

// QueueView is a queue as rows see it, null for none.
func (w *World) QueueView(q *model.Queue) ref.Val {
	if q == nil {
		return types.NullValue
	}
	w.LimitViews()
	if v := w.views.queues.Get(q.Slot); v != nil && v.Of == q {
		return v
	}
	v := &QueueView{
		View:   View[model.Queue]{Of: q, World: w, typ: w.typ.queue, Memos: make([]Memo, w.layout.Memos.Queue)},
		labels: w.stringMap(q.Labels), annotations: w.stringMap(q.Annotations),
	}
	v.spec = specView{View: View[model.Queue]{Of: q, World: w, typ: w.typ.spec}}
	w.views.queues.Set(q.Slot, v)
	return v
}

// NodeView is the node in a row as rows of a policy see it.
func (w *World) NodeView(row int32) *NodeView {
	w.LimitViews()
	if v := w.views.nodes.Get(row); v != nil {
		return v
	}
	v := &NodeView{View: View[model.Node]{Of: w.c.Nodes.Rows[row], World: w, typ: w.typ.node, Memos: make([]Memo, w.layout.Memos.Node)}}
	w.views.nodes.Set(row, v)
	return v
}
