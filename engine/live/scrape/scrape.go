// Package scrape serves what a part counts, to who may read it.
//
//	GET /metrics --TLS--> who is it (TokenReview) --> may it get /metrics (SubjectAccessReview) --> a registry
//
// Metrics name queues, policies and how much of everything there is, which is not for whoever reaches a pod.
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

// Served is what a part of Celsius serves about itself, and where.
type Served struct {
	// MetricsAddress is where metrics are served, at /metrics. "" or "0": nowhere.
	MetricsAddress string
	// MetricsSecure serves metrics by TLS, and only to whom the API server lets get /metrics.
	MetricsSecure bool
	// HealthAddress is where /healthz and /readyz are served. "" or "0": nowhere.
	HealthAddress string
	// PprofAddress is where profiles of the process are served, below /debug/pprof/. "" or "0": nowhere.
	PprofAddress string
}

// Server serves /metrics, whether leading or not. It is a runnable of a manager.
type Server struct {
	// Address is what is listened on, as host:port.
	Address string
	// Config reaches the API server that is asked who may read. nil: everybody may, without TLS.
	Config *rest.Config
	// From has the metrics.
	From prometheus.Gatherer
	Log  logr.Logger
}

// On says whether an address stands for a place to serve at.
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

// Guard asks the API server who brings the bearer token of a request, and whether they may get its path.
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

// SelfSigned is a certificate that lives as long as the process: who scrapes shows a token, and trusts the network policy.
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
