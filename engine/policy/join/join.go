// Package join combines several policies into one, each for its own queues.
package join

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Policies joins policies for their own queues with the policy of all other queues. If two select the same queue, the first one serves it.
// If they cannot be joined, it returns no Policy, and the issues contain the reasons.
func Policies(base *policy.Policy, ofQueues ...*policy.Policy) (*policy.Policy, source.Issues) {
	var all []policy.Part
	for _, p := range ofQueues {
		all = append(all, p.Part())
	}
	return Parts(base, all...)
}

// Parts is Policies for parts, of which some are in force with their predicates only.
func Parts(base *policy.Policy, all ...policy.Part) (*policy.Policy, source.Issues) {
	for _, p := range all {
		if p.Queues() == "" && !p.OfAll {
			return nil, source.Issues{{Path: "spec.queues", Message: "policy " + p.Name + " names no queues"}}
		}
	}
	return join(base, base, all)
}

// With returns the policy that decides once another policy is served as well. A policy that names no queues, or that has the name of
// served, replaces served. A policy with queues is joined; it replaces the joined policy of the same name or of the same queues. All other
// joined policies stay. The result has the name of other. The issues are those of Policies.
func With(served, other *policy.Policy) (*policy.Policy, source.Issues) {
	own, ofQueues := other.Part(), other.Queues() != "" && other.Name != served.Name
	all := slices.DeleteFunc(served.Joined(), func(p policy.Part) bool {
		return p.Name == own.Name || !ofQueues && p.OfAll || ofQueues && strings.TrimSpace(p.Queues()) == strings.TrimSpace(own.Queues())
	})
	if !ofQueues {
		return join(other, other, all)
	}
	all = append(all, own)
	slices.SortFunc(all, func(a, b policy.Part) int { return strings.Compare(a.Name, b.Name) })
	return join(served, other, all)
}

// join returns base joined with policies for their own queues. The result has the name of as.
func join(base, as *policy.Policy, all []policy.Part) (*policy.Policy, source.Issues) {
	if len(all) == 0 {
		return base, nil
	}
	data, err := object(base, all)
	if err != nil {
		return nil, source.Issues{{Message: fmt.Sprintf("policy %s: %v", base.Name, err)}}
	}
	p, issues := policy.LoadStored(data)
	if p != nil {
		p.Name, p.Generation, p.Mode = as.Name, as.Generation, as.Mode
	}
	return p, issues
}

// object returns a joined policy as one document.
func object(base *policy.Policy, all []policy.Part) ([]byte, error) {
	data, err := base.Object()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of which policy
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err //nolint:wrapcheck // the caller says of which policy
	}
	var others []any
	for _, p := range all {
		others = append(others, p.Any())
	}
	if object[parts.Key], err = json.Marshal(others); err != nil {
		return nil, err //nolint:wrapcheck // the caller says of which policy
	}
	return json.Marshal(object) //nolint:wrapcheck // the caller says of which policy
}
