package action

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// statuses asks about those for which anything may have changed.
func (b *backlog) statuses(told func(*model.Job) model.JobStatus) []*model.JobStatus {
	x := b.x
	for _, r := range b.fresh {
		b.look(r)
	}
	if !b.local { // a status may be another though nothing of its job changed, and it rests on what the job waits for
		for _, r := range b.open {
			b.look(r)
		}
	}
	for i := range b.looked {
		b.recall(b.looked[i])
	}
	for _, r := range b.looked {
		if r.open {
			r.untold = r.job.Counts[model.Pending] > 0 && !x.waits.Waits(r.job)
			x.untried(r.job)
		}
	}
	slices.SortFunc(b.looked, byKey)
	if !b.local {
		b.touched = append(b.touched[:0], b.listed...)
	}
	for _, list := range [][]*record{b.touched, b.looked} {
		for _, r := range list {
			if r.listed && r.told != b.cycle {
				r.told = b.cycle
				b.tell(r, told(r.job))
			}
		}
	}
	b.touched, b.owned = b.touched[:0], false
	if len(b.known) == 0 {
		return nil
	}
	return b.known
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
	b.known[i] = r.status
}

// own makes the list of statuses this cycle's own, as plans have it.
func (b *backlog) own() {
	if !b.owned {
		b.known, b.owned = slices.Clone(b.known), true
	}
}

func same(a, b *model.JobStatus) bool {
	x, y := *a, *b
	if x.Condition != nil && y.Condition != nil && *x.Condition == *y.Condition {
		x.Condition = y.Condition
	}
	return x == y
}

func (b *backlog) waits() []model.Wait {
	for _, r := range b.looked {
		if !r.open {
			continue
		}
		place := 0
		if r.placed == b.cycle {
			place = r.place
		}
		waits := b.x.listWaits(r.job, place)
		if !slices.EqualFunc(r.waits, waits, equalWaits) {
			r.waits, b.changed = waits, true
		}
	}
	b.listWaits()
	return b.waiting
}

// listWaits lists them anew where any is another.
func (b *backlog) listWaits() {
	if !b.changed {
		return
	}
	b.changed, b.waiting = false, nil
	for _, r := range b.open {
		b.waiting = append(b.waiting, r.waits...)
	}
}

func equalWaits(a, b model.Wait) bool {
	return a.Job == b.Job && a.Task == b.Task && a.Queue == b.Queue && a.Action == b.Action && a.Reason == b.Reason && a.Place == b.Place &&
		slices.Equal(a.Nodes, b.Nodes) && a.Tried.Equal(b.Tried)
}

func (b *backlog) reorder(plan *model.Plan) bool {
	due, moved := b.due(plan.Now), false
	if len(due) == 0 {
		return true
	}
	s := b.s
	s.Tick()
	for _, d := range due {
		s.SetAction(d.step.action)
		moved = d.order.rerank(s, plan.Now, false) || moved
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
	plan.Waits, plan.Same = b.waiting, false
	s.End(plan)
	return true
}

// dueOrder is an order of jobs in which some key may be another than it was.
type dueOrder struct {
	step  *stepBacklog
	queue *model.Queue
	order *jobOrder
}

// due lists them in the order of steps and queues, as the first to err is named. The list is good until it is asked for again.
func (b *backlog) due(now time.Time) []dueOrder {
	due := b.dueNow[:0]
	for _, l := range b.steps {
		first := len(due)
		for q, o := range l.orders {
			if !o.until.IsZero() && !now.Before(o.until) {
				due = append(due, dueOrder{l, q, o})
			}
		}
		slices.SortFunc(due[first:], func(a, b dueOrder) int { return byName(a.queue, b.queue) })
	}
	b.dueNow = due
	return due
}

// renumber gives jobs their places by the order of each step.
func (b *backlog) renumber() {
	b.cycle++
	for _, l := range b.steps {
		for _, o := range l.orders {
			place := 0
			for _, p := range o.jobs {
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
