package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// forgetful is a memory that remembers nothing: each cycle tries each job, and reports everything again.
type forgetful struct {
	x      *Cycle
	places map[*model.Job]int // the position of each job in its queue
}

func (m *forgetful) begin(x *Cycle) { m.x, m.places = x, map[*model.Job]int{} }

func (m *forgetful) of(*policy.Step) attempts {
	return &eachJob{m: m, jobs: map[*model.Queue]*session.Heap[*model.Job]{}, placed: map[*model.Queue]int{}}
}

func (m *forgetful) befell(*model.Job) {}

func (m *forgetful) blocked() {}

func (m *forgetful) statuses(told func(*model.Job) model.JobStatus) (out []*model.JobStatus) {
	for _, j := range m.x.c.JobsByKey() {
		if report.MayWait(j) {
			m.x.untried(j)
		}
	}
	for _, j := range m.x.c.JobsByKey() {
		if j.Seated() {
			status := told(j)
			out = append(out, &status)
		}
	}
	return out
}

func (m *forgetful) waits() (out []model.Wait) {
	for _, j := range report.ByQueue(m.x.c) {
		out = append(out, m.x.listWaits(j, m.places[j])...)
	}
	return out
}

func (m *forgetful) queues() []model.QueueStatus { return new(queueStatuses).give(m.x.c) }

func (m *forgetful) end() { m.x = nil }

func (m *forgetful) reorder(*model.Plan) bool { return false }

// eachJob makes the step try every job.
type eachJob struct {
	m      *forgetful
	jobs   map[*model.Queue]*session.Heap[*model.Job]
	placed map[*model.Queue]int // number of jobs that have a position
}

func (a *eachJob) begin(takes func(*model.Job) bool) (queues []*model.Queue) {
	x := a.m.x
	for _, j := range x.c.JobsByKey() {
		if !report.MayWait(j) || !j.Seated() || !takes(j) {
			continue
		}
		if a.jobs[j.Queue] == nil {
			a.jobs[j.Queue], queues = x.s.Jobs(), append(queues, j.Queue)
		}
		a.jobs[j.Queue].Put(j)
	}
	slices.SortFunc(queues, byName)
	return queues
}

func (a *eachJob) next(q *model.Queue) *model.Job {
	j, ok := a.jobs[q].Take()
	if !ok {
		return nil
	}
	if a.m.places[j] == 0 {
		a.placed[q]++
		a.m.places[j] = a.placed[q]
	}
	return j
}

func (a *eachJob) tried(j *model.Job, again, _ bool) {
	if again {
		a.jobs[j.Queue].Put(j)
	}
}

func (a *eachJob) alike(*model.Job) (string, bool) { return "", false }

func (a *eachJob) alikeInTurn(*model.Task) (string, bool) { return "", false }

func (a *eachJob) dropped(q *model.Queue, ask func(*model.Queue) policy.Answer) policy.Answer {
	return ask(q)
}

func (a *eachJob) drop(q *model.Queue, why func(*model.Job) model.Reason) {
	for j := a.next(q); j != nil; j = a.next(q) {
		if report.Dropped(j) {
			a.m.x.jobWait(j, why(j))
		}
	}
}

func (a *eachJob) end() {}
