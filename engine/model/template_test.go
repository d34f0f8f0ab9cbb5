package model

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestTemplatesAreShared checks that tasks of a role share one template and one copy of their request. This is so after updates, and if
// their PodGroup comes after them. A pod that differs has its own.
func TestTemplatesAreShared(t *testing.T) {
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	var pods []any
	for i := range 4 {
		pods = append(pods, pod(fmt.Sprint("p", i), "cpu=1", tolerates))
	}
	other := pod("other", "cpu=1", tolerates, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "east"} })
	c := NewCluster(Options{})
	c.Apply(upserts(append(pods, other)...)...)
	shared := func(when string) {
		t.Helper()
		first := c.Tasks["a/p0"]
		for i := range pods {
			task := c.Tasks[fmt.Sprint("a/p", i)]
			if task.Template != first.Template || &task.Request[0] != &first.Request[0] {
				t.Errorf("%s: %s has a template or a request of its own", when, task.Key)
			}
		}
		if c.Tasks["a/other"].Template == first.Template {
			t.Errorf("%s: a pod with a node selector shares the template of those without", when)
		}
	}
	c.Apply(upserts(group("g", "q"))...)
	shared("the group came last")
	for i := range pods {
		c.Apply(upserts(pod(fmt.Sprint("p", i), "cpu=1", tolerates, on("n1")))...)
	}
	shared("they run")
	before := c.Tasks["a/p0"].Template
	c.Apply(upserts(pod("p0", "cpu=2", tolerates, on("n1")))...)
	if got := c.Tasks["a/p0"]; got.Template != before || got.Request[CPU] != 2000 || c.Tasks["a/p1"].Request[CPU] != 1000 {
		t.Errorf("resized: %v of its own, %v of the others", got.Request, c.Tasks["a/p1"].Request)
	}
}

// TestMistakesOfTemplatesAreToldOfEach checks that a mistake in a template is reported for each pod that has it.
func TestMistakesOfTemplatesAreToldOfEach(t *testing.T) {
	bad := func(p *corev1.Pod) {
		on("n1")(p)
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}}},
			},
		}}
	}
	c := NewCluster(Options{})
	if errs := c.Apply(upserts(group("g", "q"), pod("p1", "cpu=1", bad), pod("p2", "cpu=1", bad))...); len(errs) != 2 {
		t.Errorf("two pods with a mistake each: %v", errs)
	}
}

// TestTemplatesTellTheSign checks that an amount far below 0 is not treated as an amount that is as far above 0.
func TestTemplatesTellTheSign(t *testing.T) {
	c := NewCluster(Options{})
	errs := c.Apply(upserts(group("g", "q"), pod("p1", "cpu=1e300", on("n1")), pod("p2", "cpu=-1e300", on("n1")))...)
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "Pod a/p2: spec.containers[].resources.requests[cpu]: ") {
		t.Errorf("told is %v", errs)
	}
	checkTemplates(t, c)
}

// TestTemplatesDiffer checks that a pod has the template and the requests of its own object, in whatever two pods of a role differ. This is
// so for new pods, and after an update.
func TestTemplatesDiffer(t *testing.T) {
	edits := podEdits()
	for i, base := range append(edits, func(*corev1.Pod) {}) {
		for k, edit := range edits {
			t.Run(fmt.Sprintf("%d/%d", i, k), func(t *testing.T) {
				with := func(name string) *corev1.Pod { return pod(name, "cpu=1", on("n1"), base, edit) }
				without := func(name string) *corev1.Pod { return pod(name, "cpu=1", on("n1"), base) }
				c := cluster(t, group("g", "q"), with("p1"), without("p2"))
				checkTemplates(t, c)
				c.Apply(upserts(without("p1"), with("p2"))...)
				checkTemplates(t, c)
			})
		}
	}
}

// TestTemplatesOfImages checks that jobs of one pod share the template of their image. The number of known images is limited.
func TestTemplatesOfImages(t *testing.T) {
	of := func(name, image string) *corev1.Pod {
		return pod(name, "cpu=1", annotated(GroupAnnotation, name), func(p *corev1.Pod) { p.Spec.Containers[0].Image = image })
	}
	c := cluster(t, group("g1", "q"), group("g2", "q"), of("g1", "a"), of("g2", "a"))
	first := c.Tasks["a/g1"].Template
	if c.Tasks["a/g2"].Template != first {
		t.Error("two jobs have a template each")
	}
	for i := range 3 * mostTemplates {
		name := fmt.Sprint("other-", i)
		c.Apply(upserts(of(name, name))...)
		if n := len(c.books.templates); n > mostTemplates {
			t.Fatalf("%d templates are known", n)
		}
	}
	if apply(t, c, upserts(of("g3", "a"))...); c.Tasks["a/g3"].Template == first {
		t.Error("a template is known of which nothing was seen for long")
	}
	checkTemplates(t, c)
}
