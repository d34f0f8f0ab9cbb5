package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
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
	x.denied = map[*model.Job]bool{}
	first, tries := stable(), 0
	kept, denied, waits := first.Kept, x.denied, x.Waits
	x.Waits = nil
	defer func() { x.Waits = waits }()
	for _, r := range slices.Backward(first.Done) {
		for _, v := range slices.Backward(r.Victims) {
			if kept || !denied[v.Task.Job] || tries == policy.MostDetours {
				continue
			}
			tries++
			x.denied = map[*model.Job]bool{}
			x.barred[barred{v.Task, r.Task.Job}] = true
			kept = stable().Kept
			delete(x.barred, barred{v.Task, r.Task.Job})
		}
	}
}

// deny records the jobs whose tasks the rows protected, if a task would fit after their eviction.
func (x *Search) deny(t *model.Task, row int32, candidates []*model.Task, lets []answers.Victim) {
	if !x.enough(t, row, candidates) {
		return
	}
	for _, v := range candidates {
		if !slices.ContainsFunc(lets, func(l answers.Victim) bool { return l.Task == v }) {
			x.denied[v.Job] = true
		}
	}
}
