package serving

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// values implements rollback.Values.
func (o *Options) values(name string, labels map[string]string) (value float64, there bool) {
	if o.Metrics == nil {
		return 0, false
	}
	return values(o.Metrics, name, labels)
}

// values returns the sum of the series of a metric that have the given labels.
func values(r *prometheus.Registry, name string, labels map[string]string) (sum float64, there bool) {
	families, _ := r.Gather() // Gather returns all metrics that it can read
	for _, f := range families {
		part, ok := strings.CutPrefix(name, f.GetName())
		if !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			if value, is := valueOf(m, part); is && has(m, labels) {
				sum, there = sum+value, true
			}
		}
	}
	return sum, there
}

func has(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want, named := labels[l.GetName()]; named {
			if l.GetValue() != want {
				return false
			}
			found++
		}
	}
	return found == len(labels)
}

// Suffixes for the parts of a histogram or a summary that have a value.
const (
	partCount = "_count"
	partSum   = "_sum"
)

// valueOf returns the value of a series or of a part of it; false: it has none.
func valueOf(m *dto.Metric, part string) (value float64, there bool) {
	histogram, summary := m.GetHistogram(), m.GetSummary() // the getters return 0 for nil
	switch sampled := histogram != nil || summary != nil; {
	case sampled && part == partCount:
		return float64(histogram.GetSampleCount() + summary.GetSampleCount()), true
	case sampled && part == partSum:
		return histogram.GetSampleSum() + summary.GetSampleSum(), true
	case part == "" && m.GetGauge() != nil:
		return m.GetGauge().GetValue(), true
	case part == "" && m.GetCounter() != nil:
		return m.GetCounter().GetValue(), true
	}
	return 0, false
}

// wrongMetric returns why a metric can never have a value, and how to correct it; "": it may have a value.
func wrongMetric(r *prometheus.Registry, m *rollback.Metric) string {
	if r == nil {
		return ""
	}
	known, sampled := described(r), map[string]bool{}
	families, _ := r.Gather()
	for _, f := range families {
		sampled[f.GetName()] = f.GetType() == dto.MetricType_HISTOGRAM || f.GetType() == dto.MetricType_SUMMARY
	}
	plain, labels := m.Name, known[m.Name]
	if labels == nil {
		plain = strings.TrimSuffix(strings.TrimSuffix(m.Name, partCount), partSum)
		labels = known[plain]
	}
	switch is, seen := sampled[plain]; {
	case labels == nil || plain != m.Name && seen && !is:
		return fmt.Sprintf("this scheduler has no metric %s; %s", m.Name, source.Suggest(m.Name, slices.Sorted(maps.Keys(known))))
	case plain == m.Name && is:
		return fmt.Sprintf("metric %[1]s has no value of its own; write %[1]s%[2]s or %[1]s%[3]s", m.Name, partCount, partSum)
	}
	for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
		if !slices.Contains(labels, label) {
			if len(labels) == 0 {
				return fmt.Sprintf("metric %s has no labels; leave out labels", m.Name)
			}
			return fmt.Sprintf("metric %s has no label %q; %s", m.Name, label, source.Suggest(label, labels))
		}
	}
	return ""
}

// described returns the metrics of a registry, with or without series, and their labels.
func described(r *prometheus.Registry) map[string][]string {
	all := make(chan *prometheus.Desc)
	go func() {
		r.Describe(all)
		close(all)
	}()
	out, parts := map[string][]string{}, regexp.MustCompile(`fqName: "([^"]*)".*, constLabels: {(.*)}, variableLabels: {(.*)}}$`)
	for d := range all {
		m := parts.FindStringSubmatch(d.String())
		if m == nil {
			continue
		}
		labels := []string{}
		for _, pair := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, pair[1])
		}
		out[m[1]] = append(labels, strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })...)
	}
	return out
}
