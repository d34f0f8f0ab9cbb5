package eviction

import (
	"cmp"
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// cheapest makes room on that of the first nodes on which those go who matter least.
func (x *Search) cheapest(t *model.Task) (r Room, found bool) {
	var best []int64
	row, tried := model.NoNode, 0
	for _, candidate := range x.nodes(t) {
		before := x.Txn.Mark()
		made, ok := x.roomMade(t, candidate)
		if x.Txn.Rollback(before); !ok {
			continue
		}
		if cost := x.cost(made.Victims); best == nil || slices.Compare(cost, best) < 0 {
			best, row = cost, candidate
		}
		if tried++; tried == policy.MostCosts {
			break
		}
	}
	if row == model.NoNode {
		return Room{}, false
	}
	return x.roomMade(t, row)
}

// cost is what it costs that some go: the highest priority of a job, and of a pod of such jobs, the sums of priorities, each counted from
// the lowest that there is, so that nobody more goes because of a priority below 0, how many they are, and how long the first to have
// started of the highest has run.
func (x *Search) cost(victims []Victim) []int64 {
	var jobs, pods int64
	highest := slices.MaxFunc(victims, func(a, b Victim) int {
		now := x.World().Now.Time
		return cmp.Or(cmp.Compare(a.Task.Job.Priority, b.Task.Job.Priority), cmp.Compare(a.Task.Priority, b.Task.Priority),
			b.Task.Started(now).Compare(a.Task.Started(now)))
	}).Task
	for _, v := range victims {
		jobs, pods = jobs+v.Task.Job.Priority-math.MinInt32, pods+v.Task.Priority-math.MinInt32
	}
	return []int64{
		highest.Job.Priority, highest.Priority, jobs, pods, int64(len(victims)), -highest.Started(x.World().Now.Time).Unix(),
	}
}
