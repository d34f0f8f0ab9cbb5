package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/celsius-scheduler/celsius/engine/live"
)

// benchRun is what one run took.
type benchRun struct {
	pods int
	took time.Duration
	cpu  time.Duration // of the whole process
}

func (r benchRun) perSecond() float64 { return float64(r.pods) / r.took.Seconds() }

func (r benchRun) String() string {
	return fmt.Sprintf("%6d pods %6.1f s %6.0f pods/s, %4.2f ms of processor a pod, %3.1f processors", r.pods, r.took.Seconds(), r.perSecond(),
		1000*r.cpu.Seconds()/float64(r.pods), r.cpu.Seconds()/r.took.Seconds())
}

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
	stop, err := b.profile(fmt.Sprintf("%s-%d", s, b.runs))
	if err != nil {
		return r, err
	}
	scheduler := b.startScheduler(ctx)
	err = w.await(ctx, len(l.pods))
	used := processorTime()
	stop()
	scheduler.stop()
	if err != nil {
		return r, err
	}
	if scheduler.begun.IsZero() {
		return r, errors.New("the scheduler did not say when it began")
	}
	r = benchRun{pods: len(l.pods), took: w.last.Sub(scheduler.begun), cpu: used - scheduler.used}
	say(b.out, "%-8s %s; requests: %s", s, r, &scheduler.requests)
	return r, b.clear(ctx, l)
}

// bare binds a backlog without any scheduler.
func (b *bench) bare(ctx context.Context, workers int) (r benchRun, err error) {
	l, err := b.backlog(ctx, gangs)
	if err != nil {
		return r, err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return r, err
	}
	defer w.stop()
	stop, err := b.profile(fmt.Sprintf("bare-%d-%d", workers, b.runs))
	if err != nil {
		return r, err
	}
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
	stop()
	if err != nil {
		return r, fmt.Errorf("bare loop: %w", err)
	}
	r = benchRun{pods: len(l.pods), took: w.last.Sub(start), cpu: used}
	say(b.out, "%-8s %s", fmt.Sprintf("bare %d", workers), r)
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
	scheduler := b.startScheduler(ctx)
	defer scheduler.stop()
	if err := poll(ctx, "scheduler", scheduler.hasBegun); err != nil {
		return 0, 0, err
	}
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
	say(b.out, "%d pods at %d/s: bound after p10 %s, p50 %s, p90 %s, p99 %s, at most %s", len(took), b.o.rate,
		rounded(at(0.1)), rounded(at(0.5)), rounded(at(0.9)), rounded(at(0.99)), rounded(at(1)))
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

// runningScheduler is the live scheduler in a run.
type runningScheduler struct {
	stop     func()
	requests requestCounter

	mu    sync.Mutex
	begun time.Time     // of the first cycle
	used  time.Duration // by the process until then
}

// startScheduler starts the product's scheduler. It ends, at the latest, with ctx.
func (b *bench) startScheduler(ctx context.Context) *runningScheduler {
	s := &runningScheduler{}
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(ctx, logr.New(beginSink{ctrl.Log.GetSink(), s})))
	cfg := b.plane.clientConfig("scheduler")
	cfg.Wrap(s.requests.count)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := live.Run(ctx, cfg, live.Options{SchedulerNames: []string{benchScheduler}}); err != nil {
			b.plane.parts.fail(fmt.Errorf("scheduler: %w", err))
		}
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	return s
}

func (s *runningScheduler) hasBegun() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() {
		return errors.New("it has not begun")
	}
	return nil
}

// beginSink hears from the log when the scheduler makes its first cycle: it says so just before.
type beginSink struct {
	logr.LogSink
	s *runningScheduler
}

// Info implements logr.LogSink.
func (b beginSink) Info(level int, message string, values ...any) {
	if message == "scheduling" {
		b.s.mu.Lock()
		b.s.begun, b.s.used = time.Now(), processorTime()
		b.s.mu.Unlock()
	}
	b.LogSink.Info(level, message, values...)
}

// WithValues implements logr.LogSink.
func (b beginSink) WithValues(values ...any) logr.LogSink {
	return beginSink{b.LogSink.WithValues(values...), b.s}
}

// WithName implements logr.LogSink.
func (b beginSink) WithName(name string) logr.LogSink {
	return beginSink{b.LogSink.WithName(name), b.s}
}

// requestCounter counts what a client writes.
type requestCounter struct {
	mu    sync.Mutex
	kinds map[string]int
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (c *requestCounter) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			c.add(r.Method, r.URL.Path)
		}
		return next.RoundTrip(r)
	})
}

// add counts a request by its verb, and by its path without names.
func (c *requestCounter) add(method, path string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	kind := segments[len(segments)-1]
	if i := slices.Index(segments, "namespaces"); i >= 0 && i+2 < len(segments) {
		segments = segments[i+2:] // RESOURCE[/NAME[/SUBRESOURCE]]
		kind = segments[0]
		if len(segments) > 2 {
			kind += "/" + segments[2]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[string]int{}
	}
	c.kinds[strings.ToLower(method)+" "+kind]++
}

func (c *requestCounter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		out = append(out, fmt.Sprintf("%s %d", kind, c.kinds[kind]))
	}
	return strings.Join(out, ", ")
}

// bindWatch sees pods being bound.
type bindWatch struct {
	watch watch.Interface

	mu    sync.Mutex
	bound map[string]time.Time
	last  time.Time     // when the newest of them was seen
	ended chan struct{} // closed when nothing more is seen
}

// watch begins to watch. A pod comes into sight when it is bound.
func (b *bench) watch(ctx context.Context, namespace string) (*bindWatch, error) {
	bound := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	list, err := b.kube.CoreV1().Pods(namespace).List(ctx, bound)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	bound.ResourceVersion = list.ResourceVersion
	watching, err := b.kube.CoreV1().Pods(namespace).Watch(ctx, bound)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	w := &bindWatch{watch: watching, bound: map[string]time.Time{}, ended: make(chan struct{})}
	go w.see()
	return w, nil
}

func (w *bindWatch) see() {
	defer close(w.ended)
	for event := range w.watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type != watch.Added {
			continue
		}
		w.mu.Lock()
		w.last = time.Now()
		w.bound[pod.Name] = w.last
		w.mu.Unlock()
	}
}

func (w *bindWatch) stop() { w.watch.Stop() }

// await waits until so many pods are bound.
func (w *bindWatch) await(ctx context.Context, pods int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.ended:
			cancel() // there is nothing to wait for
		case <-ctx.Done():
		}
	}()
	return poll(ctx, "bindings", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.bound) >= pods {
			return nil
		}
		return fmt.Errorf("%d of %d pods are bound", len(w.bound), pods)
	})
}

// profile starts a CPU profile of the process, where they are wanted. Every run starts with garbage collected.
func (b *bench) profile(name string) (stop func(), err error) {
	runtime.GC()
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
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}, nil
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
