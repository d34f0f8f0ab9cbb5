package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/celsius-scheduler/celsius/cmd/celsius/dashboard"
	"github.com/celsius-scheduler/celsius/cmd/celsius/try"
)

// dashboardAddress is the default address of the page. sharedAddress is the default if other users can see the page.
const (
	dashboardAddress = "127.0.0.1:8088"
	sharedAddress    = ":8443"
)

func (t *tool) dashboardCommand() *cobra.Command {
	var o dashboard.Options
	var tryDir string
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Show the cluster on a live page in the browser",
		Long: `Serve a page that shows the cluster as it is now: queues with what they hold,
are due and borrow, over time; the line of jobs that wait, with their reasons;
nodes as a heat map; policies with how often each row was the reason; and of
each job its story, from its creation to its end.

It reads the cluster as you, and changes nothing. The page is served on this
machine alone, and only to who opens the address that is printed, which holds a
key. What you may not list is left out, and the page says which right is
lacking; -n shows one namespace, and all others are left out.

With --shared, as in a pod, it is served by TLS to clients that the API server
permits to get the path /dashboard. A client sends a bearer token, and sees what
the account of the dashboard may see.`,
		Example: `  celsius dashboard
  celsius dashboard -n team --address 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Shared && !c.Flags().Changed("address") {
				o.Address = sharedAddress
			}
			o.Namespace = *t.flags.Namespace
			if err := o.Check(); err != nil {
				return err
			}
			folder, err := try.Folder(tryDir)
			if err != nil && tryDir != "" {
				return fmt.Errorf("--try: %w", err)
			}
			o.Try = folder
			cfg, err := t.flags.ToRESTConfig()
			if err != nil {
				return fmt.Errorf("find the API server: %w", err)
			}
			if cfg.Host == nowhere {
				return errors.New("no cluster is configured: set KUBECONFIG, give --kubeconfig, or run in a pod")
			}
			cfg.QPS, cfg.Burst, cfg.UserAgent = 50, 300, "celsius-dashboard"
			o.Log = textlogger.NewLogger(textlogger.NewConfig())
			ctrl.SetLogger(o.Log)
			klog.SetLogger(o.Log)
			o.Cluster = t.clusterName(cfg.Host)
			o.Ready = func(url string) {
				say(c.OutOrStdout(), "dashboard of %s: open %s\n", o.Cluster, url)
			}
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return dashboard.Run(ctx, cfg, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Address, "address", dashboardAddress, "where to serve, as host:port of this machine; port 0 takes a free one; "+
		"with --shared "+sharedAddress)
	f.BoolVar(&o.Shared, "shared", false, "serve others too: by TLS, to who brings a bearer token and may get /dashboard")
	f.StringVar(&o.CertDir, "cert-dir", "", "with --shared: a folder with tls.crt and tls.key, which may be renewed; default: a "+
		"self-signed certificate, created at the start")
	f.StringVar(&tryDir, "try", "", "the folder of the page on which policies are tried, which is served at /try/; default: the folder "+
		"web next to this program, if make web has created it")
	return c
}

// clusterName returns the user's name for a cluster: the context in use, or its address.
func (t *tool) clusterName(host string) string {
	if *t.flags.Context != "" {
		return *t.flags.Context
	}
	if raw, err := t.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && raw.CurrentContext != "" {
		return raw.CurrentContext
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
