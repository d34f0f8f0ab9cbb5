package serving

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// A generation of a policy is on trial until a scheduler has served it for trialTime. If its rows are faulty in mostFaulty cycles of that
// time, the generation is not served any more. A row is faulty in a cycle in which an evaluation of it panicked or exceeded its budget. The
// end of a scheduler's process is no evidence against a policy. Otherwise, a user who can fill the scheduler's memory could choose which
// generation is served. Both outcomes are stored at the generation's revision, so that a restart begins no further trial.
const (
	// annotationFaulty contains the fault of a generation that is no longer served.
	annotationFaulty = "celsius.dev/policy-faulty"
	// annotationProved contains the length of a generation's trial, once the trial is over.
	annotationProved = "celsius.dev/policy-proved"
	trialTime        = 2 * time.Minute
	mostFaulty       = 2
)

// cycles records when cycles end.
type cycles struct {
	lastCycle atomic.Int64 // the end of the last cycle, in nanoseconds since 1970; 0: none has ended
}

// Cycled records that a cycle has ended. Only the goroutine of cycles may call it.
func (t *cycles) Cycled(at time.Time) { t.lastCycle.Store(at.UnixNano()) }

func (t *cycles) cycled(since time.Time) bool { return t.lastCycle.Load() >= since.UnixNano() }

// fit reports whether a candidate may serve.
func (c *candidate) fit() bool {
	return c.policy != nil && c.faulty == "" && c.takenBack == "" && c.mode != v1alpha1.ModeShadow
}

// faults counts the cycles in which rows of a candidate were faulty.
type faults struct {
	cycles int
	first  string // the first faulty row, the object that it was evaluated for, and the fault
}

// add takes in the errors of a cycle, and reports whether any row was faulty.
func (f *faults) add(errors []model.RuleError) bool {
	i := slices.IndexFunc(errors, func(e model.RuleError) bool { return e.OverBudget > 0 || e.Panicked > 0 })
	if i < 0 {
		return false
	}
	f.cycles++
	if e := &errors[i]; f.first == "" {
		f.first = fmt.Sprintf("row %s (%s) failed for %s: %s", model.RowName(e.Table, e.Rule), e.Site,
			cut(e.Object, mostText), cut(e.Text, mostText))
	}
	return true
}

// judge checks the trial of a guarded candidate, and reports whether the candidate became unfit to serve.
func (p *Policies) judge(ctx context.Context, g *guard) (found bool, err error) {
	c := g.of
	if g.proved || c.faulty != "" || !p.kept.loaded {
		return false, nil
	}
	rev := p.kept.of(c)
	if rev != nil && rev.Annotations[annotationProved] != "" {
		g.proved = true
		return false, nil
	}
	if f := p.erring.faults(c); f.cycles >= mostFaulty {
		c.faulty = f.first
		return true, nil
	}
	if g.since.IsZero() && p.lastCycle.Load() != 0 {
		g.since = p.o.Now()
	}
	until := g.since.Add(trialTime)
	if rev == nil || g.since.IsZero() || p.o.Now().Before(until) || !p.cycled(until) {
		return false, nil
	}
	err = p.kept.annotate(ctx, c, rev, annotationProved, trialTime.String())
	g.proved = err == nil
	return false, err
}

// faultyOf returns the fault for which a candidate is not served; "": none. The stored fault comes first, then one that is not stored yet.
func (r *revisions) faultyOf(c *candidate) string {
	if rev := r.of(c); rev != nil && rev.Annotations[annotationFaulty] != "" {
		return rev.Annotations[annotationFaulty]
	}
	return c.faulty
}

// unfit reports whether a revision contains a generation that was found unfit to serve.
func unfit(rev *appsv1.ControllerRevision) bool {
	return rev.Annotations[annotationBack] != "" || rev.Annotations[annotationFaulty] != ""
}

// nextLook returns when to check again whether the serving policy must be rolled back; nil: no check is needed.
func (p *Policies) nextLook() <-chan time.Time {
	if slices.ContainsFunc(p.guards, func(g *guard) bool { return g.watch != nil || !g.proved && g.of.faulty == "" }) {
		return time.After(guardLook)
	}
	return nil
}

// of returns the newest revision that contains a candidate, or nil.
func (r *revisions) of(c *candidate) *appsv1.ControllerRevision {
	for _, rev := range r.newest {
		if r.head(rev).same(c) {
			return rev
		}
	}
	return nil
}

// annotate stores an annotation on a revision.
func (r *revisions) annotate(ctx context.Context, c *candidate, rev *appsv1.ControllerRevision, key, value string) error {
	if rev.Annotations[key] == value {
		return nil
	}
	next := rev.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[key] = value
	if err := r.client.Update(ctx, next); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			r.loaded = false // another client changed it: load again
		}
		return fmt.Errorf("note at ControllerRevision %s/%s what became of policy %s: %w", rev.Namespace, rev.Name, c, err)
	}
	r.newest[slices.Index(r.newest, rev)] = next
	return nil
}
