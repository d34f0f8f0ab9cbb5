package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// statusList contains the statuses of the jobs with a queue, in key order.
type statusList struct {
	records []*record
	changed []*record          // since the last cycle
	known   []*model.JobStatus // of records; plans share it, so it is never changed in place
	owned   bool               // no plan shares known yet
	made    slab.Of[model.JobStatus]
}

// reset starts again with some jobs.
func (l *statusList) reset(records []*record) {
	l.records, l.changed = records, slices.Clone(records)
	l.known, l.owned = make([]*model.JobStatus, len(records)), true
}

// put adds a changed job to the list, or removes it.
func (l *statusList) put(r *record, listed bool) {
	if listed {
		l.changed = append(l.changed, r)
	}
	if r.listed == listed {
		return
	}
	r.listed = listed
	i, _ := slices.BinarySearchFunc(l.records, r, byKey)
	l.own()
	if r.status = nil; listed {
		l.records = slices.Insert(l.records, i, r)
		l.known = slices.Insert(l.known, i, nil)
		return
	}
	l.records = slices.Delete(l.records, i, i+1)
	l.known = slices.Delete(l.known, i, i+1)
}

// tell records a job's status, if it changed.
func (l *statusList) tell(r *record, st model.JobStatus) {
	if r.status != nil && same(r.status, &st) {
		return
	}
	i, _ := slices.BinarySearchFunc(l.records, r, byKey)
	r.status = l.made.New()
	*r.status = st
	l.own()
	l.known[i] = r.status
}

// own copies the list if plans share it.
func (l *statusList) own() {
	if !l.owned {
		l.known, l.owned = slices.Clone(l.known), true
	}
}

// give returns the list for a plan; nil: there are no jobs.
func (l *statusList) give() []*model.JobStatus {
	l.changed, l.owned = l.changed[:0], false
	if len(l.known) == 0 {
		return nil
	}
	return l.known
}

func same(a, b *model.JobStatus) bool {
	x, y := *a, *b
	if x.Condition != nil && y.Condition != nil && *x.Condition == *y.Condition {
		x.Condition = y.Condition
	}
	return x == y
}

// waitList contains the reasons of the jobs that may wait for something, by queue and key.
type waitList struct {
	records []*record
	waits   []model.Wait // never changed in place
	stale   bool         // waits must be listed again
}

// reset starts again with some jobs, in any order.
func (l *waitList) reset(records []*record) {
	slices.SortFunc(records, byQueue)
	l.records, l.waits, l.stale = records, nil, true
}

// put adds a job to the list, or removes it. The list is sorted by r.queue.
func (l *waitList) put(r *record, open bool) {
	if r.open == open {
		return
	}
	i, _ := slices.BinarySearchFunc(l.records, r, byQueue)
	if r.open = open; open {
		l.records = slices.Insert(l.records, i, r)
		return
	}
	l.records = slices.Delete(l.records, i, i+1)
	l.stale = l.stale || len(r.waits) > 0
	r.waits = nil
}

// set records a job's waits, if they changed.
func (l *waitList) set(r *record, waits []model.Wait) {
	if !slices.EqualFunc(r.waits, waits, equalWaits) {
		r.waits, l.stale = waits, true
	}
}

// move records a new position of a job in the order of its queue.
func (l *waitList) move(r *record, place int) {
	r.place, l.stale = place, true
	r.waits = slices.Clone(r.waits)
	for i := range r.waits {
		r.waits[i].Place = place
	}
}

// give returns the list of waits. It builds a new list if one of them changed.
func (l *waitList) give() []model.Wait {
	if l.stale {
		count := 0
		for _, r := range l.records {
			count += len(r.waits)
		}
		l.stale, l.waits = false, slices.Grow([]model.Wait(nil), count)
		for _, r := range l.records {
			l.waits = append(l.waits, r.waits...)
		}
	}
	return l.waits
}

func equalWaits(a, b model.Wait) bool {
	return a.Job == b.Job && a.Task == b.Task && a.Queue == b.Queue && a.Action == b.Action && a.Reason == b.Reason && a.Place == b.Place &&
		slices.Equal(a.Nodes, b.Nodes) && a.Tried.Equal(b.Tried) && slices.EqualFunc(a.InVain, b.InVain, model.InVain.Equal)
}
