package live

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// measures lists what is measured of the nodes' load, while the policy reads it: by the API metrics.k8s.io, or by Prometheus. Neither can
// be watched. Where a list fails, what was listed before stays, and grows old by itself.
type measures struct {
	list   func(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error
	wanted func() bool
	feed   *feed
	log    logr.Logger

	known map[string]bool // nodes of which the feed was told
	wrong string          // what the log was told last; "": all is well
	ahead int             // nodes that were measured in time to come, by the last list
}

const (
	mostMeasuring = 30 * time.Second // for one list
	mostAhead     = time.Minute      // by which clocks may differ
)

func (s *scheduler) newMeasures(in *feed, wanted func() bool) (*measures, error) {
	m := &measures{wanted: wanted, feed: in, log: s.log, known: map[string]bool{}}
	if s.o.Prometheus.URL != "" {
		from, err := load.New(s.o.Prometheus)
		if err != nil {
			return nil, err
		}
		m.list = from.List
		return m, nil
	}
	selector, err := labels.Parse(s.o.NodeSelector)
	if err != nil {
		selector = labels.Everything() // Options.complete has refused it
	}
	m.list = func(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error {
		return s.client.List(ctx, of, client.MatchingLabelsSelector{Selector: selector})
	}
	return m, nil
}

// run lists at once, and then each time that so much has passed, until ctx ends.
func (m *measures) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		m.once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once tells the feed what is measured now.
func (m *measures) once(ctx context.Context) {
	if !m.wanted() {
		return
	}
	var list metricsv1beta1.NodeMetricsList
	within, stop := context.WithTimeout(ctx, mostMeasuring)
	defer stop()
	if err := m.list(within, &list); err != nil {
		if ctx.Err() == nil {
			m.failed(err)
		}
		return
	}
	if m.wrong != "" {
		m.wrong = ""
		m.log.Info("the load of nodes is measured again", "nodes", len(list.Items))
	}
	there := make(map[string]bool, len(list.Items))
	list.Items = m.past(list.Items)
	for i := range list.Items {
		x := &list.Items[i]
		there[x.Name] = true
		m.feed.add(change{op: model.Upsert, object: x}, false)
	}
	for name := range m.known {
		if !there[name] {
			m.feed.add(change{op: model.Delete, object: &metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: name}}}, false)
		}
	}
	m.known = there
}

// past leaves out what says that it was measured in time to come: it would count as new for as long as that is ahead.
func (m *measures) past(list []metricsv1beta1.NodeMetrics) []metricsv1beta1.NodeMetrics {
	latest := time.Now().Add(mostAhead)
	out := slices.DeleteFunc(slices.Clone(list), func(x metricsv1beta1.NodeMetrics) bool { return x.Timestamp.After(latest) })
	if ahead := len(list) - len(out); ahead != m.ahead {
		if m.ahead == 0 {
			m.log.Info("the load of nodes is passed over that was measured in time to come; are the clocks right?", "nodes", ahead)
		}
		m.ahead = ahead
	}
	return out
}

// failed tells the log what is wrong, once.
func (m *measures) failed(err error) {
	text := "the load of nodes could not be read; what was measured before counts until it is too old"
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		text = "the policy reads the measured load of nodes, but this cluster has no API metrics.k8s.io: no load is known; " +
			"is metrics-server installed? Or give --prometheus-url"
	}
	if told := text + err.Error(); told != m.wrong {
		m.wrong = told
		m.log.Info(text, "error", err.Error())
	}
}
