package load

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// number returns one element of a result: a node and its value.
func number(label, node, value string) string {
	return fmt.Sprintf(`{"metric": {%q: %q}, "value": [1768000000, %q]}`, label, node, value)
}

func vector(numbers ...string) string {
	return `{"status": "success", "data": {"resultType": "vector", "result": [` + strings.Join(numbers, ",") + `]}}`
}

// answering returns a Prometheus server with these results for cpu, memory and time.
func answering(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		query := map[string]string{DefaultCPU: "cpu", DefaultMemory: "memory", DefaultTime: "time"}[r.FormValue("query")]
		if r.URL.Path != "/prom/api/v1/query" || query == "" || r.FormValue("time") != "" {
			t.Errorf("asked for %s %v", r.URL, r.Form)
		}
		_, _ = fmt.Fprint(w, answers[query])
	})
}

func serving(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// told returns the list of a source as text, or its error.
func told(t *testing.T, o Options) string {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var list metricsv1beta1.NodeMetricsList
	if err := s.List(t.Context(), &list); err != nil {
		return err.Error()
	}
	out := ""
	for _, x := range list.Items {
		cpu, memory := x.Usage["cpu"], x.Usage["memory"]
		out += fmt.Sprintf("%s %s %s at %s; ", x.Name, cpu.String(), memory.String(), x.Timestamp.UTC().Format("15:04:05.0"))
	}
	return out
}

func TestList(t *testing.T) {
	t.Parallel()
	all := map[string]string{
		"cpu":    vector(number("instance", "a:9100", "1.5"), number("instance", "b", "0.25"), number("instance", "c", "1")),
		"memory": vector(number("instance", "b", "1024"), number("instance", "a:9100", "2.5e9"), number("instance", "c", "1")),
		"time":   vector(number("instance", "b", "1767610800"), number("instance", "a:9100", "1767610790.5"), number("instance", "c", "1")),
	}
	with := func(query, answer string) map[string]string {
		out := map[string]string{"cpu": all["cpu"], "memory": all["memory"], "time": all["time"]}
		out[query] = answer
		return out
	}
	const ab = "a 1500m 2500000000 at 10:59:50.5; b 250m 1Ki at 11:00:00.0; "
	for _, c := range []struct {
		name    string
		answers map[string]string
		want    string
	}{
		{"all", all, ab + "c 1 1 at 00:00:01.0; "},
		{"of one nothing but cpu", with("memory", vector(number("instance", "a", "2.5e9"), number("instance", "b", "1024"))), ab},
		{"of one no number", with("time", vector(number("instance", "b", "1767610800"), number("instance", "a", "1767610790.5"),
			number("instance", "c", "NaN"))), ab},
		{"below 0", with("cpu", vector(number("instance", "a", "1.5"), number("instance", "b", ".25"), number("instance", "c", "-1"))), ab},
		{"too much", with("cpu", vector(number("instance", "a", "1.5"), number("instance", "b", ".25"), number("instance", "c", "+Inf"))), ab},
		{"nothing", with("time", vector()), "of no node Prometheus tells all of cpu, memory and time: of 3, 3 and 0, by label instance"},
		{"another label", with("cpu", vector(number("node", "a", "1"))), "without label instance: that must have the name of a node"},
		{
			"two of a node", with("cpu", vector(number("instance", "a:1", "1"), number("instance", "a:2", "1"))),
			"two numbers for node a: it must have one",
		},
		{
			"a number", with("cpu", `{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}`),
			"the answer is a scalar, and must be a vector",
		},
		{"not JSON", with("memory", "<html>"), `ask Prometheus for "` + strings.ReplaceAll(DefaultMemory, `"`, `\"`) + `": `},
		{"half of it", with("memory", all["memory"][:80]), "ask Prometheus for "},
		{"a refusal", with("cpu", `{"status": "error", "errorType": "bad_data", "error": "parse error"}`), "parse error"},
		{"a long refusal", with("cpu", `{"status": "error", "errorType": "bad_data", "error": "`+strings.Repeat("x", 100_000)+`"}`), "xxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := told(t, Options{URL: answering(t, c.answers).URL + "/prom/"}); !strings.Contains(got, c.want) || len(got) > 2000 {
				t.Errorf("%.3000s, want %s", got, c.want)
			}
		})
	}
}

// A server that fails, redirects, or sends too much provides no values. A slow server is not waited for.
func TestBadServers(t *testing.T) {
	t.Parallel()
	elsewhere := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("it went elsewhere") })
	for _, c := range []struct {
		name, want string
		serve      http.HandlerFunc
	}{
		{"fails", "server error: 503: no room", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no room", http.StatusServiceUnavailable)
		}},
		{"sends elsewhere", "302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }},
		{"says too much", "longer than 32 MiB", func(w http.ResponseWriter, _ *http.Request) {
			for range mostBytes/1000 + 2 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := told(t, Options{URL: serving(t, c.serve).URL})
			if !strings.Contains(got, "ask Prometheus for") || !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	over := make(chan struct{})
	slow := serving(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	s, err := New(Options{URL: slow.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.List(ctx, &metricsv1beta1.NodeMetricsList{}); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("a slow server: %v", err)
	}
}

// The bearer token is sent only to a server with a trusted certificate. Its file is read for each query.
func TestTokens(t *testing.T) {
	t.Parallel()
	var got []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = fmt.Fprint(w, vector(number("node", "a", "1")))
	}))
	defer s.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	o := Options{URL: s.URL, CAFile: ca, TokenFile: file("token", "first\n"), Label: "node"}
	if text := told(t, o); text != "a 1 1 at 00:00:01.0; " {
		t.Error(text)
	}
	file("token", "second")
	told(t, o)
	if len(got) != 6 || got[0] != "Bearer first" || got[5] != "Bearer second" {
		t.Errorf("sent %q", got)
	}
	for text, want := range map[string]string{"": "must have one, on one line", "a\nb": "must have one, on one line"} {
		file("token", text)
		if got := told(t, o); !strings.Contains(got, want) {
			t.Errorf("a token %q: %s", text, got)
		}
	}
	file("token", "third")
	o.CAFile = ""
	if text := told(t, o); !strings.Contains(text, "certificate") {
		t.Errorf("by a certificate that nobody vouches for: %s", text)
	}
	if len(got) != 6 {
		t.Errorf("sent %q", got)
	}
	for want, o := range map[string]Options{
		`"prometheus:9090": must be one such as https://`: {URL: "prometheus:9090"},
		`must have neither a user`:                        {URL: "http://me:secret@p"},
		`a bearer token is sent by https only`:            {URL: "http://p", TokenFile: "token"},
		`no such file`:                                    {URL: "https://p", CAFile: filepath.Join(dir, "none")},
		`token has none: it must have some as PEM`:        {URL: "https://p", CAFile: filepath.Join(dir, "token")},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}
