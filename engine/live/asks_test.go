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

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const askingPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: asking}
spec:
  mode: Active
  pipeline: [enqueue, allocate]
  tiers:
  - name: only
    tables:
    - {name: gang}
    - name: extender
      params: {urlPrefix: %q, predicateVerb: filter, prioritizeVerb: rate, jobEnqueueableVerb: enter, jobReadyVerb: ready,
        queueOverusedVerb: overused, refreshAfter: 1s}
`

// untilBound runs cycles and answers their questions until n pods are bound. It returns false if this takes longer than while.
func (r *rig) untilBound(n int, while time.Duration) bool {
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.server.deliver(-1)
		r.tick()
		for r.work() {
		}
		if len(r.server.bindings) >= n {
			return true
		}
	}
	return false
}

// A pod is bound after an extender has answered all questions about it: to the best node that was not refused. While the extender fails,
// pods wait and their conditions contain the reason; when it works again, they are bound. A new scheduler asks again.
func TestExtenderDecides(t *testing.T) {
	var fails atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer := map[string]string{
			"/filter": `{}`, "/rate": `{"nodeScore": {"n1": 1, "n2": 9, "n3": 20}}`, "/enter": `{"status": 1}`, "/ready": `{"status": true}`,
			"/overused": `{"overused": false}`,
		}[q.URL.Path]
		if q.URL.Path == "/filter" && strings.Contains(string(body), `"Name":"n3"`) {
			answer = `{"status": "no licence", "code": 2}`
		}
		_, _ = io.WriteString(w, answer) // the client may have disconnected
	}))
	defer server.Close()
	docs, issues := source.Parse("asking.yaml", fmt.Appendf(nil, askingPolicy, server.URL+"/"))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	begin := func(f *fakeServer) *rig {
		r := newRigOf(f, p)
		all.Go(func() { r.asks.Run(ctx) })
		return r
	}
	f := newFakeServer(t)
	r := begin(f)
	f.put(testNode("n1", "2"), testNode("n2", "2"), testNode("n3", "2"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
	if !r.untilBound(1, 20*time.Second) || !strings.Contains(fmt.Sprint(f.bindings), "n2") {
		t.Fatalf("bound %v, want a on n2", f.bindings)
	}
	fails.Store(true)
	f.put(testGroup("h", 1), testPod("b", "h", "1"))
	if r.untilBound(2, 1500*time.Millisecond) {
		t.Fatalf("bound %v while the extender fails", f.bindings)
	}
	if c := fmt.Sprint(f.groups["default/h"].Status.Conditions); !strings.Contains(c, "503 Service Unavailable") {
		t.Errorf("told %s, want how the extender fails", c)
	}
	fails.Store(false)
	if !r.untilBound(2, 20*time.Second) {
		t.Fatalf("bound %v after the extender is back", f.bindings)
	}
	got := series(t, r.metrics.registry)
	of := fmt.Sprintf("extender=%q,form=", strings.TrimPrefix(server.URL, "http://"))
	for _, name := range []string{
		`celsius_extender_requests_total{` + of + `"predicate",outcome="answered"}`,
		`celsius_extender_requests_total{` + of + `"predicate",outcome="wrong"}`,
		`celsius_extender_request_duration_seconds_count{` + of + `"queueOverused"}`,
		`celsius_extender_answer_age_seconds_count{` + of + `"queueOverused"}`,
	} {
		if got[name] == "" || got[name] == "0" {
			t.Errorf("%s is %q", name, got[name])
		}
	}
	next := newFakeServer(t)
	r = begin(next)
	next.put(testNode("n1", "2"), testNode("n2", "2"), testNode("n3", "2"), testQueue("default"), testGroup("i", 1), testPod("c", "i", "1"))
	if !r.untilBound(1, 20*time.Second) {
		t.Fatalf("bound %v by a scheduler that begins", next.bindings)
	}
}
