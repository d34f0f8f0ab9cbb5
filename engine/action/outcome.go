package action

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// outcome is what a step reported for a job that it tried without effect. It applies to every job of the kind: it identifies tasks by their
// index among the waiting tasks, in key order.
type outcome struct {
	notes  []note
	undone int  // number of tasks that were placed and rolled back; none: -1
	blocks bool // the job blocks its queue: the jobs behind it wait as well
}

// note is what a turn reports for a job or a task: that it waits, that an earlier reason no longer applies, or why no pod is evicted for
// it.
type note struct {
	task   int         // ofJob: the job as a whole
	wait   *model.Wait // nil: it no longer waits
	inVain *model.InVain
}

const ofJob = -1

// noted is a note of the present turn.
type noted struct {
	task   *model.Task // nil: the note is about the job
	wait   *model.Wait
	inVain *model.InVain // nil: the note is about the wait
}

func (o *outcome) equal(p *outcome) bool {
	return o.undone == p.undone && o.blocks == p.blocks && slices.EqualFunc(o.notes, p.notes, func(a, b note) bool {
		if a.task != b.task || (a.wait == nil) != (b.wait == nil) || (a.inVain == nil) != (b.inVain == nil) {
			return false
		}
		if a.inVain != nil {
			return a.inVain.Equal(*b.inVain)
		}
		return a.wait == nil || a.wait.Action == b.wait.Action && a.wait.Reason == b.wait.Reason && slices.Equal(a.wait.Nodes, b.wait.Nodes) &&
			a.wait.Tried.Equal(b.wait.Tried)
	})
}

// turnResult is the result of a job's turn.
type turnResult struct {
	notes     []noted
	undone    int  // number of tasks that it placed and undid; -1: neither
	unsettled bool // the result depends on kept resources, which the kind of a job does not contain
	// refused are the tasks that no node accepts. open states that the turn depends on more facts about nodes.
	refused []*model.Task
	open    bool
	erred   bool // some row failed, which each cycle must report
	left    bool // after its turn: the job had tasks to place, and is not ready
	blocks  bool // the job blocks its queue: the jobs behind it wait as well
}

// reset starts a turn.
func (r *turnResult) reset() {
	r.notes, r.undone, r.unsettled, r.refused, r.open, r.erred = r.notes[:0], -1, false, r.refused[:0], false, false
	r.left, r.blocks = false, false
}

// outcome returns the result for every job of the kind. It contains the last of several notes on the same task or job.
func (r *turnResult) outcome(j *model.Job) *outcome {
	out := &outcome{undone: r.undone, blocks: r.blocks}
	last := make(map[*model.Task]*model.Wait, len(r.notes))
	vain := map[*model.Task]*model.InVain{}
	for _, x := range r.notes {
		if x.inVain == nil {
			last[x.task] = x.wait
		} else {
			vain[x.task] = x.inVain // also without nodes, because it replaces the reason of an earlier step
		}
	}
	add := func(task int, t *model.Task) {
		if w, ok := last[t]; ok {
			out.notes = append(out.notes, note{task: task, wait: w})
		}
		if v, ok := vain[t]; ok {
			out.notes = append(out.notes, note{task: task, inVain: v})
		}
	}
	add(ofJob, nil)
	if len(last)+len(vain) == len(out.notes) {
		return out
	}
	for i, t := range waitingTasks(j) {
		add(i, t)
	}
	return out
}

// waitingTasks returns the tasks that notes can refer to, in key order.
func waitingTasks(j *model.Job) []*model.Task {
	out := make([]*model.Task, 0, len(j.Tasks))
	for _, t := range j.Tasks {
		if t.Waits() {
			out = append(out, t)
		}
	}
	return out
}

// tell reports an outcome for a job, as if it had been tried.
func (x *Cycle) tell(j *model.Job, out *outcome) {
	if out == nil {
		return
	}
	var tasks []*model.Task
	for _, n := range out.notes {
		var t *model.Task
		if n.task != ofJob {
			if tasks == nil {
				tasks = waitingTasks(j)
			}
			t = tasks[n.task]
		}
		switch {
		case n.inVain != nil:
			x.result.inVain(x.waits, j, t, n.inVain)
			continue
		case n.wait == nil:
			x.note(j, t, nil)
			continue
		}
		own := *n.wait
		own.Job, own.Queue = j.Key, j.QueueName
		if t != nil {
			own.Task = t.Key
		}
		x.note(j, t, &own)
	}
	if out.undone >= 0 {
		x.waits.SetUndone(j, out.undone)
	}
}

// note sets the wait of a job or of one of its tasks, or removes it. It also adds this to the turn's result.
func (x *Cycle) note(j *model.Job, t *model.Task, w *model.Wait) {
	x.result.notes = append(x.result.notes, noted{task: t, wait: w})
	x.waits.Set(j, t, w)
}

// inVain records why no pod is evicted for a task of a job, or for the job as a whole.
func (r *turnResult) inVain(waits *report.Waits, j *model.Job, t *model.Task, why *model.InVain) {
	r.notes = append(r.notes, noted{task: t, inVain: why})
	waits.SetInVain(j, t, *why)
}

// tried returns what happened to the tasks of a turn that was undone; nil: no other task waits.
func (x *Cycle) tried(j *model.Job, done []placed) *model.Tried {
	slices.SortFunc(done, func(a, b placed) int { return strings.Compare(a.task.Key, b.task.Key) })
	next := 0
	return report.Tried(j, len(done), func(t *model.Task) string {
		if next == len(done) || done[next].task != t {
			return ""
		}
		next++
		return done[next-1].bind.Node
	})
}
