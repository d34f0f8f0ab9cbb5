package eviction

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// cheapest frees resources on the node with the lowest cost of the necessary evictions. It compares at most policy.MostCosts nodes.
func (x *Search) cheapest(t *model.Task) (r Room, found bool) {
	type cost struct {
		of  []float64
		row int32
	}
	var all []cost // of the nodes on which resources can be freed, the lowest first
	for _, row := range x.nodes(t) {
		before := x.Txn.Mark()
		if made, ok := x.roomMade(t, row); ok {
			var gone []*model.Task
			for _, v := range made.Victims {
				gone = append(gone, v.Task)
			}
			all = append(all, cost{x.costs(t, gone), row})
		}
		if x.Txn.Rollback(before); len(all) == policy.MostCosts {
			break
		}
	}
	if len(all) == 0 {
		return Room{}, false
	}
	slices.SortStableFunc(all, func(a, b cost) int { return slices.Compare(a.of, b.of) })
	x.sets = subsets.Most // to find the same victims as before
	r, found = x.roomMade(t, all[0].row)
	for i, row := range x.Policy.Rules(policy.VictimCost) {
		if len(all) > 1 && all[0].of[i] != all[1].of[i] {
			r.Bind.Reason = report.CostsLess(r.Bind.Reason, policy.VictimCost, row.Table, row.Name, x.Cluster.Nodes.Rows[all[1].row].Name)
			break
		}
	}
	return r, found
}

// costs returns, for each row of victimCost, the cost of evicting some tasks for another task, with these tasks gone: the sum of the row's
// values for the victims, or their maximum. If the row has no value for any victim, the maximum is lower than any value.
func (x *Search) costs(t *model.Task, victims []*model.Task) (costs []float64) {
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
			n := x.Number(r, x.Frame().OfVictim(t, v, x.Step.Word(policy.KeyScope)))
			switch says[v] = n; {
			case math.IsNaN(n):
			case r.Fold == policy.FoldSum:
				cost += n
			default:
				cost = max(cost, n)
			}
		}
		if r.Fold != policy.FoldSum {
			most = slices.DeleteFunc(slices.Clone(among), func(v *model.Task) bool { return says[v] != cost })
		}
		costs = append(costs, cost)
	}
	return costs
}

// sortByCost sorts units by the cost of evicting each alone, together with all tasks that takes returns for it. The lowest cost comes
// first.
func (x *Search) sortByCost(t *model.Task, units [][]*model.Task, takes func(unit []*model.Task) []*model.Task) {
	type cost struct {
		of   []float64
		unit []*model.Task
	}
	var all []cost
	for _, u := range units {
		before, gone := x.Txn.Mark(), takes(u)
		for _, v := range gone {
			x.Txn.Leave(v)
		}
		all = append(all, cost{x.costs(t, gone), u})
		x.Txn.Rollback(before)
	}
	slices.SortStableFunc(all, func(a, b cost) int { return slices.Compare(a.of, b.of) })
	for i, c := range all {
		units[i] = c.unit
	}
}
