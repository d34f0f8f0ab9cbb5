package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// jobMemory is what is known of jobs beside the cluster: what would come of trying them, and what was said of them last. It saves
// work and decides nothing: one that remembers nothing gives the same plans.
type jobMemory interface {
	// begin opens a cycle.
	begin(x *Cycle)
	// of is what is known of the attempts of a step.
	of(step *policy.Step) attempts
	// blocked records that a job blocked its queue in this cycle, so that the plan depends on the order of jobs.
	blocked()
	// befell says that something of a job changed in a turn that was not its own.
	befell(j *model.Job)
	// statuses are those of all jobs with a queue in the order of their keys, each as told says. Before that, each pending task of ours gets
	// a reason, of its own or its job's.
	statuses(told func(*model.Job) model.JobStatus) []*model.JobStatus
	// waits lists why all that waits does so, by queue and job.
	waits() []model.Wait
	// queues lists the statuses of queues.
	queues() []model.QueueStatus
	// end closes the cycle.
	end()
	// reorder brings the places of jobs in the last cycle's plan up to date; false: it takes a cycle.
	reorder(plan *model.Plan) bool
}

// attempts iterates over the jobs of a step, each queue in the order of its jobs. It skips a job that is known to have no effect, if its
// reasons are known too. It reports these reasons as if the job had been tried.
type attempts interface {
	// begin finds the jobs that the step takes, and gives their queues by name.
	begin(takes func(*model.Job) bool) []*model.Queue
	// next is the first job of a queue that is to be tried; nil: there is none.
	next(q *model.Queue) *model.Job
	// tried says what came of the job that next gave: whether it comes back for another turn, and whether the turn had an effect.
	tried(j *model.Job, again, effect bool)
	// alike is a text that jobs of a queue share that fare alike at the same state, alikeInTurn one of tasks of a job; false: as no other.
	alike(j *model.Job) (string, bool)
	alikeInTurn(t *model.Task) (string, bool)
	// dropped asks whether the rest of a queue is to be left, and why.
	dropped(q *model.Queue, ask func(*model.Queue) policy.Answer) policy.Answer
	// drop leaves out the remaining jobs of a queue. why returns the reason of each job.
	drop(q *model.Queue, why func(*model.Job) model.Reason)
	// end closes the walk.
	end()
}

// Memory is what the cycles of a session know of those before.
type Memory struct {
	jobs   jobMemory
	scores slab.Of[model.RowScore]
	texts  slab.Texts
}

// NewMemory has nothing in it yet.
func NewMemory(s *session.Session) *Memory { return &Memory{jobs: newBacklog(s)} }

// Forgetful remembers nothing of jobs: each is tried in each cycle.
func Forgetful() *Memory { return &Memory{jobs: &forgetful{}} }

// Reorder updates the places of jobs in the plan of the last cycle, because the passing of time alone can change the order of jobs. It
// returns false if a new cycle must decide. The order affects nothing else in a plan if no attempt had an effect and no job blocked its
// queue.
func (m *Memory) Reorder(plan *model.Plan) bool { return m.jobs.reorder(plan) }
