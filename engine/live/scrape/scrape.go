// Package scrape serves the metrics of a part to clients that may read them.
//
//	GET /metrics --TLS--> who is it (TokenReview) --> may it get /metrics (SubjectAccessReview) --> a registry
//
// Metrics contain names of queues and policies and the amounts of resources, which not every client that reaches a pod may see.
package scrape

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)

// Served configures the endpoints of a part of Celsius.
type Served struct {
	// MetricsAddress is the address for /metrics. "" or "0": off.
	MetricsAddress string
	// MetricsSecure serves metrics with TLS, and only to clients that the API server allows to get /metrics.
	MetricsSecure bool
	// HealthAddress is the address for /healthz and /readyz. "" or "0": off.
	HealthAddress string
	// PprofAddress is the address for profiles of the process, below /debug/pprof/. "" or "0": off.
	PprofAddress string
}

// Server serves /metrics, with or without leadership. It is a runnable of a manager.
type Server struct {
	// Address is the listen address, as host:port.
	Address string
	// Config reaches the API server that authorizes clients. nil: every client may read, without TLS.
	Config *rest.Config
	// From is the source of the metrics.
	From prometheus.Gatherer
	Log  logr.Logger
}

// On reports whether an address turns its endpoint on.
func On(address string) bool { return address != "" && address != "0" }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	if err := s.serve(ctx, listener); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(s.From, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	if s.Config != nil {
		var err error
		if server.Handler, err = Guard(s.Config, s.Log, mux); err != nil {
			return err
		}
		if server.TLSConfig, err = SelfSigned(); err != nil {
			return err
		}
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Guard returns a handler that authenticates the bearer token of a request with the API server, and checks that its user may get the path.
func Guard(cfg *rest.Config, log logr.Logger, handler http.Handler) (http.Handler, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("ask the API server who may read: %w", err)
	}
	return filter(log, handler)
}

// SelfSigned returns a certificate that lives as long as the process. Scrapers send a token, and rely on the network policy.
func SelfSigned() (*tls.Config, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}
