// Package parts defines what the rows of joined policies decide, where each policy has its own queues.
package parts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	// ServedBy is the computed field of a queue with the name of the policy that serves it as one of its own queues. "": none does.
	ServedBy = "servedBy"
	// JudgedBy is the computed field of a queue with the name of the policy whose predicates apply to its pods. "": the policy of all other
	// queues. It differs from ServedBy if only the predicates of a policy are in force.
	JudgedBy = "judgedBy"
	// Sign separates the name of a policy from the name of its table.
	Sign = ":"
	// Key is the field of a joined policy that contains the policies for their own queues.
	Key = "queuePolicies"
)

// Of splits the name of a table into the name of its policy and its own name. If the result is false, it belongs to the policy of all other
// queues.
func Of(table string) (part, name string, ok bool) {
	if part, name, ok = strings.Cut(table, Sign); ok {
		return part, name, true
	}
	return "", table, false
}

// Member is a policy for its own queues: its name, and the condition that selects its queues.
type Member struct {
	Name, Condition string
	// PredicatesOnly means that it only decides where the pods of its queues may run.
	PredicatesOnly bool
}

// Table returns a table in JSON with the fields ServedBy and JudgedBy of queues. The first member whose condition is true counts.
func Table(members []Member) []byte {
	served, judged := `""`, `""`
	for _, m := range slices.Backward(members) {
		judged = fmt.Sprintf("(%s\n) ? %q : %s", m.Condition, m.Name, judged)
		if !m.PredicatesOnly {
			served = fmt.Sprintf("(%s\n) ? %q : %s", m.Condition, m.Name, served)
		}
	}
	data, err := json.Marshal(map[string]any{"attributes": []any{
		map[string]any{
			"name": ServedBy, "on": "queue", "settle": "cycle", "expression": served,
			"description": "The name of the policy of queues that serves the queue, empty where none does.",
		},
		map[string]any{
			"name": JudgedBy, "on": "queue", "settle": "cycle", "expression": judged,
			"description": "The name of the policy of queues whose predicates judge the queue's pods, empty where none does.",
		},
	}})
	if err != nil {
		return nil // impossible: it contains only strings
	}
	return data
}

// Share describes when a row applies in a joined policy.
type Share struct {
	When string
	Veto bool // its denial is final, regardless of the row's own veto
}

// Shares returns the shares of a row of a site; none: it is not evaluated. The parameter part is the policy of the row; "": the policy of
// all other queues. The parameter veto is the row's own veto.
func Shares(site, part string, veto bool) []Share {
	of := func(queue string) []Share {
		return []Share{{When: fmt.Sprintf("%s.%s == %q", queue, ServedBy, part), Veto: veto}}
	}
	switch site {
	case "queueOrder", "overused", "allocatable", "beyondShare", "bindable", "preemptive", "jobEnqueueable", "beyondDue": // between queues
		if part == "" {
			return []Share{{}}
		}
		return nil
	case "jobOrder", "jobValid", "jobReady", "jobPipelined", "jobStarving":
		return of("job.queue")
	case "scores":
		return of("queue")
	case "predicates":
		return []Share{{When: fmt.Sprintf("queue.%s == %q", JudgedBy, part), Veto: veto}}
	case "taskFeasible", "devicePredicates":
		return []Share{{When: fmt.Sprintf("task.queue.%s == %q", JudgedBy, part), Veto: veto}}
	case "preemptable": // this site decides within a queue
		return of("victim.queue")
	case "victimOrder", "victimCost":
		if part == "" {
			return []Share{{When: fmt.Sprintf("preemptor == null || preemptor.queue.%s == '' || victim.queue.%[1]s != preemptor.queue.%[1]s",
				ServedBy)}}
		}
		return []Share{{When: fmt.Sprintf("preemptor != null && preemptor.queue.%s == %q && victim.queue.%[1]s == %[2]q", ServedBy, part)}}
	case "reclaimable", "evictable", "victims":
		return sharesOfVictims(site, of("victim.queue")[0].When, part == "", veto)
	}
	return of("task.queue")
}

// sharesOfVictims returns the shares of rows about victims for other queues. The policy of all other queues decides, and the policy of the
// victim's own queue must permit the eviction as well.
func sharesOfVictims(site, own string, base, veto bool) []Share {
	switch {
	case site == "evictable" && base:
		return []Share{{When: "scope == 'otherQueues' || " + own, Veto: veto}}
	case site == "evictable":
		return []Share{{When: "scope != 'otherQueues' && " + own, Veto: veto}, {When: "scope == 'otherQueues' && " + own, Veto: true}}
	case base:
		return []Share{{Veto: veto}}
	case site == "victims" && !veto:
		return nil
	}
	return []Share{{When: own, Veto: true}}
}

// Predicate reports whether a site judges where a pod may run. A fallback keeps the rows of these sites.
func Predicate(site string) bool {
	return site == "taskFeasible" || site == "predicates" || site == "devicePredicates"
}

// Single reports whether a site is evaluated in one tier only: the first tier of a policy that has rows.
func Single(site string) bool { return site == "jobStarving" }
