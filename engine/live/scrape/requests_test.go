package scrape

import (
	"net/http/httptest"
	"testing"
)

func TestRequestKind(t *testing.T) {
	for _, x := range []struct{ method, path, verb, resource string }{
		{"POST", "/api/v1/namespaces/a/pods/p/binding", "post", "pods/binding"},
		{"PATCH", "/api/v1/namespaces/a/pods/p/status", "patch", "pods/status"},
		{"GET", "/api/v1/pods?limit=500", "list", "pods"},
		{"GET", "/api/v1/pods?allowWatchBookmarks=true&watch=true", "watch", "pods"},
		{"GET", "/api/v1/namespaces/a", "get", "namespaces"},
		{"GET", "/api/v1/namespaces", "list", "namespaces"},
		{"POST", "/api/v1/namespaces/a/events", "post", "events"},
		{"PATCH", "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/g", "patch", "podgroups"},
		{"PATCH", "/apis/scheduling.volcano.sh/v1beta1/queues/q/status", "patch", "queues/status"},
		{"GET", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", "get", "leases"},
		{"GET", "/apis/storage.k8s.io/v1", "get", "discovery"},
		{"GET", "/api", "get", "discovery"},
	} {
		verb, resource := requestKind(httptest.NewRequest(x.method, x.path, nil))
		if verb != x.verb || resource != x.resource {
			t.Errorf("%s %s is %s of %s, want %s of %s", x.method, x.path, verb, resource, x.verb, x.resource)
		}
	}
}
