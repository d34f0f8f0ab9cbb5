package live

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// series returns all series of a registry: "name{labels}" -> value. Each must have a help text.
func series(t *testing.T, r *prometheus.Registry) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	out, helped := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, text, _ := strings.Cut(help, " ")
			helped[name] = text != ""
			continue
		}
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if name, _, _ := strings.Cut(kind, " "); !helped[name] {
				t.Errorf("%s has no help", name)
			}
			continue
		}
		cut := strings.LastIndex(line, " ")
		out[line[:cut]] = line[cut+1:]
	}
	return out
}

func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		limited := testQueue("q")
		limited.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
		f.put(testNode("n1", "2"), testQueue("default"), limited, testGroup("g", 1), testPod("a", "g", "1"), testGroup("big", 1),
			testPod("b", "big", "9"))
		r.settle(2)
		got := series(t, r.metrics.registry)
		for name, want := range map[string]string{
			`celsius_binds_total{result="bound"}`:                                             "1",
			`celsius_decisions_total{action="allocate",kind="bind"}`:                          "1",
			`celsius_decisions_total{action="",kind="admit"}`:                                 "2",
			`celsius_gang_wait_seconds_count`:                                                 "1",
			`celsius_pending_pods`:                                                            "1",
			`celsius_podgroups{phase="Running",queue="default"}`:                              "1",
			`celsius_podgroups{phase="Running",queue="q"}`:                                    "0",
			`celsius_queue_allocated{queue="default",resource="cpu"}`:                         "1",
			`celsius_queue_pending{queue="default",resource="cpu"}`:                           "9",
			`celsius_queue_deserved{queue="default",resource="cpu"}`:                          "2",
			`celsius_queue_share{queue="default"}`:                                            "0.5",
			`celsius_queue_capability{queue="q",resource="cpu"}`:                              "7",
			`celsius_policy_generation{policy="default"}`:                                     "0",
			`celsius_waiting_jobs{queue="default",rule="within-deserved",table="proportion"}`: "1",
			`celsius_waiting_job_oldest_timestamp_seconds{queue="default"}`:                   "9.466848e+08",
			// Evaluated once for several cycles: both pods read the same data of the node.
			`celsius_evaluations_total{rule="unschedulable",site="predicates",table="predicates"}`: "1",
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %s", name, got[name], want)
			}
		}
		for _, action := range []string{"enqueue", "allocate", "backfill"} {
			// The action ran in three cycles. Cycles without changes do not count.
			if n := got[`celsius_action_duration_seconds_count{action="`+action+`"}`]; n != "3" {
				t.Errorf("action %s was timed %s times, in %s cycles", action, n, got["celsius_cycles_total"])
			}
		}
		f.feed.add(change{op: model.Delete, object: f.queues["q"]}, true)
		r.settle(2)
		f.drop(f.groups["default/big"])
		f.drop(f.pods["default/b"])
		r.settle(2)
		for name, v := range series(t, r.metrics.registry) {
			if strings.HasPrefix(name, "celsius_waiting_job") {
				t.Errorf("no job waits, but %s is %s", name, v)
			}
		}
		if v, ok := series(t, r.metrics.registry)[`celsius_podgroups{phase="Running",queue="q"}`]; ok {
			t.Errorf("a queue that is gone has %s PodGroups", v)
		}
	})
}

func TestPodStages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		tries := 0
		f.onBind = func(*corev1.Binding) (before, after error) {
			time.Sleep(10 * time.Millisecond) // the clock of the bubble
			if tries++; tries == 1 {
				return errNoAnswer, nil
			}
			return nil, nil
		}
		f.put(testNode("n1", "2"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
		f.deliver(-1)
		time.Sleep(30 * time.Millisecond)
		r.tick()
		time.Sleep(5 * time.Millisecond)
		r.work()
		time.Sleep(unknownFirst) // then it is tried again
		synctest.Wait()
		r.work()
		for range 3 {
			f.deliver(-1)
			time.Sleep(time.Second)
			r.tick() // a bound pod has no more stages
		}
		got := series(t, r.metrics.registry)
		for stage, want := range map[string]string{"gathered": "0.03", "decided": "0", "queued": "0.005", "bound": "0.12"} {
			if sum := got[`celsius_pod_stage_seconds_sum{stage="`+stage+`"}`]; sum != want {
				t.Errorf("%s for %s s, want %s", stage, sum, want)
			}
			if n := got[`celsius_pod_stage_seconds_count{stage="`+stage+`"}`]; n != "1" {
				t.Errorf("%s pods were %s", n, stage)
			}
		}
	})
}

func TestWhyAJobWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		waits []model.Wait
		want  waitsFor
	}{
		{"as a whole", []model.Wait{{Queue: "q", Reason: model.Reason{Table: "gang", Rule: "enough"}}}, waitsFor{"q", "gang", "enough"}},
		{"its second pod has a reason of its own", []model.Wait{
			{Queue: "q", Reason: model.Reason{Table: "gang", Rule: "enough"}}, {Queue: "q", Task: "b", Reason: model.Reason{Table: "t", Rule: "r"}},
		}, waitsFor{"q", "t", "r"}},
		{"nodes refuse it", []model.Wait{{Queue: "q", Nodes: []model.NodeCount{
			{Table: "predicates", Rule: "taints", Count: 1},
			{Table: "builtin", Rule: "fits", Count: 9},
			{Table: "predicates", Rule: "affinity", Count: 9},
		}}}, waitsFor{"q", "builtin", "fits"}},
	} {
		if got := whyOf(c.waits); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
