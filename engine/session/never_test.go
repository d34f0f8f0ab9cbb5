package session

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// gangOfThree returns a queue, and a job of three pods that must start together.
func gangOfThree(requests string, edits ...func(*corev1.Pod)) []any {
	out := []any{aQueue("q"), aGroup("g", "q", func(g *v1beta1.PodGroup) { g.Spec.MinMember = 3 })}
	for i := range 3 {
		out = append(out, aPod(fmt.Sprintf("p%d", i), requests, edits...))
	}
	return out
}

// TestNeverStartsFollowsNodes changes nodes so that neither the largest node nor the sum changes, but the number of pods that they hold
// does.
func TestNeverStartsFollowsNodes(t *testing.T) {
	t.Parallel()
	c := aCluster(t, append(gangOfThree("cpu=3"), aNode("n1", "cpu=8 pods=9"), aNode("n2", "cpu=2 pods=9"), aNode("n3", "cpu=2 pods=9"))...)
	s := begun(t, c, "jobOrder: []")
	j, before := c.Jobs["a/g"], s.NodeSizes()
	if text := s.NeverStarts(j); !strings.HasPrefix(text, "the nodes can hold at most 2 of the 3 pods") {
		t.Errorf("the cause is %q, want that the nodes hold 2 pods", text)
	}
	apply(t, c, aPod("p3", "cpu=3", annotated("x", "y")))
	if s.NodeSizes() != before {
		t.Error("the sizes of nodes changed with a pod")
	}
	apply(t, c, aNode("n2", "cpu=1 pods=9"), aNode("n3", "cpu=3 pods=9"))
	if text := s.NeverStarts(j); text != "" {
		t.Errorf("the cause is %q after a node grew, want none", text)
	}
	if s.NodeSizes() == before {
		t.Error("the sizes of nodes did not change with the nodes")
	}
}

// TestNeverStartsReadsThePolicy checks that host ports and anti-affinity keep a job from starting only if a row of the policy always
// rejects nodes for them.
func TestNeverStartsReadsThePolicy(t *testing.T) {
	t.Parallel()
	named := func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = n.Name }
	port := func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 29500}} }
	apart := func(p *corev1.Pod) {
		p.Labels["app"] = "nccl"
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nccl"}},
			}},
		}}
	}
	shipped := func(params string) string {
		return "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n  pipeline: [allocate]\n" +
			"  tiers: [{name: only, tables: [{name: predicates, params: {" + params + "}}]}]\n"
	}
	own := func(rows string) string { return policyText("predicates: [" + rows + "]") }
	for name, test := range map[string]struct {
		policy       string
		ports, apart bool
	}{
		"the shipped table": {shipped(""), true, true},
		"without ports":     {shipped("nodePorts: false"), false, true},
		"without affinity":  {shipped("podAffinity: false"), true, false},
		"no rows":           {own(""), false, false},
		"rows of its own": {
			own("{name: p, expression: task.portsFree(node)}, {name: a, expression: task.affinityFits(node)}"), true, true,
		},
		"a row with another way out":    {own("{name: p, expression: task.portsFree(node) || node.name == 'n1'}"), false, false},
		"the contrary":                  {own("{name: p, expression: '!task.portsFree(node)'}"), false, false},
		"a row that applies at night":   {own("{name: p, when: now.getHours() < 6, expression: task.portsFree(node)}"), false, false},
		"a row of pods that have terms": {own("{name: p, when: task.hasPeerTerms, expression: task.portsFree(node)}"), false, false},
		"a row of some pods with terms": {
			own("{name: a, when: 'task.hasPeerTerms && task.priority > 5', expression: task.affinityFits(node)}"), false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, of := range []struct {
				edit func(*corev1.Pod)
				want bool
			}{{port, test.ports}, {apart, test.apart}} {
				c := aCluster(t, append(gangOfThree("cpu=1", of.edit), aNode("n1", "cpu=8 pods=9", named), aNode("n2", "cpu=8 pods=9", named))...)
				s := New(c, loaded(t, test.policy))
				s.Begin(noon())
				if text := s.NeverStarts(c.Jobs["a/g"]); (text != "") != of.want {
					t.Errorf("the cause is %q, want one: %t", text, of.want)
				}
			}
		})
	}
}
