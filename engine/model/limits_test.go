package model

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spreads gives a pod so many constraints of topology spread, which differ from those of pods with another number.
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

// TestLimits has a pod above each limit: where it waits it is left out with a reason, where it runs it counts on its node and in its queue.
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
		name, want string // "" is within the limits
		edit       func(*corev1.Pod)
	}{
		{"spread", "spec: has 65 terms of pod affinity, pod anti-affinity and topology spread; the limit is 64", spreads(65, 0)},
		{"spread at the limit", "", spreads(64, 0)},
		{"anti-affinity of both modes", "spec: has 80 terms", affinity},
		{"tolerations", "spec.tolerations: has 257 tolerations; the limit is 256", tolerations(257)},
		{"tolerations at the limit", "", tolerations(256)},
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
