package webhook

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// atLimits returns Jobs with the highest number of template parts that admission decodes, by the kind of part. Half of the Jobs are
// valid.
func atLimits() map[string]string {
	list := func(n int, item string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = strings.ReplaceAll(item, "#", strconv.Itoa(i))
		}
		return strings.Join(out, ",")
	}
	specs := map[string]string{
		"invalid containers": `"containers":[` + list(7_990, `{}`) + `]`,
		"invalid volumes":    `"containers":[{"name":"a","image":"b"}],"volumes":[` + list(3_990, `{"name":"x","emptyDir":{}}`) + `]`,
		"invalid terms": `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` +
			list(2_660, `{"labelSelector":{"matchLabels":{"a":"b"}}}`) + `]}}`,
		"environment": `"containers":[` + list(66, `{"name":"a#","image":"b","env":[`+list(108, `{"name":"E#","value":"v"}`)+`]}`) + `]`,
		"volumes": `"containers":[{"name":"a","image":"b","volumeMounts":[` + list(2_660, `{"name":"v#","mountPath":"/m#"}`) +
			`]}],"volumes":[` + list(2_660, `{"name":"v#","emptyDir":{}}`) + `]`,
		"keys": `"containers":[{"name":"a","image":"b","resources":{"limits":{` + list(4_900, `"example.com/a#":"1"`) + `},"requests":{` +
			list(4_900, `"example.com/a#":"1"`) + `}}}],"nodeSelector":{` + list(4_900, `"a#":"v"`) + `}`,
	}
	out := map[string]string{}
	for name, spec := range specs {
		out[name] = `{"name":"t","replicas":1,"template":{"spec":{` + spec + `}}}`
	}
	out["tasks"] = list(306, `{"name":"t#","replicas":1,"policies":[{"event":"PodFailed","action":"RestartJob"}],"template":{"metadata":{`+
		`"labels":{"app":"train"}},"spec":{"tolerations":[{"key":"gpu","operator":"Exists"},{"key":"spot","operator":"Exists"}],"containers":[`+
		`{"name":"main","image":"example.org/train","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1"}},"env":[`+
		`{"name":"A","value":"b"},{"name":"B","value":"b"},{"name":"C","value":"b"},{"name":"D","value":"b"}],"volumeMounts":[`+
		`{"name":"data","mountPath":"/data"}]}],"volumes":[{"name":"data","emptyDir":{}}]}}}`)
	policies := list(70, `{"event":"PodFailed","action":"RestartJob"}`)
	out["invalid policies of tasks"] = list(100, `{"name":"t#","replicas":1,"policies":[`+policies+
		`],"template":{"spec":{"containers":[{"name":"main","image":"x"}]}}}`)
	for name, tasks := range out {
		out[name] = `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"j","namespace":"default"},"spec":{` +
			`"minAvailable":1,"queue":"default","tasks":[` + tasks + `]}}`
	}
	return out
}

// reviewOf returns a review of an object. An update has an equal old object.
func reviewOf(operation, object string) string {
	if operation == "UPDATE" {
		object += `,"oldObject":` + object
	}
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"batch.volcano.sh",` +
		`"version":"v1alpha1","kind":"Job"},"namespace":"default","name":"j","operation":"` + operation + `","userInfo":{"username":"joe"},` +
		`"object":` + object + `}}`
}

// costlyReviews are the reviews whose cost is measured, by name.
func costlyReviews(t testing.TB) map[string]struct{ path, body string } {
	t.Helper()
	out := map[string]struct{ path, body string }{}
	for name, c := range hostile(t) {
		out[name] = struct{ path, body string }{"/jobs/validate", c.body}
	}
	for name, c := range hostileFlows(t) {
		out[name] = struct{ path, body string }{"/jobflows/validate", c.body}
	}
	for name, object := range atLimits() {
		out["the limit of "+name] = struct{ path, body string }{"/jobs/validate", reviewOf("CREATE", object)}
		out["the limit of "+name+", update"] = struct{ path, body string }{"/jobs/validate", reviewOf("UPDATE", object)}
		out["the limit of "+name+", defaults"] = struct{ path, body string }{"/jobs/mutate", reviewOf("CREATE", object)}
	}
	var keys strings.Builder
	for i := range 95_000 {
		fmt.Fprintf(&keys, `,"a%d":"v"`, i)
	}
	many := strings.Replace(atLimits()["tasks"], `"namespace":`, `"annotations":{`+keys.String()[1:]+`},"namespace":`, 1)
	out["95,000 annotations"] = struct{ path, body string }{"/jobs/validate", reviewOf("CREATE", many)}
	out["95,000 annotations, defaults"] = struct{ path, body string }{"/jobs/mutate", reviewOf("CREATE", many)}
	return out
}

// cpu returns the CPU time that this process has used.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHostileCost checks that one review of each hostile object costs at most 64 MiB of memory and 0.5 s of CPU. It repeats a measurement
// that another process disturbed.
func TestHostileCost(t *testing.T) {
	h := hookServer(t)
	for name, c := range costlyReviews(t) {
		for attempt := 1; ; attempt++ {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpu(t)
			ask(t, h, c.path, c.body)
			took := cpu(t) - began
			runtime.ReadMemStats(&after)
			got := (after.TotalAlloc - before.TotalAlloc) >> 20
			if got <= 64 && took <= 500*time.Millisecond {
				break
			}
			if attempt == 5 {
				t.Errorf("%s: %d MiB, %s", name, got, took)
				break
			}
		}
	}
}

// TestTooMuch counts without decoding, and names the field.
func TestTooMuch(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,2],"b":{"c":"d\",[[["}}`: "",
		`{"spec":{"x":{"y":1},"tolerations":[` + strings.Repeat(`{},`, maxElements) + `{}]}}`: "spec.tolerations: has more than 10000 elements",
		`{"spec":` + strings.Repeat(`[`, maxDepth) + strings.Repeat(`]`, maxDepth) + `}`:      "spec: is more than 200 levels deep",
		strings.Repeat("]}", 5) + "{:,": "",
		`{"a":"`:                        "",
		`{"metadata":{"annotations":{` + strings.Repeat(`"a":"b",`, maxElements) + `"c":"d"}}}`:        "annotations: has more than 10000 keys",
		`[` + strings.TrimSuffix(strings.Repeat(`[`+strings.Repeat("1,", 9_999)+`1],`, 11), ",") + `]`: "more than 100000 values",
	} {
		got := ""
		scan := scanOf("queues")
		if wrong := scan.tooMuch([]byte(text)); wrong != nil {
			got = wrong.String()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%.40s: %q, want %q", text, got, want)
		}
	}
}

// TestTurns answers at most as many requests at a time as there are turns. A request that only waits does not delay others.
func TestTurns(t *testing.T) {
	var now, most atomic.Int32
	h := make(turns, 2).serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			withoutTurn(r.Context(), func() { <-r.Context().Done() })
			return
		}
		for n := now.Add(1); n > most.Load(); {
			most.Store(n)
		}
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
	}))
	var all sync.WaitGroup
	ask := func(path string) {
		all.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		})
	}
	for range 20 {
		ask("/")
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d at a time", most.Load())
	}
}

// TestVerifyClients checks that a client without a certificate of the authority is refused.
func TestVerifyClients(t *testing.T) {
	known := httptest.NewUnstartedServer(http.NotFoundHandler())
	known.StartTLS()
	defer known.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: known.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, configured := range []string{"", file} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if err := verifyClients(server.TLS, configured); err != nil {
			t.Fatal(err)
		}
		server.StartTLS()
		answer, err := server.Client().Get(server.URL) //nolint:noctx // a test
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err != nil) != (configured != "") {
			t.Errorf("authorities in %q: %v", configured, err)
		}
		server.Close()
	}
	if err := verifyClients(&tls.Config{MinVersion: tls.VersionTLS12}, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is accepted")
	}
}

// TestRemediesOfLimits sends objects beyond each limit. Then it changes the objects as the message states: several objects, each with
// fewer parts, or a smaller object. Each of these is accepted.
func TestRemediesOfLimits(t *testing.T) {
	const several = "make several objects, each with fewer"
	text := func(open, item, end string) func(n int) string {
		return func(n int) string {
			items := make([]string, n)
			for i := range items {
				items[i] = strings.ReplaceAll(item, "#", strconv.Itoa(i))
			}
			return open + strings.Join(items, ",") + end
		}
	}
	for _, c := range []struct {
		of     string // the resource
		build  func(n int) string
		n      int
		words  string
		remedy string
	}{
		{"podgroups", text(`{"a":[`, `1`, `]}`), maxElements + 1, "has more than 10000 elements", several},
		{"podgroups", text(`{"a":{`, `"k#":1`, `}}`), maxElements + 1, "has more than 10000 keys", several},
		{"podgroups", text(`{"a":[`, `[{},{},{},{}]`, `]}`), 6_001, "more than 30000 lists and objects", several},
		{"podgroups", text(`{"a":[`, `[1,1,1,1,1,1,1,1,1,1,1]`, `]}`), 9_999, "more than 100000 values", several},
		{"jobs", text(`{"a":[`, `{}`, `]}`), 8_001, "more than 8000 lists and objects", several},
		{"jobs", text(`{"a":[`, `[1,1,1]`, `]}`), 5_001, "more than 15000 values", several},
		{"jobs", text(`{"a":[`, `"`+strings.Repeat("x", 1<<10)+`"`, `]}`), 3_100, "and admission accepts 3145728", "make it smaller"},
	} {
		refusal := func(n int) *Mistake {
			scan := scanOf(c.of)
			return scan.tooMuch([]byte(c.build(n)))
		}
		if got := refusal(c.n); got == nil || !strings.Contains(got.Message, c.words) || !strings.HasSuffix(got.Message, "; "+c.remedy) {
			t.Errorf("%d parts of %s: %v, want %q with the remedy %q", c.n, c.of, got, c.words, c.remedy)
		}
		for _, n := range []int{c.n / 2, c.n - c.n/2} {
			if got := refusal(n); got != nil {
				t.Errorf("after the remedy %q, %d parts of %s: %v", c.remedy, n, c.of, got)
			}
		}
	}
}
