package action

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/verdict"
)

// rests is what an outcome without effect depends on in addition to the job: what the rows read of the queue and of the cluster, and the
// rejections of its tasks by nodes. While these are the same, the outcome is the same, even if other parts of the cluster change.
type rests struct {
	known   bool // otherwise the outcome depends on the whole content of the cluster
	sight   session.Sight
	refused []refused
}

// refused is a task that no node accepted, identified by its index among the waiting tasks.
type refused struct {
	task int
	by   verdict.Refusal
}

// note records what the outcome of a job depends on that was just tried.
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

// stand reports whether all of it is unchanged, for a job of the kind.
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
