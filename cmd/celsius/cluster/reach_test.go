package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestRawAsks checks that a path of Raw keeps its query. The path of the API server's address comes before it, for example behind a proxy
// of many clusters.
func TestRawAsks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/k8s/api" || r.URL.Path == "/k8s/apis" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s?%s", r.Method, r.URL.Path, r.URL.Query().Encode())
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
contexts: [{name: c, context: {cluster: c}}]}`, server.URL+"/k8s")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &file
	r, err := connect(flags)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/version": "GET /k8s/version?",
		"/api/v1/namespaces/a/pods/p/log?container=a%26b&previous=true": "GET /k8s/api/v1/namespaces/a/pods/p/log?container=a%26b&previous=true",
	} {
		if got, err := r.Raw(t.Context(), path, "*/*", nil); err != nil || string(got) != want {
			t.Errorf("%s: asked is %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := r.Raw(t.Context(), "/version?a=%zz", "*/*", nil); err == nil {
		t.Error("a query that cannot be read is asked")
	}
}
