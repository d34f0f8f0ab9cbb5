package reference

import (
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// cycle is the work of one cycle.
type cycle struct {
	c      *model.Cluster
	p      *policy.Policy
	w      *language.World
	seen   uint64 // the clock of the cluster that w is of
	plan   *model.Plan
	txn    *model.Txn
	starts Starts
	// settled are the values that settle once a cycle.
	settled Starts
	filled  map[*policy.Attribute]map[*model.Queue]ref.Val // what waterFill gave that settles once a cycle
	faults  map[fault]*model.RuleError

	waits    *report.Waits      // why jobs and tasks were left
	places   map[*model.Job]int // in the order of the queue
	held     []placed
	promised []placed
	kept     *kept // by the present step; nil: nothing
}

// Run decides cycle by cycle. It carries nothing from one to the next but what settles at the start of a run.
type Run struct{ starts Starts }

// Decide runs one cycle: (cluster, policy, now) in, Plan out. What the plan binds is Binding in the cluster afterwards, and what it
// admits is in; everything else is as it was.
func (r *Run) Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	if r.starts == nil {
		r.starts = Starts{}
	}
	x := &cycle{
		c: c, p: p, plan: &model.Plan{Policy: p.Name, Generation: p.Generation, Now: now}, txn: c.Begin(), starts: r.starts,
		settled: Starts{}, filled: map[*policy.Attribute]map[*model.Queue]ref.Val{}, faults: map[fault]*model.RuleError{},
		waits: report.NewWaits(), places: map[*model.Job]int{},
	}
	x.w, x.seen = policy.NewWorld(c, p, x), c.Clock
	x.w.BeginAt(now)
	x.settle()
	if p.Mode != "Paused" {
		for _, a := range p.Actions {
			x.run(a)
		}
	}
	x.close()
	return x.plan
}

// world is the cluster as rows see it, made anew wherever the cluster has changed since.
func (x *cycle) world() *language.World {
	if x.seen != x.c.Clock {
		x.w, x.seen = x.w.Anew(), x.c.Clock
	}
	return x.w
}

// verbs says how the step of each verb is run.
func verbs() map[string]func(*cycle, *policy.Step) {
	return map[string]func(*cycle, *policy.Step){policy.Admit: (*cycle).admit, policy.Place: (*cycle).place}
}

func (x *cycle) run(a *policy.Action) {
	x.waits.Action = a.Name
	x.world().Run(a.Name)
	for _, step := range a.Steps {
		if !x.condition(step.Condition(policy.KeyWhen), x.world().Frame(), "") {
			continue
		}
		verbs()[step.Verb.Name](x, step)
	}
}

// walk gives turns to the jobs of a step, which are those that wait for something and for which the verb is not idle: always to the
// first job of the first queue. turn does one turn, and says whether the job comes back for another. Where drop says so of a queue,
// the rest of its jobs are left.
func (x *cycle) walk(
	step *policy.Step, idle func(*model.Job) bool, drop func(*model.Queue) policy.Answer, turn func(*model.Job) (again bool),
) {
	jobs, places := map[*model.Queue][]*model.Job{}, map[*model.Queue]int{}
	for _, j := range x.c.JobsByKey() {
		if report.MayWait(j) && j.Seated() && !idle(j) && x.jobPasses(step, j) {
			jobs[j.Queue] = append(jobs[j.Queue], j)
		}
	}
	for len(jobs) > 0 {
		q := x.firstQueue(jobs)
		x.sortJobs(jobs[q])
		if why := drop(q); why.Yes {
			for _, j := range jobs[q] {
				x.placeInOrder(j, places)
				if j.Counts[model.Pending] > 0 {
					x.jobWait(j, why.Reason())
				}
			}
			delete(jobs, q)
			continue
		}
		j := jobs[q][0]
		jobs[q] = jobs[q][1:]
		x.placeInOrder(j, places)
		if turn(j) {
			jobs[q] = append(jobs[q], j)
		}
		if len(jobs[q]) == 0 {
			delete(jobs, q)
		}
	}
}

// placeInOrder notes a job's place in its queue's order, as the first step has it that comes to it.
func (x *cycle) placeInOrder(j *model.Job, places map[*model.Queue]int) {
	if x.places[j] == 0 {
		places[j.Queue]++
		x.places[j] = places[j.Queue]
	}
}

// admit lets jobs in, in order. A job without minResources is never put to the vote; one that is refused is not tried again in the
// cycle.
func (x *cycle) admit(step *policy.Step) {
	in := func(j *model.Job) bool { return j.Phase != model.PhasePending }
	never := func(*model.Queue) policy.Answer { return policy.Answer{} }
	x.walk(step, in, never, func(j *model.Job) bool {
		answer := policy.Answer{Yes: true}
		if step.Flag(policy.KeyVote) && j.HasMinResources {
			answer = x.vote(policy.JobEnqueueable, x.world().Frame().OfJob(j))
		}
		why := answer.Reason()
		if !answer.Yes {
			x.jobWait(j, why)
			return false
		}
		x.waits.Set(j, nil, nil)
		x.txn.Admit(j, x.plan.Now)
		why.Reason = "" // that of a refusal
		x.plan.Admits = append(x.plan.Admits, model.Admit{Job: j.Key, Queue: j.QueueName, Reason: why})
		return false
	})
}
