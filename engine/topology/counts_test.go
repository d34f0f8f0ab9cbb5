package topology

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// walk is one cluster, the counts that followed it from the beginning, and the transaction of the current cycle.
type walk struct {
	c       *model.Cluster
	counts  *Counts
	txn     *model.Txn
	saves   []model.Savepoint
	created int
}

func beginning(c *model.Cluster) *Counts {
	memos := map[*model.Task]*TaskMemo{}
	return New(c, func(t *model.Task) *TaskMemo {
		if memos[t] == nil {
			memos[t] = &TaskMemo{}
		}
		return memos[t]
	})
}

// TestCounts walks at random over clusters. It compares counts that follow each change with counts from scratch. The counts that follow
// changes add up the terms of other tasks by domain. The counts from scratch read each tally.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{c: model.NewCluster(model.Options{})}
		w.counts, w.txn = beginning(w.c), w.c.Begin()
		w.counts.addedFrom = 1
		t.Repeat(rapid.StateMachineActions(w))
	})
}

func draw[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func (w *walk) apply(t *rapid.T, d model.Delta) {
	w.saves = nil
	w.txn.Commit()
	w.c.CloseCycle()
	for _, err := range w.c.Apply(d) {
		t.Fatal(err)
	}
}

func (w *walk) Node(t *rapid.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: draw(t, "node", "n1", "n2", "n3", "n4"), Labels: map[string]string{}}}
	n.Labels[corev1.LabelHostname] = n.Name
	if zone := draw(t, "zone", "", "east", "west"); zone != "" {
		n.Labels["zone"] = zone
	}
	if draw(t, "tainted", false, false, true) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, image := range draw(t, "images", nil, []string{"x"}, []string{"x", "y"}) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: 1 << 28})
	}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "pods": resource.MustParse("9")}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: draw(t, "ready", corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse)},
	}
	w.apply(t, model.Delta{Op: draw(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete), Object: n})
}

func (w *walk) Namespace(t *rapid.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: draw(t, "namespace", "a", "b"), Labels: map[string]string{
		"team": draw(t, "team", "x", "y"),
	}}}
	w.apply(t, model.Delta{Object: n})
}

func (w *walk) Pod(t *rapid.T) {
	w.created++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: draw(t, "pod", "p1", "p2", "p3", "p4", "p5"), Namespace: draw(t, "namespace", "a", "a", "b"), UID: types.UID(fmt.Sprint(w.created)),
		Labels: map[string]string{"app": draw(t, "app", "a", "b")}, Annotations: map[string]string{model.GroupAnnotation: "g"},
	}}
	p.Spec.SchedulerName = "celsius"
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: draw(t, "image", "x", "y")}}
	terms(t, p)
	if node := draw(t, "runs", "", "", "n1", "n2", "n3"); node != "" {
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		if draw(t, "leaves", false, false, true) {
			p.DeletionTimestamp = &metav1.Time{}
		}
	}
	w.apply(t, model.Delta{Op: draw(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete), Object: p})
}

// terms gives a pod terms about the pods around it.
func terms(t *rapid.T, p *corev1.Pod) {
	who := func(name string) *metav1.LabelSelector {
		return draw(t, name, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "b"},
		},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}},
			&metav1.LabelSelector{})
	}
	term := func(name string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			TopologyKey: draw(t, name+" over", "zone", corev1.LabelHostname), LabelSelector: who(name + " of"),
			NamespaceSelector: draw(t, name+" in", nil, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}),
		}
	}
	a := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	p.Spec.Affinity = a
	switch draw(t, "terms", "", "", "affinity", "anti-affinity", "preferred") {
	case "affinity":
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term("affinity")}
	case "anti-affinity":
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term("anti-affinity")}
	case "preferred":
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: 5, PodAffinityTerm: term("preferred")},
		}
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: 3, PodAffinityTerm: term("avoided")},
		}
	}
	for range draw(t, "constraints", 0, 0, 1, 2) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: draw(t, "spread over", "zone", corev1.LabelHostname), LabelSelector: who("spread of"),
			WhenUnsatisfiable: draw(t, "mode", corev1.DoNotSchedule, corev1.ScheduleAnyway),
			NodeTaintsPolicy:  draw(t, "taints", nil, new(corev1.NodeInclusionPolicyHonor)),
		})
	}
}

// task draws a task that is on a node, or one that is not; nil: no such task exists.
func (w *walk) task(t *rapid.T, placed bool) *model.Task {
	var out []*model.Task
	for _, task := range w.c.TasksByKey() {
		if placed == (task.Node != model.NoNode) && (task.Status == model.Pending || task.Status == model.Allocated ||
			task.Status == model.Pipelined) {
			out = append(out, task)
		}
	}
	if len(out) == 0 {
		t.Skip("no such task")
	}
	return rapid.SampledFrom(out).Draw(t, "task")
}

func (w *walk) Place(t *rapid.T) {
	var rows []int32
	for row, n := range w.c.Nodes.Rows {
		if n != nil {
			rows = append(rows, int32(row))
		}
	}
	if len(rows) == 0 {
		t.Skip("no nodes")
	}
	task, row := w.task(t, false), rapid.SampledFrom(rows).Draw(t, "row")
	if rapid.Bool().Draw(t, "later") {
		w.txn.Pipeline(task, row, nil)
	} else {
		w.txn.Allocate(task, row, nil)
	}
}

func (w *walk) Unplace(t *rapid.T) { w.txn.Unplace(w.task(t, true)) }

func (w *walk) Mark(*rapid.T) { w.saves = append(w.saves, w.txn.Mark()) }

func (w *walk) Rollback(t *rapid.T) {
	if len(w.saves) == 0 {
		t.Skip("nothing is marked")
	}
	i := rapid.IntRange(0, len(w.saves)-1).Draw(t, "savepoint")
	w.txn.Rollback(w.saves[i])
	w.saves = w.saves[:i]
}

func (w *walk) Check(t *rapid.T) {
	anew := beginning(w.c)
	if diff := cmp.Diff(w.answers(anew), w.answers(w.counts)); diff != "" {
		t.Fatalf("what was followed is not what is counted from the beginning (-anew +followed):\n%s", diff)
	}
	followed := byLongKey(w.counts)
	for key, ta := range byLongKey(anew) {
		if followed[key] == nil {
			t.Fatalf("no tally %q is followed", key)
		}
		if got, want := named(followed[key]), named(ta); !cmp.Equal(got, want) {
			t.Fatalf("tally %q: %v, counted from the beginning %v", key, got, want)
		}
	}
}

// shortName matches the places in a tally's key where a number stands for a text.
var shortName = regexp.MustCompile(`(?m)^spread \d+|^\d+\ntogether$`)

// byLongKey returns the tallies by keys in which texts replace the numbers of long texts. The numbers differ between Counts that met the
// texts in another order.
func byLongKey(p *Counts) map[string]*Tally {
	texts := map[string]string{}
	for text, number := range p.names {
		texts[number] = text
	}
	out := map[string]*Tally{}
	for key, ta := range p.tallies {
		out[shortName.ReplaceAllStringFunc(key, func(found string) string {
			number := regexp.MustCompile(`\d+`).FindString(found)
			return strings.Replace(found, number, "<"+texts[number]+">", 1)
		})] = ta
	}
	return out
}

// named returns the counts of a tally by the value of the domain.
func named(ta *Tally) map[string]int64 {
	out := map[string]int64{"": ta.total}
	for value, d := range ta.where.index {
		if n := ta.counts.at(d); n != 0 {
			out[value] = n
		}
	}
	return out
}

// answers returns the answers of the counts for every task and node.
func (w *walk) answers(counts *Counts) map[string]string {
	out := map[string]string{}
	for _, t := range w.c.TasksByKey() {
		co := counts.Of(t)
		out[t.Key] = fmt.Sprint(co.HasAffinity(), co.HasImages(), co.Images(), co.SizesAmong(w.c.Nodes.ByOrder()))
		for _, row := range w.c.Nodes.ByOrder() {
			out[t.Key+" on "+w.c.Nodes.Rows[row].Name] = fmt.Sprint(counts.AffinityFits(co, t, row), counts.AffinityScore(co, t, row),
				counts.SpreadFits(co, t, row), co.SpreadApplies(row),
				counts.SpreadScore(co, t, row, nil))
		}
	}
	for _, image := range []string{"x", "y"} {
		with, all := counts.ImageNodes(image)
		out[image] = fmt.Sprint(with, all)
	}
	return out
}
