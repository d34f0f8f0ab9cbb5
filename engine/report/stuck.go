package report

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Room contains the questions that determine whether a job is stuck.
type Room struct {
	// Lacked reports whether a row, or the scheduler itself, rejects because resources are lacking.
	Lacked func(why model.Reason) bool
	// NeverFits reports whether a task requests more than any node has. NeverStarts is GangNeverStarts of a job.
	NeverFits   func(*model.Task) bool
	NeverStarts func(*model.Job) bool
}

// Stuck reports whether a job would not start if other pods left, by the reasons for which the job and its tasks wait. A job whose pods are
// still being created, or that is promised a place, is not stuck.
func Stuck(j *model.Job, waits []model.Wait, room *Room) (stuck bool) {
	if len(j.Expected) > 0 || j.Counts[model.Pipelined] > 0 {
		return false
	}
	waiting := false
	for i := range waits {
		w := &waits[i]
		switch {
		case w.Reason.Site == "jobReady", w.Reason.Table == "builtin" && (w.Reason.Rule == "turn" || w.Reason.Rule == "role"):
			continue // its other tasks state the reason
		case !waitsForRoom(w, room), room.neverFits(j, w.Task):
			stuck = true
		default:
			waiting = true
		}
	}
	return waiting && room.NeverStarts(j) || stuck && !waiting
}

// neverFits calls NeverFits for the task of a job with a key; false if there is none.
func (r *Room) neverFits(j *model.Job, key string) bool {
	i, found := slices.BinarySearchFunc(j.Tasks, key, func(t *model.Task, key string) int { return strings.Compare(t.Key, key) })
	return found && r.NeverFits(j.Tasks[i])
}

func waitsForRoom(w *model.Wait, room *Room) bool {
	for _, n := range w.Nodes {
		if room.Lacked(Refused(n)) {
			return true
		}
	}
	return len(w.Nodes) == 0 && room.Lacked(w.Reason)
}
