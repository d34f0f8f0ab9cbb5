package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// A metric is told as it is registered, whatever it is.
func TestAMetricIsTold(t *testing.T) {
	p := part{"oven", func(into prometheus.Registerer) error {
		into.MustRegister(
			prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "oven_bake_seconds", Help: "How long it bakes."}, []string{"cake", "by"}),
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "oven_heat", Help: "Heat.", ConstLabels: prometheus.Labels{"part": "top"}}),
		)
		return into.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "oven_fires_total", Help: "Fires."}))
	}}
	got, err := metricsOf(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []metric{
		{"oven_bake_seconds", "histogram", "How long it bakes.", []string{"by", "cake"}},
		{"oven_fires_total", "counter", "Fires.", nil},
		{"oven_heat", "gauge", "Heat.", []string{"part"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(metric{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, unit := range []string{"seconds", "number", "number"} {
		if got[i].unit() != unit {
			t.Errorf("%s is told in %s, want %s", got[i].name, got[i].unit(), unit)
		}
	}
}

func TestAMetricWithoutHelpIsAnError(t *testing.T) {
	p := part{"oven", func(into prometheus.Registerer) error {
		return into.Register(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oven_fires_total"}, []string{"by"}))
	}}
	if _, err := metricsReference([]part{p}); err == nil || !strings.Contains(err.Error(), "oven_fires_total has no help") {
		t.Errorf("the error is %v", err)
	}
}
