package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/eviction"
	"github.com/celsius-scheduler/celsius/engine/kept"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Cycle is the state of one cycle: the session that evaluates the policy, the transaction with tentative steps, and the growing plan.
type Cycle struct {
	s    *session.Session
	c    *model.Cluster
	txn  *model.Txn
	plan *model.Plan

	waits   *report.Waits
	result  turnResult // the result of the present turn
	memory  *Memory
	others  []model.RowScore // scores of a second-best node; for reuse
	done    []placed         // the tasks placed in this turn; reused memory
	text    []byte           // scratch memory
	verbs   []verb
	without []*model.Task // tasks without a node in this turn
	lasting lasting
	promises
	kept *kept.Places // resources that the present step keeps; nil: none
}

// lasting contains what this cycle records for later cycles.
type lasting struct {
	// changed are the jobs that this cycle found stuck and earlier cycles did not, or the reverse.
	changed []*model.Job
	room    *report.Room // nil: no row reads which jobs are stuck
	// exceeded are the queues that exceeded their shares in steps with the gate beyondShare.
	exceeded []*model.Queue
}

// Whole runs cycles of a cluster while enough permits. It returns false if a cycle was
// stopped before its end.
func Whole(c *model.Cluster, enough func() bool, cycles func()) (whole bool) {
	c.Enough = enough
	defer func() {
		c.Enough = nil
		if failure := recover(); failure != nil {
			if _, ok := failure.(model.BrokenOff); !ok {
				panic(failure) //nolint:forbidigo // it is another's
			}
		}
	}()
	cycles()
	return true
}

// promises contains the placements of this cycle that are not permanent.
type promises struct {
	held      []placed
	pipelined []placed
	forced    map[*model.Task]bool // tasks for which other tasks are evicted; nil: none
	promised  map[*model.Job]bool  // jobs that steps with displace promised resources, with or without evictions
	rooms     []eviction.Room      // of all steps with the verb displace
	told      map[string]bool      // tasks that are evicted for rooms, as far as the plan contains them
	roomy     map[*model.Job]bool  // jobs that the present step promised resources
	accepted  accepted             // in this turn of a step with the gate beyondShare
}

// byForce records that other tasks are evicted for a task.
func (x *promises) byForce(t *model.Task) {
	if x.forced == nil {
		x.forced = map[*model.Task]bool{}
	}
	x.forced[t] = true
}

// keepFor records that a step with displace promised resources to a job.
func (x *promises) keepFor(j *model.Job) {
	if x.promised == nil {
		x.promised = map[*model.Job]bool{}
	}
	x.promised[j] = true
}

// served returns the jobs that wait for the resources of evicted tasks.
func (x *promises) served() map[*model.Job]bool {
	served := map[*model.Job]bool{}
	for t := range x.forced {
		served[t.Job] = true
	}
	return served
}

// hasForced reports whether pods are evicted for a task of a job, or the current step promised the job a place. The kind of a job shows
// neither.
func (x *promises) hasForced(j *model.Job) bool {
	return x.roomy[j] || x.forced != nil && slices.ContainsFunc(j.Tasks, func(t *model.Task) bool { return x.forced[t] })
}

// placed is a placement that is not permanent (yet).
type placed struct {
	task *model.Task
	bind model.Bind
}

// Begin starts a cycle on a plan. It first gives places to the tasks for which pods were evicted.
func Begin(s *session.Session, m *Memory, plan *model.Plan) *Cycle {
	x := &Cycle{
		s: s, c: s.Cluster(), txn: s.Cluster().Begin(), plan: plan, waits: report.NewWaits(), memory: m, verbs: verbs(),
	}
	if p := s.Policy(); p.ReadsWaits() {
		x.lasting.room = &report.Room{
			Lacked: p.LacksRoom, NeverFits: func(t *model.Task) bool { return s.NeverFits(t) != "" },
			NeverStarts: s.GangNeverStarts,
		}
	}
	m.jobs.begin(x)
	if s.Policy().Mode != "Paused" {
		nominations{x}.renew()
	}
	return x
}

// Run executes one action.
func (x *Cycle) Run(a *policy.Action) {
	x.waits.Action = a.Name
	x.s.SetAction(a.Name)
	for _, step := range a.Steps {
		if x.taken(step) {
			x.carryOut(step)
		}
	}
}

// taken reports whether the condition when of a step is true.
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

// carryOut executes a step by its verb.
func (x *Cycle) carryOut(step *policy.Step) {
	for _, v := range x.verbs {
		if v.name == step.Verb.Name {
			v.run(x, step)
			return
		}
	}
	x.warn("verb " + step.Verb.Name + " is known, but nothing runs it")
}

// Close writes the waits and the promises into the plan, and undoes the promises: the next cycle decides them again, except for nominated
// nodes. It reports after that what queues hold. If nothing else was decided, the cluster has the same content as before the cycle.
func (x *Cycle) Close() {
	nominated := nominations{x}.after()
	for _, p := range x.held {
		if p.task.Status == model.Allocated {
			x.plan.Holds = append(x.plan.Holds, p.bind)
		}
	}
	latest := make(map[*model.Task]int, len(x.pipelined)) // a later step may have promised a task another node
	for i, p := range x.pipelined {
		latest[p.task] = i
	}
	for i, p := range x.pipelined {
		if p.task.Status == model.Pipelined && latest[p.task] == i {
			x.plan.Pipelines = append(x.plan.Pipelines, p.bind)
		}
	}
	x.plan.Waits = x.memory.jobs.waits()
	if len(x.plan.Binds)+len(x.plan.Admits)+len(x.plan.Evicts) == 0 {
		x.txn.Rollback(0)
	}
	for _, p := range slices.Concat(x.held, x.pipelined) {
		if p.task.Status == model.Allocated || p.task.Status == model.Pipelined {
			x.txn.Unplace(p.task)
		}
	}
	for _, n := range nominated {
		x.c.Nominate(n.task, n.node) // after the rollback, because this changes the content of the cluster
	}
	for _, j := range x.lasting.changed {
		x.c.SetStuck(j, !x.c.IsStuck(j))
		x.plan.DecideBy(x.plan.Now) // rows read the time
	}
	for _, q := range x.lasting.exceeded {
		x.c.SetExceeded(q, x.plan.Now)
	}
	report.Unheeded(x.c, x.plan)
	x.plan.Queues = x.memory.jobs.queues()
	x.txn.Commit()
	x.memory.jobs.end()
}

// Statuses gives every pending task of ours a reason, of its own or of its job. It writes the statuses of jobs into the plan, while
// promises still count.
func (x *Cycle) Statuses() {
	for _, j := range (nominations{x}).jobs() {
		if (nominations{x}).starts(j) {
			x.waits.SetServed(j)
		}
	}
	causes := &report.Causes{Cluster: x.c, Answers: x.s}
	x.plan.Jobs = x.memory.jobs.statuses(func(j *model.Job) model.JobStatus {
		x.c.Breathe()
		x.c.Handle(j)
		return x.waits.Status(j, x.whole, causes)
	})
	x.c.Turn = nil
}

// whole reports whether the placements of a job may be kept.
func (x *Cycle) whole(j *model.Job) (why model.Reason, ok bool) {
	a := x.s.Valid(j)
	if a.Yes {
		a = x.s.Ready(j)
	}
	return a.Reason(), a.Yes
}

// listWaits lists a job's wait, and then those of its tasks in their order. place is the job's position in the order of its queue.
func (x *Cycle) listWaits(j *model.Job, place int) []model.Wait {
	waits := x.waits.List(j, place, x.s.SortTasks)
	if x.lasting.room != nil && report.MayWait(j) && report.Stuck(j, waits, x.lasting.room) != x.c.IsStuck(j) {
		x.lasting.changed = append(x.lasting.changed, j)
	}
	return waits
}

func (x *Cycle) warn(text string) {
	if !slices.Contains(x.plan.Warnings, text) {
		x.plan.Warnings = append(x.plan.Warnings, text)
	}
}

// untried adds reasons for the pending tasks that no verb tried, and for a job that waits for admission and has no tasks yet.
func (x *Cycle) untried(j *model.Job) {
	p := x.s.Policy()
	x.waits.Untried(j, report.Unasked(j, p.Name, p.Mode == "Paused", len(p.Actions)), func(t *model.Task) (model.Reason, bool) {
		a := x.s.Feasible(t)
		return a.Reason(), a.Yes
	})
}

// jobWait records why a job as a whole was not placed.
func (x *Cycle) jobWait(j *model.Job, why model.Reason) {
	x.note(j, nil, x.waits.ForJob(j, why))
}

// taskWait records why one task was not placed.
func (x *Cycle) taskWait(t *model.Task, why model.Reason, nodes []model.NodeCount) {
	x.note(t.Job, t, x.waits.ForTask(t, why, nodes))
}

// jobPasses evaluates a condition of a step for a job. An error counts as false.
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

// valid evaluates jobValid, and records the reason if it is false.
func (x *Cycle) valid(j *model.Job) bool {
	a := x.s.Valid(j)
	if !a.Yes {
		x.jobWait(j, a.Reason())
	}
	return a.Yes
}
