package live

import (
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// roundTripper looks at requests, or changes them, before the next has them.
type roundTripper struct {
	next http.RoundTripper
	look func(*http.Request) *http.Request
}

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.next.RoundTrip(r.look(request))
}

// WrappedRoundTripper lets those see the transport who look for it, to break a request off.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

// counting has every request of a config's clients counted.
func (m *metrics) counting(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next, func(r *http.Request) *http.Request {
			verb, resource := requestKind(r)
			m.requests.WithLabelValues(verb, resource).Inc()
			return r
		}}
	})
}

// requestKind is the verb of a request as Kubernetes has it, and its resource with its subresource.
func requestKind(r *http.Request) (verb, resource string) {
	parts := 3 // apis/GROUP/VERSION/
	rest := strings.TrimPrefix(r.URL.Path, "/")
	if strings.HasPrefix(rest, "api/") {
		parts = 2
	}
	for range parts {
		_, rest, _ = strings.Cut(rest, "/")
	}
	if in, ok := strings.CutPrefix(rest, "namespaces/"); ok {
		if _, of, found := strings.Cut(in, "/"); found {
			rest = of
		}
	}
	resource, rest, named := strings.Cut(rest, "/")
	if _, sub, ok := strings.Cut(rest, "/"); ok {
		resource += "/" + sub
	}
	switch {
	case resource == "":
		return "get", "discovery"
	case r.Method != http.MethodGet:
		return strings.ToLower(r.Method), resource
	case r.URL.Query().Has("watch"):
		return "watch", resource
	case named:
		return "get", resource
	}
	return "list", resource
}
