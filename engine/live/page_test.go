package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/deploy/pages"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// busyPolicy makes a scheduler use all metrics. One of its rows fails, and an extender fails sometimes.
const busyPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: busy, generation: 3}
spec:
  mode: Active
  pipeline: [enqueue, allocate, make-room]
  actions:
  - name: make-room
    steps:
    - {verb: displace, jobs: job.starving}
  tiers:
  - name: only
    tables:
    - {name: priority}
    - {name: gang}
    - {name: predicates}
    - {name: proportion, only: [queueOrder]}
    - name: extender
      params: {urlPrefix: %q, predicateVerb: filter, refreshAfter: 1s}
    - name: house
      inline:
        scores: [{name: by-pool, expression: "double(node.labels['pool'])"}]
`

// TestPage compares the page on which the queries of the dashboard and the alerts are tested with the metrics of a scheduler after some
// work.
func TestPage(t *testing.T) {
	var asked atomic.Int32
	extender := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	defer extender.Close()
	r := newRigOf(newFakeServer(t), loaded(t, fmt.Sprintf(busyPolicy, extender.URL+"/")))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { r.asks.Run(ctx) })
	busy(t, r)

	// Metrics outside of the loop: the served policies, requests to the API server, and the lease.
	r.metrics.servedInstead("NotCompiled")
	r.metrics.instead.WithLabelValues("RowFaulty").Set(1)
	r.metrics.leading.Set(1)
	cfg := &rest.Config{Host: extender.URL}
	scrape.Count(cfg, r.metrics.requests)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil && !apierrors.IsUnexpectedObjectError(err) {
		t.Log(err) // only the request matters here
	}
	time.Sleep(time.Second) // gauges are updated once a second
	r.untilBound(3, 50*time.Millisecond)

	steady := strings.NewReplacer(strings.TrimPrefix(extender.URL, "http://"), "extender.example:8080")
	if err := pages.Hold("../../deploy/pages", "scheduler", r.metrics.registry, steady); err != nil {
		t.Error(err)
	}
}

// loaded returns the policy in a text.
func loaded(t *testing.T, text string) *policy.Policy {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return p
}

// busy makes a scheduler bind, wait and evict, with some failures first.
func busy(t *testing.T, r *rig) {
	t.Helper()
	f := r.server
	tries := 0
	f.onBind = func(*corev1.Binding) (before, after error) {
		if tries++; tries == 1 {
			return errNoAnswer, nil
		}
		return nil, nil
	}
	f.onEnd = func(_, key string) error {
		if strings.HasSuffix(key, "low-1") {
			return budget()
		}
		return nil
	}
	limited := testQueue("default")
	limited.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	limited.Spec.Deserved = limited.Spec.Capability
	high := testGroup("high", 1)
	high.Spec.PriorityClassName = "high"
	f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, limited, testNode("free", "2"))
	for i, node := range []string{"n1", "n2"} {
		low := fmt.Sprint("low-", i+1)
		f.put(testNode(node, "2"), testGroup(low, 0), runningOn(testPod(low, low, "2"), node))
	}
	f.put(testGroup("g", 1), testPod("a", "g", "2"))
	if !r.untilBound(1, 20*time.Second) {
		t.Fatalf("bound %v, want a", f.bindings)
	}
	f.put(high, testPod("high", "high", "2"), testGroup("big", 1), testPod("b", "big", "9"))
	for end := time.Now().Add(20 * time.Second); len(f.ends()) == 0 && time.Now().Before(end); {
		r.untilBound(2, 50*time.Millisecond)
	}
	if len(f.ends()) == 0 {
		t.Fatal("nobody was evicted")
	}
	f.drop(f.pods["default/low-2"])
	if !r.untilBound(2, 20*time.Second) {
		t.Fatalf("bound %v, want a and high", f.bindings)
	}
}
