package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
	"github.com/celsius-scheduler/celsius/webhook"
)

// part is one of those that serve metrics.
type part struct {
	name     string
	register func(prometheus.Registerer) error
}

// counting lists the parts.
func counting() []part {
	return []part{{"scheduler", live.Metrics}, {"controllers", controller.Metrics}, {"webhook", webhook.Metrics}}
}

// metric is what is known of one.
type metric struct {
	name, kind, help string
	labels           []string
}

// registered notes what is registered with it.
type registered struct {
	*prometheus.Registry
	all []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registered) Register(c prometheus.Collector) error {
	r.all = append(r.all, c)
	return r.Registry.Register(c)
}

// MustRegister implements prometheus.Registerer.
func (r *registered) MustRegister(all ...prometheus.Collector) {
	r.all = append(r.all, all...)
	r.Registry.MustRegister(all...)
}

// metricsOf registers the metrics of a part, and reads them as who scrapes does, in the order of their names. What has labels gets one
// series first, as it would not be served otherwise. One without help is an error.
func metricsOf(p part) ([]metric, error) {
	r := &registered{Registry: prometheus.NewRegistry()}
	if err := p.register(r); err != nil {
		return nil, fmt.Errorf("metrics of the %s: %w", p.name, err)
	}
	for _, c := range r.all {
		if !oneSeries(c) {
			return nil, fmt.Errorf("metrics of the %s: a series of a %T cannot be made", p.name, c)
		}
	}
	families, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics of the %s: %w", p.name, err)
	}
	var out []metric
	for _, f := range families {
		if strings.TrimSpace(f.GetHelp()) == "" {
			return nil, fmt.Errorf("metrics of the %s: %s has no help", p.name, f.GetName())
		}
		m := metric{name: f.GetName(), kind: strings.ToLower(f.GetType().String()), help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			m.labels = append(m.labels, l.GetName())
		}
		out = append(out, m)
	}
	if len(out) != len(r.all) {
		return nil, fmt.Errorf("metrics of the %s: %d are registered, and %d served", p.name, len(r.all), len(out))
	}
	return out, nil
}

// oneSeries gives a metric with labels a series; false: it cannot.
func oneSeries(c prometheus.Collector) bool {
	var with func(...string) error
	switch v := c.(type) {
	case *prometheus.CounterVec:
		with = func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err }
	case *prometheus.GaugeVec:
		with = func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err }
	case *prometheus.HistogramVec:
		with = func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err }
	default:
		return true
	}
	for labels := 1; labels < 10; labels++ { // how many it has is not told
		if with(make([]string, labels)...) == nil {
			return true
		}
	}
	return false
}

// unit is what a metric is counted in, which its name ends with.
func (m *metric) unit() string {
	name := strings.TrimSuffix(m.name, "_total")
	switch {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "seconds since 1970"
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case slices.Contains(m.labels, "resource") && strings.HasPrefix(name, "celsius_queue_"):
		return "by resource"
	}
	return "number"
}

// What the page says beside the tables; ~ stands for a backquote.
const (
	metricsIntro = `
The scheduler, the controllers and the webhook serve what they count at the path ~/metrics~ of their port 8080, as Prometheus reads it.
[Dashboard, alerts and what to do about them](monitoring.md) have a page of their own.`

	metricsReached = `
The port is served by TLS, and only to who may: a reader shows a bearer token, the API server is asked whose it is, and whether that account
may ~get~ the path ~/metrics~. The ClusterRole ~celsius-metrics-reader~ ([deploy/metrics.yaml](../deploy/metrics.yaml)) says so of nobody
until you bind it:`

	metricsBind = `
kubectl create clusterrolebinding prometheus-reads-celsius --clusterrole=celsius-metrics-reader --serviceaccount=monitoring:prometheus-k8s`

	metricsNetwork = `
The certificate is made when the process starts and signed by itself, so whoever scrapes does not verify it, and the NetworkPolicies
let in only namespaces with the label ~metrics: enabled~. The Services ~celsius-scheduler-metrics~, ~celsius-controllers-metrics~ and
~celsius-webhook-metrics~ lead to the pods; [deploy/monitoring](../deploy/monitoring) has a ServiceMonitor for them. The flag
~--metrics-address~ of a part says where it serves, 0 nowhere; ~--metrics-secure=false~ serves everybody, without TLS, as on a
developer's machine.

No label has the name of a job, of a pod or of a node: how many series there are follows from the queues, the rows of the policy and the
extenders. The replica that stands by serves its metrics too; of what only a leader does it counts nothing.`

	metricsOthers = `
The scheduler serves ~go_*~ and ~process_*~ of
[Prometheus' client for Go](https://pkg.go.dev/github.com/prometheus/client_golang/prometheus/collectors) beside its own. The controllers
serve these as well, and all of [controller-runtime](https://book.kubebuilder.io/reference/metrics-reference): ~workqueue_*~,
~controller_runtime_*~ and ~rest_client_requests_total~.

Volcano's names (~volcano_*~) are not served: what they count is not what is counted here, and a dashboard that shows one for the
other would be wrong without saying so.`
)

// metricsReference writes metrics.md.
func metricsReference(parts []part) ([]byte, error) {
	p := &page{}
	said := func(text string) { p.para("%s", strings.ReplaceAll(text, "~", "`")) }
	p.b.WriteString(generated)
	p.heading(1, "Metrics")
	said(metricsIntro)
	p.heading(2, "Who may read them")
	said(metricsReached)
	p.fence("sh", metricsBind)
	said(metricsNetwork)
	for _, from := range parts {
		p.heading(2, "Of the "+from.name)
		all, err := metricsOf(from)
		if err != nil {
			return nil, err
		}
		var rows [][]string
		for _, m := range all {
			rows = append(rows, []string{code(m.name), m.kind, codes(m.labels), m.unit(), m.help})
		}
		p.table([]string{"metric", "type", "labels", "unit", "meaning"}, rows)
	}
	p.heading(2, "Of others")
	said(metricsOthers)
	return p.bytes(), nil
}
