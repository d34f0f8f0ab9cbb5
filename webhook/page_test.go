package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/deploy/pages"
)

// TestPage compares the metrics of the webhook with the page on which the queries of the dashboard and the alerts are tested. Before, the
// webhook fills in, accepts and refuses objects. Some reviews fail because the API server does not list the queues.
func TestPage(t *testing.T) {
	var fails atomic.Bool
	c := fakeClient(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			if _, ok := into.(*schedulingv1beta1.QueueList); ok && fails.Load() {
				return errors.New("the API server is not well")
			}
			return c.List(ctx, into, o...)
		},
	})
	if err := c.Create(t.Context(), &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	s := testServer(t, Options{URLHost: "127.0.0.1", ConfigurationName: "tested"}, c)
	start(t, s)
	_, validating := configurations(t, c, "tested")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	mutate := *validating.Webhooks[0].ClientConfig.URL
	mutate = mutate[:strings.LastIndex(mutate, "/jobs/")] + "/jobs/mutate"
	validate := strings.Replace(mutate, "/mutate", "/validate", 1)
	for _, x := range []struct {
		url, spec string
		allowed   bool
	}{
		{mutate, "{}", true}, {validate, "{}", true}, {validate, "spec: {queue: nowhere}", false},
	} {
		if answer := post(t, web, x.url, review(t, "CREATE", merged(t, x.spec))); answer.Allowed != x.allowed {
			t.Errorf("%s of %s: %+v", x.url, x.spec, answer)
		}
	}
	fails.Store(true)
	if answer := post(t, web, validate, review(t, "CREATE", merged(t, "spec: {queue: other}"))); answer.Allowed {
		t.Error("a Job is let pass though nobody knows whether its queue is there")
	}
	for what, x := range map[string]struct {
		of    prometheus.Collector
		holds func(float64) bool
	}{
		"ready":    {s.metrics.ready, func(v float64) bool { return v == 1 }},
		"failures": {s.metrics.broken.WithLabelValues(jobKind), func(v float64) bool { return v == 1 }},
		"expiry":   {s.metrics.expires, func(v float64) bool { return time.Unix(int64(v), 0).After(time.Now().Add(renewedAhead)) }},
	} {
		if got := testutil.ToFloat64(x.of); !x.holds(got) {
			t.Errorf("%s is %g", what, got)
		}
	}
	if err := pages.Hold("../deploy/pages", "webhook", s.metrics.registry, strings.NewReplacer()); err != nil {
		t.Error(err)
	}
}
