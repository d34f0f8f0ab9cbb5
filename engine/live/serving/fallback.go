package serving

import (
	"encoding/json"
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// What is in force of a generation that is not fit to serve, in addition to what serves in its place. A policy states it in spec.fallback.
const (
	// keepPredicates: its predicates judge where pods may run. A pod that a faulty predicate cannot judge waits. It is what happens after a
	// fault where the policy states nothing: whoever can cause a fault must not get past the rules of the newer policy.
	keepPredicates = "KeepPredicates"
	// stopScheduling: no pod of its queues is placed.
	stopScheduling = "Stop"
)

// keeps is what is in force of a candidate that does not serve; "": nothing.
func (c *candidate) keeps() string {
	switch {
	case c.fit(), c.policy != nil && c.faulty == "" && c.takenBack == "": // it serves, or is a shadow
		return ""
	case c.fallback == "" && c.faulty != "":
		return keepPredicates
	case c.policy == nil && c.fallback != stopScheduling:
		return ""
	}
	return c.fallback
}

// part is what is joined to the policy that serves in place of a candidate; false: nothing is. all: the candidate was to serve all queues.
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

// stopped is a policy of the candidate's queues by which no pod is placed; one that does not exist where it names no queues.
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
		return source.Value{} // never: there are only texts in it
	}
	doc, _ := source.ParseStored(data)
	if doc == nil {
		return source.Value{}
	}
	return doc.Root
}

// inForce says in a message what is in force of a candidate that does not serve.
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
