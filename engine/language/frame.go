package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Frame contains the values of the roots in one evaluation.
type Frame struct {
	World                                                          *World // nil: at compile time
	Workspace                                                      *Workspace
	Task, Job, Queue, Node, GPU, Victim, Preemptor, Request, Scope ref.Val
}

// RootNames returns the names of the roots, ordered by their number in Frame.Root.
func RootNames() []string {
	return []string{
		"task", "job", "queue", "node", "gpu", "victim", "preemptor", "request", "scope", "params", "variables", "cluster", "now",
		"action", "pipeline",
	}
}

// Root implements rules.Roots.
func (f *Frame) Root(number int) any {
	var v ref.Val
	switch number {
	case 0:
		v = f.Task
	case 1:
		v = f.Job
	case 2:
		v = f.Queue
	case 3:
		v = f.Node
	case 4:
		v = f.GPU
	case 5:
		v = f.Victim
	case 6:
		v = f.Preemptor
	case 7:
		v = f.Request
	case 8:
		v = f.Scope
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
	if f.World == nil {
		return nil
	}
	switch number {
	case 11:
		return f.World.ClusterView
	case 12:
		return f.World.nowValue()
	case 13:
		return f.World.Action
	case 14:
		return f.World.layout.Pipeline
	}
	return nil
}

// ResolveName implements cel.Activation.
func (f *Frame) ResolveName(name string) (any, bool) {
	var v ref.Val
	switch name {
	case "task":
		v = f.Task
	case "job":
		v = f.Job
	case "queue":
		v = f.Queue
	case "node":
		v = f.Node
	case "params", "variables":
		return f, true
	case "gpu":
		v = f.GPU
	case "victim":
		v = f.Victim
	case "preemptor":
		v = f.Preemptor
	case "request":
		v = f.Request
	case "scope":
		v = f.Scope
	default:
		return f.global(name)
	}
	if v == nil {
		return nil, false
	}
	return v, true
}

func (f *Frame) global(name string) (any, bool) {
	if f.World == nil {
		return nil, false
	}
	switch name {
	case "cluster":
		return f.World.ClusterView, true
	case "now":
		return f.World.nowValue(), true
	case "action":
		return f.World.Action, true
	case "pipeline":
		return f.World.layout.Pipeline, true
	}
	return nil, false
}

// Meter implements eval.Purse. Without a meter, each evaluation has its own budget.
func (f *Frame) Meter(e *eval.Expr) *eval.Meter {
	if f.World == nil || f.World.Meter == nil {
		return nil
	}
	return f.World.Meter(e)
}

// Point implements rules.Rows. It sets the frame's node to a row.
func (f *Frame) Point(row int32) { f.Node = f.World.NodeView(row) }

// worldOf returns the world in which rows are evaluated.
func worldOf(t rules.Rows) *World { return t.(*Frame).World }

func workspaceOf(t rules.Rows) *Workspace { return t.(*Frame).Workspace }

// Parent implements cel.Activation.
func (f *Frame) Parent() cel.Activation { return nil }

// Subject returns the name of the frame's object for error reports.
func (f *Frame) Subject() string {
	victim, _ := f.Victim.(*TaskView)
	preemptor, _ := f.Preemptor.(*TaskView)
	switch {
	case victim != nil && preemptor != nil:
		return victim.Of.Key + " for " + preemptor.Of.Key
	case victim != nil:
		return victim.Of.Key
	case f.Task != nil && f.Node != nil:
		return f.Task.(*TaskView).Of.Key + " on " + f.Node.(*NodeView).Of.Name
	case f.Task != nil:
		return f.Task.(*TaskView).Of.Key
	case f.Job != nil:
		return f.Job.(*JobView).Of.Key
	}
	if q, ok := f.Queue.(*QueueView); ok {
		return q.Of.Name
	}
	return ""
}

// OfTask sets the frame's task, job and queue.
func (f *Frame) OfTask(t *model.Task) *Frame {
	f.Task = f.World.TaskView(t)
	return f.OfJob(t.Job)
}

// OfJob sets the frame's job and queue.
func (f *Frame) OfJob(j *model.Job) *Frame {
	f.Job, f.Queue = f.World.JobView(j), f.World.QueueView(j.Queue)
	return f
}

// Owner returns the frame's object with the name of this root; nil: none.
func (f *Frame) Owner(on string) any {
	switch on {
	case "task":
		return f.Task
	case "job":
		return f.Job
	case "queue":
		return f.Queue
	case "node":
		return f.Node
	case "victim":
		return f.Victim
	}
	return nil
}

// Frame returns a new, empty frame.
func (w *World) Frame() *Frame { return &Frame{World: w} }

// FrameOf returns a new frame for the object of a view.
func (w *World) FrameOf(of ref.Val) *Frame {
	f := w.Frame()
	f.About(of)
	return f
}

// About sets the frame to the object of a view. The cluster needs no setting.
func (f *Frame) About(of ref.Val) {
	switch v := of.(type) {
	case *QueueView:
		f.Queue = v
	case *JobView:
		f.Job = v
	case *TaskView:
		f.Task = v
	case *NodeView:
		f.Node = v
	}
}

// OfQueue sets only the frame's queue.
func (f *Frame) OfQueue(q *model.Queue) *Frame {
	f.Queue = f.World.QueueView(q)
	return f
}

// OfJobAlone sets the frame's job, but not its queue.
func (f *Frame) OfJobAlone(j *model.Job) *Frame {
	f.Job = f.World.JobView(j)
	return f
}

// OfTaskAlone sets the frame's task, but not its job or queue.
func (f *Frame) OfTaskAlone(t *model.Task) *Frame {
	f.Task = f.World.TaskView(t)
	return f
}

// OfVictim sets the frame's victim. It also sets the preemptor with its job and the scope, but not its queue; a missing preemptor is null.
func (f *Frame) OfVictim(preemptor, victim *model.Task, scope string) *Frame {
	f.Victim = f.World.TaskView(victim)
	if preemptor == nil {
		f.Preemptor = types.NullValue
		return f
	}
	f.Preemptor, f.Scope = f.World.TaskView(preemptor), types.String(scope)
	return f.OfJobAlone(preemptor.Job)
}

// OfRequest sets the frame's request.
func (f *Frame) OfRequest(r model.Resources) *Frame {
	f.Request = f.World.Amounts(r)
	return f
}

// OnNode sets the frame's node by its row.
func (f *Frame) OnNode(row int32) *Frame {
	f.Node = f.World.NodeView(row)
	return f
}

// OnDevice sets the frame's device to one of its node: as it is now, or if later, as it will be.
func (f *Frame) OnDevice(g *model.GPU, later bool) *Frame {
	f.GPU = f.Node.(*NodeView).DeviceView(g, later)
	return f
}
