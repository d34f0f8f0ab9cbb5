package model

import (
	"fmt"
	"hash/crc32"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/follow"
)

// The random world has few names, so that objects meet, return, and miss each other.

func draw[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func anyNode(t *rapid.T) any {
	return node(draw(t, "node", "n1", "n2", "n3"),
		draw(t, "allocatable", "cpu=4 memory=9 pods=5", "cpu=64 memory=90 pods=50 nvidia.com/gpu=3", "cpu=1", "cpu=1e300 memory=1e16 pods=1e300",
			"cpu=9 pods=9 volcano.sh/gpu-memory=100 volcano.sh/gpu-number=3"),
		func(n *corev1.Node) {
			n.Labels["zone"] = draw(t, "zone", "east", "west")
			if draw(t, "gpus", false, true) {
				n.Annotations[NodeGPUsAnnotation] = draw(t, "gpus-count", "2", "0", "two")
				n.Annotations[GPUMemoryAnnotation] = "16"
			}
			if text := draw(t, "cards", "", "", "x,2,50,A,true,:y,0,9,A,false,", "y,2,50,A,true:x,2,9,A,true:z,1,9,A,true", "x"); text != "" {
				n.Annotations[cards.RegisterAnnotation] = text
			}
			n.Annotations[cards.UnhealthyAnnotation] = draw(t, "unhealthy", "", "", "1", "one")
			n.Status.Conditions = draw(t, "conditions", nil, []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}})
		})
}

func anyPod(t *rapid.T) any {
	p := pod(draw(t, "pod", "p1", "p2", "p3", "p4", "p5", "p6"),
		draw(t, "requests", "", "cpu=1", "cpu=2 memory=3", "cpu=1 nvidia.com/gpu=1", "cpu=1 example.com/x=1",
			"cpu=1e300 memory=9007199254740991", "cpu=9007199254740991m memory=1e16", "cpu=3m memory=6Pi example.com/x=1e10000000"))
	cards := draw(t, "cards", "", "", "", "volcano.sh/vgpu-memory=10", "volcano.sh/gpu-memory=20", "volcano.sh/gpu-number=2",
		"volcano.sh/vgpu-number=2 volcano.sh/vgpu-cores=30", "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=101")
	maps.Copy(p.Spec.Containers[0].Resources.Requests, list(cards))
	if ids := draw(t, "ids", "", "", "", "x,NVIDIA,1,1:", "z,NVIDIA,1,1:x,NVIDIA,1,1:", "?"); ids != "" {
		p.Annotations["volcano.sh/vgpu-ids-new"] = ids
	}
	p.UID = types.UID(draw(t, "uid", "1", "2"))
	p.CreationTimestamp = metav1.NewTime(time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "created")), 0))
	p.Annotations[GroupAnnotation] = draw(t, "group", "g1", "g2", "")
	p.Annotations[RoleAnnotation] = draw(t, "role", "", "w", "ps")
	for _, key := range []string{GPUMilliAnnotation, GPUCountAnnotation, GPUMemoryAnnotation, GPUsAnnotation} {
		if v := draw(t, key, "", "", "", "0", "1", "2", "0,1", "x"); v != "" {
			p.Annotations[key] = v
		}
	}
	p.Spec.SchedulerName = draw(t, "scheduler", "celsius", "celsius", "celsius", "other")
	p.Spec.NodeName = draw(t, "on", "", "", "n1", "n2", "n4")
	recordAny(p)
	p.Spec.PriorityClassName = draw(t, "class", "", "c1")
	p.Status.Phase = draw(t, "phase", corev1.PodPending, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded,
		corev1.PodFailed, corev1.PodUnknown)
	if draw(t, "deleting", false, false, false, true) {
		deleting(p)
	}
	if draw(t, "gated", false, false, true) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
	}
	if claim := draw(t, "claim", "", "", "c1", "c2"); claim != "" {
		p.Spec.Volumes = []corev1.Volume{claimed(claim)}
	}
	for _, edit := range draw(t, "terms", nil, nil, podEdits()) {
		if draw(t, "term", false, false, false, true) {
			edit(p)
		}
	}
	return p
}

// recordAny gives some of the pods that have a node a record. A pod on a node always has the same record, because no user can change it.
func recordAny(p *corev1.Pod) {
	n := crc32.ChecksumIEEE([]byte(p.Name + string(p.UID) + p.Spec.NodeName))
	pick := func(values ...string) string {
		i := n % uint32(len(values))
		n /= uint32(len(values))
		return values[i]
	}
	if pick("", "recorded") == "" || p.Spec.NodeName == "" {
		return
	}
	r := Record{UID: string(p.UID), Node: p.Spec.NodeName, Group: pick("g1", "g2", ""), Queue: pick("q1", "q2", "")}
	p.Annotations[RecordAnnotation] = r.String()
}

// podEdits returns edits in which the template of a pod, or its request, may differ from that of another pod.
func podEdits() []func(*corev1.Pod) {
	term := corev1.PodAffinityTerm{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		MatchLabelKeys: []string{"app"},
	}
	selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
	}}
	return []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Labels["app"] = "x" },
		func(p *corev1.Pod) { p.Spec.PriorityClassName = "c1" },
		func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "east"} },
		func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		},
		func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(3))}}
		},
		func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web" },
		func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} },
		func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("cpu=1")) },
		func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("cpu=3 memory=4") },
		func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("cpu=5")} },
		func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar("cpu=5")} },
		func(p *corev1.Pod) { p.Spec.Overhead = list("memory=7") },
		func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=7")} },
		func(p *corev1.Pod) {
			p.Spec.Containers[0].Name = "main"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", AllocatedResources: list("cpu=9"),
				Resources: &corev1.ResourceRequirements{Requests: list("cpu=9")},
			}}
		},
		func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
				Name:         "i",
				VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}},
			})
		},
		func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
		},
		func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
			}}
		},
		func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: term.LabelSelector,
			}}
		},
	}
}

// fataler is a rapid test or a plain test.
type fataler interface {
	Fatalf(format string, args ...any)
}

// checkTemplates compares what tasks share with what their own pods state.
func checkTemplates(t fataler, c *Cluster) {
	for _, task := range c.TasksByKey() {
		alone := &Task{Template: readTemplate(task.Object, &mistakes{})}
		readRequests(c.Dims, alone, task.Object, &mistakes{})
		alone.wantGPUs(c.Dims, task.Devices)
		if diff := cmp.Diff(templateText(alone), templateText(task)); diff != "" {
			t.Fatalf("task %s shares a template that differs (-its pod's +shared):\n%s", task.Key, diff)
		}
		asked := task.Request
		if task.asked != nil {
			asked = task.asked
		}
		if !asked.Equal(alone.Request) {
			t.Fatalf("task %s shares requests %v; its pod's are %v", task.Key, asked, alone.Request)
		}
	}
}

// templateText returns a text of everything that is read of a template; for parsed terms, their keys.
func templateText(t *Task) string {
	terms := ""
	if t.PodTerms != nil {
		terms = t.PodTerms.Key
	}
	return fmt.Sprintf("%s %s %s %v %s %v %s %s %t %v %d", t.PriorityClassName, t.NodeAffinityKey, t.PreferredKey, text(t.Tolerations),
		t.TolerationsKey,
		t.HostPorts, t.HostPortsKey, terms, t.HasAffinity, t.Images, t.Containers)
}

func anyGroup(t *rapid.T) any {
	return group(draw(t, "group", "g1", "g2", "g3"), draw(t, "queue", "q1", "q2", ""), func(g *v1beta1.PodGroup) {
		g.Spec.MinMember = draw(t, "minMember", int32(0), 2, -1)
		g.Spec.MinTaskMember = draw(t, "minTaskMember", nil, map[string]int32{"w": 1}, map[string]int32{"ps": 1, "": 2})
		g.Spec.PriorityClassName = draw(t, "class", "", "c1")
		g.Status.Phase = draw(t, "phase", "", v1beta1.PodGroupPending, v1beta1.PodGroupRunning)
	})
}

func anyQueue(t *rapid.T) any {
	q := queue(draw(t, "queue", "q1", "q2", "default"))
	q.Spec.Weight = draw(t, "weight", int32(0), 3, -1)
	q.Spec.Capability = draw(t, "capability", nil, list("cpu=8 nvidia.com/gpu=1"))
	return q
}

func anyClass(t *rapid.T) any {
	c := class(draw(t, "class", "c1", "c2"), draw(t, "value", int32(1), 2, 3), draw(t, "default", false, true))
	c.PreemptionPolicy = draw(t, "policy", nil, new(corev1.PreemptNever))
	return c
}

func anyStorage(t *rapid.T) any {
	return draw[any](t, "storage", volumeNamed("v1"), claimNamed("c1"), claimNamed("c2"))
}

func anyQuota(t *rapid.T) any {
	return quota(draw(t, "namespace", "a", "b"), draw(t, "quota", "x", "y", "z"), draw(t, "hard", "", "cpu=4 requests.cpu=2"),
		draw(t, "used", "", "cpu=1", "cpu=-1"))
}

func anyDelta(t *rapid.T) Delta {
	kind := draw(t, "kind", anyNode, anyPod, anyPod, anyPod, anyGroup, anyQueue, anyClass, anyQuota, anyStorage, anyBudget, anyLoad)
	return Delta{Op: draw(t, "op", Upsert, Upsert, Upsert, Delete), Object: kind(t)}
}

func objectKey(object any) string {
	kind, meta, _ := identify(object)
	return kind + " " + Key(meta.GetNamespace(), meta.GetName())
}

// TestStateIsAFunctionOfTheObjects checks that the history of objects has no effect: the cluster is as if the present objects had come at
// once, in any order.
func TestStateIsAFunctionOfTheObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := draw(t, "seed", int64(0), 7)
		c := NewCluster(Options{Seed: seed})
		newest := map[string]Delta{}
		for range rapid.IntRange(1, 8).Draw(t, "applies") {
			deltas := rapid.SliceOfN(rapid.Custom(anyDelta), 1, 12).Draw(t, "deltas")
			for _, d := range deltas {
				if p, ok := d.Object.(*corev1.Pod); ok && d.Op == Delete {
					p.UID = "" // otherwise the deletion of an older pod is ignored
				}
				newest[objectKey(d.Object)] = d
			}
			c.Apply(deltas...)
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			checkTemplates(t, c)
		}
		var left []Delta
		for _, key := range sortedKeys(newest) {
			if newest[key].Op == Upsert {
				left = append(left, newest[key])
			}
		}
		again := NewCluster(Options{Seed: seed})
		if len(left) > 0 {
			again.Apply(rapid.Permutation(left).Draw(t, "shuffled")...)
		}
		if err := again.Check(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dump(again), dump(c)); diff != "" {
			t.Fatalf("by its history the cluster differs (-at once +bit by bit):\n%s", diff)
		}
	})
}

// saved is a savepoint, and a dump of the cluster at that time.
type saved struct {
	content uint64
	at      Savepoint
	look    string
}

// machine runs random steps on one cluster.
type machine struct {
	c     *Cluster
	x     *Txn
	saves []saved
	known struct{ tasks, jobs, queues, nodes follow.BySlot[string] } // texts of the objects
	most  struct{ tasks, jobs, queues, nodes int }                   // the largest number that existed at once
}

func (m *machine) Check(t *rapid.T) {
	if err := m.c.Check(); err != nil {
		t.Fatal(err)
	}
	c, k := m.c, &m.known
	dense(t, "tasks", &c.Slots.Tasks, len(c.Tasks)+1, &m.most.tasks)
	dense(t, "jobs", &c.Slots.Jobs, len(c.Jobs)+1, &m.most.jobs)
	dense(t, "queues", &c.Slots.Queues, len(c.Queues)+1, &m.most.queues)
	dense(t, "nodes", &c.Nodes.Slots, len(c.Nodes.Index), &m.most.nodes)
	k.tasks.Follow(&c.Slots.Tasks)
	k.jobs.Follow(&c.Slots.Jobs)
	k.queues.Follow(&c.Slots.Queues)
	k.nodes.Follow(&c.Nodes.Slots)
	for _, task := range c.Tasks {
		know(t, &k.tasks, task.Slot, fmt.Sprintf("%p %p %p %s", task, task.Object, task.Job, task.PreemptionPolicy))
	}
	for _, j := range c.Jobs {
		know(t, &k.jobs, j.Slot, fmt.Sprintf("%p %p %d %v %v", j, j.Object, j.Priority, j.Labels, j.CreatedAt))
	}
	for _, q := range c.Queues {
		know(t, &k.queues, q.Slot, fmt.Sprintf("%p %p", q, q.Object))
	}
	for _, row := range c.Nodes.ByOrder() {
		know(t, &k.nodes, row, fmt.Sprintf("%p %p", c.Nodes.Rows[row], c.Nodes.Rows[row].Object))
	}
}

// addedInAStep is how many objects of a kind a step may add, including those that are gone at its end: each delta may put every task into a
// job of its own.
const addedInAStep = 6 * 7

// dense checks that there are no more slots than objects that existed at once, plus those that came in one step.
func dense(t *rapid.T, what string, s *follow.Slots, there int, most *int) {
	*most = max(*most, there)
	if s.Len() > *most+addedInAStep {
		t.Fatalf("%d slots of %s, of which there were %d", s.Len(), what, *most)
	}
}

// know stores the text of an object. It fails if the slot contains another text, which no log entry announced.
func know(t *rapid.T, known *follow.BySlot[string], slot int32, text string) {
	if was := known.Get(slot); was != "" && was != text {
		t.Fatalf("in slot %d is %s, and nobody was told: %s was", slot, text, was)
	}
	known.Set(slot, text)
}

// pick draws one of the tasks or jobs for which ok returns true; the zero value if there is none.
func pick[T any](t *rapid.T, from []T, ok func(T) bool) T {
	var fit []T
	for _, v := range from {
		if ok(v) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		var none T
		return none
	}
	return rapid.SampledFrom(fit).Draw(t, "picked")
}

func (m *machine) Apply(t *rapid.T) {
	m.x.Commit()
	m.saves = nil
	deltas := rapid.SliceOfN(rapid.Custom(anyDelta), 1, 6).Draw(t, "deltas")
	for i := range deltas {
		if deltas[i].Op == Upsert {
			deltas[i].Op = draw(t, "forget", Upsert, Upsert, Forget)
		}
	}
	m.c.Apply(deltas...)
}

func (m *machine) Place(t *rapid.T) {
	task := pick(t, m.c.TasksByKey(), func(t *Task) bool { return t.Status == Pending })
	if task == nil || len(m.c.Nodes.ByOrder()) == 0 {
		return
	}
	row := rapid.SampledFrom(m.c.Nodes.ByOrder()).Draw(t, "row")
	var gpus []int
	for i := range rapid.IntRange(0, int(min(task.GPUCount, 3))).Draw(t, "gpus") {
		gpus = append(gpus, i)
	}
	defer m.reserve(t, task)
	fits := m.c.Nodes.FitsIdle(task.Request, row) && devicesFree(m.c.Nodes.GPUs[row], task, gpus)
	if fits && draw(t, "now", true, true, false) {
		m.x.Allocate(task, row, gpus)
		return
	}
	m.x.Pipeline(task, row, gpus)
}

// reserve promises a volume or its provisioning, unless another promise exists.
func (m *machine) reserve(t *rapid.T, task *Task) {
	for _, claim := range task.Claims {
		v := VolumeBind{Claim: claim, Volume: draw(t, "volume", "", "v1", "v2")}
		id, to := task.promiseOf(v)
		if was := m.c.Storage.Promised(id); was == "" || was == to {
			m.x.Reserve(task, []VolumeBind{v})
		}
	}
}

func (m *machine) Bind(t *rapid.T) {
	if task := pick(t, m.c.TasksByKey(), func(t *Task) bool { return t.Status == Allocated }); task != nil {
		m.x.Bind(task)
	}
}

func (m *machine) Unplace(t *rapid.T) {
	placed := func(t *Task) bool { return t.Status == Allocated || t.Status == Pipelined }
	if task := pick(t, m.c.TasksByKey(), placed); task != nil {
		m.x.Unplace(task)
	}
}

func (m *machine) Evict(t *rapid.T) {
	there := func(t *Task) bool { return t.Status == Running || t.Status == Bound || t.Status == Binding }
	if task := pick(t, m.c.TasksByKey(), there); task != nil {
		m.x.Evict(task)
	}
}

func (m *machine) Admit(t *rapid.T) {
	if j := pick(t, m.c.JobsByKey(), func(j *Job) bool { return j.Phase == PhasePending }); j != nil {
		m.x.Admit(j, time.Time{})
	}
}

func (m *machine) Mark(*rapid.T) {
	m.saves = append(m.saves, saved{m.c.Content(), m.x.Mark(), dump(m.c)})
}

func (m *machine) Rollback(t *rapid.T) {
	if len(m.saves) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.saves)-1).Draw(t, "savepoint")
	s := m.saves[i]
	m.saves = m.saves[:i]
	m.x.Rollback(s.at)
	if diff := cmp.Diff(s.look, dump(m.c)); diff != "" {
		t.Fatalf("rolled back (-then +now):\n%s", diff)
	}
	if got := m.c.Content(); got != s.content {
		t.Fatalf("rolled back: the content is %d, and was %d", got, s.content)
	}
}

func (m *machine) Commit(*rapid.T) {
	m.x.Commit()
	m.saves = nil
}

func (m *machine) CloseCycle(t *rapid.T) {
	m.Commit(t)
	m.c.CloseCycle()
	for _, j := range m.c.JobsByKey() {
		if j.AdmittedNow || j.PlacedNow != 0 {
			t.Fatalf("job %s: admitted %t, placed %d after the cycle", j.Key, j.AdmittedNow, j.PlacedNow)
		}
	}
}

func (m *machine) SetNodeOrder(t *rapid.T) {
	m.Commit(t) // so that no saved dump contains the old order
	m.c.SetNodeOrder(draw(t, "rank", nil, map[string]int{"n2": 0, "n1": 1}))
}

func TestRandomSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{c: NewCluster(Options{})}
		m.x = m.c.Begin()
		m.c.Apply(upserts(queue("q1"), group("g1", "q1"), node("n1", "cpu=8 memory=9 pods=9 nvidia.com/gpu=3"))...)
		for i := range 3 {
			m.c.Apply(upserts(pod(fmt.Sprintf("p%d", i+1), "cpu=1", annotated(GroupAnnotation, "g1")))...)
		}
		t.Repeat(rapid.StateMachineActions(m))
	})
}
