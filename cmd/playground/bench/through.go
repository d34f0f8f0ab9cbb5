package bench

import (
	"context"
	"errors"
	"fmt"
)

// putThrough has the scheduler bind pods while they are made, and tells what it used and held at most.
func (b *bench) putThrough(ctx context.Context) error {
	l, err := b.newLoad(ctx)
	if err != nil {
		return err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return err
	}
	defer w.stop()
	scheduler, err := b.startScheduler(ctx)
	if err != nil {
		return err
	}
	defer scheduler.stop()
	if err := scheduler.await(ctx); err != nil {
		return err
	}
	b.say("%d pods as gangs of %d on %d nodes", b.through, b.gang, b.nodes)
	if err := b.fill(ctx, l, gangs, b.through); err != nil {
		return err
	}
	if err := w.await(ctx, b.through); err != nil {
		return errors.Join(err, context.Cause(ctx)) // the cause says whether the scheduler ended by itself
	}
	used := scheduler.since()
	requests, err := scheduler.requests(ctx)
	if err != nil {
		return err
	}
	peak, err := scheduler.peakMemory()
	if err != nil {
		return err
	}
	r := result{pods: b.through, took: w.last.Sub(scheduler.begun), cpu: used.all, own: used.own}
	b.say("made and bound %s; requests a pod: %s", r, requests.each(r.pods))
	b.say("through: %d pods on %d nodes, no restart, the scheduler held %s at most", r.pods, b.nodes, mebibytes(peak))
	return nil
}

func mebibytes(bytes int) string { return fmt.Sprintf("%d MiB", bytes>>20) }
