package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// reasonNotJoined means that a policy for its own queues cannot be combined with the policy that serves the others.
const reasonNotJoined = "DoesNotJoin"

// beside contains the policies that serve their own queues, alongside the policy that serves all others.
type beside struct {
	serving []*candidate
	// kept contains candidates that are not fit to serve, but a part of their decisions is in force.
	kept []*candidate
	// joined combines base with the policies that could be joined. refused contains the errors of the others.
	base    *policy.Policy
	of      []*candidate
	whole   []bool // whether each policy in of is fit to serve
	joined  *policy.Policy
	refused map[*candidate]source.Issues
	// instead are the policies whose queues another policy serves.
	instead []*candidate
}

// partsOf returns the candidates that are to serve their own queues, ordered by name.
func (p *Policies) partsOf(all []*candidate) (out []*candidate) {
	for _, c := range all {
		if p.isPart(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *candidate) int { return strings.Compare(a.name, b.name) })
	return out
}

// isPart reports whether a candidate policy would serve only the queues that it lists, and not the whole scheduler.
func (p *Policies) isPart(c *candidate) bool {
	return c.ofQueues && c.name != p.o.Name && c.mode == v1alpha1.ModeActive
}

// join adds the policies that serve their own queues to a choice. A policy that is not fit to serve is added if a part of its decisions
// stays in force.
func (x *beside) join(c choice, selected *candidate, all []*candidate) choice {
	var fit []*candidate
	for _, part := range all {
		if _, joins := part.part(false); part.fit() || joins {
			fit = append(fit, part)
		}
	}
	if selected != nil {
		if _, joins := selected.part(true); joins {
			fit = append([]*candidate{selected}, fit...)
		}
	}
	whole := make([]bool, len(fit))
	for i := range fit {
		whole[i] = fit[i].fit()
	}
	if x.base != c.serving.policy || !slices.Equal(x.of, fit) || !slices.Equal(x.whole, whole) {
		x.base, x.of, x.whole, x.joined = c.serving.policy, fit, whole, c.serving.policy
		x.joinParts(selected)
	}
	return x.serve(c, fit)
}

// serve adds the joined candidates to a choice. Each serves as a whole or with its predicates alone.
func (x *beside) serve(c choice, of []*candidate) choice {
	mode := v1alpha1.Mode(c.policy.Mode)
	for _, candidate := range of {
		refused := x.refused[candidate] != nil
		switch {
		case candidate.fit() && !refused:
			c.parts = append(c.parts, candidate)
		case !candidate.fit() && !refused:
			c.kept = append(c.kept, candidate)
		case !candidate.fit():
			mode = v1alpha1.ModePaused // no pod may be placed without the candidate's predicates
		}
	}
	c.policy = inMode(x.joined, mode)
	return c
}

// joinParts joins the parts of all candidates with the base, one after the other. It leaves out those that do not join.
func (x *beside) joinParts(selected *candidate) {
	x.refused = map[*candidate]source.Issues{}
	var taken []policy.Part
	for _, candidate := range x.of {
		part, joins := candidate.part(candidate == selected)
		if !joins {
			part = candidate.policy.Part()
		}
		joined, issues := join.Parts(x.base, append(taken, part)...)
		if joined == nil {
			x.refused[candidate] = issues
			continue
		}
		taken, x.joined = append(taken, part), joined
	}
}

// servingOf returns the generation of an object that serves; nil: none does.
func (p *Policies) servingOf(u *unstructured.Unstructured) *candidate {
	if p.serving.uid == u.GetUID() {
		return p.serving
	}
	i := slices.IndexFunc(p.parts.serving, func(c *candidate) bool { return c.uid == u.GetUID() })
	if i < 0 {
		return nil
	}
	return p.parts.serving[i]
}

// partSays returns the condition Active of a policy that is to serve its own queues.
func partSays(p *Policies, c *candidate) (status metav1.ConditionStatus, reason, message string) {
	switch {
	case slices.Contains(p.parts.serving, c):
		message = fmt.Sprintf("serving %s in the queues that it names, alongside %s", c, p.serving)
		if p.Current().Mode == string(v1alpha1.ModePaused) {
			return metav1.ConditionFalse, reasonPaused, message + ", which is paused: nothing is bound or evicted"
		}
		return metav1.ConditionTrue, reasonServing, message
	case !c.fit():
		return metav1.ConditionFalse, notServed(c), partFallback(p.serving, c)
	}
	return metav1.ConditionFalse, reasonNotJoined, fmt.Sprintf("%s serves its queues, because generation %d cannot be combined with it: %s",
		p.serving, c.generation, mistakes(p.parts.refused[c]))
}

// fallBack records events for the policies whose own queues another policy serves from now on. It returns the reason of condition Active of
// the first such policy; "": each policy serves its own queues. PolicyRejected reports a policy that does not compile.
func fallBack(p *Policies, all []*candidate) (first string) {
	var instead []*candidate
	for _, c := range all {
		if slices.Contains(p.parts.serving, c) {
			continue
		}
		_, reason, message := partSays(p, c)
		first = cmp.Or(first, reason)
		instead = append(instead, c)
		if c.policy != nil && !slices.Contains(p.parts.instead, c) {
			p.o.Events.Eventf(policyRef(c.name, c.uid), corev1.EventTypeWarning, eventFallback, "%s", cut(message, mostEvent))
		}
	}
	p.parts.instead = instead
	return first
}

// partFallback returns a message: which policy serves the queues of an unfit policy, and why.
func partFallback(serving, c *candidate) string {
	if c.policy == nil {
		return fmt.Sprintf("%s serves its queues, because generation %d does not compile: %s", serving, c.generation,
			mistakes(c.issues.Errors()))
	}
	why := fmt.Sprintf("generation %d is faulty: %s", c.generation, c.faulty)
	if c.faulty == "" {
		why = fmt.Sprintf("generation %d was rolled back: %s", c.generation, c.takenBack)
	}
	return fmt.Sprintf("%s serves its queues%s, because %s; change the policy to have it tried again", serving, c.inForce(false), why)
}
