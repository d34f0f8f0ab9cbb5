package serving

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const (
	// annotationBack is why a policy was taken back, at its revision.
	annotationBack = "celsius.dev/policy-rolled-back"
	// guardLook is how often it is looked whether what serves is to be taken back.
	guardLook = 5 * time.Second
	// eventRollback: what a policy says of when to take it back cannot be looked at as it is written.
	eventRollback = "PolicyRollbackInvalid"
)

// guard watches whether what serves is to be taken back, by what it says itself.
type guard struct {
	of    *candidate
	watch *rollback.Watch // nil: it says nothing
	back  *candidate      // was taken back, which is still to be stored
}

// guarding begins to watch what begins to serve.
func (p *Policies) guarding(c choice) {
	if p.guard.of == c.serving {
		return
	}
	p.guard.of, p.guard.watch = c.serving, nil
	if c.serving.uid == "" {
		return
	}
	said := c.policy.Rollback()
	p.guard.watch = said.Begin(p.o.Now(), p.values)
	if said == nil || p.o.Metrics == nil {
		return
	}
	known := metricNames(p.o.Metrics)
	for i := range said.Metrics {
		name := said.Metrics[i].Name
		plain := strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_sum")
		if !known[name] && !known[plain] {
			p.o.Events.Eventf(policyRef(c.serving.name, c.serving.uid), corev1.EventTypeWarning, eventRollback, "%s",
				cut("spec.rollback.metrics: this scheduler has no metric "+name+"; "+source.Suggest(name, slices.Sorted(maps.Keys(known))), mostEvent))
		}
	}
}

// takeBack takes back what serves, if it is time by its own word, and says whether it did.
func (p *Policies) takeBack(ctx context.Context) (taken bool, err error) {
	if c := p.guard.of; p.guard.watch != nil && c.takenBack == "" {
		if why := p.guard.watch.Look(p.o.Now(), p.erring.total(c), p.values); why != "" {
			c.takenBack, p.guard.back, taken = why, c, true
		}
	}
	if back := p.guard.back; back != nil && p.kept.loaded {
		if rev := p.kept.of(back); rev != nil {
			err = p.kept.annotate(ctx, back, rev, annotationBack, back.takenBack)
		}
		if err == nil {
			p.guard.back = nil
		}
	}
	return taken, err
}

// takenBack is why a candidate was taken back, as it is stored, or known here before it is; "": it was not.
func (r *revisions) takenBack(c *candidate) string {
	if rev := r.of(c); rev != nil && rev.Annotations[annotationBack] != "" {
		return rev.Annotations[annotationBack]
	}
	return c.takenBack
}

// values reads the scheduler's own metrics.
func (p *Policies) values(name string, labels map[string]string) (sum float64) {
	if p.o.Metrics == nil {
		return 0
	}
	families, _ := p.o.Metrics.Gather() // what can be read is given
	for _, f := range families {
		part := strings.TrimPrefix(name, f.GetName())
		if part == name || part != "" && part != "_count" && part != "_sum" {
			continue
		}
		for _, m := range f.GetMetric() {
			if has(m, labels) {
				sum += valueOf(m, part)
			}
		}
	}
	return sum
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

// valueOf is the value of a series; of a histogram its count or its sum.
func valueOf(m *dto.Metric, part string) float64 {
	switch h := m.GetHistogram(); {
	case h != nil && part == "_count":
		return float64(h.GetSampleCount())
	case h != nil && part == "_sum":
		return h.GetSampleSum()
	case part != "" || h != nil:
		return 0
	}
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

// metricNames are those that a registry has, with series or without.
func metricNames(r *prometheus.Registry) map[string]bool {
	all := make(chan *prometheus.Desc)
	go func() {
		r.Describe(all)
		close(all)
	}()
	out, name := map[string]bool{}, regexp.MustCompile(`fqName: "([^"]*)"`)
	for d := range all {
		if m := name.FindStringSubmatch(d.String()); m != nil {
			out[m[1]] = true
		}
	}
	return out
}
