package beside

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// OnlyReads returns a config whose clients refuse all requests except reads.
func OnlyReads(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return reads{next} })
	return cfg
}

type reads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reads) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if request.Body != nil {
			_ = request.Body.Close() // as the contract of RoundTripper requires
		}
		return nil, fmt.Errorf("%s %s: a shadow writes nothing", request.Method, request.URL.Path)
	}
	return r.next.RoundTrip(request) //nolint:wrapcheck // it is the next one's
}

// WrappedRoundTripper returns the wrapped transport for callers that look for it in order to cancel a request.
func (r reads) WrappedRoundTripper() http.RoundTripper { return r.next }
