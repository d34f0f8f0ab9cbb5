// Package questions answers questions about the last cycle as an API of the cluster. Users ask the API server, with every authentication
// method that kubectl supports, and the API server asks the scheduler that leads.
//
//	GET /apis/explain.celsius.dev/v1alpha1/namespaces/NAMESPACE/jobs/NAME    user --> API server --TLS--> Server --> who, and may they?
//	                                     .../pods/NAME                                                     |
//	                             .../queues/NAME, .../nodes/NAME                                           +--> on a copy: explain
//	                             .../metrics                                                               +--> metrics
//
// Only the leader serves. It writes its address into the Service of the API. No Secret is needed: the certificate lives as long as the
// process, and the APIService contains its authority.
package questions

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// Names of the API.
const (
	Group   = "explain.celsius.dev"
	Version = "v1alpha1"
	// ServiceName is the Service to which the API server sends questions.
	ServiceName = "celsius-explain"
)

// Options configures the server for questions.
type Options struct {
	// Address is the listen address, as host:port. "" or "0": the server is off.
	Address string
	// Host is where the API server reaches the address. It is an IP, such as that of the pod, or a name for a scheduler outside of the
	// cluster.
	Host string
}

// On reports whether the server is on.
func (o Options) On() bool { return o.Address != "" && o.Address != "0" }

// Check refuses invalid options.
func (o Options) Check() error {
	if !o.On() {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("explain address %q: %w; write it as host:port, or :8443", o.Address, err)
	}
	if o.Host == "" {
		return errors.New("explain address without an explain host: give the IP, or the name, by which the API server reaches this scheduler")
	}
	return nil
}

// Ask calls a function that examines a copy of the last cycle, and waits for it. It fails if there was no cycle yet, or when ctx ends.
type Ask func(ctx context.Context, look func(*explain.Cycle)) error

// Server answers questions while its scheduler leads.
type Server struct {
	Options
	Namespace string // the namespace of the Service
	// Config reaches the API server that authenticates and authorizes users.
	Config *rest.Config
	// Client registers the server. Ending removes the registration after the lease has ended.
	Client, Ending client.Client
	Ask            Ask
	// Metrics serves the scheduler's metrics to users who may get the resource metrics. The pods also serve them at /metrics.
	Metrics http.Handler
	Log     logr.Logger
}

// goodFor is the time for which a certificate is used. The certificate is valid for a year.
const goodFor = 90 * 24 * time.Hour

// mostRest is the longest pause after an answer. The pause is as long as the answer took, so that questions with answers of up to mostRest
// use at most half of one core.
const mostRest = 5 * time.Second

// Run serves until ctx ends. It logs failures; they do not stop scheduling.
func (s *Server) Run(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		term, end := context.WithTimeout(ctx, goodFor)
		err := s.serve(term)
		over := term.Err() != nil
		end()
		switch {
		case ctx.Err() != nil:
			return
		case over:
			wait = time.Second
			continue
		}
		s.Log.Info("questions about cycles (celsius explain) cannot be taken; it is tried again", "after", wait.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (s *Server) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = listener.Close() }()
	_, text, _ := net.SplitHostPort(listener.Addr().String())
	port, _ := strconv.Atoi(text)
	pair, authority, err := s.certificate()
	if err != nil {
		return err
	}
	who, err := newGate(ctx, s.Config, &all)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.handler(who), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			ClientAuth: tls.RequestClientCert, // the API server sends a certificate, which is verified together with the user that it names
		},
	}
	all.Go(func() { s.register(ctx, port, authority) })
	end := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer end()
	if err := server.Serve(tls.NewListener(listener, server.TLSConfig)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}
