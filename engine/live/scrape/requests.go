package scrape

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/rest"
)

// Requests is the name of the metric of Count.
const (
	Requests     = "celsius_api_requests_total"
	RequestsHelp = "Requests to the API server, by verb and resource."
)

// NewLeading registers the gauge that shows whether an instance of a part leads. It is 0 until it is set.
func NewLeading(in prometheus.Registerer, part string) prometheus.Gauge {
	return promauto.With(in).NewGauge(prometheus.GaugeOpts{
		Name: "celsius_leading", Help: "1 while this instance of the part is at work: it holds the lease, or needs none. 0 while it stands by.",
		ConstLabels: prometheus.Labels{"part": part},
	})
}

// Before calls Look for each request, which may replace it, and then Next.
type Before struct {
	Next http.RoundTripper
	Look func(*http.Request) *http.Request
}

// RoundTrip implements http.RoundTripper.
func (b Before) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.Next.RoundTrip(b.Look(request))
}

// WrappedRoundTripper returns the wrapped transport for callers that look for it in order to cancel a request.
func (b Before) WrappedRoundTripper() http.RoundTripper { return b.Next }

// Count counts every request of a config's clients, by verb and resource.
func Count(cfg *rest.Config, into *prometheus.CounterVec) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return Before{next, func(r *http.Request) *http.Request {
			into.WithLabelValues(requestKind(r)).Inc()
			return r
		}}
	})
}

// requestKind returns the Kubernetes verb of a request, and its resource with its subresource.
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
