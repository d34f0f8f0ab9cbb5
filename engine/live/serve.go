package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metricsServer serves one registry at /metrics, whether leading or not.
type metricsServer struct {
	address  string
	registry *prometheus.Registry
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (metricsServer) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (m metricsServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// scheduledEvents tells users of each pod that was bound, and metrics how long it waited.
func scheduledEvents(said *recorder, m *metrics) func(*order) {
	return func(o *order) {
		if !o.created.IsZero() {
			m.bindWait.Observe(time.Since(o.created).Seconds())
		}
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: o.namespace, Name: o.name, UID: types.UID(o.UID)}
		said.record(ref, nil, corev1.EventTypeNormal, eventScheduled, func() string {
			return fmt.Sprintf("Successfully assigned %s to %s by policy %s: %s", o.Task, o.Node, o.policy, o.Why())
		})
	}
}
