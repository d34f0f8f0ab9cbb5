package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

func measured(node, cpu string) metricsv1beta1.NodeMetrics {
	return metricsv1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: metav1.NewTime(time.Unix(1000, 0)),
		Usage: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")},
	}
}

// mustMeasure returns a watch that adds the measured load to a feed.
func mustMeasure(t *testing.T, in *feed, wanted func() bool) *load.Watch {
	t.Helper()
	m, err := (&scheduler{}).newMeasures(in, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The load is listed while the policy reads it. A node that is no longer listed has no load. An error is logged once, and the earlier
// values remain.
func TestMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer []metricsv1beta1.NodeMetrics
		var fails error
		var logged []string
		wanted, lists := false, 0
		in := newFeed()
		m := mustMeasure(t, in, func() bool { return wanted })
		m.List = func(_ context.Context, of *metricsv1beta1.NodeMetricsList) error {
			lists++
			of.Items = answer
			return fails
		}
		m.Log = funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx, time.Minute)
		c := model.NewCluster(model.Options{})
		next := func(want string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, x := range in.drain() {
				if x.urgent {
					t.Errorf("%v asks for a cycle at once", x.object)
				}
				if errs := c.Apply(model.Delta{Op: x.op, Object: x.object}); errs != nil {
					t.Error(errs)
				}
			}
			got := ""
			for _, node := range []string{"a", "b"} {
				if x := c.Measures[node]; x != nil {
					got += fmt.Sprint(node, " ", x.Use[model.CPU], " at ", x.At.Unix(), "; ")
				}
			}
			if got != want {
				t.Errorf("%q is known, want %q", got, want)
			}
		}
		answer = []metricsv1beta1.NodeMetrics{measured("a", "1"), measured("b", "500m")}
		next("")
		if lists > 0 {
			t.Error("load is listed that nobody reads")
		}
		wanted = true
		next("a 1000 at 1000; b 500 at 1000; ")
		fails = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "metrics.k8s.io", Kind: "NodeMetrics"}}
		next("a 1000 at 1000; b 500 at 1000; ")
		next("a 1000 at 1000; b 500 at 1000; ")
		if len(logged) != 1 || !strings.Contains(logged[0], "is metrics-server installed?") {
			t.Errorf("logged %q, want once that the API is not there", logged)
		}
		fails = errors.New("too slow")
		next("a 1000 at 1000; b 500 at 1000; ")
		fails, answer = nil, answer[1:]
		next("b 500 at 1000; ")
		if len(logged) != 3 || !strings.Contains(logged[1], "too slow") || !strings.Contains(logged[2], "measured again") {
			t.Errorf("logged %q, want another failure, and that it is over", logged)
		}
		ahead := measured("a", "2")
		ahead.Timestamp = metav1.NewTime(time.Now().Add(time.Hour))
		answer = append(answer, ahead)
		next("b 500 at 1000; ")
		next("b 500 at 1000; ")
		if len(logged) != 4 || !strings.Contains(logged[3], "in time to come") {
			t.Errorf("logged %q, want once that the clocks differ", logged)
		}
		stop()
	})
}

// The load is also listed if only a shadow reads it.
func TestMeasuresForShadows(t *testing.T) {
	plain, usage := shadowOf(t, "plain", "{name: nodeorder}"), shadowOf(t, "usage", "{name: usage}")
	if readsMeasures([]*policy.Policy{plain, nil}) || !readsMeasures([]*policy.Policy{usage, plain}) {
		t.Error("load is listed where nobody reads it, or not where a shadow does")
	}
}
