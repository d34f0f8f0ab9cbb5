package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/celsius-scheduler/celsius/cmd/celsius/dashboard"
	"github.com/celsius-scheduler/celsius/cmd/celsius/try"
	"github.com/celsius-scheduler/celsius/cmd/playground/bench"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(program())
}

// program runs with the streams of the process. Its own errors go to a copy of standard error, because up redirects the output of libraries
// on standard error to the log.
func program() int {
	errs := os.Stderr
	if fd, err := unix.Dup(unix.Stderr); err == nil {
		errs = os.NewFile(uintptr(fd), "stderr")
	}
	return run(os.Args[1:], os.Stdin, os.Stdout, errs)
}

// run is the whole program: it takes arguments and streams, and returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	// kubectl reads its own arguments; none of them belongs to this program.
	if len(args) > 0 && args[0] == "kubectl" {
		return runKubectl(args[1:], in, out, errs)
	}
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(errs, "playground: %v\n", err)
	_, usage := errors.AsType[usageError](err)
	_, usageOfBench := errors.AsType[bench.UsageError](err)
	if usage || usageOfBench {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// options are the flags.
type options struct {
	nodes      int
	nodesGiven bool
	nodeShapes []string
	dataDir    string
	kubeconfig string
	port       int
	policy     string
	only       string
	auditLog   string
	dashboard  string
}

func newRootCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "playground",
		Short: "A Kubernetes cluster with Celsius in one process",
		Long: `Starts a Kubernetes cluster in one process: etcd, kube-apiserver,
kube-controller-manager, nodes that are simulated by KWOK, and Celsius with its
scheduler, controllers and webhook. Ctrl-C ends it.

Pods run until they are deleted, unless their annotation celsius.dev/sim says
otherwise: see docs/playground.md.`,
		Example: `  playground --nodes 20 --node-shape cpu=64,memory=512Gi
  playground --node-shape '4x cpu=96,nvidia.com/gpu=8,label:zone=a' --node-shape '16x cpu=32'
  playground --data-dir ./cluster          # keeps the data for the next start
  playground kubectl get nodes             # in another terminal`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q; the only one is kubectl", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			o.nodesGiven = c.Flags().Changed("nodes")
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
			return o.up(ctx, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.SetContext(context.Background())
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{fmt.Errorf("%w; see --help", err)} })
	c.CompletionOptions.DisableDefaultCmd = true
	c.AddCommand(bench.NewCommand(runBench), bench.NewJobsCommand(runBench), bench.NewBinderCommand(), bench.NewMakerCommand(),
		newKubeSchedulerCommand())
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 5, "how many nodes, of each --node-shape that has no count")
	f.StringArrayVar(&o.nodeShapes, "node-shape", nil, "what the nodes are like; "+shapeForm+"; may be repeated (default "+defaultShape+")")
	f.StringVar(&o.dataDir, "data-dir", "", "folder that keeps the cluster for the next start (default a temporary one, removed at the end)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "where the kubeconfig is written (default kubeconfig in the data folder)")
	f.IntVar(&o.port, "port", 0, "port of the API server on 127.0.0.1; 0 takes a free one")
	f.StringVar(&o.policy, "policy", "",
		"SchedulingPolicy to serve: a name, or a file that is applied first (default the policy named default)")
	f.StringVar(&o.only, "only", "", "control-plane: start no part of Celsius, only what is around it")
	f.StringVar(&o.dashboard, "dashboard", "127.0.0.1:0",
		"where the page of celsius dashboard is served, as host:port of this machine; port 0 takes a free one; 0: nowhere")
	f.StringVar(&o.auditLog, "audit-log", "", "file to which the API server writes who asked for what, a line of JSON each")
	return c
}

// up runs the playground until ctx ends, and reports its progress on out.
func (o *options) up(ctx context.Context, out, errs io.Writer) (err error) {
	begin := time.Now()
	if err := o.check(); err != nil {
		return err
	}
	shapes, err := parseShapes(o.nodeShapes, o.nodes, o.nodesGiven)
	if err != nil {
		return usageError{err}
	}
	policy, err := readPolicy(o.policy)
	if err != nil {
		return usageError{err}
	}
	listener, err := listen(o.port)
	if err != nil {
		return err
	}
	served := false
	defer func() {
		if !served { // afterwards it belongs to kube-apiserver, which panics if another part closes it
			_ = listener.Close()
		}
	}()
	data, err := openData(o.dataDir, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close(err == nil)) }()
	logTo(data.log)
	if err := stderrTo(data.log, errs); err != nil {
		return err
	}
	say(out, "starting etcd, kube-apiserver, kube-controller-manager and KWOK …")
	served = true
	cluster, err := startControlPlane(ctx, controlPlaneOptions{dir: data.dir, listener: listener, log: data.log, audit: o.auditLog})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return data.pointToLog(err)
	}
	defer func() {
		say(out, "stopping …")
		err = errors.Join(err, cluster.parts.stop())
		say(out, "stopped")
	}()
	if err := o.furnish(ctx, cluster, data, shapes, policy); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return data.pointToLog(err)
	}
	page, err := o.startDashboard(ctx, cluster)
	if err != nil {
		return data.pointToLog(err)
	}
	o.tell(out, data, page, time.Since(begin))
	select {
	case <-ctx.Done():
		return nil
	case err := <-cluster.parts.failed:
		return data.pointToLog(err)
	}
}

// check rejects invalid values.
func (o *options) check() error {
	switch {
	case o.only != "" && o.only != "control-plane":
		return usageError{fmt.Errorf("--only %s: the only value is control-plane", o.only)}
	case o.port < 0 || o.port > 65535:
		return usageError{fmt.Errorf("--port %d: give a port from 1 to 65535, or 0 for a free one", o.port)}
	case o.kubeconfig != "":
		return mayWriteKubeconfig(o.kubeconfig)
	}
	if o.dashboard != "0" {
		if err := (&dashboard.Options{Address: o.dashboard}).Check(); err != nil {
			return usageError{fmt.Errorf("--dashboard: %w", err)}
		}
	}
	return nil
}

// furnish creates in the bare control plane what the command line requests.
func (o *options) furnish(ctx context.Context, cluster *controlPlane, data *dataDir, shapes []shape, policy policyChoice) error {
	client, err := kubernetes.NewForConfig(cluster.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	// Reused data contains its nodes, and deleted nodes stay deleted.
	if data.fresh || o.nodesGiven || len(o.nodeShapes) > 0 {
		if _, err := createNodes(ctx, client, "node-", shapes); err != nil {
			return err
		}
	}
	if o.kubeconfig != "" {
		if err := cluster.identity.writeKubeconfig(o.kubeconfig, cluster.config.Host); err != nil {
			return err
		}
		data.kubeconfig = o.kubeconfig
	}
	if err := forgetWebhook(ctx, client); err != nil {
		return err
	}
	start := startProduct
	if o.only != "" {
		start = func(ctx context.Context, c *controlPlane, p policyChoice) error { return p.apply(ctx, c.config) }
	}
	if err := start(ctx, cluster, policy); err != nil {
		return err
	}
	if err := awaitNodes(ctx, client); err != nil || o.only != "" {
		return err
	}
	return cluster.awaitProduct(ctx, policy)
}

// startDashboard serves the page of celsius dashboard, and returns its address; "" means that it is not served.
func (o *options) startDashboard(ctx context.Context, c *controlPlane) (url string, err error) {
	if o.dashboard == "0" || o.only != "" {
		return "", nil
	}
	trial, _ := try.Folder("") // it is not served if make web has not created it
	ready := make(chan string, 1)
	c.parts.start(ctx, "dashboard", func(ctx context.Context) error {
		return dashboard.Run(ctx, c.clientConfig("dashboard"), dashboard.Options{
			Address: o.dashboard, Cluster: "playground", Try: trial, Ready: func(url string) { ready <- url }, Log: klog.Background(),
		})
	})
	select {
	case url := <-ready:
		return url, nil
	case err := <-c.parts.failed:
		return "", err
	case <-ctx.Done():
		return "", nil
	}
}

// tell reports that everything is ready, and what to try.
func (o *options) tell(out io.Writer, data *dataDir, page string, took time.Duration) {
	celsius := "Celsius serves scheduler names celsius and volcano."
	if o.only != "" {
		celsius = "No part of Celsius runs here: start them with celsius scheduler, controllers and webhook."
	}
	if page != "" {
		celsius += "\nLook at it in a browser: " + page
	}
	kept := "is removed at the end; --data-dir keeps it"
	if !data.temporary {
		kept = "is kept for the next start"
	}
	kubeconfig, err := filepath.Abs(data.kubeconfig)
	if err != nil {
		kubeconfig = data.kubeconfig
	}
	say(out, `ready after %.1f s. %s

  export KUBECONFIG=%s

Then try, from another terminal:

  kubectl get nodes
  kubectl apply -f samples/queues -f samples/jobs
  kubectl get vcjob,podgroups,pods

Without a kubectl: go run ./cmd/playground kubectl get nodes
Data:  %s (%s)
Log:   %s
Ctrl-C ends it.`, took.Seconds(), celsius, shellQuote(kubeconfig), data.dir, kept, data.log.Name())
}

// say writes a line to a stream. It ignores errors, because there is no other stream to report them.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// shellQuote quotes a path if a shell would otherwise not read it as one word.
func shellQuote(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+", r)
	}
	if strings.TrimFunc(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
