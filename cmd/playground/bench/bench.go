// Package bench measures the live scheduler in a cluster that runs in one process.
//
//	programs that bind (contender.go)               reports
//	  Celsius        celsius.go, a process            bench-live: compare.go, a backlog until its last write (drain.go)
//	  bare loop      bare.go, in this process                     latency.go, pods at a steady rate
//	  watch and bind binder.go, a process                         targets.go, table.go, targets and results
//	  kube-scheduler this program, a process          bench-live --idle: idle.go, and --through: through.go
//	  --peer         any command                      bench-jobs: jobs.go, shapes.go; the floor is maker.go, a process
//
// A floor is a program that does only the work that no scheduler can avoid. The API server runs in this process, so that its counts of
// requests are available (requests.go).
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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

// Cluster is the measured cluster: a control plane with nodes and the controllers, and without a scheduler.
type Cluster struct {
	// Kubeconfig is the file for other processes.
	Kubeconfig string
	// Config returns the administrator's configuration for one part with a name.
	Config func(part string) *rest.Config
	// Nodes are the names of the nodes. All nodes are Ready.
	Nodes []string
	// Log receives the output of the processes that the benchmark starts.
	Log io.Writer
	// Fail ends the measurement because a required part has failed.
	Fail func(error)
	// Index returns a number that rises with each write to the cluster's data.
	Index func() uint64
	// EndKubelets stops the simulation of bound pods.
	EndKubelets func()
}

// Setup describes the cluster to create.
type Setup struct {
	Nodes    int
	Kubelets bool // bound pods are simulated
	Bare     bool // the controllers do not run
}

// Run starts a cluster, calls measure, and stops the cluster.
type Run func(ctx context.Context, out, errs io.Writer, setup Setup, measure func(context.Context, *Cluster) error) error

// UsageError is a mistake on the command line.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// options are the flags of bench-live.
type options struct {
	nodes      int
	pods       int           // minimum of a run
	gang       int           // pods of one gang
	rounds     int           // rounds; each runs gangs and singles, with the scheduler and with the bare loop
	least      time.Duration // intended minimum duration of a run of the bare loop
	rate       int           // pods per second in the measurement of latency
	latencyFor time.Duration // duration of that measurement
	kubelets   bool
	profiles   string
	celsius    string // the binary that contains the measured scheduler
	through    int    // if not 0, only measure this many pods that are bound while they are created

	kubeScheduler bool          // measure it as a peer
	peer          []string      // more peers, each NAME=COMMAND
	idle          time.Duration // if not 0, only measure an idle cluster for this long
	atMost        float64       // limit of calls per pod (latency), or of calls of idle parts; below 0: no limit
}

// NewCommand creates the command bench-live.
func NewCommand(run Run) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:    "bench-live",
		Short:  "Measure how fast the live scheduler binds pods",
		Hidden: true,
		Long: `Measures the live scheduler against floors and peers, all in one run.

A backlog of pods is made while no scheduler runs: as gangs with PodGroups, as
singles that get theirs from the scheduler, or, for other schedulers, as plain
pods that get none. Then somebody is started who binds them:

  Celsius         the scheduler of --celsius
  bare loop       a loop in this process that sends Bindings to nodes that are
                  chosen already, 32 at once: the first floor
  watch and bind  a program that lists and watches the pods and binds each that
                  has no node to the next one, 32 at once: the second floor
  kube-scheduler  Kubernetes' own, of the version of the API server, with its
                  default profile
  --peer          any other: a command that finds the cluster by KUBECONFIG. Its
                  pods name the scheduler NAME

All have the same limits of their clients. The time is counted from the first
cycle (of a --peer, from its first binding; of the bare loop, from its start),
once until a watch has seen the last pod bound, and once until the last write
has been answered: no more is when the API server's own count of requests that
write pods, bindings, PodGroups, queues, Jobs and events stands still for three
seconds. CPU and calls are counted until that last write. In each round everybody
has a turn, in every second one in the opposite order; figures are medians of the
rounds, ratios medians of the ratios of each round. Every scheduler is a process
of its own, as it is in a cluster, so that its processor time is known; all else
runs in this one, with one control plane, so that only ratios mean anything on
another machine.

Before that the time from just before a pod's creation is asked for until a watch
has seen it bound is measured, at a steady rate of bare pods.

With --idle nothing is compared: pods run, the scheduler and the controllers are
processes of their own that hold their leases, nothing happens, and what they ask
for and use is told.

With --through so many pods are put through instead, as gangs that are made
while the scheduler is at work, and what it used and held at most is told.

No kubelet plays the pods, unless --kubelets is given: on a real cluster that is
the work of other machines. Times that are not what is wanted are told, and do not
make the command fail; calls do, by --at-most-calls.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			setup := Setup{Nodes: o.nodes, Kubelets: o.kubelets}
			if o.idle > 0 {
				setup = Setup{Nodes: o.nodes, Kubelets: true, Bare: true}
			}
			return inCluster(c, run, setup, o.measure)
		},
	}
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 1000, "how many nodes")
	f.IntVar(&o.pods, "pods", 5000, "how many pods a run binds; more, where the bare loop binds them in less than --least")
	f.IntVar(&o.gang, "gang", 10, "how many pods of a run of gangs wait for each other")
	f.IntVar(&o.rounds, "rounds", 4,
		"how often all that bind backlogs take their turns; 0: latency only")
	f.DurationVar(&o.least, "least", 13*time.Second, "how long a run of the bare loop is to take at least")
	f.IntVar(&o.rate, "rate", 50, "pods that are made in a second while latency is measured")
	f.DurationVar(&o.latencyFor, "steady", 25*time.Second, "for how long latency is measured; 0: not at all")
	f.BoolVar(&o.kubelets, "kubelets", false, "have KWOK play the pods that are bound, in this process")
	f.StringVar(&o.profiles, "profiles", "",
		"folder for CPU profiles of each run, of this process and of the scheduler; with --idle of both parts")
	f.BoolVar(&o.kubeScheduler, "kube-scheduler", true, "compare with Kubernetes' own scheduler")
	f.StringArrayVar(&o.peer, "peer", nil, "compare with another scheduler, NAME=COMMAND; repeatable")
	f.Float64Var(&o.atMost, "at-most-calls", -1,
		"fail where more calls a pod are made while latency is measured, or more in all by parts that idle; below 0: never")
	f.DurationVar(&o.idle, "idle", 0, "measure for so long what parts use while --pods pods run and nothing happens; 0: compare")
	f.IntVar(&o.through, "through", 0, "put so many pods through, instead of comparing; 0: compare")
	o.registerCelsius(c)
	return c
}

// noArgs returns an error for arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no arguments, and %q is one", c.Name(), args[0])}
	}
	return nil
}

// inCluster runs a measurement in a cluster until it is complete, or until a user ends it.
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

// check rejects invalid flags.
func (o *options) check() error {
	for flag, n := range map[string]int{"nodes": o.nodes, "pods": o.pods, "gang": o.gang, "rate": o.rate} {
		if n < 1 {
			return UsageError{fmt.Errorf("--%s %d: give 1 or more", flag, n)}
		}
	}
	if o.rounds < 0 {
		return UsageError{fmt.Errorf("--rounds %d: give 0 or more", o.rounds)}
	}
	if err := checkPeers(o.peer); err != nil {
		return err
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

// bench is a measured cluster.
type bench struct {
	options
	out     io.Writer
	cluster *Cluster
	kube    kubernetes.Interface // with the same settings as the scheduler's client
	groups  client.WithWatch     // for our own kinds
	runs    int                  // number of runs so far; each has its own namespace
}

// say writes a line of the report. It ignores errors, because there is no other stream to report them.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format+"\n", args...) }

// measure measures in a cluster and prints the report. The last line contains the result.
func (o options) measure(ctx context.Context, out io.Writer, cluster *Cluster) error {
	b, err := newBench(o, out, cluster)
	if err != nil {
		return err
	}
	switch {
	case b.idle > 0:
		return idleBench{b}.measure(ctx)
	case b.through > 0:
		return b.putThrough(ctx)
	}
	return (&comparison{bench: b, took: results{}}).compare(ctx)
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
	if err := b.makeProfiles(); err != nil {
		return nil, err
	}
	if b.groups, err = client.NewWithWatch(cluster.Config("bench"), client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return b, nil
}
