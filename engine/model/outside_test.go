package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"pgregory.net/rapid"
)

func disruptionBudget(namespace, name string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	b.Spec.Selector = &metav1.LabelSelector{}
	b.Status.DisruptionsAllowed = allowed
	return b
}

func load(node, usage string, second int64) *metricsv1beta1.NodeMetrics {
	return &metricsv1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node}, Usage: list(usage), Timestamp: metav1.NewTime(time.Unix(second, 0)),
	}
}

// outside writes the budgets and the measured load, as they are stored by name and as the nodes have them.
func outside(c *Cluster) string {
	var b strings.Builder
	for _, namespace := range sortedKeys(c.Budgets.Of) {
		for _, x := range c.Budgets.Of[namespace] {
			fmt.Fprintf(&b, "%s/%s allows %d\n", namespace, x.Name, x.Allowed)
		}
	}
	for _, node := range sortedKeys(c.Measures) {
		fmt.Fprintf(&b, "%s uses %v at %d\n", node, c.Measures[node].Use, c.Measures[node].At.Unix())
	}
	for _, row := range c.Nodes.ByOrder() {
		if n := c.Nodes.Rows[row]; n.Measure != nil {
			fmt.Fprintf(&b, "node %s has %v\n", n.Name, n.Measure.Use)
		}
	}
	return b.String()
}

func anyBudget(t *rapid.T) any {
	return disruptionBudget(draw(t, "namespace", "a", "b"), draw(t, "budget", "x", "y", "z"), draw(t, "allowed", int32(0), 2))
}

func anyLoad(t *rapid.T) any {
	return load(draw(t, "node", "n1", "n2", "n3"), draw(t, "usage", "cpu=1 memory=1", "cpu=2 memory=1", "cpu=1"), draw(t, "at", int64(1), 2))
}

// TestBudgets checks that budgets are in order by namespace and name, and that deleted budgets leave nothing behind.
func TestBudgets(t *testing.T) {
	c := cluster(t, disruptionBudget("a", "y", 1), disruptionBudget("b", "x", 2), disruptionBudget("a", "x", 0))
	check(t, c)
	if diff := cmp.Diff("a/x allows 0\na/y allows 1\nb/x allows 2\n", outside(c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	apply(t, c, Delta{Upsert, disruptionBudget("a", "y", 3)}, Delta{Delete, disruptionBudget("a", "x", 0)},
		Delta{Delete, disruptionBudget("b", "x", 0)}, Delta{Delete, disruptionBudget("b", "never", 0)})
	check(t, c)
	if diff := cmp.Diff("a/y allows 3\n", outside(c)); diff != "" {
		t.Errorf("after changes (-want +got)\n%s", diff)
	}
	c.Budgets.Of["a"] = append(c.Budgets.Of["a"], c.Budgets.Of["a"][0])
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "budget a/y is out of place") {
		t.Errorf("a budget is there twice: %v", err)
	}
	wrong := disruptionBudget("a", "y", 1)
	wrong.Spec.Selector.MatchLabels = map[string]string{"not a label": ""}
	if errs := fmt.Sprint(cluster(t).Apply(upserts(wrong)...)); !strings.Contains(errs, "PodDisruptionBudget a/y: spec.selector:") ||
		!strings.Contains(errs, "keeps every pod of its namespace") {
		t.Error(errs)
	}
}

// TestMeasures checks that the measured load belongs to its node, whichever comes first. Only a new value touches the node. A value that
// makes no sense counts as not measured.
func TestMeasures(t *testing.T) {
	c := cluster(t, load("n", "cpu=1 memory=2", 5), node("n", "cpu=4"), load("gone", "cpu=1 memory=1", 5))
	check(t, c)
	want := "gone uses [1000 1] at 5\nn uses [1000 2] at 5\nnode n has [1000 2]\n"
	if diff := cmp.Diff(want, outside(c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	version := func() uint64 { return c.Nodes.Version[c.Nodes.Index["n"]] }
	before := version()
	apply(t, c, Delta{Upsert, load("n", "cpu=1 memory=2", 5)})
	if version() != before {
		t.Error("the same measurement touches its node")
	}
	apply(t, c, Delta{Upsert, load("n", "cpu=1 memory=2", 6)})
	if version() == before {
		t.Error("a new measurement does not touch its node")
	}
	apply(t, c, Delta{Upsert, node("n", "cpu=9")}, Delta{Delete, load("gone", "", 0)})
	if diff := cmp.Diff("n uses [1000 2] at 6\nnode n has [1000 2]\n", outside(c)); diff != "" {
		t.Errorf("after changes (-want +got)\n%s", diff)
	}
	timeless := load("n", "cpu=-1", 0)
	timeless.Timestamp = metav1.Time{}
	errs := fmt.Sprint(c.Apply(upserts(timeless)...))
	if errs != "[NodeMetrics n: usage[cpu]: -1 is below 0 NodeMetrics n: usage[memory]: is missing "+
		"NodeMetrics n: timestamp: is missing: load that was measured at no time is of no use]" {
		t.Error(errs)
	}
	if got := outside(c); got != "" {
		t.Errorf("what makes no sense counts: %s", got)
	}
}
