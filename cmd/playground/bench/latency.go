package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waits are times that pods took, in order.
type waits []time.Duration

// at is the time within which a share of the pods were done.
func (w waits) at(share float64) time.Duration {
	if len(w) == 0 {
		return 0
	}
	return w[int(share*float64(len(w)-1))]
}

func (w waits) String() string {
	rounded := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("p10 %s, p50 %s, p90 %s, p99 %s, at most %s", rounded(w.at(0.1)), rounded(w.at(0.5)), rounded(w.at(0.9)),
		rounded(w.at(0.99)), rounded(w.at(1)))
}

// between is how long each pod took from one point to another.
func between(from, to map[string]time.Time) waits {
	var out waits
	for name, at := range from {
		out = append(out, to[name].Sub(at))
	}
	slices.Sort(out)
	return out
}

// latency makes bare pods at a steady rate, first with a loop in the scheduler's place that binds each pod as soon as it names its
// PodGroup, then with the scheduler. What both take is the API server's and the controllers'. It gives
// the scheduler's times from just before the request that makes a pod to when the watch has it bound.
func (b *bench) latency(ctx context.Context) (waits, error) {
	if _, err := b.steady(ctx, "bare loop", nil); err != nil {
		return nil, err
	}
	scheduler, err := b.startScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer scheduler.stop()
	if err := scheduler.await(ctx); err != nil {
		return nil, err
	}
	return b.steady(ctx, "scheduler", scheduler)
}

// steady makes pods at the rate, and tells how long they took, by stage. Without a scheduler it binds them itself.
func (b *bench) steady(ctx context.Context, name string, scheduler *program) (waits, error) {
	l, err := b.newLoad(ctx)
	if err != nil {
		return nil, err
	}
	binding := &bareBinding{bench: b, load: l}
	onGroup := func(*corev1.Pod) {}
	if scheduler == nil {
		onGroup = func(p *corev1.Pod) { binding.start(ctx, p) }
	}
	w, err := b.watchPods(ctx, l.namespace, "", onGroup)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	runtime.GC()
	if scheduler != nil {
		b.profileScheduler(ctx, scheduler, "steady")
	}
	stop, err := b.profile("steady-" + strings.ReplaceAll(name, " ", "-"))
	if err != nil {
		return nil, err
	}
	defer stop()
	before, err := servedRequests()
	if err != nil {
		return nil, err
	}
	began := b.meter(scheduler)
	asked, made, err := b.arrive(ctx, l)
	if err == nil {
		err = w.await(ctx, len(l.pods))
	}
	used := b.meter(scheduler).since(began)
	stop()
	served, counting := servedSince(before)
	if err = errors.Join(err, binding.wait(), counting); err != nil {
		return nil, err
	}
	w.mu.Lock()
	grouped, bound := maps.Clone(w.grouped), maps.Clone(w.bound)
	w.mu.Unlock()
	all := between(asked, bound)
	pods := float64(len(all))
	b.say("%d pods at %d/s by the %s: bound after %s; %.2f ms of processor a pod, of which the scheduler's %.2f", len(all), b.rate, name, all,
		1000*used.all.Seconds()/pods, 1000*used.own.Seconds()/pods)
	b.say("  all requests a pod: %s", served.each(len(all)))
	b.say("  made:    %s", between(asked, made))
	b.say("  grouped: %s", between(asked, grouped))
	b.say("  bound:   %s after that", between(grouped, bound))
	if scheduler != nil {
		if err := b.tellStages(ctx, scheduler); err != nil {
			return nil, err
		}
	}
	return all, b.clear(ctx, l)
}

// meter is the processor time that all have used so far.
func (b *bench) meter(scheduler *program) processors {
	if scheduler == nil {
		return processors{all: processorTime()}
	}
	return scheduler.now()
}

// tellStages prints what the scheduler itself says of where the time went.
func (b *bench) tellStages(ctx context.Context, scheduler *program) error {
	page, err := get(ctx, "http://"+scheduler.metrics+"/metrics")
	if err != nil {
		return err
	}
	for _, stage := range []string{"gathered", "decided", "queued", "bound"} {
		b.say("  of it the scheduler's own %-9s %s", stage+":", readStage(page, stage))
	}
	return nil
}

var stageSeries = regexp.MustCompile(`(?m)^celsius_pod_stage_seconds_(bucket|sum|count)\{stage="([^"]*)"(?:,le="([^"]*)")?\} (\S+)`)

// stage is a histogram of one stage, as far as it is told.
type stage struct {
	bounds []float64 // in seconds, rising
	counts []float64 // of what took no longer than that
	sum, n float64
}

// readStage finds a stage in a page of metrics; one that is not there has no counts.
func readStage(page []byte, name string) stage {
	var s stage
	for _, m := range stageSeries.FindAllSubmatch(page, -1) {
		value, err := strconv.ParseFloat(string(m[4]), 64)
		if err != nil || string(m[2]) != name {
			continue
		}
		switch string(m[1]) {
		case "sum":
			s.sum = value
		case "count":
			s.n = value
		default:
			bound, err := strconv.ParseFloat(string(m[3]), 64)
			if err == nil {
				s.bounds, s.counts = append(s.bounds, bound), append(s.counts, value)
			}
		}
	}
	return s
}

// within is the bound under which a share of all is.
func (s stage) within(share float64) time.Duration {
	for i, n := range s.counts {
		if n >= share*s.n {
			return time.Duration(s.bounds[i] * float64(time.Second))
		}
	}
	return 0
}

func (s stage) String() string {
	mean := time.Duration(s.sum / max(s.n, 1) * float64(time.Second)).Round(100 * time.Microsecond)
	return fmt.Sprintf("mean %s; half within %s, 90%% within %s, 99%% within %s", mean, s.within(0.5), s.within(0.9), s.within(0.99))
}

// bareBinding binds pods in the scheduler's place.
type bareBinding struct {
	bench *bench
	load  *load

	all  sync.WaitGroup
	next int

	mu   sync.Mutex
	errs []error
}

// start binds a pod. It is called by one goroutine.
func (x *bareBinding) start(ctx context.Context, p *corev1.Pod) {
	i := x.next
	x.next++
	x.all.Go(func() {
		if err := x.bench.bind(ctx, x.load.namespace, p.Name, p.UID, i); err != nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.errs = append(x.errs, fmt.Errorf("bind: %w", err))
		}
	})
}

// wait returns when all that was started has ended.
func (x *bareBinding) wait() error {
	x.all.Wait()
	return errors.Join(x.errs...)
}

// arrive makes pods at the rate. It gives when each was asked for, and when the API server said that it is there.
func (b *bench) arrive(ctx context.Context, l *load) (asked, made map[string]time.Time, err error) {
	tick := time.NewTicker(time.Second / time.Duration(b.rate))
	defer tick.Stop()
	asked, made = map[string]time.Time{}, map[string]time.Time{}
	n := int(b.latencyFor.Seconds() * float64(b.rate))
	var mu sync.Mutex
	errs := make(chan error, n)
	for i := range n {
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("pods at a steady rate: %w", ctx.Err())
		case <-tick.C:
		}
		name := fmt.Sprintf("pod-%d", i)
		l.pods, asked[name] = append(l.pods, name), time.Now()
		go func() {
			_, err := b.kube.CoreV1().Pods(l.namespace).Create(ctx, benchPod(name), metav1.CreateOptions{})
			mu.Lock()
			made[name] = time.Now()
			mu.Unlock()
			errs <- err
		}()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	return asked, made, err
}
