package policy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Frame is what the roots stand for in one evaluation.
type Frame struct {
	w                                                              *World // nil: at compile time
	work                                                           *workspace
	task, job, queue, node, gpu, victim, preemptor, request, scope ref.Val
}

// rootNames are the roots by their number, as Frame.Root knows them.
func rootNames() []string {
	return []string{"task", "job", "queue", "node", "gpu", "victim", "preemptor", "request", "scope", "params", "variables", "cluster", "now", "action", "pipeline"}
}

// Root implements rules.Roots.
func (f *Frame) Root(number int) any {
	var v ref.Val
	switch number {
	case 0:
		v = f.task
	case 1:
		v = f.job
	case 2:
		v = f.queue
	case 3:
		v = f.node
	case 4:
		v = f.gpu
	case 5:
		v = f.victim
	case 6:
		v = f.preemptor
	case 7:
		v = f.request
	case 8:
		v = f.scope
	case 9, 10:
		return f
	default:
		return f.globalRoot(number)
	}
	if v == nil {
		return nil
	}
	return v
}

func (f *Frame) globalRoot(number int) any {
	if f.w == nil {
		return nil
	}
	switch number {
	case 11:
		return f.w.cluster
	case 12:
		return f.w.nowValue()
	case 13:
		return f.w.action
	case 14:
		return f.w.layout.Pipeline
	}
	return nil
}

// ResolveName implements cel.Activation.
func (f *Frame) ResolveName(name string) (any, bool) {
	var v ref.Val
	switch name {
	case "task":
		v = f.task
	case "job":
		v = f.job
	case "queue":
		v = f.queue
	case "node":
		v = f.node
	case "params", "variables":
		return f, true
	case "gpu":
		v = f.gpu
	case "victim":
		v = f.victim
	case "preemptor":
		v = f.preemptor
	case "request":
		v = f.request
	case "scope":
		v = f.scope
	default:
		return f.global(name)
	}
	if v == nil {
		return nil, false
	}
	return v, true
}

func (f *Frame) global(name string) (any, bool) {
	if f.w == nil {
		return nil, false
	}
	switch name {
	case "cluster":
		return f.w.cluster, true
	case "now":
		return f.w.nowValue(), true
	case "action":
		return f.w.action, true
	case "pipeline":
		return f.w.layout.Pipeline, true
	}
	return nil, false
}

// Meter implements rules.Purse. What has no meter has a budget for each evaluation.
func (f *Frame) Meter(e *rules.Expr) *rules.Meter {
	if f.w == nil || f.w.meter == nil {
		return nil
	}
	return f.w.meter(e)
}

// Point implements rules.Rows: the frame's node is that of a row.
func (f *Frame) Point(row int32) { f.node = f.w.nodeView(row) }

// worldOf is the world that rows are evaluated in.
func worldOf(t rules.Rows) *World { return t.(*Frame).w }

func workspaceOf(t rules.Rows) *workspace { return t.(*Frame).work }

// Parent implements cel.Activation.
func (f *Frame) Parent() cel.Activation { return nil }

// Subject names what the frame is about, for error reports.
func (f *Frame) Subject() string {
	switch {
	case f.task != nil && f.node != nil:
		return f.task.(*taskView).of.Key + " on " + f.node.(*nodeView).of.Name
	case f.task != nil:
		return f.task.(*taskView).of.Key
	case f.job != nil:
		return f.job.(*jobView).of.Key
	}
	if q, ok := f.queue.(*queueView); ok {
		return q.of.Name
	}
	return ""
}

// OfTask fills a frame's task, job and queue.
func (f *Frame) OfTask(t *model.Task) *Frame {
	f.task = f.w.taskView(t)
	return f.OfJob(t.Job)
}

// OfJob fills a frame's job and queue.
func (f *Frame) OfJob(j *model.Job) *Frame {
	f.job, f.queue = f.w.jobView(j), f.w.queueView(j.Queue)
	return f
}

func (f *Frame) owner(on string) any {
	switch on {
	case "task":
		return f.task
	case "job":
		return f.job
	case "queue":
		return f.queue
	case "node":
		return f.node
	case "victim":
		return f.victim
	}
	return nil
}

// Frame is a new frame, about nothing yet.
func (w *World) Frame() *Frame { return &Frame{w: w} }

// FrameOf is a new frame about the object that a view is of.
func (w *World) FrameOf(of ref.Val) *Frame {
	f := w.Frame()
	f.view(of)
	return f
}

// view makes the object that a view is of what the frame is about; the cluster needs no telling.
func (f *Frame) view(of ref.Val) {
	switch v := of.(type) {
	case *queueView:
		f.queue = v
	case *jobView:
		f.job = v
	case *taskView:
		f.task = v
	case *nodeView:
		f.node = v
	}
}

// OfQueue fills a frame's queue alone.
func (f *Frame) OfQueue(q *model.Queue) *Frame {
	f.queue = f.w.queueView(q)
	return f
}

// OfJobAlone fills a frame's job, but not its queue.
func (f *Frame) OfJobAlone(j *model.Job) *Frame {
	f.job = f.w.jobView(j)
	return f
}

// OfTaskAlone fills a frame's task, but neither its job nor its queue.
func (f *Frame) OfTaskAlone(t *model.Task) *Frame {
	f.task = f.w.taskView(t)
	return f
}

// OfRequest fills a frame's request.
func (f *Frame) OfRequest(r model.Resources) *Frame {
	f.request = f.w.Amounts(r)
	return f
}

// OnNode fills a frame's node, by its row.
func (f *Frame) OnNode(row int32) *Frame {
	f.node = f.w.nodeView(row)
	return f
}

// OnDevice fills a frame's device: one of its node's, by its place there.
func (f *Frame) OnDevice(i int) *Frame {
	f.gpu = f.node.(*nodeView).devicesNow().views[i]
	return f
}
