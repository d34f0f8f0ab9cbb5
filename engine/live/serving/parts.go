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
	// joined is of base and those of them that could be joined; refused has what was wrong with the others.
	base    *policy.Policy
	of      []*candidate
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

// join adds to a choice those that are fit to serve their queues beside it.
func (x *beside) join(c choice, all []*candidate) choice {
	fit := slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool { return !c.fit() })
	if x.base != c.serving.policy || !slices.Equal(x.of, fit) {
		x.base, x.of, x.joined, x.refused = c.serving.policy, fit, c.serving.policy, map[*candidate]source.Issues{}
		var taken []*policy.Policy
		for _, part := range fit {
			joined, issues := join.Policies(c.serving.policy, append(taken, part.policy)...)
			if joined == nil {
				x.refused[part] = issues
				continue
			}
			taken, x.joined = append(taken, part.policy), joined
		}
	}
	c.policy = inMode(x.joined, v1alpha1.Mode(c.policy.Mode))
	c.parts = slices.DeleteFunc(fit, func(c *candidate) bool { return x.refused[c] != nil })
	return c
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
		message = fmt.Sprintf("serving %s in the queues that it names, beside %s", c, p.serving)
		if p.Current().Mode == string(v1alpha1.ModePaused) {
			return metav1.ConditionFalse, reasonPaused, message + ", which is paused: nothing is bound or evicted"
		}
		return metav1.ConditionTrue, reasonServing, message
	case !c.fit():
		return metav1.ConditionFalse, notServed(c), partFallback(p.serving, c)
	}
	return metav1.ConditionFalse, reasonNotJoined, fmt.Sprintf("%s serves its queues, because generation %d cannot stand beside it: %s",
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
	why := fmt.Sprintf("the scheduler died %d times, each within %s of beginning to serve generation %d", c.deaths, trialTime, c.generation)
	if c.takenBack != "" {
		why = fmt.Sprintf("generation %d was rolled back: %s", c.generation, c.takenBack)
	}
	return fmt.Sprintf("%s serves its queues, because %s; change the policy to have it tried again", serving, why)
}
