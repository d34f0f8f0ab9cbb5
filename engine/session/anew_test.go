package session

import (
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// anew returns a session at the same moment of the same cycle without caches. It keeps values that settled in the cycle or at a start, the
// errors, and the numbers of evaluations.
func anew(s *Session) *Session {
	out := s.Renewed()
	out.Cycle, out.Action, out.UsedAtStart = s.Cycle, s.Action, s.UsedAtStart
	out.SetTime(s.Now.Time)
	from, to := s.ask, out.ask
	to.faults, to.faultOrder, to.erring, to.evaluated = maps.Clone(from.faults), slices.Clone(from.faultOrder), from.erring, from.evaluated
	to.actions, to.until, out.meters = from.actions, from.until, s.meters
	out.rest.begun, out.rest.now, out.rest.values = s.rest.begun, s.rest.now, s.rest.values
	out.verdicts.Begin(s.Cycle)
	settled := map[*policy.Attribute][]language.Memo{}
	for _, x := range s.p.Attributes() {
		if x.Settle != "cycle" && x.Settle != "start" {
			continue
		}
		for _, view := range s.Owners(x.On) {
			s.Attribute(x, view)
			memo, _ := s.memoOf(x, view)
			settled[x] = append(settled[x], *memo)
		}
	}
	for x, memos := range settled {
		for i, view := range out.Owners(x.On) {
			memo, _ := out.memoOf(x, view)
			*memo = memos[i]
		}
	}
	return out
}

// anew drops the caches of the side's session and heaps. Its queues are then not kept in a tree.
func (x *side) anew() {
	x.s = anew(x.s)
	if x.queues == nil {
		return
	}
	queues, jobs := x.queues, x.jobs
	x.queues, x.jobs = &Queues{flat: x.s.flatQueues()}, x.s.Jobs()
	left := queues.flat.all()
	if queues.tree != nil {
		for _, q := range queues.tree.all() {
			x.queues.Put(q)
		}
	}
	for _, item := range left {
		x.queues.Put(item.Of)
	}
	for _, item := range jobs.all() {
		x.jobs.Put(item.Of)
	}
}
