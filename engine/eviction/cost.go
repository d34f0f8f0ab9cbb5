package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// priced is the cost of the necessary evictions on a node, by each row of victimCost.
type priced struct {
	row   int32 // NoNode: there is none
	costs []float64
}

// less reports whether a node costs less than another. Any node costs less than none.
func (p *priced) less(o *priced) bool {
	return o.row == model.NoNode || slices.Compare(p.costs, o.costs) < 0
}

// cheapest frees resources on the node with the lowest cost of the necessary evictions. It compares at most policy.MostCosts nodes.
func (x *Search) cheapest(t *model.Task, nodes []int32) (r Room, found bool) {
	best, next := priced{row: model.NoNode}, priced{row: model.NoNode}
	var one priced
	var gone []*model.Task
	tried := 0
	for _, row := range nodes {
		x.c.Breathe()
		before := x.Txn.Mark()
		made, ok := x.roomMade(t, row)
		if ok {
			gone = gone[:0]
			for i := range made.Victims {
				gone = append(gone, made.Victims[i].Task)
			}
			one.row, one.costs = row, x.Session.Costs(t, x.scope, gone, one.costs[:0])
			if one.less(&best) {
				best, next, one = one, best, next
			} else if one.less(&next) {
				next, one = one, next
			}
			tried++
		}
		if x.Txn.Rollback(before); tried == policy.MostCosts {
			break
		}
	}
	if best.row == model.NoNode {
		return Room{}, false
	}
	x.sets = subsets.Most // to find the same victims as before
	r, found = x.roomMade(t, best.row)
	if next.row != model.NoNode {
		r.Bind.Reason = x.costsLess(r.Bind.Reason, best.costs, &next)
	}
	return r, found
}

// costsLess adds to the reason of a node the row by which it costs less than the next node; nothing if the costs are equal.
func (x *Search) costsLess(why model.Reason, costs []float64, next *priced) model.Reason {
	for i, r := range x.Session.Policy().Rules(policy.VictimCost) {
		if costs[i] != next.costs[i] {
			return report.CostsLess(why, policy.VictimCost, r.Table, r.Name, x.c.Nodes.Rows[next.row].Name)
		}
	}
	return why
}

// sortByCost sorts units by the cost of evicting each alone, together with all tasks that takes returns for it. The lowest cost comes
// first.
func (x *Search) sortByCost(t *model.Task, units [][]*model.Task, takes func(unit []*model.Task) []*model.Task) {
	type cost struct {
		of   []float64
		unit []*model.Task
	}
	rows := len(x.Session.Policy().Rules(policy.VictimCost))
	all, numbers := make([]cost, len(units)), make([]float64, 0, len(units)*rows)
	for i, u := range units {
		before, gone := x.Txn.Mark(), takes(u)
		for _, v := range gone {
			x.Txn.Leave(v)
		}
		from := len(numbers)
		numbers = x.Session.Costs(t, x.scope, gone, numbers)
		all[i] = cost{numbers[from:], u}
		x.Txn.Rollback(before)
	}
	slices.SortStableFunc(all, func(a, b cost) int { return slices.Compare(a.of, b.of) })
	for i := range all {
		units[i] = all[i].unit
	}
}
