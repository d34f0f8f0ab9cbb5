package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/celsius-scheduler/celsius/engine/live/load"
)

// If Prometheus is configured, it is queried, but only while the policy reads the measured load.
func TestMeasuresOfPrometheus(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = fmt.Fprint(w, `{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"instance": "n1"}, `+
			`"value": [1, "2"]}]}}`)
	}))
	defer server.Close()
	s := &scheduler{o: Options{Prometheus: load.Options{URL: server.URL}}, log: logr.Discard()}
	wanted := false
	in := newFeed()
	m, err := s.newMeasures(in, func() bool { return wanted })
	if err != nil {
		t.Fatal(err)
	}
	m.Once(t.Context())
	if asked > 0 || len(in.drain()) > 0 {
		t.Error("it is asked for what nobody reads")
	}
	wanted = true
	m.Once(t.Context())
	all := in.drain()
	if asked != 3 || len(all) != 1 || all[0].object.(*metricsv1beta1.NodeMetrics).Name != "n1" {
		t.Errorf("asked %d times, and told %v", asked, all)
	}
}
