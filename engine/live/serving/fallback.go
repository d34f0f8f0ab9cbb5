package serving

import (
	"encoding/json"
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Values of spec.fallback. A value selects what remains in force of a generation that is not fit to serve, next to the policy that replaces
// it.
const (
	// keepPredicates: its predicates still decide where pods may run. A pod that a faulty predicate cannot judge waits. This is the default
	// after a fault: a user who can cause a fault must not bypass the rules of the newer policy.
	keepPredicates = "KeepPredicates"
	// stopScheduling: no pod of its queues is placed.
	stopScheduling = "Stop"
)

// keeps returns what remains in force of a candidate that does not serve; "": nothing.
func (c *candidate) keeps() string {
	switch {
	case c.fit(), c.policy != nil && c.faulty == "" && c.takenBack == "": // it serves or is a shadow
		return ""
	case c.fallback == "" && c.faulty != "":
		return keepPredicates
	case c.policy == nil && c.fallback != stopScheduling:
		return ""
	}
	return c.fallback
}

// part returns the part of a candidate that stays in force when another policy replaces it. joins is false if no part does. all means that
// the candidate was to serve all queues.
func (c *candidate) part(all bool) (part policy.Part, joins bool) {
	switch keeps := c.keeps(); {
	case keeps == keepPredicates:
		part = c.policy.Part()
	case keeps == stopScheduling && !all:
		part = policy.Part{Name: c.name, Spec: c.stopped()}
	default:
		return part, false
	}
	part.Generation, part.PredicatesOnly, part.OfAll = c.generation, true, all
	return part, true
}

// stopped returns the spec of a policy for the candidate's queues that places no pod. The candidate should name its queues.
func (c *candidate) stopped() source.Value {
	data, err := json.Marshal(map[string]any{
		"queues": c.queues,
		"tiers": []any{map[string]any{"name": "stopped", "tables": []any{map[string]any{
			"name": "stopped", "inline": map[string]any{"taskFeasible": []any{map[string]any{
				"name": "policy-faulty", "expression": "false",
				"message": fmt.Sprintf("policy %s is not fit to serve, and its spec.fallback is Stop", c),
			}}},
		}}}},
	})
	if err != nil {
		return source.Value{} // impossible: the value contains only strings
	}
	doc, _ := source.ParseStored(data)
	if doc == nil {
		return source.Value{}
	}
	return doc.Root
}

// inForce returns the part of a message that states what remains in force of a candidate that does not serve.
func (c *candidate) inForce(all bool) string {
	switch keeps := c.keeps(); {
	case keeps == keepPredicates:
		return fmt.Sprintf(" with the predicates of generation %d", c.generation)
	case keeps == stopScheduling && all:
		return ", paused, as spec.fallback is Stop"
	case keeps == stopScheduling:
		return " and places no pod in them, as spec.fallback is Stop"
	}
	return ""
}
