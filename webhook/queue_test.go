package webhook

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestDeletedWhenItsPodsAreGone deletes a queue whose status reports pods. In some cases, the pods no longer exist, in others they stay.
func TestDeletedWhenItsPodsAreGone(t *testing.T) {
	table, issues := QueueTable()
	if table == nil {
		t.Fatal(issues.Error())
	}
	holding := func(pods string) schedulingv1beta1.Queue {
		q := schedulingv1beta1.Queue{}
		q.Name = "q"
		q.Status.Allocated = corev1.ResourceList{"pods": resource.MustParse(pods)}
		return q
	}
	for _, c := range []struct {
		name     string
		patience time.Duration
		then     []schedulingv1beta1.Queue // the queues that the second look finds
		want     bool
	}{
		{"its pods go", time.Minute, []schedulingv1beta1.Queue{holding("0")}, true},
		{"it goes itself", time.Minute, nil, true},
		{"its pods stay", 2 * lookEvery, []schedulingv1beta1.Queue{holding("1")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			looks := 0
			now := func(context.Context) ([]schedulingv1beta1.Queue, error) {
				if looks++; looks == 1 {
					return []schedulingv1beta1.Queue{holding("2")}, nil
				}
				return c.then, nil
			}
			h := &tableHandler{table: table, metrics: newMetrics(), patience: c.patience, cluster: cluster{queues: now, queuesNow: now}}
			old, err := json.Marshal(holding("2"))
			if err != nil {
				t.Fatal(err)
			}
			if got := h.validate(t.Context(), queueRequest(admissionv1.Delete, nil, old)); got.Allowed != c.want {
				t.Errorf("allowed: %v, %v", got.Allowed, got.Result)
			}
		})
	}
}
