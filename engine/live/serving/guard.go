package serving

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
)

const (
	// annotationBack is why a policy was taken back, at its revision.
	annotationBack = "celsius.dev/policy-rolled-back"
	// annotationPassed is for how long it was looked whether a policy is to be taken back, at its revision, once that is over.
	annotationPassed = "celsius.dev/policy-rollback-passed"
	// guardLook is how often it is looked whether what serves is to be taken back.
	guardLook = 5 * time.Second
	// eventRollback: what a policy says of when to take it back cannot be looked at as it is written.
	eventRollback = "PolicyRollbackInvalid"
)

// guard watches whether a candidate that serves by choice is to be taken back, by what it says itself.
type guard struct {
	of     *candidate
	said   *rollback.Conditions // nil: it says nothing, or that is over
	watch  *rollback.Watch      // nil: it is not looked yet, or not any more
	stored bool                 // that it was taken back, or was faulty
	since  time.Time            // when its trial began; zero: no cycle has ended yet
	proved bool                 // its trial is over
}

// guarding guards those that serve by choice, and stops guarding others of which there is nothing to store. What serves in place of another
// is not guarded: that would go on until nothing is left.
func (p *Policies) guarding(byChoice []*candidate) {
	p.guards = slices.DeleteFunc(p.guards, func(g *guard) bool {
		return !slices.Contains(byChoice, g.of) && (g.of.fit() || g.stored)
	})
	for _, c := range byChoice {
		if c.uid != "" && !slices.ContainsFunc(p.guards, func(g *guard) bool { return g.of == c }) {
			p.guards = append(p.guards, &guard{of: c, said: c.policy.Rollback()})
		}
	}
}

// takeBack rolls back each serving policy whose rows are faulty or whose own conditions request it. It reports whether it rolled back any.
func (p *Policies) takeBack(ctx context.Context) (taken bool, err error) {
	var errs []error
	for _, g := range p.guards {
		c := g.of
		if c.takenBack == "" && c.faulty == "" {
			faulty, err := p.judge(ctx, g)
			errs = append(errs, err, p.watch(ctx, g))
			if !faulty {
				c.takenBack = g.watch.Look(p.o.Now(), p.erring.total(c), p.o.values)
			}
			taken = taken || !c.fit()
		}
		if rev := p.kept.of(c); !c.fit() && !g.stored && rev != nil && p.kept.loaded {
			key, why := annotationBack, c.takenBack
			if c.faulty != "" {
				key, why = annotationFaulty, c.faulty
			}
			err := p.kept.annotate(ctx, c, rev, key, why)
			g.stored = err == nil
			errs = append(errs, err)
		}
	}
	return taken, errors.Join(errs...)
}

// watch begins to look at a candidate, once a cycle has ended and metrics are what they are, and ends that when it has passed: for good, so
// that a scheduler that begins later with much to catch up with takes back nothing that has long proved itself.
func (p *Policies) watch(ctx context.Context, g *guard) error {
	rev := p.kept.of(g.of)
	switch {
	case g.said == nil || !p.kept.loaded:
	case rev != nil && rev.Annotations[annotationPassed] != "":
		g.said, g.watch = nil, nil
	case g.watch == nil && p.lastCycle.Load() != 0:
		g.watch = g.said.Begin(p.o.Now(), p.o.values)
		for i := range g.said.Metrics {
			if wrong := wrongMetric(p.o.Metrics, &g.said.Metrics[i]); wrong != "" {
				p.o.Events.Eventf(policyRef(g.of.name, g.of.uid), corev1.EventTypeWarning, eventRollback, "%s",
					cut("spec.rollback.metrics: "+wrong, mostEvent))
			}
		}
	case rev != nil && g.watch.Over(p.o.Now()):
		if err := p.kept.annotate(ctx, g.of, rev, annotationPassed, g.said.Within.String()); err != nil {
			return err
		}
		g.said, g.watch = nil, nil
	}
	return nil
}

// takenBack is why a candidate was taken back, as it is stored, or known here before it is; "": it was not.
func (r *revisions) takenBack(c *candidate) string {
	if rev := r.of(c); rev != nil && rev.Annotations[annotationBack] != "" {
		return rev.Annotations[annotationBack]
	}
	return c.takenBack
}
