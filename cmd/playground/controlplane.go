package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// startWithin is how long the control plane may take to start. It takes only seconds if no other program uses the processor.
const startWithin = 3 * time.Minute

// kubeControllers are the controllers of kube-controller-manager that run. The node lifecycle controller does not run: KWOK sets nodes to
// Ready once.
var kubeControllers = []string{
	"clusterrole-aggregation-controller", "deployment-controller", "disruption-controller", "ephemeral-volume-controller",
	"garbage-collector-controller", "job-controller",
	"namespace-controller", "persistentvolume-binder-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller", "replicaset-controller", "resourcequota-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"statefulset-controller",
}

// controlPlaneOptions define where the control plane stores its data and where it listens.
type controlPlaneOptions struct {
	dir      string       // contains everything that a second start needs
	listener net.Listener // of the API server
	log      io.Writer
	audit    string // file to which each request is written; "": no file
}

// controlPlane is Kubernetes in this process: etcd, kube-apiserver, kube-controller-manager and KWOK. Their feature gates and metrics are
// global. Therefore a process can have only one control plane, and cannot start it again after a stop.
type controlPlane struct {
	parts      *parts
	identity   *identity
	kubeconfig string // its path
	config     *rest.Config
	index      func() uint64 // number of writes to etcd so far
}

// startControlPlane returns when the API server is ready, our CRDs are served and the controllers run. After an error it stops everything
// that it started.
func startControlPlane(ctx context.Context, o controlPlaneOptions) (_ *controlPlane, err error) {
	c := &controlPlane{parts: newParts(), kubeconfig: filepath.Join(o.dir, "kubeconfig")}
	failInstead(c.parts.fail)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.parts.stop())
		}
	}()
	if c.identity, err = loadIdentity(filepath.Join(o.dir, "identity")); err != nil {
		return nil, err
	}
	address := "https://" + o.listener.Addr().String()
	c.config = c.identity.restConfig(address)
	if err := c.identity.writeKubeconfig(c.kubeconfig, address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	endpoint, err := c.startEtcd(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if err := c.startAPIServer(ctx, o, endpoint); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	// The garbage collector looks for kinds at its start, and then twice a minute. Therefore our kinds are created before it.
	if err := applyManifests(ctx, c.config); err != nil {
		return nil, err
	}
	if err := c.startControllerManager(ctx); err != nil {
		return nil, fmt.Errorf("kube-controller-manager: %w", err)
	}
	if err := c.startKWOK(ctx, o); err != nil {
		return nil, fmt.Errorf("KWOK: %w", err)
	}
	return c, c.await(ctx, "default service account", func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// startEtcd starts an etcd with its data in dir/etcd, which only this user can reach. It returns the address.
func (c *controlPlane) startEtcd(ctx context.Context, o controlPlaneOptions) (string, error) {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(o.dir, "etcd")
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{filepath.Join(o.dir, "etcd.log")}
	// etcd does not wait for the disk, because a playground need not survive a power failure.
	cfg.UnsafeNoFsync = true
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = local, local
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = local, local
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return "", fmt.Errorf("start on %s: %w", cfg.Dir, err)
	}
	c.index = etcd.Server.AppliedIndex
	c.parts.start(ctx, "etcd", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			etcd.Close()
			return nil
		case err := <-etcd.Err():
			return err
		}
	})
	select {
	case <-etcd.Server.ReadyNotify():
		return "http://" + etcd.Clients[0].Addr().String(), nil
	case <-ctx.Done():
		return "", fmt.Errorf("not ready: %w", ctx.Err())
	}
}

// auditPolicy writes every request once, when it was answered: the user, the request and the answer. For a watch this is when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

func (c *controlPlane) startAPIServer(ctx context.Context, o controlPlaneOptions, etcd string) error {
	s := apiserveroptions.NewServerRunOptions()
	s.SecureServing.Listener = o.listener
	s.SecureServing.ServerCert.CertKey.CertFile = c.identity.path(fileCert)
	s.SecureServing.ServerCert.CertKey.KeyFile = c.identity.path(fileCertKey)
	flags := map[string]string{
		"etcd-servers":                     etcd,
		"bind-address":                     "127.0.0.1",
		"advertise-address":                "127.0.0.1",
		"endpoint-reconciler-type":         "none",
		"service-cluster-ip-range":         "10.96.0.0/16",
		"allow-privileged":                 "true",
		"authorization-mode":               "RBAC",
		"token-auth-file":                  c.identity.path(fileTokens),
		"service-account-issuer":           "https://kubernetes.default.svc",
		"service-account-key-file":         c.identity.path(fileAccountKey),
		"service-account-signing-key-file": c.identity.path(fileAccountKey),
		// The API server uses these to call the APIs of other servers on behalf of a user.
		"proxy-client-cert-file":             c.identity.path(fileProxy),
		"proxy-client-key-file":              c.identity.path(fileProxyKey),
		"requestheader-client-ca-file":       c.identity.path(fileProxyCA),
		"requestheader-allowed-names":        proxyName,
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		// It taints new nodes until the node lifecycle controller has seen them, and that controller does not run.
		"disable-admission-plugins": "TaintNodesByCondition",
		// At the end, the API server does not wait for open watches.
		"shutdown-send-retry-after": "true",
	}
	if o.audit != "" {
		flags["audit-log-path"], flags["audit-policy-file"] = o.audit, filepath.Join(o.dir, "audit-policy.yaml")
		if err := os.WriteFile(flags["audit-policy-file"], []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	if err := parseFlags(s.Flags(), flags); err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	completed, err := s.Complete(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("options: %w", errors.Join(errs...))
	}
	c.parts.start(ctx, "kube-apiserver", func(ctx context.Context) error { return apiserver.Run(ctx, completed) })
	return c.await(ctx, "/readyz", func(ctx context.Context, client kubernetes.Interface) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (c *controlPlane) startControllerManager(ctx context.Context) error {
	s, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	known, disabled, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(),
		controllermanager.ControllerAliases()
	flags := s.Flags(known, disabled, aliases)
	s.ParsedFlags = &flags
	err = parseFlags(flags, map[string]string{
		"kubeconfig":                       c.kubeconfig,
		"leader-elect":                     "false",
		"secure-port":                      "0",
		"service-account-private-key-file": c.identity.path(fileAccountKey),
		"root-ca-file":                     c.identity.path(fileCert),
		"use-service-account-credentials":  "false",
		"controllers":                      strings.Join(kubeControllers, ","),
		"controller-start-interval":        "0s",
		"kube-api-qps":                     "1000",
		"kube-api-burst":                   "2000",
	})
	if err != nil {
		return err
	}
	if err := s.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	// Objects that use this context continue after the start, for example the event recorder.
	cfg, err := s.Config(context.WithoutCancel(ctx), known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	c.parts.start(ctx, "kube-controller-manager", func(ctx context.Context) error {
		return controllermanager.Run(ctx, cfg.Complete())
	})
	return nil
}

// await calls ask until it returns no error. It gives up when ctx ends or a part fails.
func (c *controlPlane) await(ctx context.Context, what string, ask func(context.Context, kubernetes.Interface) error) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		asked := ask(ctx, client)
		if asked == nil {
			return nil
		}
		select {
		case err := <-c.parts.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, asked)
		case <-tick.C:
		}
	}
}

// parseFlags sets flags of a Kubernetes program by their command line names.
func parseFlags(sets cliflag.NamedFlagSets, values map[string]string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	for name, value := range values {
		if err := all.Set(name, value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// listen opens the API server's port on this machine; 0 selects a free port.
func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return listener, nil
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return nil, fmt.Errorf("port %d of 127.0.0.1 cannot be opened: %w; give another --port, or --port 0 for a free one", port, err)
}
