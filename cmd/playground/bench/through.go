package bench

import (
	"context"
	"errors"
	"fmt"
)

// putThrough lets the scheduler bind pods while they are created. It prints what the scheduler used, and its peak memory.
func (b *bench) putThrough(ctx context.Context) error {
	l, err := b.newLoad(ctx, gangs, schedulerName)
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
	if err := scheduler.await(ctx, w); err != nil {
		return err
	}
	b.say("%d pods as gangs of %d on %d nodes", b.through, b.gang, b.nodes)
	if err := b.fill(ctx, l, b.through); err != nil {
		return err
	}
	if err := w.await(ctx, bound, b.through); err != nil {
		return errors.Join(err, context.Cause(ctx)) // the cause states whether the scheduler ended by itself
	}
	end, err := b.drained(ctx, scheduler)
	if err != nil {
		return err
	}
	requests, err := scheduler.requests(ctx)
	if err != nil {
		return err
	}
	peak, err := scheduler.peakMemory()
	if err != nil {
		return err
	}
	_, last := w.when(bound)
	r := result{pods: b.through, bound: last.Sub(scheduler.from.at)}
	r.drained, r.used, r.calls = end.since(scheduler.from)
	b.say("while they were made, %s", r)
	b.list("  the scheduler's calls a pod: ", requests.each(r.pods))
	b.say("through: %d pods on %d nodes, no restart, the scheduler held %s at most", r.pods, b.nodes, mebibytes(peak))
	return nil
}

func mebibytes(bytes int) string { return fmt.Sprintf("%d MiB", bytes>>20) }
