package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Turn is the result of a job's turn.
type Turn struct {
	Done         []Room // the promises that the turn made
	Kept, Stable bool
}

// TakeTurn repeats a job's turn until its evictions are stable, each time without the victims that would take the resources back. If the
// turn is not kept although some tasks found a place by eviction, TakeTurn repeats it until it is kept. Each of these attempts protects one
// other victim.
//
// The rows let a job lose only some of its pods. The search may evict one of them where another job's pod would have done. Then no pod may
// be left to evict on a node where only pods of the first job run. TakeTurn therefore protects victims of jobs whose other pods may not be
// evicted, the last victim first.
func (x *Search) TakeTurn(take func() Turn) {
	stable := func() (t Turn) {
		for tries := 0; !t.Stable && tries < policy.MostUnstable; tries++ {
			t = take()
		}
		return t
	}
	x.denied = nil
	first := stable()
	kept, denied, tries, tell := first.Kept, x.denied, 0, x.vain.tell
	x.vain.tell = nil
	defer func() { x.vain.tell = tell }()
	for _, r := range slices.Backward(first.Done) {
		for _, v := range slices.Backward(r.Victims) {
			if kept || !denied[v.Task.Job] || tries == policy.MostDetours {
				continue
			}
			tries++
			x.denied = nil
			x.bar(v.Task, r.Task.Job)
			kept = stable().Kept
			delete(x.barred, barred{v.Task, r.Task.Job})
		}
	}
}

// denials are the jobs of which the rows protected some tasks, although a task would fit if they were evicted.
type denials map[*model.Job]bool

func (d *denials) note(candidates []*model.Task, lets []session.Victim) {
	for _, v := range candidates {
		if !(*d)[v.Job] && !slices.ContainsFunc(lets, func(l session.Victim) bool { return l.Task == v }) {
			if *d == nil {
				*d = denials{}
			}
			(*d)[v.Job] = true
		}
	}
}
