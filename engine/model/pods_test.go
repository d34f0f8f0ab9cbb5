package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRequests(t *testing.T) {
	tests := []struct {
		name       string
		spec       corev1.PodSpec
		request    string
		bestEffort bool
	}{
		{
			name:       "a pod that asks for nothing still takes a place",
			spec:       corev1.PodSpec{Containers: []corev1.Container{{}}},
			request:    "cpu=0 memory=0 pods=1000",
			bestEffort: true,
		},
		{
			name:    "containers add up",
			spec:    corev1.PodSpec{Containers: []corev1.Container{container("cpu=100m memory=1Gi"), container("cpu=1 example.com/x=2")}},
			request: "cpu=1100 memory=1073741824 pods=1000 example.com/x=2000",
		},
		{
			name: "init containers count as long as the pod, each by itself",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu=3"), container("cpu=2 memory=10")},
				Containers:     []corev1.Container{container("cpu=1 memory=5")},
			},
			request: "cpu=3000 memory=10 pods=1000",
		},
		{
			name: "sidecars stay, and stand beside the init containers after them",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu=3"), sidecar("cpu=2"), container("cpu=4")},
				Containers:     []corev1.Container{container("cpu=1")},
			},
			request: "cpu=6000 memory=0 pods=1000",
		},
		{
			name: "overhead is added to init containers too",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu=2")},
				Containers:     []corev1.Container{container("cpu=1")},
				Overhead:       list("cpu=250m memory=7"),
			},
			request: "cpu=2250 memory=7 pods=1000",
		},
		{
			name: "what the pod asks for as a whole comes before its containers",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu=9")},
				Containers:     []corev1.Container{container("cpu=1 memory=5")},
				Resources:      &corev1.ResourceRequirements{Requests: list("cpu=4")},
			},
			request: "cpu=4000 memory=5 pods=1000",
		},
		{
			name: "a limit without a request is one",
			spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: list("cpu=1"), Limits: list("cpu=2 memory=3")},
			}}},
			request: "cpu=1000 memory=3 pods=1000",
		},
		{
			name: "the pod's limit counts where no container has a request",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("cpu=1")},
				Resources:  &corev1.ResourceRequirements{Limits: list("cpu=8 memory=3")},
			},
			request: "cpu=1000 memory=3 pods=1000",
		},
		{
			name:    "fractions of the unit round up",
			spec:    corev1.PodSpec{Containers: []corev1.Container{container("cpu=1500u memory=1500m")}},
			request: "cpu=2 memory=2 pods=1000",
		},
		{
			name:       "a resource of 0 is no wish",
			spec:       corev1.PodSpec{Containers: []corev1.Container{container("example.com/x=0")}},
			request:    "cpu=0 memory=0 pods=1000 example.com/x=0",
			bestEffort: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, pod("p", "", func(p *corev1.Pod) { p.Spec = tt.spec }))
			task := c.Tasks["a/p"]
			if got := words(c.Dims, task.Request); got != tt.request {
				t.Errorf("request %s, want %s", got, tt.request)
			}
			if task.BestEffort != tt.bestEffort {
				t.Errorf("best effort %t, want %t", task.BestEffort, tt.bestEffort)
			}
		})
	}
}

func TestRequestOfAResizedPod(t *testing.T) {
	grown := pod("p", "cpu=1", on("n"), func(p *corev1.Pod) {
		p.Spec.Containers[0].Name = "main"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", AllocatedResources: list("cpu=3"), Resources: &corev1.ResourceRequirements{Requests: list("cpu=3")},
		}}
	})
	c := cluster(t, grown)
	if got, want := words(c.Dims, c.Tasks["a/p"].Request), "cpu=3000 memory=0 pods=1000"; got != want {
		t.Errorf("request %s, want %s: the kubelet still grants it", got, want)
	}
}

func TestStatusOfPod(t *testing.T) {
	tests := []struct {
		phase   corev1.PodPhase
		node    string
		deleted bool
		want    Status
	}{
		{corev1.PodPending, "", false, Pending},
		{"", "", false, Pending},
		{corev1.PodPending, "n", false, Bound},
		{"", "n", false, Bound},
		{corev1.PodPending, "", true, Releasing},
		{corev1.PodPending, "n", true, Releasing},
		{corev1.PodRunning, "n", false, Running},
		{corev1.PodRunning, "", false, Running},
		{corev1.PodRunning, "n", true, Releasing},
		{corev1.PodSucceeded, "n", false, Succeeded},
		{corev1.PodSucceeded, "n", true, Succeeded},
		{corev1.PodFailed, "n", true, Failed},
		{corev1.PodUnknown, "n", false, Unknown},
	}
	for _, tt := range tests {
		p := pod("p", "cpu=1")
		p.Status.Phase, p.Spec.NodeName = tt.phase, tt.node
		p.Status.NominatedNodeName = "n"
		if tt.deleted {
			deleting(p)
		}
		c := cluster(t, p, node("n", "cpu=4 pods=10"))
		nominated := "" // a task that does not wait has no nominated node
		if tt.want == Pending {
			nominated = "n"
		}
		if got := c.Tasks["a/p"]; got.Status != tt.want || got.NominatedNode != nominated {
			t.Errorf("phase %q on %q, deleted %t: %s, nominated %q; want %s, %q", tt.phase, tt.node, tt.deleted, got.Status, got.NominatedNode,
				tt.want, nominated)
		}
	}
}

// TestAccountingByStatus checks in which sums each status counts (docs/volcano.md, Amounts).
func TestAccountingByStatus(t *testing.T) {
	type sums struct{ Used, Releasing, Pipelined, Idle, Future, Allocated, Request float64 }
	tests := []struct {
		name string
		pod  *corev1.Pod
		step func(x *Txn, t *Task, row int32)
		want sums
	}{
		{name: "Pending", pod: pod("p", "cpu=1"), want: sums{Idle: 4, Future: 4, Request: 1}},
		{
			name: "Bound", pod: pod("p", "cpu=1", func(p *corev1.Pod) { p.Spec.NodeName = "n" }),
			want: sums{Used: 1, Idle: 3, Future: 3, Allocated: 1, Request: 1},
		},
		{name: "Running", pod: pod("p", "cpu=1", on("n")), want: sums{Used: 1, Idle: 3, Future: 3, Allocated: 1, Request: 1}},
		{name: "Releasing", pod: pod("p", "cpu=1", on("n"), deleting), want: sums{Used: 1, Releasing: 1, Idle: 3, Future: 4}},
		{
			name: "Unknown", pod: pod("p", "cpu=1", on("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }),
			want: sums{Used: 1, Idle: 3, Future: 3},
		},
		{
			name: "Succeeded", pod: pod("p", "cpu=1", on("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			want: sums{Idle: 4, Future: 4},
		},
		{
			name: "Failed", pod: pod("p", "cpu=1", on("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			want: sums{Idle: 4, Future: 4},
		},
		{
			name: "more than there is", pod: pod("p", "cpu=5", on("n")),
			want: sums{Used: 5, Idle: -1, Future: -1, Allocated: 5, Request: 5},
		},
		{
			name: "Allocated", pod: pod("p", "cpu=1"), step: func(x *Txn, t *Task, row int32) { x.Allocate(t, row, nil) },
			want: sums{Used: 1, Idle: 3, Future: 3, Allocated: 1, Request: 1},
		},
		{
			name: "Binding", pod: pod("p", "cpu=1"), step: func(x *Txn, t *Task, row int32) { x.Allocate(t, row, nil); x.Bind(t) },
			want: sums{Used: 1, Idle: 3, Future: 3, Allocated: 1, Request: 1},
		},
		{
			name: "Pipelined", pod: pod("p", "cpu=1"), step: func(x *Txn, t *Task, row int32) { x.Pipeline(t, row, nil) },
			want: sums{Pipelined: 1, Idle: 4, Future: 3, Allocated: 1, Request: 1},
		},
		{
			name: "evicted", pod: pod("p", "cpu=1", on("n")), step: func(x *Txn, t *Task, _ int32) { x.Evict(t) },
			want: sums{Used: 1, Releasing: 1, Idle: 3, Future: 4},
		},
		{
			name: "placed and taken back", pod: pod("p", "cpu=1"),
			step: func(x *Txn, t *Task, row int32) { x.Allocate(t, row, nil); x.Unplace(t) },
			want: sums{Idle: 4, Future: 4, Request: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, queue("q"), group("g", "q"), node("n", "cpu=4 pods=10"), tt.pod)
			row := c.Nodes.Index["n"]
			if tt.step != nil {
				tt.step(c.Begin(), c.Tasks["a/p"], row)
				check(t, c)
			}
			cpu := func(r Resources) float64 { return r.Get(CPU) / 1000 }
			got := sums{
				cpu(c.Nodes.UsedOf(row)), cpu(c.Nodes.ReleasingOf(row)), cpu(c.Nodes.PipelinedOf(row)), cpu(c.Nodes.IdleOf(row)),
				cpu(c.Nodes.FutureIdleOf(row)), cpu(c.Queues["q"].Allocated), cpu(c.Jobs["a/g"].Request),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sums (-want +got):\n%s", diff)
			}
			if total := c.Used.Get(CPU) / 1000; total != tt.want.Used {
				t.Errorf("the cluster uses %g, want %g", total, tt.want.Used)
			}
		})
	}
}

func TestPodFields(t *testing.T) {
	never := corev1.PreemptNever
	seven := int32(7)
	p := pod("w-12", "cpu=1", annotated(RoleAnnotation, "worker", PriorityAnnotation, "-3", RevocableZoneAnnotation, "*"),
		func(p *corev1.Pod) {
			p.Spec.Priority, p.Spec.PreemptionPolicy = &seven, &never
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
			p.Spec.Containers[0].Image = "registry:5000/app"
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{
				{HostPort: 80},
				{ContainerPort: 9},
				{HostPort: 53, Protocol: "UDP", HostIP: "127.0.0.1"},
				{HostPort: 80},
			}
			p.Status.StartTime = &metav1.Time{Time: time.Unix(5, 0)}
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(time.Unix(4, 0)),
			}}
		}, created(3))
	c := cluster(t, p)
	got := c.Tasks["a/w-12"]
	type fields struct {
		Role, Zone, Policy, Ports string
		Index, Priority           int64
		Gated, Preemptable        bool
		Images                    []string
		Created, Sched, Start     int64
	}
	want := fields{
		"worker", "*", "Never", "TCP/0.0.0.0/80,UDP/127.0.0.1/53", 12, -3, true, true,
		[]string{"registry:5000/app:latest"},
		3, 4,
		5,
	}
	if diff := cmp.Diff(want, fields{
		got.Role, got.RevocableZone, got.PreemptionPolicy, got.HostPortsKey, got.Index, got.Priority, got.Gated, got.Preemptable, got.Images,
		got.CreatedAt.Unix(), got.ScheduledAt.Unix(), got.StartedAt.Unix(),
	}); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if c := got.Job.GatedRequest; c.Get(CPU) != 1000 {
		t.Errorf("the job's gated request is %v, want 1000 of cpu", c)
	}
}

func TestPriorityIndexAndPreemptable(t *testing.T) {
	five := int32(5)
	tests := []struct {
		pod         *corev1.Pod
		priority    int64
		index       int64
		preemptable bool
	}{
		{pod("p", ""), 1, -1, true},
		{pod("p-x", "", func(p *corev1.Pod) { p.Spec.Priority = &five }), 5, -1, true},
		{pod("p-3", "", annotated(IndexAnnotation, "8", PreemptableKey, "false")), 1, 8, false},
		{pod("p10", "", annotated(PreemptableKey, "perhaps")), 1, -1, false},
		{pod("p-10", "", func(p *corev1.Pod) { p.Labels[PreemptableKey] = "false" }), 1, 10, false},
		{pod("p--1", "", annotated(PreemptableKey, "true"), func(p *corev1.Pod) { p.Labels[PreemptableKey] = "false" }), 1, 1, true},
	}
	for _, tt := range tests {
		got := cluster(t, tt.pod).Tasks["a/"+tt.pod.Name]
		if got.Priority != tt.priority || got.Index != tt.index || got.Preemptable != tt.preemptable {
			t.Errorf("%s: priority %d, index %d, preemptable %t; want %d, %d, %t", tt.pod.Name, got.Priority, got.Index, got.Preemptable,
				tt.priority, tt.index, tt.preemptable)
		}
	}
}

func TestPlacementTerms(t *testing.T) {
	zone := func(operator corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"disk": "ssd", "arch": "arm"}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
			term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: operator, Values: values}}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: term}},
			}}
		}
	}
	c := cluster(t, pod("p", "", zone("In", "east")), pod("same", "", zone("In", "east")), pod("other", "", zone("In", "west")),
		pod("plain", ""))
	p, other, plain := c.Tasks["a/p"], c.Tasks["a/other"], c.Tasks["a/plain"]
	if alike := c.Tasks["a/same"]; p.NodeAffinityKey != alike.NodeAffinityKey || p.PreferredKey != alike.PreferredKey ||
		p.TolerationsKey != alike.TolerationsKey {
		t.Errorf("pods with the same terms have different keys: %q and %q", p.NodeAffinityKey, alike.NodeAffinityKey)
	}
	if p.NodeAffinityKey == other.NodeAffinityKey || p.PreferredKey == other.PreferredKey || p.NodeAffinityKey == plain.NodeAffinityKey {
		t.Error("pods with different terms have the same key")
	}
	if plain.NodeAffinityKey+plain.PreferredKey+plain.TolerationsKey != "" || plain.PreferredNodes != nil || plain.HasAffinity {
		t.Error("a pod without terms has a key")
	}
	east := node("n", "", func(n *corev1.Node) { n.Labels = map[string]string{"disk": "ssd", "arch": "arm", "zone": "east"} })
	for task, want := range map[*Task]bool{p: true, other: false, plain: true} {
		if got, err := task.NodeAffinity.Match(east); got != want || err != nil {
			t.Errorf("%s matches %t, %v; want %t", task.Key, got, err, want)
		}
	}
	if got := p.PreferredNodes.Score(east); got != 3 {
		t.Errorf("p prefers the node by %d, want 3", got)
	}
	errs := NewCluster(Options{}).Apply(upserts(pod("bad", "", zone("Near", "east")))...)
	if len(errs) != 2 {
		t.Errorf("an unknown operator, twice: %d errors, %v", len(errs), errs)
	}
}

func TestNegativeAmounts(t *testing.T) {
	p := pod("p", "")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("-1")}
	c := NewCluster(Options{})
	errs := c.Apply(upserts(p)...)
	if len(errs) != 1 || errs[0].Error() != "Pod a/p: spec.containers[].resources.requests[cpu]: -1 is below 0" {
		t.Errorf("errors %v", errs)
	}
	check(t, c)
}
