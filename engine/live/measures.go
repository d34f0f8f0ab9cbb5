package live

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// newMeasures returns a watch that adds the measured load of nodes to a feed. It reads the API metrics.k8s.io, or Prometheus.
func (s *scheduler) newMeasures(in *feed, wanted func() bool) (*load.Watch, error) {
	m := &load.Watch{Wanted: wanted, Log: s.log, Tell: func(x *metricsv1beta1.NodeMetrics, gone bool) {
		c := change{op: model.Upsert, object: x}
		if gone {
			c.op = model.Delete
		}
		in.add(c, false)
	}}
	if s.o.Prometheus.URL != "" {
		from, err := load.New(s.o.Prometheus)
		if err != nil {
			return nil, err
		}
		m.List = from.List
		return m, nil
	}
	selector, err := labels.Parse(s.o.NodeSelector)
	if err != nil {
		selector = labels.Everything() // Options.complete has already refused it
	}
	m.List = func(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error {
		return s.client.List(ctx, of, client.MatchingLabelsSelector{Selector: selector})
	}
	return m, nil
}

// readsMeasures reports whether any of the policies reads the measured load of nodes.
func readsMeasures(all []*policy.Policy) bool {
	return slices.ContainsFunc(all, func(p *policy.Policy) bool { return p != nil && p.ReadsMeasures() })
}
