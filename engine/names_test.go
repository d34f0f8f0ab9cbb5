package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestResourceNamesComeAndGo checks that reasons name resources that come and go. This includes alike nodes that are asked once and whose
// answers are remembered. A session that remembers nothing gives the same reasons.
func TestResourceNamesComeAndGo(t *testing.T) {
	docs, issues := source.Parse("names.yaml", policyOf("mode: Active", "name: gang", "name: predicates", "name: nodeorder"))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	scenes := []*scene{newScene(t, p, nil), newScene(t, p, nil)}
	offering := func(i int, names ...string) model.Delta {
		n := benchNode(i, "32")
		for _, name := range names {
			n.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse("1")
		}
		return upsert(n)
	}
	asking := func(pod, name string) []model.Delta {
		p := benchPod(pod, pod, 1000, 1024)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(name)] = resource.MustParse("1")
		return []model.Delta{upsert(benchGroup(pod, 1, benchStart())), upsert(p)}
	}
	// cycle returns where pods went, and why the named pod waits.
	cycle := func(pod string, deltas ...model.Delta) string {
		t.Helper()
		var plans []string
		for _, x := range scenes {
			x.apply(t, deltas)
			if x == scenes[1] {
				x.d = engine.NewDecider(x.d.Session().Renewed(), action.Forgetful())
			}
			x.cycle()
			if err := x.d.Session().Cluster().Check(); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(x.plan)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, string(text))
		}
		if plans[0] != plans[1] {
			t.Errorf("remembered %s, afresh %s", plans[0], plans[1])
		}
		var out []string
		for _, b := range scenes[0].plan.Binds {
			out = append(out, b.Task+" on "+b.Node)
		}
		for _, w := range scenes[0].plan.Waits {
			if w.Task == "default/"+pod {
				out = append(out, w.Reason.Text)
			}
		}
		return strings.Join(out, "; ")
	}
	const foo, bar = "example.com/foo", "example.com/bar"
	start := []model.Delta{upsert(benchQueue("default")), offering(0), offering(1), offering(2)}
	for i, step := range []struct {
		pod    string
		deltas []model.Delta
		want   string
	}{
		{
			"a", append(start, asking("a", foo)...),
			"0/3 nodes are available: 3 Insufficient example.com/foo (it asks for example.com/foo 1 and can never fit: no node has any)",
		},
		{
			"b", asking("b", bar),
			"0/3 nodes are available: 3 Insufficient example.com/bar (it asks for example.com/bar 1 and can never fit: no node has any)",
		},
		{"b", []model.Delta{offering(1, foo)}, "default/a on node-00001; 0/3 nodes are available: 3 Insufficient example.com/bar (it asks for " +
			"example.com/bar 1 and can never fit: no node has any)"},
		{"c", asking("c", foo), "0/3 nodes are available: 3 Insufficient example.com/foo"},
		{
			"c",
			[]model.Delta{offering(1)},
			"0/3 nodes are available: 3 Insufficient example.com/foo (it asks for example.com/foo 1 and can never fit: no node has any)",
		},
		{
			"c",
			[]model.Delta{{Op: model.Delete, Object: benchPod("a", "a", 1000, 1024)}, offering(2, bar)},
			"default/b on node-00002; 0/3 nodes are available: 3 Insufficient example.com/foo (it asks for example.com/foo 1 and can never fit: " +
				"no node has any)",
		},
		{"c", []model.Delta{offering(0, foo)}, "default/c on node-00000"},
	} {
		if got := cycle(step.pod, step.deltas...); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if got := fmt.Sprint(scenes[0].d.Session().Cluster().Nodes.Columns()); got != "[0 1 2 3 4]" {
		t.Errorf("dimensions with columns: %s", got)
	}
}
