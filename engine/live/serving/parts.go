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

// reasonNotJoined: a policy of queues cannot stand beside the one that serves the others.
const reasonNotJoined = "DoesNotJoin"

// beside are the policies that serve queues of their own, beside the one that serves all others.
type beside struct {
	serving []*candidate
	// kept are not fit to serve, and some of what they decide is in force.
	kept []*candidate
	// joined is of base and those of them that could be joined; refused has what was wrong with the others.
	base    *policy.Policy
	of      []*candidate
	whole   []bool // of each of them: it is fit to serve
	joined  *policy.Policy
	refused map[*candidate]source.Issues
	// instead are those whose queues another serves.
	instead []*candidate
}

// partsOf are those among candidates that are to serve queues of their own, in the order of their names.
func (p *Policies) partsOf(all []*candidate) (out []*candidate) {
	for _, c := range all {
		if p.isPart(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *candidate) int { return strings.Compare(a.name, b.name) })
	return out
}

// isPart says whether a candidate is to serve queues of its own.
func (p *Policies) isPart(c *candidate) bool {
	return c.ofQueues && c.name != p.o.Name && c.mode == v1alpha1.ModeActive
}

// join adds to a choice the policies of queues that are fit to serve, and the parts in force of the policies that are not.
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
			mode = v1alpha1.ModePaused // nothing may be placed without its predicates
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

// servingOf is what serves of an object's generations; nil: none does.
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

// partSays is what condition Active says of one that is to serve queues of its own.
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

// fallBack has events tell whose queues another serves from now on, of those that are to serve queues of their own, and gives for which
// reason of condition Active that is of the first; "": each serves its own. PolicyRejected tells of one that does not compile.
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

// partFallback says what serves the queues of one that is not fit to.
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
