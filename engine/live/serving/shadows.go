package serving

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// mostShadows is how many policies decide beside the one that serves: the first by their names.
const mostShadows = 3

// shadows are the policies that decide beside the one that serves, and how they fare. It is for any goroutine.
type shadows struct {
	mu    sync.Mutex
	all   []*candidate // in the order of their names
	found map[*policy.Policy]*v1alpha1.ShadowStatus
	// joined are those of queues of their own, beside what serves all others.
	beside *candidate
	joined map[*candidate]*policy.Policy
}

// follow has the shadows be those among candidates. One of queues of its own decides in these, beside what serves all others, where it can
// stand beside it.
func (s *shadows) follow(candidates []*candidate, serving *candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beside != serving {
		s.beside, s.joined = serving, map[*candidate]*policy.Policy{}
	}
	s.all = s.all[:0]
	for _, c := range candidates {
		if c.mode != v1alpha1.ModeShadow || c.policy == nil {
			continue
		}
		if c.ofQueues && s.joined[c] == nil {
			joined, _ := policy.Join(serving.policy, c.policy)
			if joined == nil {
				continue
			}
			joined.Name, joined.Generation, joined.Mode = c.name, c.generation, c.policy.Mode
			s.joined[c] = joined
		}
		s.all = append(s.all, c)
	}
	slices.SortFunc(s.all, func(a, b *candidate) int { return strings.Compare(a.name, b.name) })
	for p := range s.found {
		if !slices.ContainsFunc(s.playing(), func(c *candidate) bool { return s.playedBy(c) == p }) {
			delete(s.found, p)
		}
	}
}

// playing are those that decide. The lock is held.
func (s *shadows) playing() []*candidate { return s.all[:min(len(s.all), mostShadows)] }

// playedBy is what decides for a candidate.
func (s *shadows) playedBy(c *candidate) *policy.Policy {
	if c.ofQueues {
		return s.joined[c]
	}
	return c.policy
}

// of is what was found of a candidate; nothing where it is no shadow, or did not decide yet.
func (s *shadows) of(c *candidate, scheduler string) []v1alpha1.ShadowStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found[s.playedBy(c)]
	if found == nil {
		return nil
	}
	out := *found
	out.Name = scheduler
	return []v1alpha1.ShadowStatus{out}
}

// Shadows are the policies that are to decide beside the current one, without consequences.
func (p *Policies) Shadows() (out []*policy.Policy) {
	p.shadows.mu.Lock()
	defer p.shadows.mu.Unlock()
	for _, c := range p.shadows.playing() {
		out = append(out, p.shadows.playedBy(c))
	}
	return out
}

// Shadowed takes in how a shadow fares. It is for the goroutine of cycles.
func (p *Policies) Shadowed(of *policy.Policy, found *v1alpha1.ShadowStatus) {
	p.shadows.mu.Lock()
	defer p.shadows.mu.Unlock()
	if p.shadows.found == nil {
		p.shadows.found = map[*policy.Policy]*v1alpha1.ShadowStatus{}
	}
	p.shadows.found[of] = found
	p.poke()
}

// shadowOf is the entry of a scheduler.
func shadowOf(all []v1alpha1.ShadowStatus, scheduler string) (out []v1alpha1.ShadowStatus) {
	for i := range all {
		if all[i].Name == scheduler {
			out = append(out, all[i])
		}
	}
	return out
}

// shadowMessage says of a shadow beside what it decides, or why it does not.
func (p *Policies) shadowMessage(c *candidate, selected bool) string {
	p.shadows.mu.Lock()
	playing := slices.Contains(p.shadows.playing(), c)
	p.shadows.mu.Unlock()
	if !playing {
		return fmt.Sprintf("a shadow that does not decide: the first %d by name do; change the mode of one of these", mostShadows)
	}
	message := fmt.Sprintf("deciding beside %s, with no consequences; status.shadows counts what differs", p.serving)
	if selected {
		message += fmt.Sprintf(". Scheduler %s is to serve this policy by its flag --policy: set spec.mode to Active to have it obeyed",
			p.o.Scheduler)
	}
	return message
}
