// Package parts says what the rows of policies decide that stand beside each other, each with queues of its own.
package parts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	// ServedBy is the computed field of a queue that has the name of the policy of queues that serves it, "" where none does.
	ServedBy = "servedBy"
	// JudgedBy is the computed field of a queue that has the name of the policy of queues whose predicates judge its pods, "" where the
	// policy of all other queues does. It differs from ServedBy where only the predicates of a policy are in force.
	JudgedBy = "judgedBy"
	// Sign stands between the name of a policy of queues and that of a table of it.
	Sign = ":"
	// Key is where a policy that others were joined to has those.
	Key = "queuePolicies"
)

// Of says of which policy of queues a table is, and by which name; false: of none, but of the policy of all other queues.
func Of(table string) (part, name string, ok bool) {
	if part, name, ok = strings.Cut(table, Sign); ok {
		return part, name, true
	}
	return "", table, false
}

// Member is a policy of queues: its name, and its condition for a queue to be its own.
type Member struct {
	Name, Condition string
	// PredicatesOnly: it judges where the pods of its queues may run, and decides nothing else.
	PredicatesOnly bool
}

// Table is one, in JSON, with the fields ServedBy and JudgedBy of queues. The first member whose condition is true counts.
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
		return nil // never: there are only texts in it
	}
	return data
}

// Share is what a row takes part in where policies of queues stand beside each other.
type Share struct {
	When string
	Veto bool // its no is final, whatever the row says of that
}

// Shares are those of a row of a site; none: it is not asked. part is the policy of queues that the row is of, "": that of all others. veto
// is what the row says of itself.
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
	case "preemptable": // within a queue
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

// sharesOfVictims are those of the rows about pods that go, or may go, for other queues: the policy of all other queues decides, and who
// goes must be allowed to by the policy of its own queue as well.
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

// Single says of a site that it is asked in one tier only: the first of a policy that has rows.
func Single(site string) bool { return site == "jobStarving" }
