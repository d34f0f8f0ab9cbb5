package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// benchOptions are the flags of bench-live.
type benchOptions struct {
	nodes    int
	pods     int           // of a run, at least
	gang     int           // pods of one gang
	rounds   int           // in each: gangs, and singles, by the scheduler and by the bare loop
	least    time.Duration // that a run of the bare loop is meant to take
	rate     int           // pods a second, where latency is measured
	steady   time.Duration // for how long
	kubelets bool
	profiles string
	celsius  string // the binary whose scheduler is measured
	through  int    // if not 0, how many pods are put through, instead of all else
}

// bareWorkers is how many bindings the bare loop has under way at once. On two processors 8 cost a fifth more for each and 16 a
// tenth, 64 and 128 the same.
const bareWorkers = 32

func newBenchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:    "bench-live",
		Short:  "Measure how fast the live scheduler binds pods",
		Hidden: true,
		Long: `Measures the live scheduler against the API server's own speed.

A backlog of pods is made while no scheduler runs, half of the times as gangs
with PodGroups, half of the times as bare pods that get their PodGroups from the
controllers. Then the scheduler starts, and the time from the start of its first
cycle until a watch has seen the last pod bound is taken. In turn with that,
equal pods are bound by a loop that does nothing but send Bindings to nodes that
are chosen already, 32 at once, with the same client settings. The ratio is that
of two runs that follow each other, in every second round the loop's first; the
median of all rounds counts. The scheduler is a process of its own, as it is in
a cluster, so that its processor time is known; all else runs in this one, with
one control plane, so that only the ratio means anything on another machine.

Before that the time from just before a pod's creation is asked for until a watch
has seen it bound is measured, at a steady rate of bare pods: by a loop that binds
each pod as soon as it names its PodGroup, and by the scheduler. What the former
takes is the API server's and the controllers' part of what the latter does.

With --through so many pods are put through instead, as gangs that are made
while the scheduler is at work, and what it used and held at most is told.

No kubelet plays the pods, unless --kubelets is given: on a real cluster that is
the work of other machines.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("bench-live takes no arguments, and %q is one", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop)
			return o.measure(ctx, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 1000, "how many nodes")
	f.IntVar(&o.pods, "pods", 5000, "how many pods a run binds; more, where the bare loop binds them in less than --least")
	f.IntVar(&o.gang, "gang", 10, "how many pods of a run of gangs wait for each other")
	f.IntVar(&o.rounds, "rounds", 4, "how often gangs and singles, each by the scheduler and by the bare loop, take their turns; 0: latency only")
	f.DurationVar(&o.least, "least", 13*time.Second, "how long a run of the bare loop is to take at least")
	f.IntVar(&o.rate, "rate", 50, "pods that are made in a second while latency is measured")
	f.DurationVar(&o.steady, "steady", 25*time.Second, "for how long latency is measured; 0: not at all")
	f.BoolVar(&o.kubelets, "kubelets", false, "have KWOK play the pods that are bound, in this process")
	f.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of each run, of this process and of the scheduler's")
	f.IntVar(&o.through, "through", 0, "put so many pods through, instead of comparing; 0: compare")
	f.StringVar(&o.celsius, "celsius", "", "program whose scheduler is measured (default celsius, in the folder of this one)")
	return c
}

// check refuses what cannot be measured.
func (o *benchOptions) check() error {
	for flag, n := range map[string]int{"nodes": o.nodes, "pods": o.pods, "gang": o.gang, "rate": o.rate} {
		if n < 1 {
			return usageError{fmt.Errorf("--%s %d: give 1 or more", flag, n)}
		}
	}
	if o.rounds < 0 {
		return usageError{fmt.Errorf("--rounds %d: give 0 or more", o.rounds)}
	}
	if o.celsius == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the folder of this program: %w; give --celsius", err)
		}
		o.celsius = filepath.Join(filepath.Dir(self), "celsius")
	}
	if _, err := exec.LookPath(o.celsius); err != nil {
		return usageError{fmt.Errorf("--celsius: %w; build it with make build", err)}
	}
	return nil
}

// bench is a control plane that is being measured.
type bench struct {
	o      benchOptions
	out    io.Writer
	plane  *controlPlane
	log    io.Writer
	kube   kubernetes.Interface // with the settings that the scheduler's client has
	groups client.Client
	nodes  []string
	runs   int // so far; each has a namespace of its own
}

// measure starts a control plane, measures and prints; the result is the last line.
func (o *benchOptions) measure(ctx context.Context, out, errs io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	listener, err := listen(0)
	if err != nil {
		return err
	}
	data, err := openData("", out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close(err == nil)) }()
	logTo(data.log)
	if err := stderrTo(data.log, errs); err != nil {
		return err
	}
	plane, err := startControlPlane(ctx, controlPlaneOptions{dir: data.dir, listener: listener, log: data.log})
	if err != nil {
		return data.pointToLog(err)
	}
	defer func() { err = errors.Join(err, plane.parts.stop()) }()
	b := &bench{o: *o, out: out, plane: plane, log: data.log}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-plane.parts.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	if err := b.furnish(ctx); err != nil {
		return data.pointToLog(err)
	}
	run := b.compare
	if b.o.through > 0 {
		run = b.putThrough
	}
	if err := run(ctx); err != nil {
		return data.pointToLog(errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// furnish makes the nodes, and starts the controllers.
func (b *bench) furnish(ctx context.Context) error {
	cfg := b.plane.clientConfig("bench")
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	var err error
	if b.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := schedulingv1beta1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if b.groups, err = client.New(b.plane.clientConfig("bench"), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	s, err := parseShape(fmt.Sprintf("%dx cpu=32,memory=256Gi", b.o.nodes))
	if err != nil {
		return err
	}
	if b.nodes, err = createNodes(ctx, b.kube, "node-", []shape{s}); err != nil {
		return err
	}
	if err := awaitNodes(ctx, b.kube); err != nil {
		return err
	}
	if !b.o.kubelets {
		b.plane.parts.end("KWOK")
	}
	b.plane.parts.start(ctx, "controllers", func(ctx context.Context) error {
		return controller.Run(ctx, b.plane.clientConfig("controllers"), controller.Options{})
	})
	return nil
}

// end stops one part before the others.
func (p *parts) end(name string) {
	p.mu.Lock()
	i := slices.IndexFunc(p.running, func(x *part) bool { return x.name == name })
	if i < 0 {
		p.mu.Unlock()
		return
	}
	x := p.running[i]
	p.running = slices.Delete(p.running, i, i+1)
	p.mu.Unlock()
	x.cancel()
	<-x.done
}

// compare runs all, and prints what came of it.
func (b *bench) compare(ctx context.Context) error {
	if b.o.profiles != "" {
		if err := os.MkdirAll(b.o.profiles, 0o755); err != nil {
			return fmt.Errorf("--profiles: %w", err)
		}
	}
	var took waits
	if b.o.steady > 0 {
		// First, while the API server is not busy collecting what the runs left behind.
		var err error
		if took, err = b.latency(ctx); err != nil {
			return err
		}
	}
	if b.o.rounds == 0 {
		return nil
	}
	say(b.out, "warming up: the bare loop, %d pods on %d nodes", b.o.pods, b.o.nodes)
	warm, err := b.bare(ctx, gangs)
	if err != nil {
		return err
	}
	if enough := int(warm.perSecond()*b.o.least.Seconds()/1000+1) * 1000; enough > b.o.pods {
		b.o.pods = enough
	}
	say(b.out, "each run binds %d pods", b.o.pods)
	shapes := []loadShape{gangs, singles}
	results := map[loadShape]*shapeResult{}
	for _, s := range shapes {
		results[s] = &shapeResult{}
	}
	for i := range b.o.rounds {
		for _, s := range shapes {
			if err := b.turn(ctx, s, results[s], i%2 == 1); err != nil {
				return err
			}
		}
	}
	worst := results[gangs]
	for _, s := range shapes {
		r := results[s]
		say(b.out, "%-8s %6.0f pods/s: %.2f of the bare loop's %.0f; %.2f ms of processor a pod, of which the scheduler's %.2f, against %.2f",
			s, median(r.live), r.ratio(), median(r.bare), median(r.cpu), median(r.own), median(r.base))
		if r.ratio() < worst.ratio() {
			worst = r
		}
	}
	say(b.out, "live: %.0f pods/s, bare bind %.0f/s, ratio %.2f, scheduler %.2f ms of processor a pod, p50 %d ms, p99 %d ms",
		median(worst.live), median(worst.bare), worst.ratio(), median(worst.own), took.at(0.5).Milliseconds(), took.at(0.99).Milliseconds())
	return nil
}

// shapeResult is what the runs of one shape gave, by turn.
type shapeResult struct {
	live []float64 // pods a second
	own  []float64 // milliseconds of the scheduler's processor time a pod
	cpu  []float64 // the same of all processor time
	bare []float64 // pods a second of the bare loop
	base []float64 // milliseconds of processor time a pod of the bare loop
}

// ratio is the median over turns of how the two compare. It is taken turn by turn, as the machine's speed changes over the
// minutes of a measurement by more than what the two differ by.
func (r *shapeResult) ratio() float64 {
	var turns []float64
	for i := range r.live {
		turns = append(turns, r.live[i]/r.bare[i])
	}
	return median(turns)
}

// turn is one run of the scheduler and one of the bare loop, right after each other. Each goes first in half of the turns, as runs
// get slower over the minutes.
func (b *bench) turn(ctx context.Context, s loadShape, into *shapeResult, bareFirst bool) error {
	live := func() error {
		r, err := b.live(ctx, s)
		into.live, into.own, into.cpu = append(into.live, r.perSecond()), append(into.own, r.ownEach()), append(into.cpu, r.cpuEach())
		return err
	}
	bare := func() error {
		r, err := b.bare(ctx, s)
		into.bare, into.base = append(into.bare, r.perSecond()), append(into.base, r.cpuEach())
		return err
	}
	runs := []func() error{live, bare}
	if bareFirst {
		slices.Reverse(runs)
	}
	for _, run := range runs {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

// median of an odd number of values is one of them, else the mean of the middle two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
