package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/live"
)

// benchRun is what one run took.
type benchRun struct {
	pods int
	took time.Duration
	cpu  time.Duration // of all: this process, and the scheduler's
	own  time.Duration // of it the scheduler's; 0: there was none
}

func (r benchRun) perSecond() float64 { return float64(r.pods) / r.took.Seconds() }

func (r benchRun) String() string {
	own := ""
	if r.own > 0 {
		own = fmt.Sprintf(" (scheduler %4.2f)", r.ownEach())
	}
	return fmt.Sprintf("%6d pods %6.1f s %6.0f pods/s, %4.2f ms of processor a pod%s, %3.1f processors", r.pods, r.took.Seconds(), r.perSecond(),
		r.cpuEach(), own, r.cpu.Seconds()/r.took.Seconds())
}

// cpuEach is all processor time for a pod, in milliseconds.
func (r benchRun) cpuEach() float64 { return 1000 * r.cpu.Seconds() / float64(r.pods) }

// ownEach is the scheduler's processor time for a pod, in milliseconds.
func (r benchRun) ownEach() float64 { return 1000 * r.own.Seconds() / float64(r.pods) }

// live has the scheduler bind a backlog.
func (b *bench) live(ctx context.Context, s loadShape) (r benchRun, err error) {
	l, err := b.backlog(ctx, s)
	if err != nil {
		return r, err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return r, err
	}
	defer w.stop()
	runtime.GC() // every run starts with garbage collected
	scheduler, err := b.startScheduler(ctx)
	if err != nil {
		return r, err
	}
	defer scheduler.stop()
	if err := scheduler.await(ctx); err != nil {
		return r, err
	}
	b.profileScheduler(ctx, scheduler, string(s))
	stop, err := b.profile(fmt.Sprintf("%s-%d", s, b.runs))
	if err != nil {
		return r, err
	}
	defer stop()
	if err := w.await(ctx, len(l.pods)); err != nil {
		return r, err
	}
	used := scheduler.since()
	requests, err := scheduler.requests(ctx)
	if err != nil {
		return r, err
	}
	scheduler.stop()
	r = benchRun{pods: len(l.pods), took: w.last.Sub(scheduler.begun), cpu: used.all, own: used.own}
	say(b.out, "%-24s %s; requests a pod: %s", s, r, perPod(requests, len(l.pods)))
	return r, b.clear(ctx, l)
}

// bare binds a backlog without any scheduler.
func (b *bench) bare(ctx context.Context, s loadShape, workers int) (r benchRun, err error) {
	l, err := b.backlog(ctx, s)
	if err != nil {
		return r, err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return r, err
	}
	defer w.stop()
	runtime.GC()
	stop, err := b.profile(fmt.Sprintf("bare-%s-%d", s, b.runs))
	if err != nil {
		return r, err
	}
	defer stop()
	start, used := time.Now(), processorTime()
	err = eachOf(workers, len(l.pods), func(i int) error {
		return b.kube.CoreV1().Pods(l.namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: l.namespace, Name: l.pods[i], UID: l.uids[l.pods[i]],
				Annotations: map[string]string{live.PolicyAnnotation: "default@0"},
			},
			Target: corev1.ObjectReference{Kind: "Node", Name: b.nodes[i%len(b.nodes)]},
		}, metav1.CreateOptions{FieldManager: live.FieldManager})
	})
	if err == nil {
		err = w.await(ctx, len(l.pods))
	}
	used = processorTime() - used
	if err != nil {
		return r, fmt.Errorf("bare loop: %w", err)
	}
	r = benchRun{pods: len(l.pods), took: w.last.Sub(start), cpu: used}
	say(b.out, "%-24s %s", fmt.Sprintf("bare, %s, %d workers", s, workers), r)
	return r, b.clear(ctx, l)
}

// latency makes pods at a steady rate, and gives the median and the 99th percentile of the time from just before
// the request that makes a pod to when the watch has it bound.
func (b *bench) latency(ctx context.Context) (p50, p99 time.Duration, err error) {
	l, err := b.newLoad(ctx)
	if err != nil {
		return 0, 0, err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return 0, 0, err
	}
	defer w.stop()
	scheduler, err := b.startScheduler(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer scheduler.stop()
	if err := scheduler.await(ctx); err != nil {
		return 0, 0, err
	}
	b.profileScheduler(ctx, scheduler, "steady")
	stop, err := b.profile("steady")
	if err != nil {
		return 0, 0, err
	}
	asked, err := b.arrive(ctx, l)
	if err == nil {
		err = w.await(ctx, len(l.pods))
	}
	stop()
	if err != nil {
		return 0, 0, err
	}
	var took []time.Duration
	w.mu.Lock()
	for name, at := range asked {
		took = append(took, w.bound[name].Sub(at))
	}
	w.mu.Unlock()
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[int(share*float64(len(took)-1))] }
	say(b.out, "%d pods at %d/s: bound after p10 %s, p50 %s, p90 %s, p99 %s, at most %s; scheduler %.2f ms of processor a pod", len(took), b.o.rate,
		rounded(at(0.1)), rounded(at(0.5)), rounded(at(0.9)), rounded(at(0.99)), rounded(at(1)), 1000*scheduler.since().own.Seconds()/float64(len(took)))
	return at(0.5), at(0.99), b.clear(ctx, l)
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// arrive makes pods at the rate. It gives when each was asked for.
func (b *bench) arrive(ctx context.Context, l *load) (map[string]time.Time, error) {
	tick := time.NewTicker(time.Second / time.Duration(b.o.rate))
	defer tick.Stop()
	asked := map[string]time.Time{}
	n := int(b.o.steady.Seconds() * float64(b.o.rate))
	errs := make(chan error, n)
	for i := range n {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("pods at a steady rate: %w", ctx.Err())
		case <-tick.C:
		}
		name := fmt.Sprintf("pod-%d", i)
		l.pods, asked[name] = append(l.pods, name), time.Now()
		go func() {
			_, err := b.kube.CoreV1().Pods(l.namespace).Create(ctx, benchPod(name), metav1.CreateOptions{})
			errs <- err
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	return asked, err
}

// profile starts a CPU profile of the process, where they are wanted.
func (b *bench) profile(name string) (stop func(), err error) {
	if b.o.profiles == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(b.o.profiles, name+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("--profiles: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("--profiles: %w", err), file.Close())
	}
	return sync.OnceFunc(func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}), nil
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
