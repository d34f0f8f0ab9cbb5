package engine_test

import (
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

func stillNode(allocatable string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Allocatable: list(allocatable), Capacity: list(allocatable),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// stillWorld makes three jobs that are too large for the only node, and the queues that they take in turns. The youngest job is urgent.
func stillWorld(t *testing.T, queues ...string) *model.Cluster {
	t.Helper()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	apply := func(o any) {
		for _, err := range c.Apply(model.Delta{Object: o}) {
			t.Fatal(err)
		}
	}
	for _, queue := range queues {
		apply(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: v1beta1.QueueSpec{Weight: 1}})
	}
	apply(stillNode("cpu=4 memory=8Gi pods=8"))
	for i, created := range []int{40, 0, 10} {
		name := fmt.Sprintf("j%d", i)
		g := &v1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", CreationTimestamp: at(created)},
			Spec:       v1beta1.PodGroupSpec{Queue: queues[i%len(queues)], MinMember: 1},
		}
		if i == 0 {
			g.Labels = map[string]string{"urgent": "yes"}
		}
		apply(g)
		apply(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Namespace: "a", CreationTimestamp: at(created), Annotations: map[string]string{
				"scheduling.k8s.io/group-name": name,
			}},
			Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{
				{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu=9")}},
			}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		})
	}
	return c
}

// places returns the places of the jobs in a plan.
func places(plan *model.Plan) map[string]int {
	out := map[string]int{}
	for _, w := range plan.Waits {
		out[w.Job] = w.Place
	}
	return out
}

// aging returns a policy whose first order of jobs is by an expression, the largest value first.
func aging(t *testing.T, by string) *policy.Policy {
	t.Helper()
	return compile(t, "aging", policyOf("mode: Active", fmt.Sprintf(`name: aging
inline:
  jobOrder:
  - {name: aging, by: %q, descending: true}`, by), "name: predicates", "name: gang")).policies[0]
}

// TestWhoErrsWithTimeIsNamedInOrder checks jobs of several queues that err only because of time. The plan names the job of the first queue,
// whatever the order of the map of queues. This holds in a cycle without other changes, and in one that tries the jobs again.
func TestWhoErrsWithTimeIsNamedInOrder(t *testing.T) {
	t.Parallel()
	p := aging(t, "1 / (2 - (now - job.createdAt).getMinutes())")
	for i := range 40 {
		c := stillWorld(t, "c", "a", "b")
		d := engine.NewDecider(session.New(c, p), nil)
		for _, second := range []int{50, 54, 55} {
			d.Cycle(at(second).Time)
		}
		if i%2 == 0 {
			for _, err := range c.Apply(model.Delta{Object: stillNode("cpu=5 memory=8Gi pods=8")}) {
				t.Fatal(err)
			}
		}
		if errs := d.Cycle(at(165).Time).Errors; len(errs) != 1 || errs[0].Object != "a/j1" || errs[0].Count != 6 {
			t.Fatalf("want one error, of each job in two steps, first of a/j1: %+v", errs)
		}
	}
}

// TestOrderMovesWithTimeAlone checks that time alone lets jobs overtake each other. No predicate row is evaluated again for that.
func TestOrderMovesWithTimeAlone(t *testing.T) {
	t.Parallel()
	p := aging(t, "('urgent' in job.labels ? 3 : (now - job.createdAt).getMinutes())")
	s := session.New(stillWorld(t, "q"), p)
	d := engine.NewDecider(s, nil)
	var first *model.Plan
	evaluated := func() (n uint64) {
		for _, r := range p.Rules(policy.Predicates) {
			n += s.Evaluated(r)
		}
		return n
	}
	before := uint64(0)
	for _, step := range []struct {
		second int
		want   map[string]int
		same   bool
	}{
		{50, map[string]int{"a/j0": 1, "a/j1": 2, "a/j2": 3}, false},
		{54, map[string]int{"a/j0": 1, "a/j1": 2, "a/j2": 3}, false}, // the first cycle has admitted them
		{55, map[string]int{"a/j0": 1, "a/j1": 2, "a/j2": 3}, true},
		{185, map[string]int{"a/j0": 2, "a/j1": 1, "a/j2": 3}, false}, // 3, 3, 2: the older job has reached the key of the urgent one
		{186, map[string]int{"a/j0": 2, "a/j1": 1, "a/j2": 3}, true},
		{191, map[string]int{"a/j0": 3, "a/j1": 1, "a/j2": 2}, false}, // 3, 3, 3
		{235, map[string]int{"a/j0": 3, "a/j1": 1, "a/j2": 2}, true},
	} {
		plan := d.Cycle(at(step.second).Time)
		if diff := gocmp.Diff(step.want, places(plan)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", step.second, diff)
		}
		if plan.Same != step.same {
			t.Errorf("after %d s: the plan is the same: %v, want %v", step.second, plan.Same, step.same)
		}
		if step.second < 55 {
			first, before = plan, evaluated()
		}
	}
	if n := evaluated(); n != before || n == 0 {
		t.Errorf("predicates were evaluated %d times in the first cycles, and %d times after the last", before, n)
	}
	if plan := d.Cycle(at(235).Add(time.Hour)); plan.Now != at(235).Add(time.Hour) || first.Now != at(54).Time {
		t.Errorf("the plans are of %v and %v", plan.Now, first.Now)
	}
}

// TestJobsGoWhileTheOrderMoves checks that a job can go while time changes the order of the waiting jobs.
func TestJobsGoWhileTheOrderMoves(t *testing.T) {
	t.Parallel()
	p := aging(t, "('urgent' in job.labels ? 3 : (now - job.createdAt).getMinutes())")
	c := stillWorld(t, "q")
	d := engine.NewDecider(session.New(c, p), nil)
	for _, second := range []int{50, 54, 55} {
		d.Cycle(at(second).Time)
	}
	var gone []model.Delta
	for _, task := range c.Jobs["a/j1"].Tasks {
		gone = append(gone, model.Delta{Op: model.Delete, Object: task.Object})
	}
	gone = append(gone, model.Delta{Op: model.Delete, Object: &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "j1", Namespace: "a"}}})
	if errs := c.Apply(gone...); len(errs) > 0 {
		t.Fatal(errs[0])
	}
	for _, step := range []struct {
		second int
		want   map[string]int
	}{{185, map[string]int{"a/j0": 1, "a/j2": 2}}, {251, map[string]int{"a/j0": 2, "a/j2": 1}}} {
		if diff := gocmp.Diff(step.want, places(d.Cycle(at(step.second).Time))); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", step.second, diff)
		}
	}
}

// TestAJobMadeAnewGoesBehind checks a waiting job whose PodGroup was made again. It goes behind jobs that are now older, although the
// remembered order has it before them.
func TestAJobMadeAnewGoesBehind(t *testing.T) {
	t.Parallel()
	c := stillWorld(t, "q")
	p := compile(t, "ages", policyOf("mode: Active", "name: predicates", "name: gang")).policies[0]
	d := engine.NewDecider(session.New(c, p), nil)
	step := func(second int, want map[string]int) {
		t.Helper()
		if diff := gocmp.Diff(want, places(d.Cycle(at(second).Time))); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", second, diff)
		}
	}
	before := map[string]int{"a/j1": 1, "a/j2": 2, "a/j0": 3}
	step(50, before)
	step(51, before)
	anew := &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "j2", Namespace: "a", CreationTimestamp: at(40)},
		Spec:       v1beta1.PodGroupSpec{Queue: "q", MinMember: 1},
	}
	anew.Status.Phase = v1beta1.PodGroupInqueue
	for _, err := range c.Apply(model.Delta{Object: anew}) {
		t.Fatal(err)
	}
	step(52, map[string]int{"a/j1": 1, "a/j0": 2, "a/j2": 3})
}

// TestAPromiseEndsWithTimeAlone shows that time alone ends the promise of a PodGroup without pods. Until then the plan stays the same.
func TestAPromiseEndsWithTimeAlone(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{
		"overcommit": "{name: overcommit, params: {promiseShare: 1, factor: 1}}",
		"proportion": "{name: proportion, params: {promiseShare: 1}}",
		"capacity":   "{name: capacity, params: {promiseShare: 1}}",
		"a tree":     "{name: capacity, params: {promiseShare: 1, hierarchy: true}}",
	} {
		p := compile(t, "promises", policyOf("pipeline: [enqueue, allocate]", table, "name: predicates", "name: gang")).policies[0]
		c := model.NewCluster(model.Options{Volumes: volume.New})
		apply := func(o any) {
			for _, err := range c.Apply(model.Delta{Object: o}) {
				t.Fatal(err)
			}
		}
		apply(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1beta1.QueueSpec{Weight: 1, Capability: list("cpu=4 memory=8Gi")}})
		apply(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "root"}})
		apply(stillNode("cpu=4 memory=8Gi pods=8"))
		least := list("cpu=4")
		for i, phase := range []v1beta1.PodGroupPhase{v1beta1.PodGroupInqueue, v1beta1.PodGroupPending} {
			apply(&v1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("j%d", i), Namespace: "a", CreationTimestamp: at(0)},
				Spec:       v1beta1.PodGroupSpec{Queue: "q", MinMember: 1, MinResources: &least},
				Status:     v1beta1.PodGroupStatus{Phase: phase},
			})
		}
		d := engine.NewDecider(session.New(c, p), nil)
		for _, step := range []struct {
			second int
			same   bool
			admits int
		}{{1, false, 0}, {2, true, 0}, {299, true, 0}, {300, false, 1}} {
			plan := d.Cycle(at(step.second).Time)
			if plan.Same != step.same || len(plan.Admits) != step.admits {
				t.Errorf("%s: after %d s the plan is the same: %t, and %d jobs are let in; want %t, %d; waits %+v",
					name, step.second, plan.Same, len(plan.Admits), step.same, step.admits, plan.Waits)
			}
		}
	}
}
