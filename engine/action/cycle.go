package action

import (
	"slices"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Cycle is the work of one cycle: the session that answers, the transaction that tries, the plan that grows.
type Cycle struct {
	s    *policy.Session
	c    *model.Cluster
	txn  *model.Txn
	plan *model.Plan

	action string
	// waits holds the last reason of each job and of each task, so that a later action's success clears it.
	jobWaits  map[*model.Job]*model.Wait
	taskWaits map[*model.Task]*model.Wait
	notes     []noted // what the present turn noted of them
	undone    map[*model.Job]int
	// turnUndone is how many tasks the present turn placed and undid; -1: it did neither.
	turnUndone int
	store      *store
	memory     memory
	others     []model.RowScore // of a runner-up; reused
	done       []placed         // in this turn; reused
	text       []byte           // reused
	verbs      []verb
	held       []placed
	pipelined  []placed
	without    []*model.Task // a place in this turn
	kept       *kept         // by the present step; nil: nothing
	unsettled  bool          // the present turn rests on what is kept, which no kind of jobs tells
}

// placed is a placement that is not kept (yet).
type placed struct {
	task *model.Task
	bind model.Bind
}

// Begin opens a cycle of work on a plan.
func Begin(s *policy.Session, plan *model.Plan) *Cycle {
	st := storeOf(s)
	x := &Cycle{
		s: s, c: s.Cluster(), txn: s.Cluster().Begin(), plan: plan, jobWaits: map[*model.Job]*model.Wait{}, taskWaits: map[*model.Task]*model.Wait{},
		undone: map[*model.Job]int{}, store: st, memory: st.memory, verbs: verbs(),
	}
	x.memory.begin(x)
	return x
}

// Run carries out one action.
func (x *Cycle) Run(a *policy.Action) {
	x.action = a.Name
	x.s.SetAction(a.Name)
	for _, step := range a.Steps {
		if x.taken(step) {
			x.carryOut(step)
		}
	}
}

// taken says whether a step is taken at all.
func (x *Cycle) taken(step *policy.Step) bool {
	when := step.Condition(policy.KeyWhen)
	if when == nil {
		return true
	}
	ok, err := x.s.Condition(when)
	if err != nil {
		x.warn(err.Error())
	}
	return ok
}

// carryOut runs a step by its verb.
func (x *Cycle) carryOut(step *policy.Step) {
	for _, v := range x.verbs {
		if v.name == step.Verb.Name {
			v.run(x, step)
			return
		}
	}
	x.warn("verb " + step.Verb.Name + " is known, but nothing runs it")
}

// Close writes what waits and what is only promised into the plan, and undoes the latter: it is decided anew next cycle.
// Where nothing else was decided, the cluster's content is what it was before the cycle.
func (x *Cycle) Close() {
	for _, p := range x.held {
		if p.task.Status == model.Allocated {
			x.plan.Holds = append(x.plan.Holds, p.bind)
		}
	}
	for _, p := range x.pipelined {
		if p.task.Status == model.Pipelined {
			x.plan.Pipelines = append(x.plan.Pipelines, p.bind)
		}
	}
	x.plan.Waits = x.memory.waits()
	if len(x.plan.Binds)+len(x.plan.Admits) == 0 {
		x.txn.Rollback(0)
	}
	for _, p := range slices.Concat(x.held, x.pipelined) {
		if p.task.Status == model.Allocated || p.task.Status == model.Pipelined {
			x.txn.Unplace(p.task)
		}
	}
	x.txn.Commit()
	x.memory.end()
}

// Jobs gives every pending task of ours a reason, of its own or its job's, and lists the statuses of all jobs with a queue, in key order,
// as told gives them. It is asked about those for which anything may have changed.
func (x *Cycle) Jobs(told func(*model.Job) model.JobStatus) []*model.JobStatus {
	return x.memory.statuses(told)
}

// waitsOf lists a job's waits, then those of its tasks in their order. place is the job's in its queue's order.
func (x *Cycle) waitsOf(j *model.Job, place int) []model.Wait {
	var out []model.Wait
	add := func(w *model.Wait) {
		own := *w
		own.Place = place
		out = append(out, own)
	}
	if w := x.jobWaits[j]; w != nil && unfinished(j) {
		add(w)
	}
	var left []*model.Task
	for _, t := range j.Tasks {
		if x.taskWaits[t] != nil && t.Status == model.Pending {
			left = append(left, t)
		}
	}
	x.s.SortTasks(left)
	for _, t := range left {
		add(x.taskWaits[t])
	}
	return out
}

func (x *Cycle) warn(text string) {
	if !slices.Contains(x.plan.Warnings, text) {
		x.plan.Warnings = append(x.plan.Warnings, text)
	}
}

// unfinished says whether a job still waits for something: to be let in, for nodes, or for what is being released.
func unfinished(j *model.Job) bool {
	return j.Phase == "Pending" || j.Counts[model.Pending]+j.Counts[model.Pipelined]+j.Counts[model.Allocated] > 0
}

// untried gives the pending tasks that no verb came to their reason, and so a job that waits to be let in and has no tasks yet.
func (x *Cycle) untried(j *model.Job) {
	if x.jobWaits[j] != nil || j.Counts[model.Pending] == 0 && (j.Phase != model.PhasePending || j.TaskCount() > 0) {
		return
	}
	if j.Orphan {
		for _, t := range j.Tasks {
			if !t.Foreign && t.Status == model.Pending {
				x.taskWait(t, builtin("podgroup", "its PodGroup is not there"), nil)
			}
		}
		return
	}
	if why := x.unasked(j); why.Rule != "" {
		x.jobWait(j, why)
		return
	}
	for _, t := range j.Tasks {
		if t.Status != model.Pending || x.taskWaits[t] != nil {
			continue
		}
		if a := x.s.Feasible(t); !a.Yes {
			x.taskWait(t, a.Reason(), nil)
			continue
		}
		x.taskWait(t, builtin("turn", "not tried: its job's turn ended, or no action of the pipeline takes it"), nil)
	}
}

// unasked is why no action comes to a job as a whole; without a rule: some may.
func (x *Cycle) unasked(j *model.Job) model.Reason {
	p := x.s.Policy()
	switch {
	case j.Queue == nil:
		return builtin("queue", "there is no queue "+strconv.Quote(j.QueueName))
	case !j.Seated():
		return builtin("queue", "the queue "+j.QueueName+" only holds other queues; name one below it")
	case p.Mode == "Paused":
		return builtin("paused", "policy "+p.Name+" is paused: nothing is decided until its mode is Active")
	case len(p.Actions) == 0:
		return builtin("pipeline", "the pipeline of policy "+p.Name+" is empty: it names no action that could let jobs in or place pods")
	case j.TaskCount() == 0:
		return builtin("pipeline", "no action of the pipeline of policy "+p.Name+" lets the job in")
	}
	return model.Reason{}
}

// builtin is a reason that no row of a table gives.
func builtin(rule, text string) model.Reason {
	return model.Reason{Table: "builtin", Rule: rule, Text: text}
}

// Cause is why a job's tasks are not placed: the first wait of its pending tasks; nil: there is none.
func (x *Cycle) Cause(j *model.Job) *model.Wait {
	for _, t := range j.Tasks {
		if w := x.taskWaits[t]; w != nil && t.Status == model.Pending {
			return w
		}
	}
	return nil
}

// Refusal is why a job as a whole was left; nil: it was not.
func (x *Cycle) Refusal(j *model.Job) *model.Wait { return x.jobWaits[j] }

// Undone is how many tasks of a job were placed in its last turn, and undone again.
func (x *Cycle) Undone(j *model.Job) int { return x.undone[j] }

// jobWait notes why a job as a whole was left.
func (x *Cycle) jobWait(j *model.Job, why model.Reason) {
	x.note(j, nil, &model.Wait{Job: j.Key, Queue: j.QueueName, Action: x.action, Reason: why})
}

// taskWait notes why one task was left.
func (x *Cycle) taskWait(t *model.Task, why model.Reason, nodes []model.NodeCount) {
	x.note(t.Job, t, &model.Wait{Job: t.Job.Key, Task: t.Key, Queue: t.Job.QueueName, Action: x.action, Reason: why, Nodes: nodes})
}

// jobPasses asks a condition of a step about a job. One that errs does not hold.
func (x *Cycle) jobPasses(step *policy.Step, key string, j *model.Job) bool {
	condition := step.Condition(key)
	if condition == nil {
		return true
	}
	ok, err := x.s.JobFilter(condition, j)
	if err != nil {
		x.warn("job " + j.Key + ": " + err.Error())
	}
	return ok
}

// valid asks jobValid, and notes the reason where it does not hold.
func (x *Cycle) valid(j *model.Job) bool {
	a := x.s.Valid(j)
	if !a.Yes {
		x.jobWait(j, a.Reason())
	}
	return a.Yes
}
