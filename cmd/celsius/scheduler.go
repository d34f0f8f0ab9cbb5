package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/engine/live"
	nodeload "github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

// queriesOfLoad returns the default queries to Prometheus, for the help text.
func queriesOfLoad() string {
	queries := []string{nodeload.DefaultCPU, nodeload.DefaultMemory, nodeload.DefaultTime}
	return strings.ReplaceAll("  "+strings.Join(queries, "\n  "), " - ", "\n    - ")
}

func newSchedulerCommand() *cobra.Command {
	var clients clientFlags
	var o live.Options
	size := resource.QuantityValue{Quantity: *resource.NewQuantity(recording.DefaultMost, resource.BinarySI)}
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Schedule the pods of a cluster",
		Long: `Schedule the pods of a cluster, by the SchedulingPolicy that --policy names;
where there is none, by the policy that comes with Celsius.

Several may run at once: one of them holds the lease and schedules, the others
stand by. It runs until it is told to stop, or loses the lease. One that was
stopped, or that the network cut off, sends nothing any more once its lease has
not been renewed for five sixths of its duration; another takes over after four
thirds of it (20 s of 15), and at once where the lease was given back.

It collects garbage when there is some 96 MiB of it: more rarely than other Go
programs while it is small, to spare the processor, and more often when it is
large, to spare memory. The environment variables GOGC and GOMEMLIMIT change
that.

With --prometheus-url the load of nodes is asked of Prometheus, by the queries
` + queriesOfLoad() + `
where the flags say no others.`,
		Example: `  # place the pods of schedulerName celsius and volcano
  celsius scheduler

  # alongside Volcano: leave its pods to it
  celsius scheduler --scheduler-name celsius`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := clients.connect("scheduler")
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			go paceGarbage(ctx)
			o.Recording.Most = size.Value()
			return live.Run(ctx, cfg, o)
		},
	}
	flags := cmd.Flags()
	clients.register(flags)
	flags.StringArrayVar(&o.SchedulerNames, "scheduler-name", []string{"celsius", "volcano"},
		"place the pods with this spec.schedulerName; repeatable, and replaces the default")
	flags.StringVar(&o.Policy, "policy", live.DefaultPolicy, "name of the SchedulingPolicy to obey")
	flags.StringVar(&o.NodeSelector, "node-selector", "", "see only the nodes with these labels: a selector as kubectl takes it")
	flags.StringVar(&o.Namespace, "namespace", live.DefaultNamespace, "where the lease, and the policies that served, are kept")
	flags.DurationVar(&o.Period, "schedule-period", time.Second, "longest time between two cycles")
	flags.DurationVar(&o.Window, "schedule-window", 20*time.Millisecond,
		"for how long changes are gathered before a cycle, at most; a quarter of it after the newest")
	flags.IntVar(&o.BindWorkers, "bind-workers", 64,
		"how many writes to the API server are under way at once, at most: fewer while it answers slowly")
	flags.StringVar(&o.BindingEvents, "binding-events", live.BindingsOfGangs, "of what a binding is told by an event: gang, one event of "+
		"each gang, with its nodes; pod, one of each pod as well, which costs a request a pod; none. Why a pod is where it is stands in its "+
		"annotation "+live.WhyAnnotation+" in any case")
	flags.DurationVar(&o.GangTimeout, "gang-timeout", time.Minute,
		"after what time a gang that lost members to refused bindings, and never was whole, gives up those that are bound")
	flags.DurationVar(&o.CycleTimeout, "cycle-timeout", time.Minute, "for how long no cycle may end while changes wait, before the leader's "+
		"/healthz fails, so that the kubelet restarts it; at least two schedule periods")
	limitFlags(flags, &o.Limits)
	flags.DurationVar(&o.VolumeTimeout, "volume-timeout", 10*time.Minute,
		"how long the binding or the making of a pod's volumes may take, before the pod is decided on anew")
	flags.DurationVar(&o.NodeMetricsInterval, "node-metrics-interval", 30*time.Second,
		"how often the measured load of nodes is read, if the policy reads it; 0: never")
	prometheusFlags(flags, &o.Prometheus)
	flags.StringToStringVar(&o.Extenders.TLS, "extender-tls", nil,
		"HOST:PORT=FOLDER: what TLS with an extender at that address needs, in files as a Secret of the type kubernetes.io/tls has them: ca.crt "+
			"(who may vouch for it), and tls.crt with tls.key (who the scheduler is); one may do without the other; repeatable")
	flags.DurationVar(&o.VerifyEvictions, "verify-evictions", 0, "check evictions after they were decided, for at most so long a cycle, and "+
		"count what does not hold, as a metric: say 100ms; 0: never")
	flags.StringVar(&o.Recording.Folder, "record-cycles", "", "keep in this folder what cycles are decided from, for celsius replay: "+
		"the objects that the scheduler reads, with no Secrets, commands or environments; \"\": nowhere")
	flags.Var(&size, "record-size", "how many bytes are kept of that, at most: of the newest cycles")
	takingPartFlags(flags, &o)
	servedFlags(flags, &o.Served)
	return cmd
}

// limitFlags adds the flags that limit the size of the objects of users.
func limitFlags(flags *pflag.FlagSet, o *model.Limits) {
	limits := model.DefaultLimits()
	const over = "; a pod above the limit is not scheduled"
	flags.IntVar(&o.PodTerms, "max-pod-terms", limits.PodTerms, "most terms of pod affinity and topology spread of a pod"+over)
	flags.IntVar(&o.JobTerms, "max-job-terms", limits.JobTerms, "most different terms that the pods of a PodGroup have together"+over)
	flags.IntVar(&o.NamespaceTerms, "max-namespace-terms", limits.NamespaceTerms, "maximum number of different terms of the pods "+
		"of a namespace that each pod there is compared with on average"+over)
	flags.IntVar(&o.Tolerations, "max-tolerations", limits.Tolerations, "most tolerations of a pod"+over)
	flags.IntVar(&o.Expressions, "max-expressions", limits.Expressions, "most terms, labels, expressions and values of node affinity, "+
		"pod affinity and topology spread of a pod, all together"+over)
	flags.IntVar(&o.HostPorts, "max-host-ports", limits.HostPorts, "most host ports of a pod"+over)
	flags.IntVar(&o.Resources, "max-resource-names", limits.Resources, "most resource names of a pod, a PodGroup or a task of a Job; "+
		"all of them together may bring 16 times as many names that no node offers"+over)
	flags.IntVar(&o.Metadata, "max-metadata-bytes", limits.Metadata, "most bytes of the labels and annotations of a pod or PodGroup, "+
		"without the annotation of kubectl apply"+over)
}

// prometheusFlags adds the flags for reading the measured load of nodes from Prometheus.
func prometheusFlags(flags *pflag.FlagSet, o *nodeload.Options) {
	flags.StringVar(&o.URL, "prometheus-url", "",
		"ask this Prometheus for the measured load of nodes, instead of the API metrics.k8s.io: say https://prometheus:9090")
	flags.StringVar(&o.CAFile, "prometheus-ca-file", "",
		"certificates, as PEM, of who may vouch for Prometheus; default: as the system has it")
	flags.StringVar(&o.TokenFile, "prometheus-token-file", "",
		"a file with a bearer token for Prometheus, which is read for each query")
	flags.StringVar(&o.Label, "prometheus-node-label", nodeload.DefaultLabel,
		"the label of Prometheus' answers that has the name of the node; a port behind it is taken off")
	flags.StringVar(&o.CPU, "prometheus-cpu-query", "", "what gives the cores that are used of each node")
	flags.StringVar(&o.Memory, "prometheus-memory-query", "",
		"what gives the bytes of memory that are used of each node")
	flags.StringVar(&o.Time, "prometheus-time-query", "", "what gives the second at which that was measured")
}

// takingPartFlags adds the flags of leader election, of the Leases, and of the address at which the API server finds the scheduler.
func takingPartFlags(flags *pflag.FlagSet, o *live.Options) {
	flags.StringVar(&o.Explain.Address, "explain-address", "0",
		"where questions about the last cycle are taken (celsius explain), as an API behind the API server: say :8443; 0: nowhere")
	flags.StringVar(&o.Explain.Host, "explain-host", "", "where the API server finds that address: the IP of this pod, or, outside of a "+
		"cluster, a name; the leader writes it into the Service "+questions.ServiceName+", and the APIService "+questions.APIServiceName)
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "take turns with others that hold the same lease; false: schedule at once")
	flags.StringVar(&o.LeaseName, "lease-name", live.DefaultLease, "the lease to take turns by")
	flags.StringVar(&o.ControllersLeaseName, "controllers-lease-name", live.DefaultControllersLease,
		"the lease of the controllers: where nothing holds it, Jobs and pods that wait for them say so")
	leaseFlags(flags, &o.LeaseTimes)
}
