package report

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Waits stores the last reason why each job and task waits. A later action that succeeds clears the reason.
type Waits struct {
	Action string // the action that runs now
	jobs   map[*model.Job]*model.Wait
	tasks  map[*model.Task]*model.Wait
	undone map[*model.Job]int
	served map[*model.Job]bool
	vain   map[vainOf][]model.InVain
	whole  *model.Condition // shared by the jobs that can start
}

// vainOf is a task, or a gang as a whole if task is nil, for which no pod is evicted.
type vainOf struct {
	job  *model.Job
	task *model.Task
}

// NewWaits returns the empty Waits of a cycle.
func NewWaits() *Waits {
	return &Waits{
		jobs: map[*model.Job]*model.Wait{}, tasks: map[*model.Task]*model.Wait{}, undone: map[*model.Job]int{}, served: map[*model.Job]bool{},
		vain:  map[vainOf][]model.InVain{},
		whole: &model.Condition{Type: scheduled, Status: "True", Reason: "tasks in gang are ready to be scheduled"},
	}
}

// ForJob returns a wait of a job as a whole.
func (w *Waits) ForJob(j *model.Job, why model.Reason) *model.Wait {
	return &model.Wait{Job: j.Key, Queue: j.QueueName, Action: w.Action, Reason: why}
}

// Instead returns a wait of a job with another reason than before. It keeps what happened to its tasks in a turn that was undone.
func (w *Waits) Instead(j *model.Job, why model.Reason) *model.Wait {
	wait := w.ForJob(j, why)
	if before := w.jobs[j]; before != nil {
		wait.Tried = before.Tried
	}
	return wait
}

// ForTask returns a wait of one task.
func (w *Waits) ForTask(t *model.Task, why model.Reason, nodes []model.NodeCount) *model.Wait {
	return &model.Wait{Job: t.Job.Key, Task: t.Key, Queue: t.Job.QueueName, Action: w.Action, Reason: why, Nodes: nodes}
}

// Set records why a job waits, or one of its tasks if t is not nil. A nil wait removes the reason. What a turn of the job undid is reported
// together with what an earlier turn undid.
func (w *Waits) Set(j *model.Job, t *model.Task, wait *model.Wait) {
	switch {
	case t == nil && wait == nil:
		delete(w.jobs, j)
	case t == nil:
		w.jobs[j] = after(w.jobs[j], wait)
	case wait == nil:
		delete(w.tasks, t)
	default:
		w.tasks[t] = wait
	}
}

// Of returns why a task waits; nil: no reason is recorded.
func (w *Waits) Of(t *model.Task) *model.Wait { return w.tasks[t] }

// SetUndone records how many tasks a job's last turn placed and undid.
func (w *Waits) SetUndone(j *model.Job, placed int) { w.undone[j] = placed }

// SetServed records that pods are or were evicted for a job, and that the job may start with the resources that they free. The job then
// need not be admitted again.
func (w *Waits) SetServed(j *model.Job) { w.served[j] = true }

// SetInVain records why an action evicts no pod for a task, or, if t is nil, for a job as a whole. It replaces the earlier reason of the
// same action and scope. A reason without nodes is not stored.
func (w *Waits) SetInVain(j *model.Job, t *model.Task, why model.InVain) {
	of := vainOf{j, t}
	all := slices.DeleteFunc(w.vain[of], func(o model.InVain) bool { return o.Action == why.Action && o.Scope == why.Scope })
	if len(why.Nodes) > 0 {
		all = append(all, why)
	}
	w.vain[of] = all
}

// ofJob returns why no pod is evicted for a job as a whole. If no pending task of the job has a reason of its own, it adds the reason of
// the first pending task that has one.
func (w *Waits) ofJob(j *model.Job) []model.InVain {
	var first []model.InVain
	for _, t := range j.Tasks {
		switch {
		case t.Status != model.Pending:
		case w.tasks[t] != nil:
			return w.vain[vainOf{j, nil}]
		case len(first) == 0:
			first = w.vain[vainOf{j, t}]
		}
	}
	return slices.Concat(w.vain[vainOf{j, nil}], first)
}

// Untold reports whether a pending task of a job has no reason, of its own or of its job.
func (w *Waits) Untold(j *model.Job) bool {
	return j.Counts[model.Pending] > 0 && w.jobs[j] == nil &&
		slices.ContainsFunc(j.Tasks, func(t *model.Task) bool { return t.Status == model.Pending && w.tasks[t] == nil })
}

// after merges a job's wait with its earlier wait: the tasks that found nodes in either turn are reported.
func after(earlier, w *model.Wait) *model.Wait {
	if earlier == nil || earlier.Tried == nil || w.Tried == nil || earlier.Tried.Waiting != w.Tried.Waiting || len(earlier.Tried.Found) == 0 {
		return w
	}
	found := slices.Concat(w.Tried.Found, earlier.Tried.Found) // the later one of two for the same task
	byTask := func(a, b model.Found) int { return a.Task - b.Task }
	slices.SortStableFunc(found, byTask)
	both := *w
	both.Tried = &model.Tried{
		Waiting: w.Tried.Waiting, Found: slices.CompactFunc(found, func(a, b model.Found) bool { return byTask(a, b) == 0 }),
	}
	return &both
}

// Tried returns what happened to the tasks of a job in a turn that placed this many of them and was undone; nil: no other task waits. node
// returns the node that was found for a task, "" if none. It is called in key order.
func Tried(j *model.Job, placed int, node func(*model.Task) string) *model.Tried {
	out := &model.Tried{Waiting: int(j.Counts[model.Pending] + j.Counts[model.Pipelined])}
	if out.Waiting < 2 {
		return nil
	}
	if placed == 0 {
		return out
	}
	out.Found = make([]model.Found, 0, placed)
	n := 0
	for _, t := range j.Tasks {
		if !t.Waits() {
			continue
		}
		if name := node(t); name != "" {
			out.Found = append(out.Found, model.Found{Task: n, Node: name})
		}
		n++
	}
	return out
}

// Untried adds a reason for the pending tasks that no step tried, and for a job that waits for admission and has no tasks yet. unasked is
// why no action tries the job as a whole. feasible returns why a task could be placed on no node.
func (w *Waits) Untried(j *model.Job, unasked model.Reason, feasible func(*model.Task) (why model.Reason, ok bool)) {
	if w.jobs[j] != nil || j.Counts[model.Pending] == 0 && (j.Phase != model.PhasePending || j.TaskCount() > 0) {
		return
	}
	none := Waits{} // without an action
	if unasked.Rule != "" && !j.Orphan {
		w.Set(j, nil, none.ForJob(j, unasked))
		return
	}
	for _, t := range j.Tasks {
		switch {
		case t.Status != model.Pending || w.tasks[t] != nil:
		case j.Orphan:
			if !t.Foreign {
				w.Set(j, t, none.ForTask(t, Builtin("podgroup", "there is no PodGroup "+strconv.Quote(t.Group())), nil))
			}
		default:
			why, ok := feasible(t)
			if ok {
				why = Builtin("turn", "not tried: its job's turn ended, or no action of the pipeline takes it")
			}
			w.Set(j, t, none.ForTask(t, why, nil))
		}
	}
}

// List returns a job's wait, and then those of its tasks, which sort sorts. place is the job's position in the order of its queue.
func (w *Waits) List(j *model.Job, place int, sort func([]*model.Task)) []model.Wait {
	var out []model.Wait
	add := func(why *model.Wait, t *model.Task) {
		own := *why
		own.Place, own.InVain = place, w.vain[vainOf{j, t}]
		if t == nil {
			own.InVain = w.ofJob(j)
		} else if len(out) == 0 { // the reasons of a gang as a whole are listed once
			own.InVain = slices.Concat(w.vain[vainOf{j, nil}], own.InVain)
		}
		out = append(out, own)
	}
	if own := w.jobs[j]; own != nil && (j.Phase == model.PhasePending || Unplaced(j)) {
		add(own, nil)
	}
	var left []*model.Task
	for _, t := range j.Tasks {
		if w.tasks[t] != nil && t.Status == model.Pending {
			left = append(left, t)
		}
	}
	sort(left)
	for _, t := range left {
		add(w.tasks[t], t)
	}
	return out
}

// Unplaced reports whether tasks of a job have no node yet, or only a promised node.
func Unplaced(j *model.Job) bool {
	return j.Counts[model.Pending]+j.Counts[model.Pipelined]+j.Counts[model.Allocated] > 0
}

// Dropped reports whether a job needs a reason if a step leaves it out: it waits for something that the step could give it.
func Dropped(j *model.Job) bool { return j.Counts[model.Pending] > 0 || j.Phase == model.PhasePending }

// MayWait reports whether a job can wait for something: for admission, for nodes, or for resources that are being released.
func MayWait(j *model.Job) bool {
	if j.Orphan {
		return j.Counts[model.Pending] > 0 && slices.ContainsFunc(j.Tasks, func(t *model.Task) bool { return !t.Foreign })
	}
	return j.Phase == model.PhasePending || j.TaskCount() == 0 || len(j.Expected) > 0 || Unplaced(j)
}

// ByQueue returns all jobs by the names of their queues, and by key. Waits are listed in this order.
func ByQueue(c *model.Cluster) []*model.Job {
	jobs := slices.Clone(c.JobsByKey())
	slices.SortStableFunc(jobs, func(a, b *model.Job) int { return cmp.Compare(a.QueueName, b.QueueName) })
	return jobs
}
