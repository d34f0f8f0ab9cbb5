package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
)

// clientFlags configure the connection of a part of the product to the API server, and its rate.
type clientFlags struct {
	kubeconfig string
	master     string
	qps        float32
	burst      int
	verbosity  int
}

func (f *clientFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's own service account")
	flags.StringVar(&f.master, "master", "", "address of the API server, in place of the kubeconfig's")
	flags.Float32Var(&f.qps, "kube-api-qps", 2000, "requests a second to the API server; it is meant to be the bottleneck, not the client")
	flags.IntVar(&f.burst, "kube-api-burst", 4000, "requests at once before --kube-api-qps slows them")
	flags.IntVarP(&f.verbosity, "v", "v", 0, "how much is logged: 0 what an operator must see, 2 each decision, 4 each change that came in")
}

// leaseFlags adds the flags for the durations of a Lease.
func leaseFlags(flags *pflag.FlagSet, t *lease.Times) {
	flags.DurationVar(&t.Duration, "leader-elect-lease-duration", 15*time.Second,
		"for how long others respect a lease that is not renewed, in whole seconds; they wait a third longer, for what its holder has sent")
	flags.DurationVar(&t.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"for how long the leader tries to renew its lease before it ends")
	flags.DurationVar(&t.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "time between two tries to take the lease, or to renew it")
}

// servedFlags adds the flags for metrics, health and profiles of a part of the product.
func servedFlags(flags *pflag.FlagSet, o *scrape.Served) {
	flags.StringVar(&o.MetricsAddress, "metrics-address", ":8080", "where to serve /metrics, as host:port; 0: nowhere")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics by TLS, with a certificate created at the start, and only to "+
		"clients that the API server permits to get /metrics; false: to all clients, in plain HTTP")
	flags.StringVar(&o.HealthAddress, "health-address", ":8081", "where to serve /healthz and /readyz, as host:port; 0: nowhere")
	flags.StringVar(&o.PprofAddress, "pprof-address", "0", "where to serve profiles of the process, below /debug/pprof/; 0: nowhere")
}

// connect returns the configuration for the API server, and sets up the log. It does not send a request.
func (f *clientFlags) connect(component string) (*rest.Config, error) {
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(f.verbosity)))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	recovery.HandleCrashes()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = f.master
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; give --kubeconfig, set KUBECONFIG, or run in a pod", err)
	}
	cfg.QPS, cfg.Burst = f.qps, f.burst
	cfg.UserAgent = "celsius-" + component + "/" + version()
	return cfg, nil
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The second one ends the program.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
