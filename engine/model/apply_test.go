package model

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/follow"
)

func class(name string, value int32, isDefault bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault}
}

func TestForeignAndOrphanPods(t *testing.T) {
	byName := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.SchedulerName = name } }
	bare := func(p *corev1.Pod) { delete(p.Annotations, GroupAnnotation) }
	c := cluster(t, queue("q"), group("g", "q"), node("n", "cpu=9 pods=9"),
		pod("ours", "cpu=1"), pod("volcanos", "cpu=1", byName("volcano")), pod("bare", "cpu=1", bare),
		pod("lost", "cpu=1", annotated(GroupAnnotation, "gone")),
		pod("foreign", "cpu=2", byName("default-scheduler"), on("n")), pod("unnamed", "cpu=1", byName("")),
		pod("older", "cpu=1", bare, annotated(VolcanoGroupAnnotation, "g")))
	type place struct {
		Job             string
		Foreign, Orphan bool
	}
	got := map[string]place{}
	for _, task := range c.TasksByKey() {
		got[task.Name] = place{task.Job.Key, task.Foreign, task.Job.Orphan}
	}
	want := map[string]place{
		"ours":     {"a/g", false, false},
		"volcanos": {"a/g", false, false},
		"older":    {"a/g", false, false},
		"bare":     {"~a/bare", false, true},
		"lost":     {"~a/lost", false, true},
		"foreign":  {"~a/foreign", true, true},
		"unnamed":  {"~a/unnamed", true, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if used, jobs := c.Nodes.UsedOf(c.Nodes.Index["n"]).Get(CPU), len(c.Queues["q"].Jobs); used != 2000 || jobs != 1 {
		t.Errorf("the node uses %g, the queue has %d jobs; want 2000, 1", used, jobs)
	}

	// A new PodGroup gets its pods, and releases them when it is deleted.
	apply(t, c, upserts(group("gone", "q"))...)
	if job := c.Tasks["a/lost"].Job; job.Key != "a/gone" || c.Jobs["~a/lost"] != nil {
		t.Errorf("lost is in job %s", job.Key)
	}
	apply(t, c, Delta{Delete, group("g", "q")})
	if job := c.Tasks["a/ours"].Job; job.Key != "~a/ours" || c.Jobs["a/g"] != nil {
		t.Errorf("ours is in job %s", job.Key)
	}

	every := NewCluster(Options{SchedulerNames: []string{""}})
	apply(t, every, upserts(pod("unnamed", "", byName("")), pod("ours", ""))...)
	if every.Tasks["a/unnamed"].Foreign || !every.Tasks["a/ours"].Foreign {
		t.Error("the scheduler's own names were not heeded")
	}
}

func TestNodeComesAndGoes(t *testing.T) {
	c := cluster(t, pod("p", "cpu=1", on("n")), queue("q"), group("g", "q"))
	p := c.Tasks["a/p"]
	if p.Node != NoNode || p.Status != Running || p.NodeName != "n" || c.Queues["q"].Allocated.Get(CPU) != 1000 {
		t.Errorf("before its node: %s on %q, row %d", p.Status, p.NodeName, p.Node)
	}
	n := node("n", "cpu=4 pods=9")
	apply(t, c, upserts(n, node("m", "cpu=8 pods=9"))...)
	before := dump(c)
	row := c.Nodes.Index["n"]
	if p.Node != row || c.Nodes.Idle(CPU, row) != 3000 || c.Total.Get(CPU) != 12000 {
		t.Errorf("row %d, idle %g, total %g", p.Node, c.Nodes.Idle(CPU, row), c.Total.Get(CPU))
	}
	apply(t, c, Delta{Delete, n})
	if p.Node != NoNode || p.Status != Running || c.Total.Get(CPU) != 8000 || c.Used.Get(CPU) != 0 {
		t.Errorf("after its node: %s, row %d, total %g, used %g", p.Status, p.Node, c.Total.Get(CPU), c.Used.Get(CPU))
	}
	version := c.Nodes.Version[row]
	apply(t, c, upserts(node("other", "cpu=1"))...)
	if c.Nodes.Index["other"] != row || c.Nodes.Version[row] <= version {
		t.Errorf("a new node got row %d at version %d; want row %d after version %d", c.Nodes.Index["other"], c.Nodes.Version[row], row, version)
	}
	apply(t, c, Delta{Delete, node("other", "")}, Delta{Upsert, n})
	if diff := cmp.Diff(before, dump(c)); diff != "" {
		t.Errorf("the node returned, but not all is as it was (-before +now):\n%s", diff)
	}
}

func TestReadyNodes(t *testing.T) {
	ready := func(status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: "False"},
				{Type: corev1.NodeReady, Status: status},
			}
		}
	}
	c := cluster(t, node("unsaid", "cpu=1"), node("yes", "cpu=2", ready("True")), node("no", "cpu=4", ready("False")),
		node("unknown", "cpu=8", ready("Unknown")), pod("p", "cpu=1", on("no")), pod("r", "cpu=1", on("yes")))
	if got := words(c.Dims, c.Total); got != "cpu=3000 memory=0" || c.ReadyNodes != 2 || c.Used.Get(CPU) != 1000 {
		t.Errorf("total %s, %d ready, used %g; want cpu=3000 memory=0, 2, 1000", got, c.ReadyNodes, c.Used.Get(CPU))
	}
	apply(t, c, upserts(node("no", "cpu=4", ready("True")))...)
	if c.Total.Get(CPU) != 7000 || c.Used.Get(CPU) != 2000 {
		t.Errorf("total %g, used %g; want 7000, 2000", c.Total.Get(CPU), c.Used.Get(CPU))
	}
}

// TestUsable checks that nodes that accept pods count with what they offer, and all other nodes with what pods use there.
func TestUsable(t *testing.T) {
	closed := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	lost := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "Unknown"}}
	}
	c := cluster(t, node("open", "cpu=8"), node("full", "cpu=4 pods=10 example.com/card=2", closed), node("lost", "cpu=16 pods=10", lost),
		pod("p", "cpu=3", on("full")), pod("q", "cpu=2", on("lost")), pod("r", "cpu=1", on("open")))
	is := func(when, usable, taken string) {
		t.Helper()
		if got := words(c.Dims, c.Usable); got != usable {
			t.Errorf("%s: usable is %s, want %s", when, got, usable)
		}
		if got := words(c.Dims, c.Taken()); got != taken {
			t.Errorf("%s: taken is %s, want %s", when, got, taken)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	is("at first", "cpu=13000 memory=0 pods=2000 example.com/card=0", "cpu=6000 memory=0 pods=3000")
	apply(t, c, Delta{Op: Delete, Object: pod("p", "cpu=3", on("full"))})
	is("after the pod on the cordoned node is deleted", "cpu=10000 memory=0 pods=1000 example.com/card=0", "cpu=3000 memory=0 pods=2000")
	apply(t, c, upserts(pod("forged", "cpu=1000", on("lost")))...)
	is("with more on a lost node than it offers", "cpu=24000 memory=0 pods=2000 example.com/card=0", "cpu=17000 memory=0 pods=3000")
	apply(t, c, Delta{Op: Delete, Object: pod("forged", "cpu=1000", on("lost"))})
	apply(t, c, upserts(node("full", "cpu=4 pods=10 example.com/card=2"), node("lost", "cpu=16 pods=10"))...)
	is("after both accept pods again", "cpu=28000 memory=0 pods=20000 example.com/card=2000", "cpu=3000 memory=0 pods=2000")
}

func TestNodeFields(t *testing.T) {
	n := node("n", "", func(n *corev1.Node) {
		n.Status.Allocatable = nil
		n.Status.Capacity = list("cpu=3 pods=4")
		n.Spec.Unschedulable = true
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"app", "host:5000/app@sha256:1"}, SizeBytes: 7}}
	})
	c := cluster(t, n)
	row := c.Nodes.Index["n"]
	if got := words(c.Dims, c.Nodes.AllocatableOf(row)); got != "cpu=3000 pods=4000" {
		t.Errorf("allocatable %s, want the capacity: cpu=3000 pods=4000", got)
	}
	want := map[string]int64{"app:latest": 7, "host:5000/app@sha256:1": 7}
	if diff := cmp.Diff(want, c.Nodes.Rows[row].Images); diff != "" || !c.Nodes.Rows[row].Unschedulable {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestFits(t *testing.T) {
	c := cluster(t, node("n", "cpu=2 memory=10 pods=2 example.com/b=1 example.com/a=1"), pod("big", "cpu=3", on("n")),
		pod("going", "cpu=1", on("n"), deleting))
	row := c.Nodes.Index["n"]
	tests := []struct {
		r            map[string]float64
		idle, future bool
		misfit       string
	}{
		{map[string]float64{"memory": 10}, true, true, ""},
		{map[string]float64{"memory": 10.1}, true, true, ""},
		{map[string]float64{"memory": 10.2}, false, false, "memory"},
		{map[string]float64{"cpu": 0}, false, false, "cpu"}, // idle is -2000, future idle -1000
		{map[string]float64{"pods": 1000}, false, true, ""}, // two pods are on the node, one of them is releasing
		{map[string]float64{"example.com/new": 1}, false, false, "example.com/new"},
		{map[string]float64{"example.com/b": 2000, "example.com/a": 2000}, false, false, "example.com/a"},
		{nil, true, true, ""},
	}
	for _, tt := range tests {
		var r Resources
		for _, name := range sortedKeys(tt.r) {
			r.Set(c.Dims.Intern(name), tt.r[name])
		}
		misfit := ""
		for _, dim := range slices.Backward(c.Nodes.Dims()) {
			if r.Has(dim) && r[dim] > c.Nodes.FutureIdle(dim, row)+Slack {
				misfit = c.Dims.Name(dim) // the first of them
			}
		}
		if idle, future := c.Nodes.FitsIdle(r, row), c.Nodes.FitsFuture(r, row); idle != tt.idle || future != tt.future || misfit != tt.misfit {
			t.Errorf("%v: idle %t, future %t, misfit %q; want %t, %t, %q", tt.r, idle, future, misfit, tt.idle, tt.future, tt.misfit)
		}
	}
}

func TestPriorityClasses(t *testing.T) {
	classed := func(name string) func(*v1beta1.PodGroup) {
		return func(g *v1beta1.PodGroup) { g.Spec.PriorityClassName = name }
	}
	c := cluster(t, group("high", "q", classed("high")), group("none", "q"), group("unknown", "q", classed("unknown")),
		pod("p", "", func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }))
	priorities := func() string {
		var out []string
		for _, name := range []string{"high", "none", "unknown"} {
			out = append(out, string(rune('0'+c.Jobs["a/"+name].Priority)))
		}
		return strings.Join(out, " ") + " " + c.Tasks["a/p"].PreemptionPolicy
	}
	never := corev1.PreemptNever
	high := class("high", 7, false)
	high.PreemptionPolicy = &never
	steps := []struct {
		delta Delta
		want  string
	}{
		{Delta{Upsert, class("other", 1, false)}, "0 0 0 PreemptLowerPriority"},
		{Delta{Upsert, high}, "7 0 0 Never"},
		{Delta{Upsert, class("four", 4, true)}, "7 4 4 Never"},
		{Delta{Upsert, class("three", 3, true)}, "7 3 3 Never"},
		{Delta{Delete, high}, "3 3 3 PreemptLowerPriority"},
		{Delta{Upsert, class("three", 3, false)}, "4 4 4 PreemptLowerPriority"},
		{Delta{Delete, class("four", 0, false)}, "0 0 0 PreemptLowerPriority"},
	}
	for _, step := range steps {
		apply(t, c, step.delta)
		if got := priorities(); got != step.want {
			t.Errorf("after %v of %s: %s, want %s", step.delta.Op, step.delta.Object.(*schedulingv1.PriorityClass).Name, got, step.want)
		}
	}
}

func TestPodGroupFields(t *testing.T) {
	least := list("cpu=2")
	full := group("g", "", func(g *v1beta1.PodGroup) {
		g.Spec.MinMember, g.Spec.MinTaskMember = 3, map[string]int32{"ps": 1, "worker": 2}
		g.Spec.MinResources = &least
		g.Spec.SubGroupPolicy = []v1beta1.SubGroupPolicySpec{{}}
		g.Status.Phase = v1beta1.PodGroupRunning
		g.Annotations = map[string]string{PreemptableKey: "true"}
	})
	worker := annotated(RoleAnnotation, "worker")
	c := cluster(t, full, group("bare", "q"), pod("w1", "cpu=1", worker), pod("w0", "cpu=1", worker, on("n")), pod("x", ""))
	j := c.Jobs["a/g"]
	type role struct {
		Name                              string
		Min, Tasks, Ready, Valid, Holding int64
	}
	var roles []role
	for _, r := range j.Roles {
		roles = append(roles, role{r.Name, r.Min, r.TaskCount(), r.Ready(), r.Valid(), r.Holding()})
	}
	want := []role{{"", 0, 1, 1, 1, 0}, {"ps", 1, 0, 0, 0, 0}, {"worker", 2, 2, 1, 2, 1}}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	type fields struct {
		Queue, Phase, MinResources                                 string
		MinMember, RoleMinTotal                                    int64
		HasMinResources, HasTopology, Preemptable, ForGangEviction bool
	}
	read := func(j *Job) fields {
		return fields{
			j.QueueName, j.Phase, words(c.Dims, j.MinResources), j.MinMember, j.RoleMinTotal,
			j.HasMinResources, j.HasTopology, j.Preemptable, j.PreemptableForGang,
		}
	}
	if diff := cmp.Diff(fields{"default", "Running", "cpu=2000", 3, 3, true, true, true, true}, read(j)); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fields{"q", "Pending", "", 0, 0, false, false, false, true}, read(c.Jobs["a/bare"])); diff != "" {
		t.Errorf("bare job (-want +got):\n%s", diff)
	}
	if got := [...]int64{j.TaskCount(), j.Holding(), j.Ready(), j.Valid(), j.PendingBestEffort}; got != [...]int64{3, 1, 1, 3, 1} {
		t.Errorf("tasks, holding, ready, valid, best-effort: %v, want 3 1 1 3 1", got)
	}
	apply(t, c, upserts(group("g", "q"))...)
	if len(j.Roles) != 2 || j.Roles[1].Min != 0 {
		t.Errorf("a PodGroup without minimums has roles %d", len(j.Roles))
	}
}

func TestQueueFields(t *testing.T) {
	no := false
	full := queue("full")
	full.Spec = v1beta1.QueueSpec{
		Weight: 4, Priority: 2, Parent: "root", Reclaimable: &no, Capability: list("cpu=3"), Deserved: list("cpu=2"),
		Guarantee: v1beta1.Guarantee{Resource: list("cpu=1")},
	}
	full.Status.State = v1beta1.QueueStateClosing
	c := cluster(t, full, queue("bare"))
	type fields struct {
		UID, Parent, State, Capability, Deserved, Guarantee string
		Weight, Priority                                    int64
		Reclaimable, Open                                   bool
	}
	for name, want := range map[string]fields{
		"full": {"full", "root", "Closing", "cpu=3000", "cpu=2000", "cpu=1000", 4, 2, false, false},
		"bare": {"bare", "", "Open", "", "", "", 1, 0, true, true},
	} {
		q := c.Queues[name]
		got := fields{
			q.UID, q.Parent, q.State, words(c.Dims, q.Capability), words(c.Dims, q.Deserved), words(c.Dims, q.Guarantee),
			q.Weight, q.Priority, q.Reclaimable, q.Open,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestQueueComesAndGoes(t *testing.T) {
	c := cluster(t, group("g", "q"), pod("p", "cpu=1", on("n")))
	j := c.Jobs["a/g"]
	if j.Queue != nil {
		t.Error("a job is in a queue that is not there")
	}
	apply(t, c, upserts(queue("q"), group("h", "q", func(g *v1beta1.PodGroup) { g.Status.Phase = "Inqueue" }))...)
	q := c.Queues["q"]
	if diff := cmp.Diff(map[string]int64{"Pending": 1, "Inqueue": 1}, q.Phases); diff != "" || j.Queue != q || q.Allocated.Get(CPU) != 1000 {
		t.Errorf("allocated %g; phases (-want +got):\n%s", q.Allocated.Get(CPU), diff)
	}
	cursor := c.QueueLog.End()
	apply(t, c, Delta{Delete, group("h", "q")}, Delta{Upsert, group("g", "other")})
	if entries, ok := cursor.Read(&c.QueueLog); !ok || len(entries) == 0 || len(q.Jobs) != 0 || q.Allocated.Get(CPU) != 0 {
		t.Errorf("the queue has %d jobs, %g of cpu and %d log entries", len(q.Jobs), q.Allocated.Get(CPU), len(entries))
	}
	apply(t, c, Delta{Upsert, group("g", "q")}, Delta{Delete, queue("q")})
	if j.Queue != nil || len(c.Queues) != 0 {
		t.Error("a deleted queue has a job")
	}
}

func TestNamespaces(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "x"}}}
	c := cluster(t, ns)
	if diff := cmp.Diff(&Namespace{Name: "a", Labels: ns.Labels}, c.Namespaces["a"]); diff != "" {
		t.Errorf("namespace (-want +got):\n%s", diff)
	}
	apply(t, c, Delta{Delete, ns})
	if len(c.Namespaces) != 0 {
		t.Error("a deleted namespace is there")
	}
}

func TestBadObjectsStopNoOther(t *testing.T) {
	badGroup := group("bad", "q", func(g *v1beta1.PodGroup) {
		least := corev1.ResourceList{"cpu": list("cpu=1")["cpu"]}
		q := least["cpu"]
		q.Neg()
		least["cpu"] = q
		g.Spec.MinMember, g.Spec.MinTaskMember, g.Spec.MinResources, g.Status.Phase = -1, map[string]int32{"w": -2}, &least, "Done"
	})
	badQueue := queue("bad")
	badQueue.Spec.Weight = -1
	c := NewCluster(Options{})
	errs := c.Apply(upserts(nil, (*corev1.Pod)(nil), 7, &corev1.Node{}, badGroup, badQueue,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x/y"}},
		node("~n", ""), pod("p", "", annotated(PriorityAnnotation, "first")), node("good", "cpu=1"))...)
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
		if _, ok := errors.AsType[*ObjectError](err); !ok {
			t.Errorf("%v is no ObjectError", err)
		}
	}
	want := []string{
		"delta <nil>: is nil or of no kind known here: Node, Pod, Namespace, ResourceQuota, PodDisruptionBudget, PriorityClass, " +
			"PodGroup, Job, Queue, NodeMetrics, Numatopology, ExtenderAnswer, and those of storage",
		"delta *v1.Pod: is nil or of no kind known here: Node, Pod, Namespace, ResourceQuota, PodDisruptionBudget, PriorityClass, " +
			"PodGroup, Job, Queue, NodeMetrics, Numatopology, ExtenderAnswer, and those of storage",
		"delta int: is nil or of no kind known here: Node, Pod, Namespace, ResourceQuota, PodDisruptionBudget, PriorityClass, " +
			"PodGroup, Job, Queue, NodeMetrics, Numatopology, ExtenderAnswer, and those of storage",
		"Node : metadata.name: is missing",
		"PodGroup a/bad: spec.minResources[cpu]: -1 is below 0",
		"PodGroup a/bad: spec.minMember: -1 is below 0",
		"PodGroup a/bad: spec.minTaskMember[w]: -2 is below 0",
		`PodGroup a/bad: status.phase: "Done" is none of Pending, Inqueue, Running, Unknown, Completed`,
		"Queue bad: spec.weight: -1 is below 1",
		"Pod /x/y: metadata.namespace: is missing",
		`Pod /x/y: metadata.name: "/x/y" has a character that no name has`,
		`Node ~n: metadata.name: "~n" has a character that no name has`,
		`Pod a/p: metadata.annotations[volcano.sh/task-priority]: "first" is no whole number of 32 bits`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if len(c.Nodes.Index) != 1 || len(c.Jobs) != 0 || len(c.Queues) != 0 || len(c.Tasks) != 0 {
		t.Errorf("%d nodes, %d jobs, %d queues, %d tasks; want the good node only", len(c.Nodes.Index), len(c.Jobs), len(c.Queues), len(c.Tasks))
	}
	check(t, c)
}

func TestABadVersionReplacesAGoodOne(t *testing.T) {
	c := cluster(t, group("g", "q"), queue("q"), pod("p", ""))
	c.Apply(upserts(group("g", "q", func(g *v1beta1.PodGroup) { g.Spec.MinMember = -1 }))...)
	check(t, c)
	if len(c.Jobs) != 1 || !c.Tasks["a/p"].Job.Orphan {
		t.Error("a PodGroup that cannot be read any more still counts")
	}
	c.Apply(upserts(pod("p", "", annotated(GPUMilliAnnotation, "x")))...)
	check(t, c)
	if len(c.Tasks) != 0 {
		t.Error("a pod that cannot be read any more still counts")
	}
}

func TestPodOfANewUID(t *testing.T) {
	c := cluster(t, pod("p", "cpu=1"))
	old := c.Tasks["a/p"]
	again := pod("p", "cpu=2", func(p *corev1.Pod) { p.UID = "another" })
	apply(t, c, Delta{Upsert, again}, Delta{Delete, pod("p", "")})
	if now := c.Tasks["a/p"]; now == nil || now == old || now.Request.Get(CPU) != 2000 {
		t.Error("the deletion of the former pod deleted its successor")
	}
	apply(t, c, Delta{Delete, again})
	if len(c.Tasks) != 0 || len(c.Jobs) != 0 {
		t.Error("a deleted pod is there")
	}
}

func TestAssumedBindingsAndEvictions(t *testing.T) {
	running := pod("victim", "cpu=1", on("n"))
	c := cluster(t, node("n", "cpu=4 pods=9"), pod("p", "cpu=1"), running)
	p, victim, x := c.Tasks["a/p"], c.Tasks["a/victim"], c.Begin()
	x.Allocate(p, c.Nodes.Index["n"], nil)
	x.Bind(p)
	x.Evict(victim)
	x.Commit()
	statuses := func(step string, want ...Status) {
		t.Helper()
		if p.Status != want[0] || victim.Status != want[1] {
			t.Errorf("%s: %s, %s; want %s, %s", step, p.Status, victim.Status, want[0], want[1])
		}
	}
	apply(t, c, upserts(pod("p", "cpu=1"), running)...)
	statuses("objects that do not show it yet", Binding, Releasing)
	if p.NodeName != "n" || c.Nodes.Idle(CPU, p.Node) != 2000 {
		t.Errorf("the binding is on %q with %g idle", p.NodeName, c.Nodes.Idle(CPU, p.Node))
	}
	until := time.Unix(100, 0)
	victim.Spare(until)
	apply(t, c, Delta{Forget, pod("p", "cpu=1")}, Delta{Forget, running})
	statuses("both failed", Pending, Running)
	apply(t, c, upserts(running)...)
	if !victim.Spared.Equal(until) {
		t.Errorf("a later version of the pod is spared until %s", victim.Spared)
	}
	x.Allocate(p, c.Nodes.Index["n"], nil)
	x.Bind(p)
	x.Evict(victim)
	x.Commit()
	apply(t, c, upserts(pod("p", "cpu=1", on("n")), pod("victim", "cpu=1", on("n"), func(p *corev1.Pod) { p.Status.Phase = "Failed" }))...)
	statuses("both succeeded", Running, Failed)
	another := running.DeepCopy()
	another.UID = "another"
	apply(t, c, upserts(another)...)
	if victim = c.Tasks["a/victim"]; !victim.Spared.IsZero() {
		t.Errorf("another pod of its name is spared until %s", victim.Spared)
	}
}

// TestEvictionOfWhatIsBeingBound checks that a pod that is evicted during its binding keeps its node, though its object shows neither.
func TestEvictionOfWhatIsBeingBound(t *testing.T) {
	c := cluster(t, node("n", "cpu=4 pods=9"), pod("p", "cpu=1"))
	p, x := c.Tasks["a/p"], c.Begin()
	x.Allocate(p, c.Nodes.Index["n"], nil)
	x.Bind(p)
	x.Evict(p)
	x.Commit()
	apply(t, c, upserts(pod("p", "cpu=1"))...)
	if p.Status != Releasing || p.NodeName != "n" || c.Nodes.Idle(CPU, p.Node) != 3000 {
		t.Errorf("%s on %q", p.Status, p.NodeName)
	}
	apply(t, c, upserts(pod("p", "cpu=1", on("n")))...)
	if p.Status != Releasing {
		t.Errorf("bound meanwhile: %s", p.Status)
	}
	apply(t, c, Delta{Forget, pod("p", "cpu=1")})
	if p.Status != Pending || p.NodeName != "" {
		t.Errorf("neither bound nor evicted: %s on %q", p.Status, p.NodeName)
	}
}

func TestPodChangesItsJobAndRole(t *testing.T) {
	c := cluster(t, group("g", "q"), group("h", "q"), queue("q"), pod("p", "cpu=1", annotated(RoleAnnotation, "w")))
	apply(t, c, upserts(pod("p", "cpu=1", annotated(RoleAnnotation, "x")))...)
	if g := c.Jobs["a/g"]; len(g.Roles) != 1 || g.Roles[0].Name != "x" {
		t.Errorf("roles %v", g.Roles)
	}
	apply(t, c, upserts(pod("p", "cpu=3", annotated(GroupAnnotation, "h")))...)
	if g, h := c.Jobs["a/g"], c.Jobs["a/h"]; g.TaskCount() != 0 || len(g.Roles) != 0 || h.Request.Get(CPU) != 3000 {
		t.Errorf("g has %d tasks, h requests %g", g.TaskCount(), h.Request.Get(CPU))
	}
}

func TestWhatIsKeptBySlotGoesWithItsObject(t *testing.T) {
	c := cluster(t, node("n", "cpu=1"), queue("q"), group("g", "q"), pod("p", ""))
	task, row := c.Tasks["a/p"], c.Nodes.Index["n"]
	var known struct{ task, job, queue, node follow.BySlot[int] }
	kept := func() [4]int {
		known.task.Follow(&c.Slots.Tasks)
		known.job.Follow(&c.Slots.Jobs)
		known.queue.Follow(&c.Slots.Queues)
		known.node.Follow(&c.Nodes.Slots)
		return [4]int{known.task.Get(task.Slot), known.job.Get(task.Job.Slot), known.queue.Get(c.Queues["q"].Slot), known.node.Get(row)}
	}
	kept()
	known.task.Set(task.Slot, 1)
	known.job.Set(task.Job.Slot, 1)
	known.queue.Set(c.Queues["q"].Slot, 1)
	known.node.Set(row, 1)
	apply(t, c, upserts(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})...)
	if got := kept(); got != [4]int{1, 1, 1, 1} {
		t.Errorf("something is forgotten though its object did not change: %v", got)
	}
	for i, o := range []any{pod("p", ""), group("g", "q"), queue("q"), node("n", "cpu=1")} {
		apply(t, c, upserts(o)...)
		want := [4]int{0, 1, 1, 1}
		for k := range want[:i+1] {
			want[k] = 0
		}
		if got := kept(); got != want {
			t.Errorf("after %T: what is known of task, job, queue and node is %v, want %v", o, got, want)
		}
	}
}

func TestInterningDoesNotDependOnMaps(t *testing.T) {
	want := "cpu memory pods x/a x/b x/c x/d x/e"
	for range 20 {
		d := NewDims()
		d.Resources(list("x/e=1 x/d=1 x/c=1 x/b=1 x/a=1 cpu=1"))
		var names []string
		for i := range d.Len() {
			names = append(names, d.Name(i))
		}
		if got := strings.Join(names, " "); got != want {
			t.Fatalf("dimensions %s, want %s", got, want)
		}
	}
}

func TestThereAndBackInOneApply(t *testing.T) {
	c := cluster(t, group("g", "q"), group("h", "q"), pod("p", "cpu=1"), pod("r", ""))
	apply(t, c, upserts(pod("p", "", annotated(GroupAnnotation, "h")), pod("p", "cpu=2"))...)
	if g := c.Jobs["a/g"]; len(g.Tasks) != 2 || g.Request.Get(CPU) != 2000 {
		t.Errorf("the job lists %d tasks and requests %g; want 2, 2000", len(g.Tasks), g.Request.Get(CPU))
	}
}
