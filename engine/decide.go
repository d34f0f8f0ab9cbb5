package engine

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Decide runs one cycle: (cluster, policy, now) in, Plan with its reasons out. What the plan binds is
// Binding in the cluster afterwards, and what it admits is in; everything else is as it was.
func Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	return new(Decider).Decide(c, p, now)
}

// DecideFunc decides as Decide does.
type DecideFunc func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan

// Decider runs one cycle after the other, and remembers between them what still holds while the cluster and the policy are the same. That
// saves work and decides nothing. The zero value remembers nothing yet.
type Decider struct {
	session *session.Session // of the last cycle; nil: there was none
	memory  *action.Memory   // nil: none yet
}

// NewDecider goes on with a session of the caller's own, and with what is remembered of its jobs; nil: nothing is yet.
func NewDecider(s *session.Session, m *action.Memory) *Decider {
	return &Decider{session: s, memory: m}
}

// Session is that of the last cycle; nil: there was none.
func (d *Decider) Session() *session.Session { return d.session }

// Decide is Decide of the package, for one cycle after the other.
func (d *Decider) Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	return d.Observe(c, p, now, func(string) {})
}

// Observe is Decide for a caller with a clock, which nothing here has: ran is told of each action when it has run.
func (d *Decider) Observe(c *model.Cluster, p *policy.Policy, now time.Time, ran func(action string)) *model.Plan {
	switch s := d.session; {
	case s == nil || s.Cluster() != c || s.Policy() != p:
		d.session, d.memory = session.New(c, p), nil
	case s.Spent():
		d.session, d.memory = s.Renewed(), nil
	}
	return d.cycle(now, ran)
}

// Within is Decide, and stops when enough returns true. All long loops call enough. A cycle that was stopped returns no plan. The decider
// then remembers nothing, and the cluster is restored only if the cycle belonged to a trial.
func (d *Decider) Within(c *model.Cluster, p *policy.Policy, now time.Time, enough func() bool) (plan *model.Plan, whole bool) {
	if whole = action.Whole(c, enough, func() { plan = d.Decide(c, p, now) }); !whole {
		*d = Decider{}
		return nil, false
	}
	return plan, true
}

// Cycle is Decide with the session that there is.
func (d *Decider) Cycle(now time.Time) *model.Plan { return d.cycle(now, func(string) {}) }

func (d *Decider) cycle(now time.Time, ran func(action string)) *model.Plan {
	s := d.session
	if d.memory == nil {
		d.memory = action.NewMemory(s)
	}
	if plan := s.Still(now); plan != nil && d.memory.Reorder(plan) {
		return plan
	}
	c, p := s.Cluster(), s.Policy()
	plan := &model.Plan{Policy: p.Name, Generation: p.Generation, Now: now}
	s.Begin(now)
	x := action.Begin(s, d.memory, plan)
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
	plan.Remember(c)
	s.End(plan)
	return plan
}
