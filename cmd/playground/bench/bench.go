// Package bench measures the live scheduler in a cluster of one process, against a loop that does nothing but send Bindings.
package bench

import (
	"context"
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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Cluster is what is measured in: a control plane with nodes and the controllers, and without a scheduler.
type Cluster struct {
	// Kubeconfig is its file, for processes beside this one.
	Kubeconfig string
	// Config is the administrator's for one part, which has a name.
	Config func(part string) *rest.Config
	// Nodes are the names of its nodes, all of which are Ready.
	Nodes []string
	// Log takes what processes say that are started here.
	Log io.Writer
	// Fail ends the measurement: something that it needs cannot go on.
	Fail func(error)
	// EndKubelets has pods that are bound be played no more.
	EndKubelets func()
}

// Setup says what a cluster is to be like.
type Setup struct {
	Nodes    int
	Kubelets bool // pods that are bound are played
	Bare     bool // the controllers do not run
}

// Run starts a cluster, has it measured, and ends it.
type Run func(ctx context.Context, out, errs io.Writer, setup Setup, measure func(context.Context, *Cluster) error) error

// UsageError is a mistake on the command line.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// options are the flags of bench-live.
type options struct {
	nodes      int
	pods       int           // of a run, at least
	gang       int           // pods of one gang
	rounds     int           // in each: gangs, and singles, by the scheduler and by the bare loop
	least      time.Duration // that a run of the bare loop is meant to take
	rate       int           // pods a second, where latency is measured
	latencyFor time.Duration // for how long
	kubelets   bool
	profiles   string
	celsius    string // the binary whose scheduler is measured
	through    int    // if not 0, how many pods are put through, instead of all else
}

// bareWorkers is how many bindings the bare loop has under way at once. On two processors 8 cost a fifth more for each and 16 a
// tenth, 64 and 128 the same.
const bareWorkers = 32

// NewCommand makes bench-live.
func NewCommand(run Run) *cobra.Command {
	var o options
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
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return inCluster(c, run, Setup{Nodes: o.nodes, Kubelets: o.kubelets}, o.measure)
		},
	}
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 1000, "how many nodes")
	f.IntVar(&o.pods, "pods", 5000, "how many pods a run binds; more, where the bare loop binds them in less than --least")
	f.IntVar(&o.gang, "gang", 10, "how many pods of a run of gangs wait for each other")
	f.IntVar(&o.rounds, "rounds", 4,
		"how often gangs and singles, each by the scheduler and by the bare loop, take their turns; 0: latency only")
	f.DurationVar(&o.least, "least", 13*time.Second, "how long a run of the bare loop is to take at least")
	f.IntVar(&o.rate, "rate", 50, "pods that are made in a second while latency is measured")
	f.DurationVar(&o.latencyFor, "steady", 25*time.Second, "for how long latency is measured; 0: not at all")
	f.BoolVar(&o.kubelets, "kubelets", false, "have KWOK play the pods that are bound, in this process")
	f.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of each run, of this process and of the scheduler's")
	f.IntVar(&o.through, "through", 0, "put so many pods through, instead of comparing; 0: compare")
	o.registerCelsius(c)
	return c
}

// noArgs refuses arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no arguments, and %q is one", c.Name(), args[0])}
	}
	return nil
}

// inCluster measures in a cluster until it is done, or somebody ends it.
func inCluster(c *cobra.Command, run Run, setup Setup, measure func(ctx context.Context, out io.Writer, cluster *Cluster) error) error {
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	out := c.OutOrStdout()
	return run(ctx, out, c.ErrOrStderr(), setup, func(ctx context.Context, cluster *Cluster) error { return measure(ctx, out, cluster) })
}

func (o *options) registerCelsius(c *cobra.Command) {
	c.Flags().StringVar(&o.celsius, "celsius", "", "program whose parts are measured (default celsius, in the folder of this one)")
}

// check refuses what cannot be measured.
func (o *options) check() error {
	for flag, n := range map[string]int{"nodes": o.nodes, "pods": o.pods, "gang": o.gang, "rate": o.rate} {
		if n < 1 {
			return UsageError{fmt.Errorf("--%s %d: give 1 or more", flag, n)}
		}
	}
	if o.rounds < 0 {
		return UsageError{fmt.Errorf("--rounds %d: give 0 or more", o.rounds)}
	}
	return o.find()
}

// find finds the program whose parts are measured.
func (o *options) find() error {
	if o.celsius == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the folder of this program: %w; give --celsius", err)
		}
		o.celsius = filepath.Join(filepath.Dir(self), "celsius")
	}
	if _, err := exec.LookPath(o.celsius); err != nil {
		return UsageError{fmt.Errorf("--celsius: %w; build it with make build", err)}
	}
	return nil
}

// bench is a cluster that is being measured.
type bench struct {
	options
	out     io.Writer
	cluster *Cluster
	kube    kubernetes.Interface // with the settings that the scheduler's client has
	groups  client.WithWatch     // of our own kinds
	runs    int                  // so far; each has a namespace of its own
}

// say writes a line of the report. If that fails there is nobody left to be told.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format+"\n", args...) }

// measure measures in a cluster and prints; the result is the last line.
func (o options) measure(ctx context.Context, out io.Writer, cluster *Cluster) error {
	b, err := newBench(o, out, cluster)
	if err != nil {
		return err
	}
	if b.through > 0 {
		return b.putThrough(ctx)
	}
	return b.compare(ctx)
}

func newBench(o options, out io.Writer, cluster *Cluster) (*bench, error) {
	b := &bench{options: o, out: out, cluster: cluster}
	cfg := cluster.Config("bench")
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	var err error
	if b.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{schedulingv1beta1.AddToScheme, batchv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	if b.groups, err = client.NewWithWatch(cluster.Config("bench"), client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return b, nil
}

// makeProfiles makes the folder of profiles, where they are wanted.
func (b *bench) makeProfiles() error {
	if b.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return fmt.Errorf("--profiles: %w", err)
	}
	return nil
}

// compare runs all, and prints what came of it.
func (b *bench) compare(ctx context.Context) error {
	if err := b.makeProfiles(); err != nil {
		return err
	}
	var took waits
	if b.latencyFor > 0 {
		// First, while the API server is not busy collecting what the runs left behind.
		var err error
		if took, err = b.latency(ctx); err != nil {
			return err
		}
	}
	if b.rounds == 0 {
		return nil
	}
	b.say("warming up: the bare loop, %d pods on %d nodes", b.pods, b.nodes)
	warm, err := b.bare(ctx, gangs)
	if err != nil {
		return err
	}
	if enough := int(warm.perSecond()*b.least.Seconds()/1000+1) * 1000; enough > b.pods {
		b.pods = enough
	}
	b.say("each run binds %d pods", b.pods)
	shapes := []loadShape{gangs, singles}
	results := map[loadShape]*shapeResult{}
	for _, s := range shapes {
		results[s] = &shapeResult{}
	}
	for i := range b.rounds {
		for _, s := range shapes {
			if err := b.turn(ctx, s, results[s], i%2 == 1); err != nil {
				return err
			}
		}
	}
	worst := results[gangs]
	for _, s := range shapes {
		r := results[s]
		b.say("%-8s %6.0f pods/s: %.2f of the bare loop's %.0f; %.2f ms of processor a pod, of which the scheduler's %.2f, against %.2f",
			s, median(r.live), r.ratio(), median(r.bare), median(r.cpu), median(r.own), median(r.base))
		if r.ratio() < worst.ratio() {
			worst = r
		}
	}
	b.say("live: %.0f pods/s, bare bind %.0f/s, ratio %.2f, scheduler %.2f ms of processor a pod, p50 %d ms, p99 %d ms",
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
