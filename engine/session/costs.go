package session

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Costs appends, by each row of victimCost, what it costs that some go for a task, as they are gone: the sum of what the row says of them,
// or the largest of it, which is least of all where it says nothing.
func (s *orders) Costs(t *model.Task, scope string, gone []*model.Task, costs []float64) []float64 {
	f := s.ask.Frame()
	defer s.ask.Done()
	most := gone // of those who go, whom the last rows found the worst
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
