package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// KubeScheduler is the hidden command of this program that runs Kubernetes' own scheduler. It finds the cluster through KUBECONFIG.
const KubeScheduler = "kube-scheduler"

// contender is a program that binds pods in a run.
type contender struct {
	name  string
	pods  string // the scheduler name in its pods
	start func(context.Context) (*program, error)
}

// The names of contenders that always exist.
const (
	celsius = "Celsius"
	loop    = "bare loop"
	watcher = "watch and bind"
)

func (b *bench) celsiusContender() contender {
	return contender{celsius, schedulerName, b.startScheduler}
}

// bareLoop has nothing to start, because it runs in this process.
func bareLoop() contender { return contender{name: loop, pods: schedulerName} }

func (b *bench) watchAndBind() contender {
	return contender{watcher, schedulerName, func(ctx context.Context) (*program, error) {
		p := &program{name: binderCommand, ready: begunLine}
		return p, b.launchSelf(ctx, p, binderCommand)
	}}
}

// peers returns other schedulers, whose pods have no PodGroups.
func (b *bench) peers() []contender {
	var out []contender
	if b.kubeScheduler {
		out = append(out, contender{KubeScheduler, "default-scheduler", func(ctx context.Context) (*program, error) {
			// It writes this line when it has listed everything, directly before its first pod.
			p := &program{name: KubeScheduler, ready: `] "Handlers synced"`}
			return p, b.launchSelf(ctx, p, KubeScheduler)
		}})
	}
	for _, given := range b.peer {
		name, command, _ := strings.Cut(given, "=")
		out = append(out, contender{name, name, func(ctx context.Context) (*program, error) {
			p := &program{name: name}
			return p, b.launch(ctx, p, "sh", "-c", "exec "+command)
		}})
	}
	return out
}

// checkPeers rejects peers without a name or a command, and names that are in use.
func checkPeers(given []string) error {
	taken := map[string]bool{celsius: true, loop: true, watcher: true, KubeScheduler: true}
	for _, peer := range given {
		name, command, _ := strings.Cut(peer, "=")
		switch {
		case name == "" || strings.TrimSpace(command) == "":
			return UsageError{fmt.Errorf("--peer %s: give NAME=COMMAND", peer)}
		case taken[name]:
			return UsageError{fmt.Errorf("--peer %s: there is a %s already", peer, name)}
		}
		taken[name] = true
	}
	return nil
}

// result contains the measurements of one run.
type result struct {
	pods    int
	bound   time.Duration // until the last pod was bound
	drained time.Duration // until the last write was answered
	used    usage         // until the last write
	calls   requests      // until the last write, from all clients
}

func (r result) boundRate() float64   { return float64(r.pods) / r.bound.Seconds() }
func (r result) drainedRate() float64 { return float64(r.pods) / r.drained.Seconds() }

// own returns the scheduler's CPU time per pod in milliseconds. It is 0 if the scheduler has no process of its own.
func (r result) own() float64 {
	var all time.Duration
	for _, of := range r.used.of {
		all += of
	}
	return milliseconds(all) / float64(r.pods)
}

// rest returns the CPU time of this process per pod, in milliseconds.
func (r result) rest() float64 { return milliseconds(r.used.rest) / float64(r.pods) }

func (r result) callsEach() float64 { return r.calls.sum() / float64(r.pods) }

func (r result) String() string {
	return fmt.Sprintf("%d pods bound %.2f s, drained %.2f s, %.0f and %.0f/s; CPU a pod %.2f ms, and the scheduler's %.3f", r.pods,
		r.bound.Seconds(), r.drained.Seconds(), r.boundRate(), r.drainedRate(), r.rest(), r.own())
}

func milliseconds(d time.Duration) float64 { return 1000 * d.Seconds() }

// run measures how a contender binds a backlog.
func (b *bench) run(ctx context.Context, c contender, s loadShape) (r result, err error) {
	l, err := b.backlog(ctx, s, c.pods)
	if err != nil {
		return r, err
	}
	w, err := b.watch(ctx, l.namespace)
	if err != nil {
		return r, err
	}
	defer w.stop()
	if _, err := b.drained(ctx); err != nil { // ignore the work that followed the creation of the pods
		return r, err
	}
	runtime.GC() // every run starts without garbage
	stop, err := b.profile(fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(c.name, " ", "-"), s, b.runs))
	if err != nil {
		return r, err
	}
	defer stop()
	var began, end mark
	if c.start == nil {
		began, end, err = b.runHere(ctx, l, w)
	} else {
		began, end, err = b.runBeside(ctx, c, l, w)
	}
	stop()
	if err != nil {
		return r, fmt.Errorf("%s, %s: %w", c.name, s, err)
	}
	_, last := w.when(bound)
	r = result{pods: len(l.pods), bound: last.Sub(began.at)}
	r.drained, r.used, r.calls = end.since(began)
	r.drained = max(r.drained, r.bound)
	b.say("%-24s %s", c.name+", "+string(s), r)
	b.list("  calls a pod: ", r.calls.each(r.pods))
	return r, b.clear(ctx, l)
}

// runHere lets the bare loop bind the existing pods.
func (b *bench) runHere(ctx context.Context, l *load, w *podWatch) (began, end mark, err error) {
	if began, err = take(); err != nil {
		return began, end, err
	}
	if err = b.bare(ctx, l); err != nil {
		return began, end, err
	}
	if err = w.await(ctx, bound, len(l.pods)); err != nil {
		return began, end, err
	}
	end, err = b.drained(ctx)
	return began, end, err
}

// runBeside lets a process bind the existing pods. Its time begins with its first cycle.
func (b *bench) runBeside(ctx context.Context, c contender, l *load, w *podWatch) (began, end mark, err error) {
	p, err := c.start(ctx)
	if err != nil {
		return began, end, err
	}
	defer p.stop()
	if err = p.await(ctx, w); err != nil {
		return began, end, err
	}
	b.profilePart(ctx, p, string(l.shape), b.least)
	if err = w.await(ctx, bound, len(l.pods)); err != nil {
		return began, end, err
	}
	end, err = b.drained(ctx, p)
	return p.from, end, err
}
