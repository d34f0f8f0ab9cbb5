package shadow

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// Meter contains the metrics of all shadows of a scheduler.
type Meter struct {
	cycles      *prometheus.CounterVec // by policy and result
	differences *prometheus.CounterVec // by policy and kind
	duration    *prometheus.HistogramVec
}

// NewMeter registers the metrics.
func NewMeter(in prometheus.Registerer) *Meter {
	make := promauto.With(in)
	return &Meter{
		cycles: make.NewCounterVec(prometheus.CounterOpts{Name: "celsius_shadow_cycles_total", Help: "Cycles alongside which a shadow " +
			"decided, by its policy and result: alike, otherwise (its bindings or evictions would differ), skipped (it paused, to use no " +
			"more than its share of the time), broken (it took too long)."}, []string{"policy", "result"}),
		differences: make.NewCounterVec(prometheus.CounterOpts{Name: "celsius_shadow_differences_total", Help: "Pods for which a " +
			"shadow decides differently, by its policy and kind: Elsewhere (bound to another node), Later (not bound by the shadow), " +
			"Sooner (bound only by the shadow), Evicted (evicted only by the shadow), Spared (not evicted by the " +
			"shadow)."}, []string{"policy", "kind"}),
		duration: make.NewHistogramVec(prometheus.HistogramOpts{
			Name: "celsius_shadow_duration_seconds", Help: "Time that a shadow took to decide in a cycle, by its policy, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
		}, []string{"policy"}),
	}
}

func (m *Meter) skipped(policy string)   { m.cycles.WithLabelValues(policy, "skipped").Inc() }
func (m *Meter) brokenOff(policy string) { m.cycles.WithLabelValues(policy, "broken").Inc() }

func (m *Meter) took(policy string, d time.Duration) {
	m.duration.WithLabelValues(policy).Observe(d.Seconds())
}

// counted adds the results of one cycle to the metrics.
func (m *Meter) counted(policy string, was, is *v1alpha1.ShadowStatus) {
	result := "alike"
	if is.Cycles.Otherwise > was.Cycles.Otherwise {
		result = "otherwise"
	}
	m.cycles.WithLabelValues(policy, result).Inc()
	for kind, n := range map[string]int64{
		Elsewhere: is.Pods.Elsewhere - was.Pods.Elsewhere, Later: is.Pods.Later - was.Pods.Later, Sooner: is.Pods.Sooner - was.Pods.Sooner,
		Evicted: is.Pods.Evicted - was.Pods.Evicted, Spared: is.Pods.Spared - was.Pods.Spared,
	} {
		if n > 0 {
			m.differences.WithLabelValues(policy, kind).Add(float64(n))
		}
	}
}

// forget drops the series of a policy that is no longer a shadow.
func (m *Meter) forget(policy string) {
	of := prometheus.Labels{"policy": policy}
	m.cycles.DeletePartialMatch(of)
	m.differences.DeletePartialMatch(of)
	m.duration.DeletePartialMatch(of)
}
