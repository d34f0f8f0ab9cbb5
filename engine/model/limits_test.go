package model

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spreads gives a pod count constraints of topology spread. They differ from those of pods with another number.
func spreads(count, number int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range count {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
					"app.kubernetes.io/instance": fmt.Sprintf("train-%d-%d", number, i),
				}},
			})
		}
	}
}

func annotatedWith(key string, bytes int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = strings.Repeat("x", bytes) }
}

// nodeTerms adds preferred node affinity to a pod, with the given number of terms, and of zones in each term.
func nodeTerms(count, values int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		for i := range count {
			one := corev1.NodeSelectorRequirement{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn}
			for j := range values {
				one.Values = append(one.Values, fmt.Sprintf("eu-west-%d-%d", i, j))
			}
			a := p.Spec.Affinity.NodeAffinity
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{one}}})
		}
	}
}

// selectors adds the given number of terms of pod affinity to a pod, each with the given number of expressions.
func selectors(count, expressions int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := &metav1.LabelSelector{}
		for i := range expressions {
			s.MatchExpressions = append(s.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: fmt.Sprint("example.com/k", i), Operator: metav1.LabelSelectorOpExists})
		}
		a := &corev1.PodAffinity{}
		for range count {
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
				corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: s})
		}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: a}
	}
}

func hostPorts(count int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range count {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(20_000 + i)})
		}
	}
}

// names adds requests for the given number of resources that no node offers to a pod.
func names(count int, prefix string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range count {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint(prefix, i))] = resource.MustParse("0")
		}
	}
}

// TestLimitOfAllResourceNames applies many small pods, one after another, each with resource names that no node offers. The cluster
// refuses new names at a limit. It still knows the names that nodes offer, and counts running pods.
func TestLimitOfAllResourceNames(t *testing.T) {
	c := shared()
	c.Apply(upserts(node("n1", "cpu=64 memory=8Gi pods=110"))...)
	refused := 0
	for i := range 40 {
		p := pod("p", "cpu=1", names(60, fmt.Sprintf("made.up/of-%d-", i)))
		for _, err := range c.Apply(upserts(p)...) {
			if refused++; !strings.Contains(err.Error(), "the limit is 1024") {
				t.Error(err)
			}
		}
		c.Apply(Delta{Op: Delete, Object: p})
	}
	if n := c.Dims.Len(); n > 1024 || refused < 20 {
		t.Errorf("there are %d names, and %d pods were refused", n, refused)
	}
	running := pod("runs", "cpu=1", names(60, "made.up/late-"), on("n1"))
	c.Apply(upserts(running, node("n2", "cpu=8 memory=8Gi pods=10 nvidia.com/gpu=8"), pod("gpus", "cpu=1 nvidia.com/gpu=1", on("n2")))...)
	if i, ok := c.Dims.Find("nvidia.com/gpu"); !ok || c.Nodes.Used[i][c.Nodes.Index["n2"]] != 1000 {
		t.Error("a resource that a node offers is not counted")
	}
	if got := c.Nodes.Used[CPU][c.Nodes.Index["n1"]]; got != 1000 {
		t.Errorf("the pod that runs uses %g milli-CPUs", got)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestLimits contains a pod above each limit. A waiting pod is left out with a reason. A running pod counts on its node and in its queue.
func TestLimits(t *testing.T) { //nolint:gocyclo // a table, and each pod once where it waits and once where it runs
	affinity := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		for range 40 {
			term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}}
			a := p.Spec.Affinity.PodAntiAffinity
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, term)
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
		}
	}
	tolerations := func(count int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range count {
				p.Spec.Tolerations = append(p.Spec.Tolerations,
					corev1.Toleration{Key: fmt.Sprint("example.com/pool-", i), Operator: corev1.TolerationOpExists})
			}
		}
	}
	for _, test := range []struct {
		name, want string // "" means within the limits
		edit       func(*corev1.Pod)
	}{
		{"spread", "spec: has 65 terms of pod affinity, pod anti-affinity and topology spread; the limit is 64", spreads(65, 0)},
		{"spread at the limit", "", spreads(64, 0)},
		{"anti-affinity of both modes", "spec: has 80 terms", affinity},
		{"tolerations", "spec.tolerations: has 257 tolerations; the limit is 256", tolerations(257)},
		{"tolerations at the limit", "", tolerations(256)},
		{"node affinity", "spec: has 2200 terms, labels, expressions and values", nodeTerms(100, 20)},
		{"node affinity within the limit", "", nodeTerms(90, 20)},
		{"large selectors within few terms", "spec: has 12060 terms, labels", selectors(60, 200)},
		{"host ports", "spec: has 257 host ports; the limit is 256", hostPorts(257)},
		{"host ports at the limit", "", hostPorts(256)},
		{"resource names", "spec.containers[].resources.requests: has 66 resource names; the limit is 64", names(65, "made.up/resource-")},
		{"resource names at the limit", "", names(63, "made.up/resource-")},
		{"annotations", "metadata: labels and annotations have", annotatedWith("example.com/notes", 64<<10)},
		{"kubectl apply", "", annotatedWith(corev1.LastAppliedConfigAnnotation, 200<<10)},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, runs := range []bool{false, true} {
				c := shared()
				p := pod("p", "cpu=1", test.edit)
				if runs {
					on("n1")(p)
				}
				var wrong []string
				for _, err := range c.Apply(upserts(node("n1", "cpu=8 memory=8Gi pods=10"), p)...) {
					wrong = append(wrong, err.Error())
				}
				text := strings.Join(wrong, "\n")
				if (test.want == "") != (text == "") || !strings.Contains(text, test.want) {
					t.Errorf("runs %t: reported %q, should be %q", runs, text, test.want)
				}
				task := c.Tasks["a/p"]
				if (task == nil) != (test.want != "" && !runs) {
					t.Errorf("runs %t: is in the cluster: %t", runs, task != nil)
				}
				if runs && (c.Nodes.Used[CPU][c.Nodes.Index["n1"]] != 1000 || c.Jobs["a/g"].Queue.Allocated[CPU] != 1000) {
					t.Error("the pod that runs does not count on its node and in its queue")
				}
				if runs && test.want != "" && task.PodTerms != nil && len(task.PodTerms.each) > 64 {
					t.Error("terms above the limit are kept")
				}
				if err := c.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLimitOfAJobsTerms fills a PodGroup with different terms: one more pod is left out, until another pod of the group leaves.
func TestLimitOfAJobsTerms(t *testing.T) {
	c := shared()
	const fit = 1024 / 64
	for i := range fit {
		if errs := c.Apply(upserts(pod(fmt.Sprint("worker-", i), "cpu=1", spreads(64, i)))...); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	late := pod("worker-late", "cpu=1", spreads(64, fit))
	errs := c.Apply(upserts(late)...)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "would have 1088 different terms") {
		t.Fatalf("reported %v", errs)
	}
	if same := pod("worker-same", "cpu=1", spreads(64, 3)); len(c.Apply(upserts(same)...)) > 0 || c.Tasks["a/worker-same"] == nil {
		t.Error("a pod with the terms of another is left out")
	}
	bound := pod("worker-bound", "cpu=1", spreads(64, fit+1), on("n1"))
	c.Apply(upserts(node("n1", "cpu=8 memory=8Gi pods=10"), bound)...)
	if x := c.Tasks["a/worker-bound"]; x == nil || x.PodTerms != nil || c.Nodes.Used[CPU][c.Nodes.Index["n1"]] != 1000 {
		t.Error("a pod that runs does not count on its node without its terms")
	}
	if c.Tasks["a/worker-late"] != nil {
		t.Error("the pod above the limit is in the cluster")
	}
	trial := Try(c)
	trial.Remove(c.Jobs["a/g"])
	trial.End()
	if err := c.Check(); err != nil || c.Tasks["a/worker-late"] != nil {
		t.Errorf("after a trial: %v; the pod above the limit is in the cluster: %t", err, c.Tasks["a/worker-late"] != nil)
	}
	c.Apply(Delta{Op: Delete, Object: pod("worker-0", "cpu=1")})
	if c.Tasks["a/worker-late"] == nil {
		t.Error("the pod is still left out after another one left")
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
