package reference

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/kept"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
	"github.com/celsius-scheduler/celsius/engine/reference/eviction"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// cycle is the state of one cycle.
type cycle struct {
	*answers.Answers
	c        *model.Cluster
	p        *policy.Policy
	plan     *model.Plan
	txn      *model.Txn
	waits    *report.Waits      // why jobs and tasks were not placed
	places   map[*model.Job]int // positions in the order of the queue
	held     []placed
	promised []placed
	forced   map[*model.Task]bool // tasks for which other tasks are evicted
	nominees map[*model.Job]bool  // jobs that steps with displace promised resources
	rooms    []eviction.Room      // promises of steps with displace
	told     map[string]bool      // tasks that are evicted for rooms, as far as the plan contains them
	kept     *kept.Places         // resources that the present step keeps; nil: none
	// accepted is the request that the rows of beyondShare accepted in a turn, and exceeding the part of it that the turn placed.
	accepted, exceeding model.Resources
	beyond              []*model.Queue // queues that exceeded their shares in steps with the gate beyondShare
}

// Run runs one cycle after the other. Between cycles, it keeps only the values that settle at the start of a run.
type Run struct{ settled values.Settled }

// Decide runs one cycle: (cluster, policy, now) in, Plan out. Afterwards, the tasks that the plan binds are Binding in the cluster, and the
// jobs that it admits are admitted. Nothing else in the cluster changes.
func (r *Run) Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	if r.settled == nil {
		r.settled = values.Settled{}
	}
	x := &cycle{
		c: c, p: p, txn: c.Begin(), waits: report.NewWaits(), places: map[*model.Job]int{},
		forced: map[*model.Task]bool{}, nominees: map[*model.Job]bool{}, told: map[string]bool{},
	}
	x.plan = &model.Plan{Policy: p.Name, Generation: p.Generation, Now: now}
	x.Answers = answers.New(c, p, now, r.settled)
	x.Settle()
	if p.Mode != "Paused" {
		x.renew()
		for _, a := range p.Actions {
			x.run(a)
		}
	}
	x.close()
	return x.plan
}

// verbs returns the function of each verb.
func verbs() map[string]func(*cycle, *policy.Step) {
	return map[string]func(*cycle, *policy.Step){
		policy.Admit: (*cycle).admit, policy.Place: (*cycle).place, policy.Displace: (*cycle).displace, policy.Evict: (*cycle).evict,
	}
}

func (x *cycle) run(a *policy.Action) {
	x.waits.Action = a.Name
	x.World().Run(a.Name)
	for _, step := range a.Steps {
		if !x.Condition(step.Condition(policy.KeyWhen), x.Frame(), "") {
			continue
		}
		verbs()[step.Verb.Name](x, step)
	}
}

// walk gives turns to jobs: always to the first job of the first queue. turn does one turn, and returns whether the job comes back
// for another turn, or else blocks its queue. walk leaves out the remaining jobs of a queue if drop requires it, or if a job blocks it.
func (x *cycle) walk(
	jobs map[*model.Queue][]*model.Job, drop func(*model.Queue) policy.Answer, turn func(*model.Job) (again, blocks bool),
) {
	places := map[*model.Queue]int{}
	for len(jobs) > 0 {
		q := x.FirstQueue(jobs)
		x.SortJobs(jobs[q])
		if why := drop(q); why.Yes {
			x.drop(jobs[q], places, func(*model.Job) model.Reason { return why.Reason() })
			delete(jobs, q)
			continue
		}
		j := jobs[q][0]
		jobs[q] = jobs[q][1:]
		x.numbered(j, places)
		switch again, blocks := turn(j); {
		case again:
			jobs[q] = append(jobs[q], j)
		case blocks:
			x.SortJobs(jobs[q])
			x.drop(jobs[q], places, func(other *model.Job) model.Reason {
				return report.Behind(j, x.p.MayName(other.Namespace, j.Namespace))
			})
			jobs[q] = nil
		}
		if len(jobs[q]) == 0 {
			delete(jobs, q)
		}
	}
}

// numbered sets the position of a job in its queue, unless an earlier step did.
func (x *cycle) numbered(j *model.Job, places map[*model.Queue]int) {
	if x.places[j] == 0 {
		places[j.Queue]++
		x.places[j] = places[j.Queue]
	}
}

// drop leaves out jobs of a queue. why returns the reason of each job.
func (x *cycle) drop(jobs []*model.Job, places map[*model.Queue]int, why func(*model.Job) model.Reason) {
	for _, j := range jobs {
		x.numbered(j, places)
		if report.Dropped(j) {
			x.jobWait(j, why(j))
		}
	}
}

// blocks evaluates whether a job that waits after its turn blocks its queue, so that the jobs behind it wait as well.
func (x *cycle) blocks(step *policy.Step, j *model.Job) bool {
	return x.Condition(step.Condition(policy.KeyBlocksQueue), x.Frame().OfJob(j), "job "+j.Key+": ")
}

// admit admits jobs, in order. It admits a job without minResources without evaluating the rows. It does not try a refused job again in the
// same cycle.
func (x *cycle) admit(step *policy.Step) {
	in := func(j *model.Job) bool { return j.Phase != model.PhasePending }
	never := func(*model.Queue) policy.Answer { return policy.Answer{} }
	x.walk(x.JobsOf(step, in), never, func(j *model.Job) (again, blocks bool) {
		answer := policy.Answer{Yes: true}
		if step.Flag(policy.KeyVote) && j.HasMinResources {
			answer = x.Vote(policy.JobEnqueueable, x.Frame().OfJob(j))
		}
		why := answer.Reason()
		if !answer.Yes {
			x.jobWait(j, why)
			return false, x.blocks(step, j)
		}
		x.waits.Set(j, nil, nil)
		x.txn.Admit(j, x.plan.Now)
		why.Reason = "" // only a refusal has a condition reason
		x.plan.Admits = append(x.plan.Admits, model.Admit{Job: j.Key, Queue: j.QueueName, Reason: why})
		return false, false
	})
}
