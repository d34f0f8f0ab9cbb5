package load

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Watch lists the measured load of nodes while it is wanted. If a list fails, the earlier values remain and age.
type Watch struct {
	List   func(ctx context.Context, of *metricsv1beta1.NodeMetricsList) error
	Wanted func() bool
	// Tell is called for each measured node, and for each node that is no longer measured.
	Tell func(x *metricsv1beta1.NodeMetrics, gone bool)
	Log  logr.Logger

	known map[string]bool // nodes that were passed to Tell
	wrong string          // the last logged error; "": none
	ahead int             // number of nodes in the last list with a time in the future
}

const (
	mostMeasuring = 30 * time.Second // time limit for one list
	mostAhead     = time.Minute      // tolerated difference between clocks
)

// Run lists at once and then at each interval, until ctx ends.
func (m *Watch) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		m.Once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Once lists the load once and passes it on.
func (m *Watch) Once(ctx context.Context) {
	if !m.Wanted() {
		return
	}
	var list metricsv1beta1.NodeMetricsList
	within, stop := context.WithTimeout(ctx, mostMeasuring)
	defer stop()
	if err := m.List(within, &list); err != nil {
		if ctx.Err() == nil {
			m.failed(err)
		}
		return
	}
	if m.wrong != "" {
		m.wrong = ""
		m.Log.Info("the load of nodes is measured again", "nodes", len(list.Items))
	}
	there := make(map[string]bool, len(list.Items))
	list.Items = m.past(list.Items)
	for i := range list.Items {
		x := &list.Items[i]
		there[x.Name] = true
		m.Tell(x, false)
	}
	for name := range m.known {
		if !there[name] {
			m.Tell(&metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: name}}, true)
		}
	}
	m.known = there
}

// past drops values with a time in the future, because they would count as new until that time.
func (m *Watch) past(list []metricsv1beta1.NodeMetrics) []metricsv1beta1.NodeMetrics {
	latest := time.Now().Add(mostAhead)
	out := slices.DeleteFunc(slices.Clone(list), func(x metricsv1beta1.NodeMetrics) bool { return x.Timestamp.After(latest) })
	if ahead := len(list) - len(out); ahead != m.ahead {
		if m.ahead == 0 {
			m.Log.Info("the load of nodes is passed over that was measured in time to come; are the clocks right?", "nodes", ahead)
		}
		m.ahead = ahead
	}
	return out
}

// failed logs an error, once until it changes.
func (m *Watch) failed(err error) {
	text := "the load of nodes could not be read; what was measured before counts until it is too old"
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		text = "the policy reads the measured load of nodes, but this cluster has no API metrics.k8s.io: no load is known; " +
			"is metrics-server installed? Or give --prometheus-url"
	}
	if told := text + err.Error(); told != m.wrong {
		m.wrong = told
		m.Log.Info(text, "error", err.Error())
	}
}
