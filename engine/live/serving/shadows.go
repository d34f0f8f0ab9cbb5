package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// mostShadows is the maximum number of shadow policies that decide: the first by name.
const mostShadows = 3

// shadows contains the policies that decide alongside the serving one, and their results. Any goroutine may use it.
type shadows struct {
	mu sync.Mutex
	// played contains, for each shadow, the policy that it decides by, or why it cannot decide.
	played map[*candidate]played
	found  map[*policy.Policy]*v1alpha1.ShadowStatus
	// playing contains the shadows that decide, ordered by name.
	playing []*candidate
}

// played is what a shadow decides by: the policy that would serve if the shadow served.
type played struct {
	beside, policy *policy.Policy // policy nil: it cannot be joined with the serving policies
	issues         source.Issues
}

// follow sets the shadows to those among the candidates. Each takes the place that it would have among the serving policies. Only one
// goroutine calls it.
func (s *shadows) follow(candidates []*candidate, serves *policy.Policy) {
	all := slices.DeleteFunc(slices.Clone(candidates), func(c *candidate) bool { return c.mode != v1alpha1.ModeShadow || c.policy == nil })
	slices.SortFunc(all, func(a, b *candidate) int { return strings.Compare(a.name, b.name) })
	tried, playing := map[*candidate]played{}, []*candidate(nil)
	for _, c := range all {
		if len(playing) == mostShadows {
			break
		}
		x, known := s.played[c]
		if !known || x.beside != serves {
			x.beside = serves
			x.policy, x.issues = join.With(serves, c.policy)
		}
		if tried[c] = x; x.policy != nil {
			playing = append(playing, c)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played, s.playing = tried, playing
	maps.DeleteFunc(s.found, func(p *policy.Policy, _ *v1alpha1.ShadowStatus) bool {
		return !slices.ContainsFunc(s.playing, func(c *candidate) bool { return s.played[c].policy == p })
	})
}

// of returns the results of a candidate. It returns nothing if the candidate is not a shadow or has not decided yet.
func (s *shadows) of(c *candidate, scheduler string) []v1alpha1.ShadowStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found[s.played[c].policy]
	if found == nil {
		return nil
	}
	out := *found
	out.Name = scheduler
	return []v1alpha1.ShadowStatus{out}
}

// Shadows returns the policies that decide alongside the current one, without effect.
func (p *Policies) Shadows() (out []*policy.Policy) {
	p.shadows.mu.Lock()
	defer p.shadows.mu.Unlock()
	for _, c := range p.shadows.playing {
		out = append(out, p.shadows.played[c].policy)
	}
	return out
}

// Shadowed takes in the results of a shadow. Only the goroutine of cycles may call it.
func (p *Policies) Shadowed(of *policy.Policy, found *v1alpha1.ShadowStatus) {
	p.shadows.mu.Lock()
	defer p.shadows.mu.Unlock()
	if p.shadows.found == nil {
		p.shadows.found = map[*policy.Policy]*v1alpha1.ShadowStatus{}
	}
	p.shadows.found[of] = found
	p.poke()
}

// shadowOf returns the entry of a scheduler.
func shadowOf(all []v1alpha1.ShadowStatus, scheduler string) (out []v1alpha1.ShadowStatus) {
	for i := range all {
		if all[i].Name == scheduler {
			out = append(out, all[i])
		}
	}
	return out
}

// shadowSays returns the condition Active of a shadow: which policies it decides alongside, or why it does not decide.
func (p *Policies) shadowSays(c *candidate, selected bool) (reason, message string) {
	p.shadows.mu.Lock()
	x, tried := p.shadows.played[c]
	p.shadows.mu.Unlock()
	all := []string{p.serving.String()}
	for _, part := range p.parts.serving {
		all = append(all, part.String())
	}
	beside := strings.Join(all, " and ")
	switch {
	case !tried:
		return reasonShadow, fmt.Sprintf("a shadow that does not decide: the first %d by name do; change the mode of one of these", mostShadows)
	case x.policy == nil:
		return reasonNotJoined, fmt.Sprintf("a shadow that does not decide: generation %d cannot be combined with %s: %s", c.generation,
			beside, mistakes(x.issues))
	}
	message = fmt.Sprintf("deciding alongside %s, without effect; status.shadows counts the differences", beside)
	if selected {
		message += fmt.Sprintf(". Scheduler %s is to serve this policy by its flag --policy: set spec.mode to Active to have it obeyed",
			p.o.Scheduler)
	}
	return reasonShadow, message
}
