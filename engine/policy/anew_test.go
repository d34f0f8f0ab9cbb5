package policy

import (
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
)

// anew is a session at the same moment of the same cycle that remembers nothing of this one but what settled in the cycle or at a start,
// what erred, and how often each row was asked.
func anew(s *Session) *Session {
	out := s.Renewed()
	out.Cycle, out.Action, out.actions, out.UsedAtStart = s.Cycle, s.Action, s.actions, s.UsedAtStart
	out.SetTime(s.Now.Time)
	out.faults, out.faultOrder, out.erring = maps.Clone(s.faults), slices.Clone(s.faultOrder), s.erring
	out.meters, out.evaluated = s.meters, s.evaluated
	out.rest.begun, out.rest.now, out.rest.until, out.rest.values = s.rest.begun, s.rest.now, s.rest.until, s.rest.values
	out.verdicts.begin(s.Cycle)
	settled := map[*Attribute][]language.Memo{}
	for _, x := range s.p.attributes {
		if x.Settle != "cycle" && x.Settle != "start" {
			continue
		}
		if x.account != nil && x.account.function.AllAtOnce {
			shared := *s.accountOf(x.account).(*fillState)
			shared.s = out
			out.accounts[x.account.slot] = &shared
		}
		for _, view := range s.Owners(x.On) {
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

// anew forgets what the side's session and heaps remember. Queues are not kept along a tree then.
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
