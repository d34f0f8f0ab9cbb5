package serving

import (
	"context"
	"errors"
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

// guard watches whether a candidate that serves is to be taken back, by what it says itself.
type guard struct {
	of     *candidate
	watch  *rollback.Watch // nil: it says nothing
	stored bool            // that it was taken back
}

// guarding watches those that serve, and stops watching others of which there is nothing to store.
func (p *Policies) guarding(serving []*candidate) {
	p.guards = slices.DeleteFunc(p.guards, func(g *guard) bool {
		return !slices.Contains(serving, g.of) && (g.of.takenBack == "" || g.stored)
	})
	for _, c := range serving {
		if c.uid != "" && !slices.ContainsFunc(p.guards, func(g *guard) bool { return g.of == c }) {
			p.guards = append(p.guards, p.guardOf(c))
		}
	}
}

// guardOf begins to watch a candidate.
func (p *Policies) guardOf(c *candidate) *guard {
	said := c.policy.Rollback()
	g := &guard{of: c, watch: said.Begin(p.o.Now(), p.o.values)}
	if said == nil || p.o.Metrics == nil {
		return g
	}
	known := metricNames(p.o.Metrics)
	for i := range said.Metrics {
		name := said.Metrics[i].Name
		plain := strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_sum")
		if !known[name] && !known[plain] {
			p.o.Events.Eventf(policyRef(c.name, c.uid), corev1.EventTypeWarning, eventRollback, "%s",
				cut("spec.rollback.metrics: this scheduler has no metric "+name+"; "+source.Suggest(name, slices.Sorted(maps.Keys(known))), mostEvent))
		}
	}
	return g
}

// takeBack takes back what serves, where it is time by its own word, and says whether it took any.
func (p *Policies) takeBack(ctx context.Context) (taken bool, err error) {
	var errs []error
	for _, g := range p.guards {
		c := g.of
		if c.takenBack == "" {
			c.takenBack = g.watch.Look(p.o.Now(), p.erring.total(c), p.o.values)
			taken = taken || c.takenBack != ""
		}
		if rev := p.kept.of(c); c.takenBack != "" && !g.stored && rev != nil && p.kept.loaded {
			err := p.kept.annotate(ctx, c, rev, annotationBack, c.takenBack)
			g.stored = err == nil
			errs = append(errs, err)
		}
	}
	return taken, errors.Join(errs...)
}

// takenBack is why a candidate was taken back, as it is stored, or known here before it is; "": it was not.
func (r *revisions) takenBack(c *candidate) string {
	if rev := r.of(c); rev != nil && rev.Annotations[annotationBack] != "" {
		return rev.Annotations[annotationBack]
	}
	return c.takenBack
}

// values implements rollback.Values.
func (o *Options) values(name string, labels map[string]string) float64 {
	if o.Metrics == nil {
		return 0
	}
	return values(o.Metrics, name, labels)
}

// values reads the sum of some series of a metric.
func values(r *prometheus.Registry, name string, labels map[string]string) (sum float64) {
	families, _ := r.Gather() // what can be read is given
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
