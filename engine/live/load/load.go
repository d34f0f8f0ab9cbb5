// Package load reads the measured load of nodes from Prometheus, in the format of the API metrics.k8s.io.
//
// Three queries return a number for each node: the used cores, the used bytes of memory, and the second of the measurement. The time has
// its own query, because the result of any other query has the time of the query. Results that are late or have another form are ignored.
package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prommodel "github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Default queries, for Prometheus' node exporter with the name of the node in the label instance.
const (
	DefaultLabel  = "instance"
	DefaultCPU    = `sum by (instance) (rate(node_cpu_seconds_total{mode!="idle"}[10m]))`
	DefaultMemory = `avg_over_time(node_memory_MemTotal_bytes[10m]) - avg_over_time(node_memory_MemAvailable_bytes[10m])`
	DefaultTime   = `timestamp(node_memory_MemAvailable_bytes)`
)

const (
	mostTime  = 10 * time.Second // time limit for all queries of a list
	mostBytes = 32 << 20         // maximum size of a response
	mostToken = 64 << 10         // maximum size of a file with a token
	mostValue = 1e15             // the largest plausible number
)

// Options configures the source of the load. The zero value turns it off.
type Options struct {
	// URL is the URL of Prometheus, without /api. "": Prometheus is not used.
	URL string
	// CAFile contains the certificates of the server's authority, as PEM. "": those that the system trusts.
	CAFile string
	// TokenFile contains a bearer token, and is read for each query. "": no token is sent.
	TokenFile string
	// Label is the label with the name of the node, which may include a port. "": DefaultLabel.
	Label string
	// CPU, Memory and Time are the queries. "": the defaults.
	CPU, Memory, Time string
}

// Source reads the load from Prometheus.
type Source struct {
	options Options
	api     promv1.API
}

// New returns a source. It refuses invalid options.
func New(o Options) (*Source, error) {
	for _, x := range []struct {
		field     *string
		otherwise string
	}{{&o.Label, DefaultLabel}, {&o.CPU, DefaultCPU}, {&o.Memory, DefaultMemory}, {&o.Time, DefaultTime}} {
		if *x.field == "" {
			*x.field = x.otherwise
		}
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL of Prometheus: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("the URL of Prometheus %q: must be one such as https://prometheus.monitoring:9090", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the URL of Prometheus %q: must have neither a user, nor a query or a fragment; a bearer token is read "+
			"from a file", u.Redacted())
	case u.Scheme == "http" && o.TokenFile != "":
		return nil, fmt.Errorf("the URL of Prometheus %q: a bearer token is sent by https only", o.URL)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	if o.CAFile != "" {
		if transport.TLSClientConfig.RootCAs, err = certificates(o.CAFile); err != nil {
			return nil, err
		}
	}
	client, err := api.NewClient(api.Config{Address: o.URL, Client: &http.Client{
		Transport:     guarded{transport, o.TokenFile},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token must not reach other servers
	}})
	if err != nil {
		return nil, fmt.Errorf("the URL of Prometheus: %w", err)
	}
	return &Source{o, promv1.NewAPI(client)}, nil
}

func certificates(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates for Prometheus: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates for Prometheus: %s has none: it must have some as PEM", file)
	}
	return pool, nil
}

// guarded adds the token to requests, and limits the size of responses.
type guarded struct {
	next  http.RoundTripper
	token string // name of a file
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.token != "" {
		token, err := readToken(g.token)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := g.next.RoundTrip(r)
	if err == nil {
		answer.Body = &bounded{answer.Body, mostBytes}
	}
	return answer, err
}

func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the token for Prometheus: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostToken))
	token := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("the token for Prometheus: %w", err)
	case token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fmt.Errorf("the token for Prometheus: %s must have one, on one line", file)
	}
	return token, nil
}

// bounded is a body that returns an error if it is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("an answer is longer than %d MiB: ask for one number a node", mostBytes>>20)
	}
	return n, err
}

// List reads the load of all nodes. It leaves out nodes without a value in every query.
func (s *Source) List(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	var values [3]map[string]float64
	for i, query := range []string{s.options.CPU, s.options.Memory, s.options.Time} {
		var err error
		if values[i], err = s.ask(ctx, query); err != nil {
			return fmt.Errorf("ask Prometheus for %q: %w", query, err)
		}
	}
	of.Items = nil
	for node, cpu := range values[0] {
		memory, known := values[1][node]
		at, dated := values[2][node]
		if !known || !dated {
			continue
		}
		of.Items = append(of.Items, metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Timestamp:  metav1.NewTime(time.UnixMilli(int64(at * 1000))),
			Usage: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpu*1000), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(memory), resource.BinarySI),
			},
		})
	}
	slices.SortFunc(of.Items, func(a, b metricsv1beta1.NodeMetrics) int { return strings.Compare(a.Name, b.Name) })
	if len(of.Items) == 0 {
		return fmt.Errorf("of no node Prometheus tells all of cpu, memory and time: of %d, %d and %d, by label %s", len(values[0]),
			len(values[1]), len(values[2]), s.options.Label)
	}
	return nil
}

// ask returns the number of a query for each node. It leaves out values that are not plausible.
func (s *Source) ask(ctx context.Context, query string) (map[string]float64, error) {
	answer, _, err := s.api.Query(ctx, query, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("%.1000s", explained(err).Error()) // the server controls the length of the text
	}
	vector, ok := answer.(prommodel.Vector)
	if !ok {
		return nil, fmt.Errorf("the answer is a %s, and must be a vector with a number for each node", answer.Type())
	}
	out := make(map[string]float64, len(vector))
	for _, x := range vector {
		value, named := x.Metric[prommodel.LabelName(s.options.Label)]
		node := withoutPort(string(value))
		switch _, twice := out[node]; {
		case !named || node == "":
			return nil, fmt.Errorf("the answer has %.200s, without label %s: that must have the name of a node", x.Metric.String(), s.options.Label)
		case twice:
			return nil, fmt.Errorf("the answer has two numbers for node %.200s: it must have one, as a sum or an average by (%s) has", node,
				s.options.Label)
		}
		if v := float64(x.Value); v >= 0 && v <= mostValue && !math.IsNaN(v) {
			out[node] = v
		}
	}
	return out, nil
}

// explained adds the server's message to an error.
func explained(err error) error {
	var of *promv1.Error
	if errors.As(err, &of) && of.Detail != "" {
		return fmt.Errorf("%w: %.200s", err, of.Detail)
	}
	return err
}

// withoutPort removes the port from a name, if there is one.
func withoutPort(s string) string {
	name, port, ok := strings.Cut(s, ":")
	if ok && port != "" && strings.Trim(port, "0123456789") == "" {
		return name
	}
	return s
}
