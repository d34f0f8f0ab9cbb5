package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// A generation of a policy is on trial when a scheduler begins to serve it, be it new or after a start. That stands at its revision,
// under the scheduler's number, before the first cycle obeys it. A scheduler that ends cleanly takes its number away; one that has
// served for trialTime, and still makes cycles, takes all of them away. So the numbers of others that stand there are those of
// schedulers that died on trial, one after the other.
const (
	annotationTrial = "celsius.dev/policy-trial"
	trialTime       = 2 * time.Minute
	trialLook       = 10 * time.Second
	// mostDeaths is after how many deaths a generation is not served any more.
	mostDeaths = 2
	// endTime is how long a scheduler that ends tries to say so.
	endTime  = 5 * time.Second
	endRetry = 100 * time.Millisecond
)

// trials are those in which one scheduler takes part.
type trials struct {
	// instance tells this scheduler from others of its name.
	instance  string
	trials    []*trial
	left      []*candidate // those whose trial ended, which is still to be stored
	tried     []*candidate // what served when trials were looked at last
	lastCycle atomic.Int64 // when one ended, in nanoseconds
}

// trial is that of a candidate that serves.
type trial struct {
	of     *candidate
	since  time.Time
	stored bool
}

// fit says whether a candidate may serve.
func (c *candidate) fit() bool {
	return c.policy != nil && c.deaths < mostDeaths && c.takenBack == "" && c.mode != v1alpha1.ModeShadow
}

// onTrial begins the trials of what is about to serve by choice, ends those of others, and looks how they go on.
func (p *Policies) onTrial(ctx context.Context, next []*candidate) error {
	if !p.kept.loaded {
		return nil
	}
	var errs []error
	p.trials.trials = slices.DeleteFunc(p.trials.trials, func(x *trial) bool {
		gone := !slices.Contains(next, x.of)
		if gone {
			p.left = append(p.left, x.of)
		}
		return gone
	})
	for _, c := range next {
		if !slices.Contains(p.tried, c) {
			p.trials.trials = append(p.trials.trials, &trial{of: c, since: p.o.Now()})
		}
	}
	p.tried = next
	errs = append(errs, p.leave(ctx))
	p.trials.trials = slices.DeleteFunc(p.trials.trials, func(x *trial) bool {
		over, err := p.goesOn(ctx, x)
		errs = append(errs, err)
		return over
	})
	return errors.Join(errs...)
}

// latest are those of some that began to serve last: what a scheduler dies of is what changed, and the others are on trial once that does
// not serve any more. What has no revision yet is what begins now, but for those that are settled, which serve and are not on trial.
func (r *revisions) latest(all, settled []*candidate) (out []*candidate) {
	at := func(c *candidate) int {
		i := slices.Index(r.newest, r.of(c))
		if i < 0 && slices.Contains(settled, c) {
			return len(r.newest)
		}
		return i
	}
	for _, c := range all {
		switch {
		case len(out) == 0 || at(c) < at(out[0]):
			out = []*candidate{c}
		case at(c) == at(out[0]):
			out = append(out, c)
		}
	}
	return out
}

// goesOn stores that a trial began, or that it is over because nobody died of it.
func (p *Policies) goesOn(ctx context.Context, x *trial) (over bool, err error) {
	if !x.stored {
		if err := p.kept.try(ctx, x.of, p.instance); err != nil {
			return false, err
		}
		x.stored = true
	}
	if until := x.since.Add(trialTime); p.o.Now().Before(until) || !p.cycled(until) {
		return false, nil
	}
	err = p.kept.proved(ctx, x.of)
	return err == nil, err
}

// trying says whether a candidate is on trial.
func (t *trials) trying(c *candidate) bool {
	return slices.ContainsFunc(t.trials, func(x *trial) bool { return c.same(x.of) })
}

// leave stores that trials ended, but for that of who is on trial again. What fails is left for the next time.
func (p *Policies) leave(ctx context.Context) error {
	var errs []error
	p.left = slices.DeleteFunc(p.left, func(c *candidate) bool {
		if p.trying(c) {
			return true
		}
		err := p.kept.untried(ctx, c, p.instance)
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}

// Cycled notes that a cycle has ended. It is for the goroutine of cycles.
func (t *trials) Cycled(at time.Time) { t.lastCycle.Store(at.UnixNano()) }

func (t *trials) cycled(since time.Time) bool { return t.lastCycle.Load() >= since.UnixNano() }

// nextLook is when it is looked again how a trial goes on, or whether what serves is to be taken back; nil: there is neither.
func (p *Policies) nextLook() <-chan time.Time {
	var looks []time.Duration
	for _, x := range p.trials.trials {
		looks = append(looks, max(x.since.Add(trialTime).Sub(p.o.Now()), trialLook))
	}
	if slices.ContainsFunc(p.guards, func(g *guard) bool { return g.watch != nil }) {
		looks = append(looks, guardLook)
	}
	if len(looks) == 0 {
		return nil
	}
	return time.After(slices.Min(looks))
}

// End says that this scheduler ends, and did not die; who has lost the lease did not either. All else of it must have ended.
func (p *Policies) End() {
	for _, x := range p.trials.trials {
		if x.stored {
			p.left = append(p.left, x.of)
		}
	}
	p.trials.trials = nil
	p.kept.reader, p.kept.client = p.o.Ending, p.o.Ending
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	for len(p.left) > 0 {
		err := p.leave(ctx)
		if err == nil {
			return
		}
		p.o.Log.Info("That the scheduler ended cleanly could not be stored", "error", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(endRetry):
		}
		if !p.kept.loaded {
			_ = p.kept.load(ctx) // another wrote meanwhile
		}
	}
}

// deaths counts the schedulers that died while a candidate was on trial.
func (r *revisions) deaths(c *candidate, instance string) int {
	rev := r.of(c)
	if rev == nil {
		return 0
	}
	return len(slices.DeleteFunc(triers(rev), func(id string) bool { return id == instance }))
}

// triers are the schedulers that stand at a revision.
func triers(rev *appsv1.ControllerRevision) []string {
	return strings.FieldsFunc(rev.Annotations[annotationTrial], func(r rune) bool { return r == ',' })
}

// of is the newest revision that holds a candidate, nil if there is none.
func (r *revisions) of(c *candidate) *appsv1.ControllerRevision {
	for _, rev := range r.newest {
		if r.head(rev).same(c) {
			return rev
		}
	}
	return nil
}

// try stores that a scheduler begins to serve a candidate.
func (r *revisions) try(ctx context.Context, c *candidate, instance string) error {
	if err := r.add(ctx, c); err != nil {
		return err
	}
	return r.edit(ctx, c, func(triers []string) []string {
		if slices.Contains(triers, instance) {
			return triers
		}
		return append(triers, instance)
	})
}

// untried stores that a scheduler serves it no more, and did not die.
func (r *revisions) untried(ctx context.Context, c *candidate, instance string) error {
	return r.edit(ctx, c, func(triers []string) []string {
		return slices.DeleteFunc(triers, func(id string) bool { return id == instance })
	})
}

// proved stores that it is not what schedulers died of.
func (r *revisions) proved(ctx context.Context, c *candidate) error {
	return r.edit(ctx, c, func([]string) []string { return nil })
}

func (r *revisions) edit(ctx context.Context, c *candidate, change func(triers []string) []string) error {
	rev := r.of(c)
	if rev == nil {
		return nil // it is gone, and with it who stood there
	}
	return r.annotate(ctx, c, rev, annotationTrial, strings.Join(change(triers(rev)), ","))
}

// annotate stores an annotation at a revision; "": it has none.
func (r *revisions) annotate(ctx context.Context, c *candidate, rev *appsv1.ControllerRevision, key, value string) error {
	if rev.Annotations[key] == value {
		return nil
	}
	next := rev.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	if next.Annotations[key] = value; value == "" {
		delete(next.Annotations, key)
	}
	if err := r.client.Update(ctx, next); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			r.loaded = false // another wrote meanwhile: look again
		}
		return fmt.Errorf("note at ControllerRevision %s/%s what became of policy %s: %w", rev.Namespace, rev.Name, c, err)
	}
	r.newest[slices.Index(r.newest, rev)] = next
	return nil
}
