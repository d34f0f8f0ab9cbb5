package session

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Costs appends, for each row of victimCost, the cost of evicting some tasks for another task, with these tasks gone: the sum of the row's
// values for the victims, or their maximum. If the row has no value for any victim, the maximum is lower than any value.
func (s *orders) Costs(t *model.Task, scope string, gone []*model.Task, costs []float64) []float64 {
	f := s.ask.Frame()
	defer s.ask.Done()
	most := gone // the victims with the largest value of the previous rows
	says := make([]float64, len(gone))
	for _, r := range s.p.Rules(policy.VictimCost) {
		among := gone
		if r.Fold == policy.ThenMax {
			among = most
		}
		sum, largest := 0.0, math.Inf(-1)
		for i, v := range among {
			f.OfVictim(t, v, scope)
			s.ask.Watch(r.Expression, f)
			if says[i] = s.ask.Score(r, f); !math.IsNaN(says[i]) {
				sum, largest = sum+says[i], max(largest, says[i])
			}
		}
		if r.Fold == policy.FoldSum {
			costs = append(costs, sum)
			continue
		}
		var worst []*model.Task
		for i, v := range among {
			if says[i] == largest {
				worst = append(worst, v)
			}
		}
		most, costs = worst, append(costs, largest)
	}
	return costs
}
