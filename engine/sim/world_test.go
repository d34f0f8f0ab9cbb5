package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

const smallWorld = `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes:
- {name: n1, cpu: 4, gpus: 2}
jobs:
- {name: j, replicas: 2, cpu: 1}
- {name: share, gpuMilli: 500}
`

// statuses returns the status of every pod in the model.
func statuses(w *World) map[string]string {
	out := map[string]string{}
	for key, t := range w.Cluster().Tasks {
		out[key] = t.Status.String()
	}
	return out
}

// smallPlan returns a plan that binds j-0 and share-0, with the statuses that a cycle would compute.
func smallPlan(now time.Time) *model.Plan {
	return &model.Plan{
		Policy: "default", Now: now,
		Admits: []model.Admit{{Job: "default/j", Queue: "default"}},
		Binds: []model.Bind{
			{Task: "default/j-0", Job: "default/j", Queue: "default", Node: "n1", Action: "allocate"},
			{Task: "default/share-0", Job: "default/share", Queue: "default", Node: "n1", GPUs: []int{1}, Action: "allocate"},
		},
		Jobs: []*model.JobStatus{
			{Job: "default/j", Phase: "Inqueue", Condition: &model.Condition{
				Type: "Unschedulable", Status: "True", Reason: "NotEnoughResources",
				Message: "1/2",
			}},
			{Job: "default/share", Phase: "Running", Running: 1},
			{Job: "~default/x", Phase: "Pending"},
		},
		Queues: []model.QueueStatus{{Queue: "default", Allocated: map[string]string{"cpu": "1", "pods": "2"}}},
	}
}

func TestWorldObeysThePlan(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, smallWorld)
	if err := w.obey(smallPlan(w.Now())); err != nil {
		t.Fatal(err)
	}
	check(t, w)
	want := map[string]string{"default/j-0": "Bound", "default/j-1": "Pending", "default/share-0": "Bound"}
	if diff := cmp.Diff(want, statuses(w)); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if held := w.Cluster().Tasks["default/share-0"].GPUs; len(held) != 1 || held[0] != 1 {
		t.Errorf("share-0 holds %v, want device 1", held)
	}
	g := w.objects[manifest.ID{Kind: "PodGroup", Namespace: "default", Name: "j"}].(*schedulingv1beta1.PodGroup)
	if g.Status.Phase != "Inqueue" || len(g.Status.Conditions) != 1 || g.Status.Conditions[0].Message != "1/2" {
		t.Errorf("status of j: %+v", g.Status)
	}
	q := w.objects[manifest.ID{Kind: "Queue", Namespace: "", Name: "default"}].(*schedulingv1beta1.Queue)
	if diff := cmp.Diff(map[string]string{"cpu": "1", "pods": "2"}, quantities(q.Status.Allocated)); diff != "" {
		t.Errorf("allocated (-want +got)\n%s", diff)
	}
	if q.Status.Inqueue != 1 || q.Status.Running != 1 || q.Status.Pending != 0 {
		t.Errorf("counts of the queue: %+v", q.Status)
	}
	if err := w.obey(&model.Plan{Binds: []model.Bind{{Task: "default/none"}}}); err == nil {
		t.Error("a bind of a pod that is not there must be an error")
	}
}

// TestLeavingMember checks that the status of a PodGroup does not change while a gang only lacks a member that is terminating. If another
// pod waits to replace it, the status reports it.
func TestLeavingMember(t *testing.T) {
	t.Parallel()
	path, data := scenarioFile(t, "lifecycle/a_gang_whose_member_is_leaving")
	r, err := RunScenario(path, data, ScenarioOptions{World: withVolumes()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, plan := range r.Plans {
		said := "nothing new"
		if c := plan.Jobs[0].Condition; c != nil {
			said = c.Type
		}
		got = append(got, plan.Jobs[0].Phase+", "+said)
	}
	if diff := cmp.Diff([]string{"Running, nothing new", "Unknown, Unschedulable", "Unknown, Unschedulable"}, got); diff != "" {
		t.Errorf("phase and condition by cycle (-want +got):\n%s", diff)
	}
}

func TestPodsRunAndGo(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, smallWorld)
	if err := w.obey(smallPlan(w.Now())); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name string
		do   func() error
		want string // of j-0; "": it is gone
	}{
		{"a bound pod runs when time passes", func() error { return w.Advance(time.Second) }, "Running"},
		{"a deleted pod is releasing", func() error { return w.Delete("j-0") }, "Releasing"},
		{"for its grace period", func() error { return w.Advance(29 * time.Second) }, "Releasing"},
		{"and deleting it again changes nothing", func() error { return w.Delete("default/j-0") }, "Releasing"},
		{"then it is gone", func() error { return w.Advance(time.Second) }, ""},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		check(t, w)
		if got := statuses(w)["default/j-0"]; got != step.want {
			t.Fatalf("%s: j-0 is %q, want %q", step.name, got, step.want)
		}
	}
	if err := w.Delete("j-1"); err != nil {
		t.Fatal(err)
	}
	check(t, w)
	if _, there := statuses(w)["default/j-1"]; there {
		t.Error("a pod that waits is gone as soon as it is deleted")
	}
}

func TestHandErrors(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, smallWorld)
	tests := map[string]error{
		"there is no pod default/j-10; did you mean default/j-0?": w.Finish("j-10"),
		"pod default/j-0 does not run, so it cannot end":          w.Fail("j-0"),
		"there is no node n2; did you mean n1?":                   w.Drain("n2"),
		"time does not go back: -1s":                              w.Advance(-time.Second),
	}
	for want, err := range tests {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := w.Cycle(); err == nil {
		t.Error("a world without a policy cannot decide")
	}
}

func TestFinishFailAndDrain(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: "n[1-2]"}]
jobs:
- {name: j, replicas: 4, cpu: 1, node: "n[1-2]"}
pods:
- {name: web, scheduler: other, node: n1}
`)
	for _, err := range []error{w.Finish("j-0"), w.Fail("j-1"), w.Drain("n1")} {
		if err != nil {
			t.Fatal(err)
		}
		check(t, w)
	}
	want := map[string]string{
		"default/j-0": "Succeeded", "default/j-1": "Failed", "default/j-2": "Releasing", "default/j-3": "Running",
		"default/web": "Releasing",
	}
	got := statuses(w)
	delete(want, "default/j-0") // it was on the drained node and had ended, so it is removed at once
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if row := w.Cluster().Nodes.Index["n1"]; !w.Cluster().Nodes.Rows[row].Unschedulable {
		t.Error("a drained node is cordoned")
	}
}

// TestNodeRanges assigns the nodes of a range in turn to the pods of a range of names, as for the pods of a task.
func TestNodeRanges(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: "n[1-2]"}]
jobs:
- {name: j, replicas: 3, cpu: 1, node: "n[1-2]"}
pods:
- {name: "a-[1-3]", cpu: 1, node: "n[1-2]"}
- {name: "b-[1-2]", cpu: 1, node: n2}
`)
	got := map[string]string{}
	for key, task := range w.Cluster().Tasks {
		got[key] = task.NodeName
	}
	want := map[string]string{
		"default/j-0": "n1", "default/j-1": "n2", "default/j-2": "n1",
		"default/a-1": "n1", "default/a-2": "n2", "default/a-3": "n1",
		"default/b-1": "n2", "default/b-2": "n2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes of pods (-want +got)\n%s", diff)
	}
}

func TestSubmitReplacesAndKeepsStatus(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, smallWorld)
	if err := w.obey(smallPlan(w.Now())); err != nil {
		t.Fatal(err)
	}
	created := w.Cluster().Jobs["default/j"].CreatedAt
	if err := w.Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	const change = `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 16}]
queues: [{name: default, weight: 5}]
jobs: [{name: j, replicas: 3, cpu: 1}]
`
	if _, issues := w.Load(manifest.Source{Name: "change", Data: []byte(change)}); issues.Err() != nil {
		t.Fatal(issues)
	}
	check(t, w)
	j := w.Cluster().Jobs["default/j"]
	if j.Phase != "Inqueue" || j.MinMember != 3 || !j.CreatedAt.Equal(created) {
		t.Errorf("j: phase %s, min %d, created %s", j.Phase, j.MinMember, j.CreatedAt)
	}
	want := map[string]string{
		"default/j-0": "Running", "default/j-1": "Pending", "default/j-2": "Pending", "default/share-0": "Running",
	}
	if diff := cmp.Diff(want, statuses(w)); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if q := w.Cluster().Queues["default"]; q.Weight != 5 || !q.Open {
		t.Errorf("queue: %+v", q)
	}
}

func TestARefusedSubmitChangesNothing(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, smallWorld)
	before := statuses(w)
	const bad = `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n2}]
jobs:
- {name: more, cpu: 1}
- {name: bad, tasks: [{annotations: {celsius.dev/gpu-milli: "x"}}]}
`
	_, issues := w.Load(manifest.Source{Name: "bad", Data: []byte(bad)})
	if issues.Err() == nil || !strings.Contains(issues.Error(), "bad:7:") {
		t.Fatalf("issues: %v", issues)
	}
	check(t, w)
	if diff := cmp.Diff(before, statuses(w)); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if _, there := w.Cluster().Nodes.Index["n2"]; there {
		t.Error("the node of a refused submit is there")
	}
}

func TestTerminatingPodsOfASnapshotStayForTheFirstCycle(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, deletionTimestamp: "2020-01-01T00:00:00Z"}
spec: {nodeName: n1, schedulerName: celsius, containers: [{name: c}]}
status: {phase: Running}
`)
	if err := w.kubelet(); err != nil {
		t.Fatal(err)
	}
	if got := statuses(w)["default/p"]; got != "Releasing" {
		t.Errorf("p is %q, want Releasing", got)
	}
	if err := w.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	check(t, w)
	if len(w.Cluster().Tasks) != 0 {
		t.Error("p is still there when time has passed")
	}
	n := w.objects[manifest.ID{Kind: "Node", Namespace: "", Name: "n1"}].(*corev1.Node)
	if diff := cmp.Diff(map[string]string{"cpu": "4", "pods": "110"}, quantities(n.Status.Allocatable)); diff != "" {
		t.Errorf("allocatable (-want +got)\n%s", diff)
	}
}
