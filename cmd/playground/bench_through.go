package main

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
	say(b.out, "%d pods as gangs of %d on %d nodes", b.o.through, b.o.gang, b.o.nodes)
	if err := b.fill(ctx, l, gangs, b.o.through); err != nil {
		return err
	}
	if err := w.await(ctx, b.o.through); err != nil {
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
	r := benchRun{pods: b.o.through, took: w.last.Sub(scheduler.begun), cpu: used.all, own: used.own}
	say(b.out, "made and bound %s; requests a pod: %s", r, requests.each(r.pods))
	say(b.out, "through: %d pods on %d nodes, no restart, the scheduler held %s at most", r.pods, b.o.nodes, mebibytes(peak))
	return nil
}

func mebibytes(bytes int) string { return fmt.Sprintf("%d MiB", bytes>>20) }
