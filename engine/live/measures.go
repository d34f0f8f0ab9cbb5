package live

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// newMeasures tells a feed of the measured load of nodes: by the API metrics.k8s.io, or by Prometheus.
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
		selector = labels.Everything() // Options.complete has refused it
	}
	m.List = func(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error {
		return s.client.List(ctx, of, client.MatchingLabelsSelector{Selector: selector})
	}
	return m, nil
}
