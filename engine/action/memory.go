package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// jobMemory contains what is known of jobs in addition to the cluster: the outcome of trying them, and what was last reported. It saves
// work and decides nothing: a memory that remembers nothing gives the same plans.
type jobMemory interface {
	// begin starts a cycle.
	begin(x *Cycle)
	// of returns what is known of the attempts of a step.
	of(step *policy.Step) attempts
	// blocked records that a job blocked its queue in this cycle, so that the plan depends on the order of jobs.
	blocked()
	// befell records that a job changed in a turn of another job.
	befell(j *model.Job)
	// statuses returns the statuses of all jobs with a queue in key order, as told computes them. Before that, each pending task of ours gets
	// a reason, of its own or of its job.
	statuses(told func(*model.Job) model.JobStatus) []*model.JobStatus
	// waits lists the reasons of everything that waits, by queue and job.
	waits() []model.Wait
	// queues lists the statuses of queues.
	queues() []model.QueueStatus
	// end closes the cycle.
	end()
	// reorder updates the positions of jobs in the last cycle's plan; false: this requires a cycle.
	reorder(plan *model.Plan) bool
}

// attempts iterates over the jobs of a step, each queue in the order of its jobs. It skips a job that is known to have no effect, if its
// reasons are known too. It reports these reasons as if the job had been tried.
type attempts interface {
	// begin finds the jobs that the step takes, and returns their queues by name.
	begin(takes func(*model.Job) bool) []*model.Queue
	// next returns the next job of a queue to try; nil: there is none.
	next(q *model.Queue) *model.Job
	// tried records the outcome of the job that next returned: whether it gets another turn, and whether the turn had an effect.
	tried(j *model.Job, again, effect bool)
	// alike returns a key that jobs of a queue share if they have equal outcomes at the same state. alikeInTurn returns such a key for the
	// tasks of a job. false: no other job or task has an equal outcome.
	alike(j *model.Job) (string, bool)
	alikeInTurn(t *model.Task) (string, bool)
	// dropped evaluates whether to skip the rest of a queue, and why.
	dropped(q *model.Queue, ask func(*model.Queue) policy.Answer) policy.Answer
	// drop leaves out the remaining jobs of a queue. why returns the reason of each job.
	drop(q *model.Queue, why func(*model.Job) model.Reason)
	// end closes the walk.
	end()
}

// Memory contains what the cycles of a session know of earlier cycles.
type Memory struct {
	jobs   jobMemory
	scores slab.Of[model.RowScore]
	texts  slab.Texts
}

// NewMemory returns an empty Memory.
func NewMemory(s *session.Session) *Memory { return &Memory{jobs: newBacklog(s)} }

// Forgetful returns a Memory that remembers nothing of jobs: each cycle tries each job.
func Forgetful() *Memory { return &Memory{jobs: &forgetful{}} }

// Reorder updates the places of jobs in the plan of the last cycle, because the passing of time alone can change the order of jobs. It
// returns false if a new cycle must decide. The order affects nothing else in a plan if no attempt had an effect and no job blocked its
// queue.
func (m *Memory) Reorder(plan *model.Plan) bool { return m.jobs.reorder(plan) }
