package live

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live/shadow"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// shadowOf returns a policy of the test with one table.
func shadowOf(t testing.TB, name, table string) *policy.Policy {
	t.Helper()
	return policyFrom(t, fmt.Sprintf(`apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: %s}
spec:
  mode: Shadow
  pipeline: [enqueue, allocate, backfill]
  tiers:
  - name: all
    tables:
    - {name: gang}
    - {name: predicates}
    - %s
`, name, table))
}

// decidingBeside adds shadows to a loop, which decide in each cycle. told contains the last report of each.
func decidingBeside(l *loop, policies ...*policy.Policy) (told map[string]*policyv1alpha1.ShadowStatus) {
	told = map[string]*policyv1alpha1.ShadowStatus{}
	l.shadow = &shadow.Player{
		Policies: func() []*policy.Policy { return policies },
		Tell:     func(p *policy.Policy, found *policyv1alpha1.ShadowStatus) { told[p.Name] = found },
		Meter:    shadow.NewMeter(prometheus.NewRegistry()), Log: l.log, Clock: time.Now,
	}
	return told
}

// In a bubble decisions take no time, so shadows take part in each cycle. They do not change the real decisions, as the recording of each
// bubble shows.
func TestShadows(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		told := decidingBeside(r.loop,
			shadowOf(t, "alike", "{name: nodeorder}"),
			shadowOf(t, "packs", "{name: binpack}"),
			shadowOf(t, "refuses", "{name: own, inline: {predicates: [{name: no, expression: 'false', message: never here}]}}"),
			shadowOf(t, "errs", "{name: own, inline: {scores: [{name: bad, expression: '1 / (task.priority - task.priority)'}]}}"),
		)
		f := r.server
		f.put(testNode("n1", "8"), testNode("n2", "8"), testQueue("default"), testPod("a", "", "1"))
		r.settle(2)
		f.put(testPod("b", "", "1"), testPod("huge", "", "20"))
		r.settle(20)
		if got := slices.Compact(slices.Sorted(slices.Values(nodesOf(f.bindings)))); len(got) != 2 {
			t.Fatalf("bindings %q, and not one a node", f.bindings)
		}
		got := map[string]policyv1alpha1.ShadowPods{}
		for name, s := range told {
			got[name] = s.Pods
			if s.Beside != "default@0" || s.Cycles.Decided == 0 || s.Cycles.Skipped+s.Cycles.BrokenOff != 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if diff := cmp.Diff(map[string]policyv1alpha1.ShadowPods{
			"alike": {}, "packs": {Elsewhere: 1}, "refuses": {Later: 2}, "errs": {Elsewhere: 1},
		}, got); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
		var texts []string
		for _, d := range append(told["packs"].Differences, told["refuses"].Differences...) {
			texts = append(texts, d.Kind+" "+d.Pod+" of "+d.Queue+": "+d.Text)
		}
		if diff := cmp.Diff([]string{
			"Elsewhere default/b of default: bound to n2; by the shadow bound to n1",
			"Later default/b of default: bound to n2; by the shadow it waits: own/no: 0/2 nodes are available: 2 never here",
			"Later default/a of default: bound to n1; by the shadow it waits: own/no: 0/2 nodes are available: 2 never here",
		}, texts); diff != "" {
			t.Errorf("said (-want +got):\n%s", diff)
		}
		if errs := told["errs"].RuleErrors; len(errs) != 1 || errs[0].Rule != "bad" || errs[0].Count == 0 {
			t.Errorf("errors of rows: %+v", errs)
		}
	})
}

// nodesOf returns the nodes in "default/a n1".
func nodesOf(bindings []string) (out []string) {
	for _, b := range bindings {
		var pod, node string
		_, _ = fmt.Sscan(b, &pod, &node)
		out = append(out, node)
	}
	return out
}

// A difference of a shadow is counted once while it lasts, and the report contains the reason of the real decision.
func TestShadowsThatWouldBind(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		strict := shadowOf(t, "strict", "{name: own, inline: {predicates: [{name: no, expression: 'false', message: never here}]}}")
		r.policy = func() *policy.Policy { return strict }
		told := decidingBeside(r.loop, shadowOf(t, "lax", "{name: nodeorder}"))
		f := r.server
		f.put(testNode("n1", "8"), testQueue("default"), testPod("a", "", "1"), testPod("b", "", "1"))
		for range 20 {
			r.settle(2)
			f.put(testPod("other-"+fmt.Sprint(len(f.pods)), "", "20"))
		}
		s := told["lax"]
		if s == nil || s.Pods.Sooner != 2 || s.Cycles.Otherwise != s.Cycles.Decided || s.Cycles.Decided < 20 || len(s.Differences) != 2 {
			t.Fatalf("told %+v", s)
		}
		const want = "waits: own/no: 0/1 nodes are available: 1 never here; by the shadow bound to n1"
		if got := s.Differences[0].Text; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}
