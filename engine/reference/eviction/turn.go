package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// Turn is what came of a job's turn.
type Turn struct {
	Done         []Room // together
	Kept, Stable bool
}

// TakeTurn takes a job's turn until it is stable: each time without those who would take the room back. One that is not kept though some of
// the job's tasks found room by force is taken again, each time with another of those staying who went, until it is kept. A job has only so
// many pods to spare: where one of them went though others could have gone, there is no room on a node that only its pods could leave. So
// those are asked to stay of whose jobs others were not let go, the last to go first.
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

// deny notes the jobs of those who were not let go, where a task would have room if they were.
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
