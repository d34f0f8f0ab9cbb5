package eviction

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// cheapest makes room on that of the first nodes on which it costs least that they go who have to.
func (x *Search) cheapest(t *model.Task) (r Room, found bool) {
	var best []float64
	row, tried := model.NoNode, 0
	for _, candidate := range x.nodes(t) {
		before := x.Txn.Mark()
		if made, ok := x.roomMade(t, candidate); ok {
			if costs := x.costs(t, made.Victims); row == model.NoNode || slices.Compare(costs, best) < 0 {
				best, row = costs, candidate
			}
			tried++
		}
		if x.Txn.Rollback(before); tried == policy.MostCosts {
			break
		}
	}
	if row == model.NoNode {
		return Room{}, false
	}
	return x.roomMade(t, row)
}

// costs are, by each row of victimCost, what it costs that some go for a task, as they are gone: the sum of what the row says of them, or
// the largest of it, which is least of all where it says nothing.
func (x *Search) costs(t *model.Task, victims []Victim) (costs []float64) {
	most := victims
	for _, r := range x.Policy.Rules(policy.VictimCost) {
		among, cost := victims, math.Inf(-1)
		switch r.Fold {
		case policy.FoldSum:
			cost = 0
		case policy.ThenMax:
			among = most
		}
		says := map[*model.Task]float64{}
		for _, v := range among {
			n := x.Number(r, x.Frame().OfVictim(t, v.Task, x.Step.Word(policy.KeyScope)))
			switch says[v.Task] = n; {
			case math.IsNaN(n):
			case r.Fold == policy.FoldSum:
				cost += n
			default:
				cost = max(cost, n)
			}
		}
		if r.Fold != policy.FoldSum {
			most = slices.DeleteFunc(slices.Clone(among), func(v Victim) bool { return says[v.Task] != cost })
		}
		costs = append(costs, cost)
	}
	return costs
}
