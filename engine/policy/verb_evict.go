package policy

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
)

// Evict is the verb that evicts the pods that rows select.
const Evict = "evict"

// Parameters of evict that displace does not have.
const (
	KeyBudget = "budget"
	KeyEvery  = "every"
)

func evictVerb() Verb {
	return Verb{
		Name: Evict,
		Doc:  "Evicts the pods that rows of `victims` name, for no other's sake.",
		Itself: []string{
			"Only pods of this scheduler are looked at that run or are bound, in the order of `victimOrder` without a preemptor: those first that " +
				"come last by queueOrder, jobOrder and taskOrder.",
			"The first tier decides that names anybody, and in it whom any row names. Each row goes through them with books of its own, which " +
				"already lack those whom it has named. Then rows with `veto` are asked about those who are named, and their no is final.",
			"A row, or a step, with `every` rests for so long after it was asked. When that was is part of the cluster, and of the plan; after a " +
				"restart it is asked at once.",
			"A pod whose eviction the API server refused is left alone for a while.",
		},
		Parameters: []Parameter{
			whenParameter(),
			{KeyCandidates, "Who is put to the rows at all.", kinds.Condition{Roots: []string{"victim"}, Default: "victim.status == 'Running'"}},
			{KeyVictims, "The section of rows that names them.", kinds.Word{Of: []string{Victims}, Default: Victims}},
			viaParameter(),
			{KeyBudget, "How many are evicted at most in one cycle.", kinds.Count{}},
			{KeyEvery, "For how long the step rests after it was taken.", kinds.Period{Most: 24 * time.Hour}},
		},
		Sites: []string{Victims, QueueOrder, JobOrder, TaskOrder, VictimOrder},
	}
}
