package compare

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Moment is a world in which the decisions of both sides differ.
type Moment struct {
	Now     time.Time
	Objects []metav1.Object
	Old     *policy.Policy
}

// Worlds runs each side in a world of its own, from the same sources, for as long as o states.
func Worlds(old, other *policy.Policy, world sim.Options, o sim.RunOptions, sources ...manifest.Source) (*Book, source.Issues, error) {
	var plans [2][]*model.Plan
	var issues source.Issues
	for side, p := range []*policy.Policy{old, other} {
		decide := new(engine.Decider).Decide
		world.Decide = func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
			plan := decide(c, p, now)
			plans[side] = append(plans[side], plan)
			return plan
		}
		w := sim.NewWorld(world)
		if _, issues = w.Load(sources...); issues.Err() != nil {
			return nil, issues, nil
		}
		w.Policy = p
		o.Recorder = sim.Discard() // plans contains the decisions
		if _, err := w.RunFor(o); err != nil {
			return nil, issues, fmt.Errorf("simulate by policy %s: %w", p.Name, err)
		}
	}
	b := &Book{}
	for side, all := range plans {
		for _, plan := range all {
			b.Note(side, plan)
		}
	}
	for i := range min(len(plans[Old]), len(plans[New])) {
		b.Count(plans[Old][i], plans[New][i])
	}
	return b, issues, nil
}

// Recordings lets a policy decide each recorded cycle in its recorded state. It compares the decisions with the recorded ones, or with
// those of old. first is the first cycle in which they differ; nil: there is none. Each file begins with a checkpoint, so several files are
// decided in parallel.
func Recordings(old, other *policy.Policy, files ...string) (b *Book, first *Moment, err error) {
	books, found := make([]*Book, len(files)), earliest{at: len(files)}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		all.Go(func() (err error) {
			books[i], err = recorded(old, other, file, found.of(i))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the file
	}
	b = &Book{}
	for i := range books {
		b.add(books[i])
	}
	return b, found.moment, nil
}

// earliest is the moment of the first file that has one. It is safe for concurrent use.
type earliest struct {
	mu     sync.Mutex
	at     int
	moment *Moment
}

// finder searches the moment of one file.
type finder struct {
	*earliest
	file int
}

func (x *earliest) of(file int) finder { return finder{x, file} }

// wanted reports whether no moment was found in this file or an earlier one.
func (f finder) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at > f.file
}

func (f finder) found(m *Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at > f.file {
		f.at, f.moment = f.file, m
	}
}

// recorded does what Recordings does, for one file.
func recorded(old, other *policy.Policy, file string, first finder) (b *Book, err error) {
	b = &Book{}
	var deciders [2]engine.Decider
	var after, before *model.Plan
	var objects []metav1.Object
	p := &recording.Player{}
	p.Before = func(x *recording.Moment) error {
		after = in(x, &deciders[New], other)
		if before = nil; old != nil {
			before = in(x, &deciders[Old], old)
		}
		objects = nil
		if len(after.Binds)+len(after.Evicts) > 0 && (before == nil || !Alike(before, after)) && first.wanted() {
			objects = p.Objects()
		}
		return nil
	}
	p.After = func(x *recording.Moment) error {
		if before == nil {
			before = x.Plan
		}
		b.Note(Old, before)
		b.Note(New, after)
		b.Count(before, after)
		if objects != nil && !Alike(before, after) {
			first.found(&Moment{Now: x.Recorded.Now, Objects: objects, Old: cmp.Or(old, x.Policy)})
		}
		return nil
	}
	if err := p.Play(file); err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	return b, nil
}

// in returns what a policy decides in a moment. It does not change the cluster.
func in(x *recording.Moment, d *engine.Decider, p *policy.Policy) *model.Plan {
	trial := model.Try(x.Cluster)
	defer trial.End()
	return d.Decide(x.Cluster, p, x.Recorded.Now)
}
