package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/verdict"
)

// rests is what an outcome without effect rests on beside the job itself: what the rows read of the queue and of the cluster, and that
// nodes refuse some of its tasks. While these are what they were, so is the outcome, whatever else the cluster contains.
type rests struct {
	known   bool // else it rests on the whole of the cluster's content
	sight   session.Sight
	refused []refused
}

// refused is a task that no node took, told by its place among those that wait.
type refused struct {
	task int
	by   verdict.Refusal
}

// note takes in what the outcome of a job rests on that was just tried.
func (r *rests) note(o *session.Outlook, j *model.Job, tasks []*model.Task) {
	r.sight, r.refused = o.Of(j.Queue), r.refused[:0]
	place := 0
	for _, t := range j.Tasks {
		if !t.Waits() {
			continue
		}
		for _, of := range tasks {
			if of == t {
				r.refused = append(r.refused, refused{place, o.Refused(t)})
			}
		}
		place++
	}
}

// stand says that all of it is as it was, for a job of the kind.
func (r *rests) stand(o *session.Outlook, j *model.Job) bool {
	if r.sight != o.Of(j.Queue) {
		return false
	}
	place, next := 0, 0
	for _, t := range j.Tasks {
		if next == len(r.refused) {
			break
		}
		if !t.Waits() {
			continue
		}
		if r.refused[next].task == place {
			if !o.StillRefused(t, r.refused[next].by) {
				return false
			}
			next++
		}
		place++
	}
	return next == len(r.refused)
}
