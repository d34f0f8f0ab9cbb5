package engine

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Decide runs one cycle: (cluster, policy, now) in, Plan with its reasons out. Afterwards, the tasks that the plan binds are Binding in the
// cluster, and the jobs that it admits are admitted. Nothing else in the cluster changes.
func Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	return new(Decider).Decide(c, p, now)
}

// DecideFunc runs one cycle, as Decide does.
type DecideFunc func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan

// Decider runs one cycle after the other. It caches results that stay valid between cycles, if the cluster and the policy are the same. The
// caches save work, and affect no decision. The zero value has no caches.
type Decider struct {
	session *session.Session // of the last cycle; nil: there was none
	memory  *action.Memory   // nil: none yet
}

// NewDecider returns a Decider with the caller's session, and the caller's memory of jobs; nil: the memory is empty.
func NewDecider(s *session.Session, m *action.Memory) *Decider {
	return &Decider{session: s, memory: m}
}

// Session returns the session of the last cycle; nil: there was none.
func (d *Decider) Session() *session.Session { return d.session }

// Decide does what the function Decide does, for one cycle after the other.
func (d *Decider) Decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	return d.Observe(c, p, now, func(string) {})
}

// Observe does what Decide does, for a caller with a clock, because this package has none: it calls ran after each action.
func (d *Decider) Observe(c *model.Cluster, p *policy.Policy, now time.Time, ran func(action string)) *model.Plan {
	switch s := d.session; {
	case s == nil || s.Cluster() != c || s.Policy() != p:
		d.session, d.memory = session.New(c, p), nil
	case s.Spent():
		d.session, d.memory = s.Renewed(), nil
	}
	return d.cycle(now, ran)
}

// Within does what Decide does, and stops when enough returns true. All long loops call enough. A cycle that was stopped returns no plan.
// The decider then remembers nothing, and the cluster is restored only if the cycle belonged to a trial.
func (d *Decider) Within(c *model.Cluster, p *policy.Policy, now time.Time, enough func() bool) (plan *model.Plan, whole bool) {
	if whole = action.Whole(c, enough, func() { plan = d.Decide(c, p, now) }); !whole {
		*d = Decider{}
		return nil, false
	}
	return plan, true
}

// Cycle does what Decide does, with the present session.
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
