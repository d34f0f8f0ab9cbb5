package webhook

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestHostileCost has one review of each hostile object cost at most 64 MiB.
func TestHostileCost(t *testing.T) {
	h := hookServer(t)
	for name, c := range hostile(t) {
		ask(t, h, "/jobs/validate", c.body) // what is compiled once does not count
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ask(t, h, "/jobs/validate", c.body)
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
			t.Errorf("%s: %d MiB", name, got)
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
		`[` + strings.TrimSuffix(strings.Repeat(`[`+strings.Repeat("1,", 9_999)+`1],`, 11), ",") + `]`: "more than 100000 values",
	} {
		got := ""
		if wrong := tooMuch([]byte(text)); wrong != nil {
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

// TestVerifyClients refuses who shows no certificate of the authority.
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
