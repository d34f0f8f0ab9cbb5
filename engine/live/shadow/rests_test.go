package shadow

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// sheds returns a policy that evicts all pods at this interval.
func sheds(t *testing.T, name, every string) *policy.Policy {
	t.Helper()
	docs, issues := source.Parse(name+".yaml", fmt.Appendf(nil, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: %s}
spec:
  pipeline: [shed]
  actions: [{name: shed, steps: [{verb: evict, every: %s}]}]
  tiers: [{name: all, tables: [{name: mine, inline: {victims: [{name: all, expression: "true"}]}}]}]
`, name, every))
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	return p
}

// running returns the cluster with its pod on a node.
func running(t *testing.T) *model.Cluster {
	t.Helper()
	c := world(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
	pod := waits()
	pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
	for _, o := range []any{node, pod} {
		if errs := c.Apply(model.Delta{Op: model.Upsert, Object: o}); errs != nil {
			t.Fatal(errs)
		}
	}
	return c
}

// TestStepsRest checks that a step with every rests in a shadow for its own interval, regardless of the serving policy's step with that
// name. A step with the same interval runs together with the serving one, even if the shadow did not take part for a while.
func TestStepsRest(t *testing.T) {
	c := running(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served, often, seldom, alike := sheds(t, "served", "3m"), sheds(t, "often", "2m"), sheds(t, "seldom", "5m"), sheds(t, "alike", "3m")
	x := &Player{
		Policies: func() []*policy.Policy { return []*policy.Policy{often, seldom, alike} },
		Tell:     func(*policy.Policy, *v1alpha1.ShadowStatus) {},
		Meter:    NewMeter(prometheus.NewRegistry()), Log: logr.Discard(), Clock: func() time.Time { return now },
	}
	var d engine.Decider
	got := map[string]string{}
	for minute := range 10 {
		for _, r := range x.runs {
			if r.of == alike && minute == 3 {
				r.rests = now.Add(time.Second)
			}
		}
		x.Before(c, served, now)
		for _, r := range x.runs {
			if (r.plan == nil) != (r.of == alike && minute == 3) {
				t.Fatalf("%s decides in minute %d: %v", r.of.Name, minute, r.plan != nil)
			}
			if r.plan != nil && len(r.plan.Evicts) > 0 {
				got[r.of.Name] += fmt.Sprint(" ", minute)
			}
		}
		trial := model.Try(c) // undo the plan afterwards, so that the pod stays
		plan := d.Decide(c, served, now)
		trial.End()
		if c.Past.Fired == nil {
			c.Past.Fired = map[string]time.Time{}
		}
		maps.Copy(c.Past.Fired, plan.Fired)
		if len(plan.Evicts) > 0 {
			got["served"] += fmt.Sprint(" ", minute)
		}
		x.After(c, plan)
		now = now.Add(time.Minute)
	}
	for name, want := range map[string]string{"served": " 0 3 6 9", "often": " 0 2 4 6 8", "seldom": " 0 5", "alike": " 0 6 9"} {
		if got[name] != want {
			t.Errorf("%s evicts in minutes%s, want%s", name, got[name], want)
		}
	}
}
