package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/celsius-scheduler/celsius/deploy/pages"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
)

// TestPage compares the page on which the queries of dashboards and alerts are tested with what the controllers serve after some work.
func TestPage(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, "{event: PodFailed, action: RestartJob}"))
	registry := prometheus.NewRegistry()
	s.parts.metrics = newMetrics(registry)
	registry.MustRegister(newJobsByPhase(s.client, s.parts.serves))

	// 1. A controller of controller-runtime, so that the metrics of its queue exist.
	options := s.parts.controllerOptions()
	options.Reconciler, options.SkipNameValidation, options.UsePriorityQueue = s.reconcilers["job"], new(true), new(false)
	options.LogConstructor = func(*reconcile.Request) logr.Logger { return logr.Discard() }
	c, err := controller.NewUnmanaged("job", options)
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan event.GenericEvent, 1)
	if err := c.Watch(source.Channel(came, &handler.EnqueueRequestForObject{})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	came <- event.GenericEvent{Object: s.job()}
	for end := time.Now().Add(20 * time.Second); len(s.groups()) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	// 2. A Job that runs, fails, and is restarted.
	runs(s)
	s.play("worker-0", corev1.PodFailed, 1)
	s.settle()

	// 3. Requests, and the Lease.
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cfg := &rest.Config{Host: server.URL}
	scrape.Count(cfg, s.parts.metrics.requests)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("a").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a server that knows nothing lists pods")
	}
	s.parts.metrics.leading.Set(1)
	served := prometheus.Gatherers{registry, ctrlmetrics.Registry}
	if err := pages.Hold("../../deploy/pages", "controllers", served, strings.NewReplacer()); err != nil {
		t.Error(err)
	}
}
