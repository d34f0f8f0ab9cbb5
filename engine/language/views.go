package language

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// views contains the views of the cluster's objects: of tasks, jobs and queues by slot, of nodes by row. A view is valid until its object
// is deleted or replaced.
type views struct {
	tasks   follow.BySlot[*TaskView]
	jobs    follow.BySlot[*JobView]
	queues  follow.BySlot[*QueueView]
	nodes   follow.BySlot[*NodeView]
	objects uint64     // the cluster's ObjectClock for which they are valid
	spare   []TaskView // unused views for tasks of spareOf
	spareOf *model.Job
}

// LimitViews drops views that are no longer valid.
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

// Share allows several goroutines to evaluate at once, until Shared is false again. Each may only create views of its own objects.
func (w *World) Share() {
	w.LimitViews()
	w.views.tasks.Grow(w.c.Slots.Tasks.Len())
	w.views.jobs.Grow(w.c.Slots.Jobs.Len())
	w.views.queues.Grow(w.c.Slots.Queues.Len())
	w.views.nodes.Grow(w.c.Nodes.Slots.Len())
	w.Shared = true
}

// TaskView returns a task as rows see it.
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

// mostSpareViews is the number of task views that are allocated together. They keep each other and their tasks in memory. So they belong to
// one job, whose tasks are created and deleted together.
const mostSpareViews = 8

// roomFor returns memory for the view of a job's task.
func (x *views) roomFor(j *model.Job) *TaskView {
	if len(x.spare) == 0 || x.spareOf != j {
		x.spare, x.spareOf = make([]TaskView, min(max(j.Counts[model.Pending], 1), mostSpareViews)), j
	}
	v := &x.spare[0]
	x.spare = x.spare[1:]
	return v
}

// JobView returns a job as rows see it.
func (w *World) JobView(j *model.Job) *JobView {
	w.LimitViews()
	if v := w.views.jobs.Get(j.Slot); v != nil && v.Of == j {
		return v
	}
	v := &JobView{View: View[model.Job]{Of: j, World: w, typ: w.typ.job, Memos: w.memoRoom.Slice(w.layout.Memos.Job)}}
	w.views.jobs.Set(j.Slot, v)
	return v
}

// QueueView returns a queue as rows see it; null for nil.
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

// NodeView returns the node in a row of the node table as policies see it.
func (w *World) NodeView(row int32) *NodeView {
	w.LimitViews()
	if v := w.views.nodes.Get(row); v != nil {
		return v
	}
	v := &NodeView{View: View[model.Node]{Of: w.c.Nodes.Rows[row], World: w, typ: w.typ.node, Memos: make([]Memo, w.layout.Memos.Node)}}
	w.views.nodes.Set(row, v)
	return v
}
