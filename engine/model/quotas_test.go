package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

func quota(namespace, name, hard, used string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Status:     corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)},
	}
}

// quotasOf writes the quotas of each namespace in their stored order.
func quotasOf(c *Cluster) string {
	var b strings.Builder
	for _, namespace := range sortedKeys(c.Quotas) {
		for _, q := range c.Quotas[namespace] {
			fmt.Fprintf(&b, "%s/%s: %s of %s\n", namespace, q.Name, c.Dims.Text(q.Used), c.Dims.Text(q.Hard))
		}
	}
	return b.String()
}

func TestQuotas(t *testing.T) {
	c := cluster(t, quota("a", "y", "cpu=4 requests.memory=1Gi", "cpu=1"), quota("b", "x", "pods=3", ""), quota("a", "x", "cpu=2", ""),
		node("n", "cpu=1"))
	check(t, c)
	want := "a/x: nothing of cpu 2\na/y: cpu 1 of cpu 4, requests.memory 1Gi\nb/x: nothing of pods 3\n"
	if diff := cmp.Diff(want, quotasOf(c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	apply(t, c, Delta{Upsert, quota("a", "y", "cpu=9", "cpu=8")}, Delta{Delete, quota("a", "x", "", "")},
		Delta{Delete, quota("b", "x", "", "")}, Delta{Delete, quota("b", "never", "", "")})
	check(t, c)
	if diff := cmp.Diff("a/y: cpu 8 of cpu 9\n", quotasOf(c)); diff != "" {
		t.Errorf("after changes (-want +got)\n%s", diff)
	}
	errs := c.Apply(upserts(quota("", "x", "", ""), quota("a", "y", "cpu=-1", ""))...)
	if got := fmt.Sprint(errs); got !=
		"[ResourceQuota /x: metadata.namespace: is missing ResourceQuota a/y: status.hard[cpu]: -1 is below 0]" {
		t.Error(got)
	}
	if got := quotasOf(c); got != "" {
		t.Errorf("one that cannot be read any more still counts: %s", got)
	}
}

// TestQuotaRequest checks that a request to quotas uses their names. An unknown name is left out, and costs no column.
func TestQuotaRequest(t *testing.T) {
	c := cluster(t, quota("a", "x", "requests.cpu=4 count/pods=9", ""), group("none", "q"), group("g", "q", func(g *v1beta1.PodGroup) {
		amounts := list("cpu=2 requests.cpu=2 limits.cpu=3 count/pods=4")
		g.Spec.MinResources = &amounts
	}), pod("alone", "", annotated(GroupAnnotation, "nobody")))
	if got := c.Dims.Text(c.QuotaRequest(c.Jobs["a/g"])); got != "cpu 2, count/pods 4, requests.cpu 2" {
		t.Error(got)
	}
	if got := c.Dims.Text(c.Jobs["a/g"].MinResources); got != "cpu 2" {
		t.Errorf("minResources have names that no node has: %s", got)
	}
	for _, job := range []string{"a/none", "~a/alone"} {
		if c.QuotaRequest(c.Jobs[job]) != nil {
			t.Errorf("%s, which reserves nothing, asks something of quotas", job)
		}
	}
}

func grouped(name, parent string, required ...string) *v1beta1.Queue {
	q := queue(name)
	q.Spec.Parent = parent
	if required != nil {
		q.Spec.Affinity = &v1beta1.Affinity{NodeGroupAffinity: &v1beta1.NodeGroupAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required,
		}}
	}
	return q
}

func TestNodeGroupsInherited(t *testing.T) {
	c := cluster(t, grouped("root", "", "g0"), grouped("a", "root", "g1"), grouped("b", "a"), grouped("c", "b"), grouped("d", "c", "g4"),
		grouped("e", ""), grouped("lost", "nowhere"), grouped("x", "y"), grouped("y", "x"))
	empty := queue("empty")
	empty.Spec.Parent, empty.Spec.Affinity = "a", &v1beta1.Affinity{}
	apply(t, c, upserts(empty)...)
	got := map[string]string{}
	for name, q := range c.Queues {
		got[name] = "none"
		if g := c.NodeGroupsInherited(q); g != nil {
			got[name] = strings.Join(g.Required, " ")
		}
	}
	want := map[string]string{
		"root": "g0", "a": "g1", "b": "g1", "c": "g1", "d": "g4", "e": "g0", "lost": "none", "x": "none", "y": "none",
		"empty": "", // an affinity without a group is still an affinity
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNodeGroupLimits(t *testing.T) {
	for _, test := range []struct{ text, want, err string }{
		{"", "", ""},
		{`{"g": {"cpu": "2", "memory": 1024}, "h": {}}`, "g: cpu 2, memory 1Ki; h: nothing", ""},
		{`null`, "", ""},
		{`{"g": {"cpu": "much"}}`, "", "annotation volcano.sh/nodegroup-resource-limits must be JSON such as"},
		{`g: 3`, "", "annotation volcano.sh/nodegroup-resource-limits must be JSON such as"},
	} {
		q := queue("q")
		q.Annotations = map[string]string{NodeGroupLimitsAnnotation: test.text}
		c := cluster(t, q)
		var parts []string
		for _, group := range sortedKeys(c.Queues["q"].NodeGroupLimits) {
			parts = append(parts, group+": "+c.Dims.Text(c.Queues["q"].NodeGroupLimits[group]))
		}
		if got := strings.Join(parts, "; "); got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
		if err := c.Queues["q"].NodeGroupLimitsError; (err == nil) != (test.err == "") || err != nil &&
			!strings.HasPrefix(err.Error(), test.err) {
			t.Errorf("%s: error %v", test.text, err)
		}
	}
}
