package dashboard

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/engine/live/scrape"
)

//go:embed page
var pageFiles embed.FS

// Options define what the dashboard shows, and which users may see it.
type Options struct {
	// Address is the address to serve at, as host:port.
	Address string
	// Namespace limits the shown jobs and pods to one namespace; "" means all.
	Namespace string
	// Cluster is the name of the cluster on the page.
	Cluster string
	// Shared serves with TLS at any address. A client needs a bearer token, and permission of the API server to get Path. Without Shared, the
	// page is served only on this machine, in plain HTTP, to clients that know the key.
	Shared bool
	// CertDir contains tls.crt and tls.key for Shared; "" means that a certificate is created at the start.
	CertDir string
	// Key is the key for a page that is not shared; "" means a new key.
	Key string
	// Try is the folder of the page on which users try policies. It is also served, unless it is nil.
	Try fs.FS
	// Ready is called with the address to open.
	Ready func(url string)
	Log   logr.Logger
}

// Check returns an error for invalid combinations of options.
func (o *Options) Check() error {
	host, _, err := net.SplitHostPort(o.Address)
	switch {
	case err != nil:
		return fmt.Errorf("address %q: %w; write it as host:port", o.Address, err)
	case o.CertDir != "" && !o.Shared:
		return errors.New("certificates are for a dashboard that is shared: what is served on this machine alone is plain HTTP")
	case o.Namespace != "" && o.Shared:
		return errors.New("-n is for a dashboard of one's own: one that is shared shows whoever may look all that its account sees, and asks " +
			"the scheduler about it; leave out -n")
	case !o.Shared && host != "localhost" && !isLoopback(host):
		return fmt.Errorf("address %s: without --shared the page is served on this machine alone: say 127.0.0.1, or localhost; "+
			"it shows what you may see, and others shall not", o.Address)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// about returns the part of the overview that does not come from the cluster.
func (o *Options) about() overview {
	return overview{Cluster: o.Cluster, Namespace: o.Namespace, Try: o.Try != nil}
}

// Run serves the dashboard of a cluster until ctx ends. It reads the cluster with the permissions of cfg.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	s := newState()
	w, err := newWatcher(s, cfg, o.Namespace, o.Log)
	if err != nil {
		return err
	}
	// A client limits its request rate. A separate client for the figures ensures that they do not wait for requests of users.
	counted, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	p := newPictures(s, o.about())
	h, url, err := o.guarded(cfg, data(s, p, apiClient{kube}))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("serve the dashboard: %w; --address says where else", err)
	}
	address := listener.Addr().String()
	if o.Shared {
		if listener, err = o.encrypted(listener); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, k := range followedKinds() {
		all.Go(func() { w.follow(ctx, k) })
	}
	all.Go(func() { p.run(ctx) })
	all.Go(func() { s.count(ctx, apiClient{counted}, func() bool { return p.streams.Load() > 0 }) })
	if o.Ready != nil {
		o.Ready(url(address))
	}
	return serve(ctx, listener, h)
}

// guarded serves data to permitted clients. url returns what to open, given the address that the server listens on.
func (o *Options) guarded(cfg *rest.Config, data http.Handler) (h http.Handler, url func(address string) string, err error) {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, nil, fmt.Errorf("find the page: %w", err)
	}
	if o.Shared {
		h, err = handler(files, o.Try, data, func(next http.Handler) (http.Handler, error) {
			return atPath(func(h http.Handler) (http.Handler, error) { return scrape.Guard(cfg, o.Log, h) }, next)
		})
		return h, func(address string) string { return "https://" + address + "/" }, err
	}
	key := o.Key
	if key == "" {
		key = newKey()
	}
	h, err = handler(files, o.Try, data, func(next http.Handler) (http.Handler, error) { return withKey(key, next), nil })
	if err != nil {
		return nil, nil, err
	}
	return onlyHere(h), func(address string) string { return "http://" + address + "/#key=" + key }, nil
}

// encrypted returns a listener with TLS.
func (o *Options) encrypted(listener net.Listener) (net.Listener, error) {
	if o.CertDir == "" {
		made, err := scrape.SelfSigned()
		if err != nil {
			return nil, err
		}
		return tls.NewListener(listener, made), nil
	}
	// The certificate is read at each handshake, so that a renewed one is used.
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("read the certificate of the dashboard: %w", err)
		}
		return &pair, nil
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	made := &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	return tls.NewListener(listener, made), nil
}
