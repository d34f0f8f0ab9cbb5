package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/live"
)

// result is what one run took.
type result struct {
	pods int
	took time.Duration
	cpu  time.Duration // of all: this process, and the scheduler's
	own  time.Duration // of it the scheduler's; 0: there was none
}

func (r result) perSecond() float64 { return float64(r.pods) / r.took.Seconds() }

func (r result) String() string {
	own := ""
	if r.own > 0 {
		own = fmt.Sprintf(" (scheduler %4.2f)", r.ownEach())
	}
	return fmt.Sprintf("%6d pods %6.1f s %6.0f pods/s, %4.2f ms of processor a pod%s, %3.1f processors", r.pods,
		r.took.Seconds(), r.perSecond(),
		r.cpuEach(), own, r.cpu.Seconds()/r.took.Seconds())
}

// cpuEach is all processor time for a pod, in milliseconds.
func (r result) cpuEach() float64 { return 1000 * r.cpu.Seconds() / float64(r.pods) }

// ownEach is the scheduler's processor time for a pod, in milliseconds.
func (r result) ownEach() float64 { return 1000 * r.own.Seconds() / float64(r.pods) }

// live has the scheduler bind a backlog.
func (b *bench) live(ctx context.Context, s loadShape) (r result, err error) {
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
	before, err := servedRequests()
	if err != nil {
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
	stop()
	requests, err := scheduler.requests(ctx)
	if err != nil {
		return r, err
	}
	served, err := servedSince(before)
	if err != nil {
		return r, err
	}
	scheduler.stop()
	r = result{pods: len(l.pods), took: w.last.Sub(scheduler.begun), cpu: used.all, own: used.own}
	b.say("%-24s %s; the scheduler's requests a pod: %s", s, r, requests.each(len(l.pods)))
	b.say("%-24s all requests a pod: %s", "", served.each(len(l.pods)))
	return r, b.clear(ctx, l)
}

// bare binds a backlog without any scheduler.
func (b *bench) bare(ctx context.Context, s loadShape) (r result, err error) {
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
	before, err := servedRequests()
	if err != nil {
		return r, err
	}
	start, used := time.Now(), processorTime()
	err = eachOf(bareWorkers, len(l.pods), func(i int) error {
		return b.bind(ctx, l.namespace, l.pods[i], l.uids[l.pods[i]], i)
	})
	if err == nil {
		err = w.await(ctx, len(l.pods))
	}
	used = processorTime() - used
	stop()
	if err != nil {
		return r, fmt.Errorf("bare loop: %w", err)
	}
	served, err := servedSince(before)
	if err != nil {
		return r, err
	}
	r = result{pods: len(l.pods), took: w.last.Sub(start), cpu: used}
	b.say("%-24s %s; all requests a pod: %s", "bare, "+string(s), r, served.each(len(l.pods)))
	return r, b.clear(ctx, l)
}

// bind puts a pod on the i-th node, counted round and round, as the scheduler would ask for it.
func (b *bench) bind(ctx context.Context, namespace, pod string, uid types.UID, i int) error {
	return b.kube.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: pod, UID: uid,
			Annotations: map[string]string{live.PolicyAnnotation: "default@0"},
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: b.cluster.Nodes[i%len(b.cluster.Nodes)]},
	}, metav1.CreateOptions{FieldManager: live.FieldManager})
}

// profile starts a CPU profile of the process, where they are wanted.
func (b *bench) profile(name string) (stop func(), err error) {
	if b.profiles == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(b.profiles, name+".pprof"))
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
