package proof

import (
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// measured checks that evictions make progress, as far as the policy's own rows define it. It uses the state before the evictions for a
// task.
type measured struct{ *Cycle }

// along checks a victim inside a queue. It applies to rows that permit the eviction because they compare a value of the victim with that of
// its preemptor. The value may also be one of their jobs. If the same table orders jobs, or the tasks of a job, by this value, the victim
// must not come first. So each eviction moves what waits to a later position in that order.
func (x measured) along(step *policy.Step, t *model.Task, v victim, lets []*policy.Rule) {
	site, claims, gives := policy.JobOrder, x.Frame().OfJobAlone(t.Job), x.Frame().OfJobAlone(v.task.Job)
	switch step.Word(policy.KeyScope) {
	case policy.ScopeJob:
		site, claims, gives = policy.TaskOrder, x.Frame().OfTaskAlone(t), x.Frame().OfTaskAlone(v.task)
	case policy.ScopeQueue:
	default:
		return // the function falls checks other scopes
	}
	first, second := x.Keys(site, claims), x.Keys(site, gives)
	for _, let := range lets {
		for i, r := range x.p.Rules(site) {
			if r.Table == let.Table && comparesBy(let, r) && r.Compare(&first[i], &second[i]) > 0 {
				x.violated(Progress, t.Key, v.task.Key, "by %s/%s it comes first of the two, and %s/%s lets it go", r.Table, r.Name, let.Table,
					let.Name)
			}
		}
	}
}

// comparesBy reports whether a row that permits evictions compares victims with preemptors by a value that a row of an order reads.
func comparesBy(let, order *policy.Rule) bool {
	reads := func(paths ...string) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			for _, read := range let.Reads.All {
				if read.String() == path {
					return true
				}
			}
			return false
		})
	}
	for _, read := range order.Reads.All {
		path := read.String()
		if of, ok := strings.CutPrefix(path, "task."); ok && reads("victim."+of) && reads("preemptor."+of) {
			return true
		}
		if strings.HasPrefix(path, "job.") && reads("victim."+path) && reads("preemptor."+path, path) {
			return true
		}
	}
	return false
}

// due checks that the queue of promised tasks may evict tasks for their requests, if the step has that gate. A job can have several turns.
// So it may do so first for some tasks, and for others after these have their nodes.
func (x measured) due(step *policy.Step, need ...*promise) {
	if !step.Gate(policy.Preemptive) {
		return
	}
	x.tried(func() {
		for len(need) > 0 {
			first, why := 0, policy.Answer{}
			for n := len(need); n > 0 && first == 0; n-- {
				var asks model.Resources
				for _, p := range need[:n] {
					asks = asks.Add(p.task.Request)
				}
				if a := x.All(policy.Preemptive, x.Frame().OfJob(need[0].task.Job).OfRequest(asks)); a.Yes {
					first = n
				} else if n == len(need) {
					why = a
				}
			}
			if first == 0 {
				x.violated(Progress, need[0].task.Key, "", "its queue may not take so much by force: %s", said(why))
				return
			}
			for _, p := range need[:first] {
				x.again(p, p.row)
			}
			need = need[first:]
		}
	})
}

// beyond returns, for each row of beyondDue, how much the queues of both sides together hold beyond their deserved shares.
func (x measured) beyond(t *model.Task, victims []victim) (sums []float64) {
	queues := []*model.Queue{t.Job.Queue}
	for _, v := range victims {
		if !slices.Contains(queues, v.task.Job.Queue) {
			queues = append(queues, v.task.Job.Queue)
		}
	}
	for _, r := range x.p.Rules(policy.BeyondDue) {
		sum := 0.0
		for _, q := range queues {
			if n := x.Number(r, x.Frame().OfQueue(q)); !math.IsNaN(n) {
				sum += n
			}
		}
		sums = append(sums, sum)
	}
	return sums
}

// falls checks evictions for a task of another queue. For each table that permits all of them, the amount beyond deserved shares, by the
// rows of the table, must decrease. A task without requests does not change this amount. The state is the one before the evictions. lets is
// indexed by victim.
func (x measured) falls(step *policy.Step, t *model.Task, victims []victim, lets [][]*policy.Rule, after []float64) {
	if step.Word(policy.KeyScope) != policy.ScopeOtherQueues || t.BestEffort || len(victims) == 0 {
		return
	}
	before := x.beyond(t, victims)
	for i, r := range x.p.Rules(policy.BeyondDue) {
		letsAll := !slices.ContainsFunc(lets, func(of []*policy.Rule) bool {
			return !slices.ContainsFunc(of, func(l *policy.Rule) bool { return l.Table == r.Table })
		})
		if letsAll && after[i] >= before[i] {
			x.violated(Progress, t.Key, "", "by %s/%s its queue and those that give hold %.4g beyond their due with it, and %.4g without", r.Table,
				r.Name, after[i], before[i])
		}
	}
}
