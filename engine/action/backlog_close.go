package action

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// statuses calls told for the jobs whose status may have changed.
func (b *backlog) statuses(told func(*model.Job) model.JobStatus) []*model.JobStatus {
	x := b.x
	for _, r := range b.fresh {
		b.look(r)
	}
	sizes, limits := b.s.NodeSizes(), b.c.QueueLimits
	// A status may change although its job did not; it depends on what the job waits for.
	elsewhere := !b.local || sizes != b.sizes || limits != b.limits
	b.sizes, b.limits = sizes, limits
	if elsewhere {
		for _, r := range b.open.records {
			b.look(r)
		}
	}
	for i := range b.looked {
		b.recall(b.looked[i])
	}
	for _, r := range b.looked {
		if r.open {
			r.untold = x.waits.Untold(r.job)
			x.untried(r.job)
		}
	}
	slices.SortFunc(b.looked, byKey)
	if elsewhere {
		b.listed.changed = append(b.listed.changed[:0], b.listed.records...)
	}
	for _, list := range [][]*record{b.listed.changed, b.looked} {
		for _, r := range list {
			if r.listed && r.told != b.cycle {
				r.told = b.cycle
				b.listed.tell(r, told(r.job))
			}
		}
	}
	return b.listed.give()
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
		b.open.set(r, b.x.listWaits(r.job, place))
	}
	return b.open.give()
}

func (b *backlog) queues() []model.QueueStatus { return b.queued.give(b.c) }

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
	case b.ordered, len(b.fresh) > 0: // a new first job may be placed; the positions of fresh jobs are unknown here
		return false
	}
	b.renumber()
	plan.Waits, plan.Same = b.open.give(), false
	s.End(plan)
	return true
}

// dueOrder is an order of jobs in which some keys may have changed.
type dueOrder struct {
	step  *stepBacklog
	order *jobOrder
}

// due lists the orders in which some keys may have changed, by step and queue, because the first error names its job. The list is valid
// until the next call.
func (b *backlog) due(now time.Time) []dueOrder {
	due := b.dueNow[:0]
	for _, l := range b.steps {
		for _, q := range l.queues.inOrder() {
			if o := &q.order; !o.until.IsZero() && !now.Before(o.until) {
				due = append(due, dueOrder{l, o})
			}
		}
	}
	b.dueNow = due
	return due
}

// renumber sets the positions of jobs from the order of each step.
func (b *backlog) renumber() {
	b.cycle++
	for _, l := range b.steps {
		for _, q := range l.queues.all {
			place := 0
			for _, p := range q.order.jobs {
				if p.gone || p.rec.placed == b.cycle {
					continue
				}
				p.rec.placed = b.cycle
				if place++; p.rec.place != place {
					b.open.move(p.rec, place)
				}
			}
		}
	}
}
