package engine

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Decider decides as Decide does.
type Decider func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan

// Decide runs one cycle: (cluster, policy, now) in, Plan with its reasons out. What the plan binds is
// Binding in the cluster afterwards, and what it admits is in; everything else is as it was.
// The cluster remembers verdicts for the next cycle under the same policy.
func Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	return Observe(c, p, now, func(string) {})
}

// Observe is Decide for a caller with a clock, which nothing here has: ran is told of each action when it has run.
func Observe(c *model.Cluster, p *policy.Policy, now time.Time, ran func(action string)) *model.Plan {
	s, ok := c.View.(*policy.Session)
	switch {
	case !ok || s.Policy() != p:
		s = policy.NewSession(c, p)
		c.View = s
	case s.Spent():
		s = s.Renewed()
		c.View = s
	}
	return cycle(s, now, ran)
}

// Cycle is Decide on a session of the caller's own.
func Cycle(s *policy.Session, now time.Time) *model.Plan { return cycle(s, now, func(string) {}) }

func cycle(s *policy.Session, now time.Time, ran func(action string)) *model.Plan {
	if plan := s.Still(now); plan != nil && action.Reorder(s, plan) {
		return plan
	}
	c, p := s.Cluster(), s.Policy()
	plan := &model.Plan{Policy: p.Name, Generation: p.Generation, Now: now}
	s.Begin(now)
	x := action.Begin(s, plan)
	if p.Mode != "Paused" {
		for _, a := range p.Actions {
			x.Run(a)
			ran(a.Name)
		}
	}
	x.Statuses()
	x.Close()
	plan.Errors = s.Faults()
	c.CloseCycle()
	s.End(plan)
	return plan
}
