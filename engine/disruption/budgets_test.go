package disruption_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/disruption"
	"github.com/celsius-scheduler/celsius/engine/model"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

func pod(name, app string, leaves bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"app": app}}}
	p.Spec.NodeName, p.Spec.SchedulerName, p.Status.Phase = "n", "celsius", corev1.PodRunning
	if leaves {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func budget(name string, allowed int32, selector *metav1.LabelSelector, gone ...string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	b.Spec.Selector, b.Status.DisruptionsAllowed, b.Status.DisruptedPods = selector, allowed, map[string]metav1.Time{}
	for _, name := range gone {
		b.Status.DisruptedPods[name] = metav1.Time{}
	}
	return b
}

func app(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
}

// plain returns how many pods a budget lets go. It counts over all tasks.
func plain(c *model.Cluster, b *model.Budget) int64 {
	left := b.Allowed
	for _, t := range c.Tasks {
		if (t.Status == model.Releasing || t.Status == model.Gone) && t.Object.DeletionTimestamp == nil && b.Holds(t) {
			left--
		}
	}
	return left
}

// TestBudgets checks the counts while a cluster changes, inside and outside of transactions. They equal a count over all tasks.
func TestBudgets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := model.NewCluster(model.Options{})
		x, txn := disruption.New(c), c.Begin()
		one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
		apply := func(op model.Op, o any) {
			txn.Commit()
			c.CloseCycle()
			for _, err := range c.Apply(model.Delta{Op: op, Object: o}) {
				t.Fatal(err)
			}
		}
		apply(model.Upsert, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		op := func() model.Op {
			return rapid.SampledFrom([]model.Op{model.Upsert, model.Upsert, model.Upsert, model.Delete}).Draw(t, "op")
		}
		t.Repeat(map[string]func(*rapid.T){
			"pod": func(*rapid.T) { apply(op(), pod(one("pod", "p", "q", "r"), one("app", "x", "y"), yes("leaves"))) },
			"budget": func(*rapid.T) {
				selector := rapid.SampledFrom([]*metav1.LabelSelector{app("x"), app("y"), {}, nil}).Draw(t, "selector")
				apply(op(), budget(one("budget", "b1", "b2"), rapid.Int32Range(0, 2).Draw(t, "allowed"), selector, one("gone", "p", "none")))
			},
			"evict": func(*rapid.T) {
				if task := c.Tasks["a/"+one("pod", "p", "q", "r")]; task != nil && task.Status == model.Running {
					txn.Evict(task)
				}
			},
			"leave": func(*rapid.T) {
				if task := c.Tasks["a/"+one("pod", "p", "q", "r")]; task != nil && task.Status == model.Running {
					txn.Leave(task)
				}
			},
			"undo": func(*rapid.T) { txn.Rollback(0) },
			"": func(t *rapid.T) {
				for _, b := range c.Budgets.Of["a"] {
					if got, want := x.Left(b), plain(c, b); got != want {
						t.Fatalf("budget %s lets %d go, want %d", b.Name, got, want)
					}
				}
			},
		})
	})
}

// TestWhichBudgets checks which pods a budget covers: those that its selector names, except those that its status already counts as gone. A
// budget allows nothing until its status describes its present version.
func TestWhichBudgets(t *testing.T) {
	t.Parallel()
	c := model.NewCluster(model.Options{})
	stale := budget("stale", 3, app("x"))
	stale.Generation = 2
	wrong := budget("wrong", 3, &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}})
	other := budget("other", 1, &metav1.LabelSelector{})
	other.Namespace = "b"
	var errs []error
	for _, o := range []any{
		pod("p", "x", false), budget("all", 1, &metav1.LabelSelector{}), budget("none", 1, nil), budget("x", 2, app("x")),
		budget("y", 1, app("y")), budget("gone", 1, app("x"), "p"), stale, wrong, other,
	} {
		errs = append(errs, c.Apply(model.Delta{Object: o})...)
	}
	if len(errs) != 1 {
		t.Errorf("errors %v, want that of the selector", errs)
	}
	x, got := disruption.New(c), ""
	for _, b := range x.Of(c.Tasks["a/p"]) {
		got += fmt.Sprint(b.Name, " ", x.Left(b), "; ")
	}
	if want := "all 1; stale 0; wrong 0; x 2; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
