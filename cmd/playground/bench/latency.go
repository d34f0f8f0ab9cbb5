package bench

import (
	"context"
	"errors"
	"fmt"
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

// waits contains the times that pods took, sorted.
type waits []time.Duration

// at returns the time within which the given share of the pods was complete.
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

// between returns how long each pod took between two points.
func between(from, to map[string]time.Time) waits {
	var out waits
	for name, at := range from {
		out = append(out, to[name].Sub(at))
	}
	slices.Sort(out)
	return out
}

// steadyResult contains the measurements of a contender with pods at a steady rate.
type steadyResult struct {
	name string
	waits
	result
}

// latency creates bare pods at a steady rate for each contender. The first is a loop that binds each pod as soon as it exists, so that its
// time is the API server's time. Then come the scheduler, and its peers, whose pods have no PodGroups.
func (b *bench) latency(ctx context.Context) ([]steadyResult, error) {
	var out []steadyResult
	for _, c := range append([]contender{bareLoop(), b.celsiusContender()}, b.peers()...) {
		r, err := b.steadyBy(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s, %d pods a second: %w", c.name, b.rate, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// steadyBy starts a contender, if it has a process, and measures it.
func (b *bench) steadyBy(ctx context.Context, c contender) (r steadyResult, err error) {
	shape := singles
	if c.pods != schedulerName {
		shape = plain
	}
	l, err := b.newLoad(ctx, shape, c.pods)
	if err != nil {
		return r, err
	}
	binding := &bareBinding{bench: b, load: l}
	onNew := func(*corev1.Pod) {}
	if c.start == nil {
		onNew = func(p *corev1.Pod) { binding.start(ctx, p) }
	}
	w, err := b.watchPods(ctx, l.namespace, "", onNew)
	if err != nil {
		return r, err
	}
	defer w.stop()
	var beside []*program
	if c.start != nil {
		p, err := c.start(ctx)
		if err != nil {
			return r, err
		}
		defer p.stop()
		beside = append(beside, p)
		if p.ready == "" {
			if err := b.probe(ctx, l); err != nil {
				return r, err
			}
		}
		if err := p.await(ctx, w); err != nil {
			return r, err
		}
		b.profilePart(ctx, p, "steady", b.least)
	}
	stop, err := b.profile("steady-" + strings.ReplaceAll(c.name, " ", "-"))
	if err != nil {
		return r, err
	}
	defer stop()
	if r, err = b.steady(ctx, l, w, beside); err != nil {
		return r, err
	}
	stop()
	r.name = c.name
	if err := errors.Join(binding.wait(), b.tellSteady(ctx, r, c, beside)); err != nil {
		return r, err
	}
	return r, b.clear(ctx, l)
}

// probe creates a pod. Its binding shows that a scheduler without a log line works.
func (b *bench) probe(ctx context.Context, l *load) error {
	pod := benchPod("probe", l.scheduler)
	if _, err := b.kube.CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	l.pods = append(l.pods, pod.Name)
	return nil
}

// steady creates pods at the rate. It measures from just before each request until a watch shows that the pod is bound.
func (b *bench) steady(ctx context.Context, l *load, w *podWatch, beside []*program) (r steadyResult, err error) {
	b.say("%s pods at %d/s for %s", l.scheduler, b.rate, b.latencyFor)
	runtime.GC()
	began, err := take(beside...)
	if err != nil {
		return r, err
	}
	asked, answered, err := b.arrive(ctx, l)
	if err != nil {
		return r, err
	}
	if err := w.await(ctx, bound, len(l.pods)); err != nil {
		return r, err
	}
	end, err := b.drained(ctx, beside...)
	if err != nil {
		return r, err
	}
	whenBound, last := w.when(bound)
	r.waits = between(asked, whenBound)
	r.result = result{pods: len(asked), bound: last.Sub(began.at)}
	r.drained, r.used, r.calls = end.since(began)
	b.say("  made:    %s", between(asked, answered))
	return r, nil
}

// tellSteady prints the result.
func (b *bench) tellSteady(ctx context.Context, r steadyResult, c contender, beside []*program) error {
	b.say("  bound by %s: %s", r.name, r.waits)
	b.say("  CPU a pod %.2f ms, and the scheduler's %.3f", r.rest(), r.own())
	b.list("  calls a pod: ", r.calls.each(r.pods))
	if c.name != celsius {
		return nil
	}
	return b.tellStages(ctx, beside[0])
}

// tellStages prints the scheduler's own measurements of its stages.
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

// stage is the histogram of one stage.
type stage struct {
	bounds []float64 // in seconds, ascending
	counts []float64 // number of values that are not above the bound
	sum, n float64
}

// readStage finds a stage in a page of metrics. A missing stage has no counts.
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

// within returns the bound below which the given share of all values is.
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

// arrive creates pods at the rate. It returns when each was requested, and when the API server answered.
func (b *bench) arrive(ctx context.Context, l *load) (asked, answered map[string]time.Time, err error) {
	tick := time.NewTicker(time.Second / time.Duration(b.rate))
	defer tick.Stop()
	asked, answered = map[string]time.Time{}, map[string]time.Time{}
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
			_, err := b.kube.CoreV1().Pods(l.namespace).Create(ctx, benchPod(name, l.scheduler), metav1.CreateOptions{})
			mu.Lock()
			answered[name] = time.Now()
			mu.Unlock()
			errs <- err
		}()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	return asked, answered, err
}
