package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// noon is the time of these tests, a Monday.
func noon() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) }

// amountList parses "cpu=1 memory=2Gi".
func amountList(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(part, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return out
}

func aNode(name, allocatable string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Allocatable: amountList(allocatable), Capacity: amountList(allocatable)},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

// aQuota returns a ResourceQuota of namespace a.
func aQuota(name, hard, used string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"},
		Status:     corev1.ResourceQuotaStatus{Hard: amountList(hard), Used: amountList(used)},
	}
}

// anAnswer returns an answer of an extender about a group, or about the queue with that name if the URL is for queues.
func anAnswer(name, url string, of extender.Subject, says, refused string, at time.Time) *extender.Answer {
	a := &extender.Answer{ObjectMeta: metav1.ObjectMeta{Name: name}, URL: url, Of: of, At: metav1.NewTime(at)}
	if of.Kind != extender.Task {
		a.Says = says
		return a
	}
	a.Nodes = []extender.NodeAnswer{{Name: "n1", Refused: refused}, {Name: "n2", Score: 7}, {Name: "n3", Error: refused}}
	return a
}

// aMeasure returns the NodeMetrics of a node.
func aMeasure(node, usage string, at time.Time) *metricsv1beta1.NodeMetrics {
	return &metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: metav1.NewTime(at), Usage: amountList(usage)}
}

// aNuma returns the Numatopology of a node with two NUMA nodes of this many CPUs each.
func aNuma(node, policy, free string, of int) *nodeinfov1alpha1.Numatopology {
	o := &nodeinfov1alpha1.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: node}}
	o.Spec.Policies = map[nodeinfov1alpha1.PolicyName]string{
		nodeinfov1alpha1.CPUManagerPolicy: "static", nodeinfov1alpha1.TopologyManagerPolicy: policy,
	}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range 8 {
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{NUMANodeID: cpu / of, SocketID: cpu / of, CoreID: cpu}
	}
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: free}}
	return o
}

// aBudget returns a PodDisruptionBudget of namespace a.
func aBudget(name string, allowed int32, app string, gone ...string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status.DisruptionsAllowed, b.Status.DisruptedPods = allowed, map[string]metav1.Time{}
	for _, pod := range gone {
		b.Status.DisruptedPods[pod] = metav1.Time{}
	}
	return b
}

// aPod returns a Pending pod of ours, in namespace a and group g.
func aPod(name, requests string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "a", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
			Annotations: map[string]string{model.GroupAnnotation: "g"}, Labels: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "celsius",
			Containers:    []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amountList(requests)}}},
		},
	}
	for _, edit := range edits {
		edit(p)
	}
	if p.Spec.NodeName != "" && model.AsBound(p) != nil {
		delete(p.Annotations, model.RecordAnnotation)
	}
	return p
}

func runningOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

func inGroup(name string) func(*corev1.Pod) { return annotated(model.GroupAnnotation, name) }

func annotated(keysAndValues ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := 0; i < len(keysAndValues); i += 2 {
			p.Annotations[keysAndValues[i]] = keysAndValues[i+1]
		}
	}
}

func leaving(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: noon().Add(time.Minute)}
}

func aGroup(name, queue string, edits ...func(*v1beta1.PodGroup)) *v1beta1.PodGroup {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "a",
		CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
	}}
	g.Spec.Queue, g.Status.Phase = queue, v1beta1.PodGroupInqueue
	for _, edit := range edits {
		edit(g)
	}
	return g
}

func aQueue(name string, edits ...func(*v1beta1.Queue)) *v1beta1.Queue {
	q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.Weight = 1
	for _, edit := range edits {
		edit(q)
	}
	return q
}

// aCluster returns a cluster with the objects, which must have no mistakes.
func aCluster(t testing.TB, objects ...any) *model.Cluster {
	t.Helper()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	apply(t, c, objects...)
	return c
}

func apply(t testing.TB, c *model.Cluster, objects ...any) {
	t.Helper()
	var deltas []model.Delta
	for _, o := range objects {
		deltas = append(deltas, model.Delta{Object: o})
	}
	for _, err := range c.Apply(deltas...) {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

// policyText returns a policy with one tier of one inline table, named mine.
func policyText(table string) string {
	const head = "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n  pipeline: " +
		"[allocate]\n  tiers:\n  - name: only\n    tables:\n    - name: mine\n      inline:\n"
	return head + indented(table, "        ")
}

func indented(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

// loaded compiles a text without mistakes.
func loaded(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, issues := load(t, text)
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	return p
}

func load(t testing.TB, text string) (*policy.Policy, source.Issues) {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if len(docs) != 1 || issues.Err() != nil {
		t.Fatalf("%d documents: %v\n%s", len(docs), issues, text)
	}
	return policy.Load(docs[0])
}

// begun returns a session of a policy with the given table, whose cycle began at noon.
func begun(t testing.TB, c *model.Cluster, table string) *Session {
	t.Helper()
	s := New(c, loaded(t, policyText(table)))
	s.Begin(noon())
	return s
}
