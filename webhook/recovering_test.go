package webhook

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

// TestAdmissionSurvivesPanics checks a review that panics. It refuses its object, and names the object and the cause. Reviews of other
// objects continue, and so does a review of the corrected object.
func TestAdmissionSurvivesPanics(t *testing.T) {
	s := testServer(t, Options{}, fakeClient(t, interceptor.Funcs{}))
	for _, e := range s.endpoints {
		h := e.handler
		e.handler = admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
			if strings.Contains(string(req.Object.Raw), "gpu-count: x") {
				panic("test panics at an annotation")
			}
			return h.Handle(ctx, req)
		})
	}
	h := s.handler()
	wrong := string(review(t, "CREATE", merged(t, `metadata: {annotations: {note: "gpu-count: x"}}`)))
	right := string(review(t, "CREATE", merged(t, `metadata: {annotations: {note: "gpu-count: 1"}}`)))
	before := ask(t, h, "/jobs/validate", right)
	for range 20 {
		if got := ask(t, h, "/jobs/validate", wrong); !strings.Contains(got, `"allowed":false`) ||
			!strings.Contains(got, "panic in admission at Job train: test panics at an annotation") {
			t.Fatalf("the wrong object: %s", got)
		}
		if got := ask(t, h, "/jobs/validate", right); got != before || strings.Contains(got, "panic") {
			t.Fatalf("the corrected object: %s, not %s", got, before)
		}
	}
	if got := testutil.ToFloat64(s.metrics.panics.WithLabelValues(string(recovery.Admission))); got != 20 {
		t.Errorf("%v panics are counted", got)
	}
}
