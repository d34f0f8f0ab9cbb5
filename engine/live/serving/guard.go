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
	// annotationBack, on a revision, contains the reason why its policy was rolled back.
	annotationBack = "celsius.dev/policy-rolled-back"
	// annotationPassed, on a revision, contains how long its policy was checked for a rollback, once the check is over.
	annotationPassed = "celsius.dev/policy-rollback-passed"
	// guardLook is the interval at which serving policies are checked for a rollback.
	guardLook = 5 * time.Second
	// eventRollback means that a condition in a policy's spec for its rollback cannot be evaluated.
	eventRollback = "PolicyRollbackInvalid"
)

// guard watches a chosen candidate, and decides by the candidate's own conditions whether to roll it back.
type guard struct {
	of     *candidate
	said   *rollback.Conditions // the conditions of the policy; nil: it has none, or the check is over
	watch  *rollback.Watch      // nil: the check has not begun, or it is over
	stored bool                 // the rollback or the fault is stored
	since  time.Time            // the start of its trial; zero: no cycle has ended yet
	proved bool                 // its trial is over
}

// guarding starts to guard the chosen candidates, and stops guarding others for which nothing is left to store. A policy that serves in
// place of another is not guarded, because the rollbacks would continue until no policy is left.
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

// watch starts checking a candidate once a cycle has ended, when metrics have their usual values. It ends the check permanently when the
// time has passed. So a scheduler that starts later with a large backlog does not roll back a proven policy.
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

// takenBack returns the reason why a candidate was rolled back; "": it was not. The stored reason comes first, then one that is not stored
// yet.
func (r *revisions) takenBack(c *candidate) string {
	if rev := r.of(c); rev != nil && rev.Annotations[annotationBack] != "" {
		return rev.Annotations[annotationBack]
	}
	return c.takenBack
}
