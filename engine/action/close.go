package action

import (
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Jobs gives every pending task of ours a reason, of its own or its job's, and lists the statuses of all jobs with a queue, in key
// order, as tell gives them. It is asked about those for which anything changed.
func (x *Cycle) Jobs(tell func(*model.Job) model.JobStatus) []*model.JobStatus {
	b := x.backlog
	for _, r := range b.fresh {
		x.look(r)
	}
	if !b.local { // a status may be another though nothing of its job changed, and it rests on what the job waits for
		for _, r := range b.open {
			x.look(r)
		}
	}
	for i := range x.looked {
		x.enliven(x.looked[i])
	}
	for _, r := range x.looked {
		if r.open {
			r.untold = r.job.Counts[model.Pending] > 0 && x.jobWaits[r.job] == nil
			x.untried(r.job)
		}
	}
	slices.SortFunc(x.looked, byKey)
	if !b.local {
		b.touched = append(b.touched[:0], b.listed...)
	}
	for _, list := range [][]*record{b.touched, x.looked} {
		for _, r := range list {
			if r.listed && r.told != b.cycle {
				r.told = b.cycle
				b.tell(r, tell(r.job))
			}
		}
	}
	b.touched, b.owned = b.touched[:0], false
	if len(b.statuses) == 0 {
		return nil
	}
	return b.statuses
}

// tell notes a job's status, if it is another.
func (b *backlog) tell(r *record, st model.JobStatus) {
	if r.status != nil && same(r.status, &st) {
		return
	}
	i, _ := slices.BinarySearchFunc(b.listed, r, byKey)
	r.status = b.slabs.statuses.New()
	*r.status = st
	b.own()
	b.statuses[i] = r.status
}

// own makes the list of statuses this cycle's own, as plans have it.
func (b *backlog) own() {
	if !b.owned {
		b.statuses, b.owned = slices.Clone(b.statuses), true
	}
}

func same(a, b *model.JobStatus) bool {
	x, y := *a, *b
	if x.Condition != nil && y.Condition != nil && *x.Condition == *y.Condition {
		x.Condition = y.Condition
	}
	return x == y
}

// closeWaits lists why all that waits does so, by queue and job.
func (x *Cycle) closeWaits() {
	b := x.backlog
	for _, r := range x.looked {
		if !r.open {
			continue
		}
		waits := x.waitsOf(r)
		if !slices.EqualFunc(r.waits, waits, equalWaits) {
			r.waits, b.changed = waits, true
		}
	}
	b.listWaits()
	x.plan.Waits = b.waits
}

// listWaits lists them anew where any is another.
func (b *backlog) listWaits() {
	if !b.changed {
		return
	}
	b.changed, b.waits = false, nil
	for _, r := range b.open {
		b.waits = append(b.waits, r.waits...)
	}
}

func equalWaits(a, b model.Wait) bool {
	return a.Job == b.Job && a.Task == b.Task && a.Queue == b.Queue && a.Action == b.Action && a.Reason == b.Reason && a.Place == b.Place && slices.Equal(a.Nodes, b.Nodes) &&
		a.Tried.Equal(b.Tried)
}

// waitsOf lists a job's waits, then those of its tasks in their order.
func (x *Cycle) waitsOf(r *record) []model.Wait {
	j, place := r.job, 0
	if r.placed == x.backlog.cycle {
		place = r.place
	}
	var out []model.Wait
	if w := x.jobWaits[j]; w != nil && unfinished(j) {
		own := *w
		own.Place = place
		out = append(out, own)
	}
	var left []*model.Task
	for _, t := range j.Tasks {
		if x.taskWaits[t] != nil && t.Status == model.Pending {
			left = append(left, t)
		}
	}
	x.s.SortTasks(left)
	for _, t := range left {
		own := *x.taskWaits[t]
		own.Place = place
		out = append(out, own)
	}
	return out
}

// Reorder brings the places in a plan that is still that of the last cycle up to date, as jobs may go before others by nothing but
// the passing of time; false: it takes a cycle to tell. Who comes first makes no other difference to a cycle in which everyone was
// tried in vain.
func Reorder(s *policy.Session, plan *model.Plan) bool {
	b, ok := s.Kept.(*backlog)
	if !ok {
		return true
	}
	due, moved := b.due(plan.Now), false
	if len(due) == 0 {
		return true
	}
	s.Tick()
	for _, d := range due {
		s.SetAction(d.lane.action)
		moved = d.line.rerank(d.lane, plan.Now, false) || moved
	}
	plan.Errors = s.Faults()
	switch {
	case !moved:
		return true
	case len(b.fresh) > 0: // their places are not known here
		return false
	}
	b.renumber()
	b.listWaits()
	plan.Waits, plan.Same = b.waits, false
	s.End(plan)
	return true
}

// dueLine is a line in which some key may be another than it was.
type dueLine struct {
	lane  *lane
	queue *model.Queue
	line  *line
}

// due lists them in the order of steps and queues, as the first to err is named. The list is good until it is asked for again.
func (b *backlog) due(now time.Time) []dueLine {
	due := b.dueNow[:0]
	for _, step := range b.steps {
		l, first := b.lanes[step], len(due)
		for q, x := range l.lines {
			if !x.until.IsZero() && !now.Before(x.until) {
				due = append(due, dueLine{l, q, x})
			}
		}
		slices.SortFunc(due[first:], func(a, b dueLine) int { return strings.Compare(a.queue.Name, b.queue.Name) })
	}
	b.dueNow = due
	return due
}

// renumber gives jobs their places by the order of the lines.
func (b *backlog) renumber() {
	b.cycle++
	for _, step := range b.steps {
		l := b.lanes[step]
		for _, x := range l.lines {
			place := 0
			for _, p := range x.jobs {
				if p.gone || p.rec.placed == b.cycle {
					continue
				}
				p.rec.placed = b.cycle
				if place++; p.rec.place != place {
					p.rec.move(place)
					b.changed = true
				}
			}
		}
	}
}

func (r *record) move(place int) {
	r.place = place
	r.waits = slices.Clone(r.waits)
	for i := range r.waits {
		r.waits[i].Place = place
	}
}
