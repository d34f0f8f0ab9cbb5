package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// Beside decides alongside another scheduler and writes nothing. It runs until enough cycles have run or ctx ends, and returns the report.
// It returns an error if the cluster cannot be watched.
func Beside(ctx context.Context, cfg *rest.Config, o beside.Options) (*beside.Report, error) {
	o = o.WithDefaults()
	own, err := Options{SchedulerNames: []string{o.Of}, NodeSelector: o.NodeSelector, Period: o.Period}.complete()
	if err != nil {
		return nil, fmt.Errorf("options of the shadow: %w", err)
	}
	log := ctrl.LoggerFrom(ctx).WithName("shadow")
	s, err := newScheduler(log, beside.OnlyReads(cfg), own)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop(nil)
	objects, err := s.newCache(beside.KeepMarks(newStripper().Strip), func(o client.Object, why string) {
		log.Info("an object cannot be decoded, and is left out", "name", o.GetName(), "error", why)
	}, func(ctx context.Context, r *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			stop(fmt.Errorf("watch the cluster: %w", err)) // otherwise it would retry forever
		}
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		return nil, err
	}
	in := newFeed()
	synced, err := watchAll(ctx, objects, own.SchedulerNames, in)
	if err != nil {
		return nil, ended(ctx, err)
	}
	all.Go(func() {
		if err := objects.Start(ctx); err != nil {
			stop(fmt.Errorf("watch the cluster: %w", err))
		}
	})
	measured, err := s.newMeasures(in, o.Policy.ReadsMeasures)
	if err != nil {
		return nil, err
	}
	all.Go(func() { measured.Run(ctx, 30*time.Second) })
	if !synced(ctx) {
		return nil, ended(ctx, nil)
	}
	log.Info("watching", "scheduler", o.Of, "policy", o.Policy.Name)
	x := newShadow(o, in)
	x.Run(ctx, log)
	return x.Report(), ended(ctx, nil)
}

// newShadow returns a shadow that reads its changes from a feed.
func newShadow(o beside.Options, f *feed) *beside.Shadow {
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{o.Of}, Volumes: volume.New})
	in := newIntake(cluster.SchedulerNames, &nodeBook{}, phaseIn(cluster))
	return beside.New(o, cluster, beside.Feed{
		Wake: f.wake, Urgent: func() time.Time { return f.since().urgent },
		Take: func() (out []beside.Change) {
			for _, c := range f.drain() {
				out = append(out, beside.Change{Op: c.op, Object: c.object, Seen: c.seen, Urgent: c.urgent})
			}
			return out
		},
		Deltas: func(c *beside.Change, now time.Time) []model.Delta {
			return in.object(nil, change{op: c.Op, object: c.Object}, now)
		},
	})
}
