package engine_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// world is a random history: the objects at the beginning, and the changes before each later cycle.
type world struct {
	objects []metav1.Object
	changes [][]model.Delta
	volumes bool // some pods have volumes
}

func one[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

// seldom is rarely true. (The ends of a range are drawn more often than other numbers.)
func seldom(t *rapid.T, label string) bool { return rapid.IntRange(0, 15).Draw(t, label) == 9 }

func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(part, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return out
}

func at(second int) metav1.Time { return metav1.Unix(1_700_000_000+int64(second), 0) }

func drawQueue(t *rapid.T, name string) *v1beta1.Queue {
	q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	q.Spec.Weight = int32(rapid.IntRange(1, 3).Draw(t, "weight"))
	q.Spec.Capability = list(one(t, "capability", "", "", "cpu=3", "cpu=6 memory=4Gi", "nvidia.com/gpu=1", "cpu=6 pods=2"))
	q.Spec.Guarantee.Resource = list(one(t, "guarantee", "", "", "cpu=1", "cpu=2 memory=1Gi"))
	q.Spec.DequeueStrategy = v1beta1.DequeueStrategy(one(t, "dequeue strategy", "", "", "traverse", "fifo"))
	q.Status.State = v1beta1.QueueStateOpen
	if seldom(t, "closed") {
		q.Status.State = v1beta1.QueueStateClosed
	}
	return q
}

func drawNode(t *rapid.T, name string) *corev1.Node {
	allocatable := list(one(t, "allocatable", "cpu=4 memory=8Gi pods=8", "cpu=2 memory=2Gi pods=3",
		"cpu=8 memory=6Gi pods=9 nvidia.com/gpu=2", sharedCards))
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": one(t, "zone", "east", "west")}},
		Status:     corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
	}
	if effect := one(t, "taint", "", "", "", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule); effect != "" {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: effect}}
	}
	if _, ok := allocatable[cards.ShareNumber]; ok {
		n.Annotations = map[string]string{cards.RegisterAnnotation: name + "-a,2,8000,NVIDIA-A10," + one(t, "healthy", "true", "true", "false") +
			",hami-core:" + name + "-b,3,4000,NVIDIA-T4,true,hami-core:"}
	}
	n.Spec.Unschedulable = seldom(t, "cordoned")
	if seldom(t, "unready") {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	}
	return n
}

func drawGroup(t *rapid.T, name string, queues int) *v1beta1.PodGroup {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "a",
		CreationTimestamp: at(rapid.IntRange(0, 2).Draw(t, "created")),
	}}
	g.Spec.Queue = fmt.Sprint("q", rapid.IntRange(1, queues).Draw(t, "queue"))
	g.Spec.MinMember = one(t, "minMember", int32(1), 1, 2, 2, 3, 0)
	g.Spec.MinTaskMember = one(t, "minTaskMember", nil, nil, nil, nil, map[string]int32{"worker": 2}, map[string]int32{"worker": 1, "ps": 1})
	g.Spec.PriorityClassName = one(t, "class", "", "low", "high")
	if asked := list(one(t, "minResources", "", "", "cpu=2", "cpu=4 memory=2Gi")); len(asked) > 0 {
		g.Spec.MinResources = &asked
	}
	g.Status.Phase = one(t, "phase", v1beta1.PodGroupPending, v1beta1.PodGroupPending, v1beta1.PodGroupInqueue, v1beta1.PodGroupRunning)
	return g
}

// drawPod draws a pod of a job. The caller chooses its name, and so its job.
func drawPod(t *rapid.T, name, group string, nodes int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "a", UID: types.UID("uid-" + name), CreationTimestamp: at(rapid.IntRange(0, 2).Draw(t, "created")),
			Annotations: map[string]string{model.GroupAnnotation: group, model.RoleAnnotation: one(t, "role", "worker", "worker", "ps")},
		},
		Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{Name: "main"}}},
	}
	if index := one(t, "index", "", "", "0", "1"); index != "" { // pods of different roles may have the same index
		p.Annotations[model.IndexAnnotation] = index
	}
	p.Spec.Containers[0].Resources.Requests = list(one(t, "requests", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi", "cpu=2", "cpu=700m memory=300Mi",
		"cpu=1 nvidia.com/gpu=1", ""))
	p.Spec.PriorityClassName = one(t, "class", "", "", "low", "high")
	p.Labels = map[string]string{"role": p.Annotations[model.RoleAnnotation]}
	if seldomer(t, "preemptable", 5) {
		p.Annotations["volcano.sh/preemptable"] = one(t, "is preemptable", "false", "true", "perhaps")
	}
	if seldom(t, "never preempts") {
		p.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	}
	switch rapid.IntRange(0, 23).Draw(t, "wish") {
	case 6:
		p.Spec.NodeSelector = map[string]string{"zone": "east"}
	case 7:
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	case 8:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 80}}
	case 9:
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	case 10:
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: list("cpu=2")}}}
	case 11:
		p.Annotations[model.GPUMilliAnnotation] = "400"
	case 12, 13:
		drawShare(t, p)
	case 14, 15, 16:
		drawPinned(t, p)
	}
	if len(p.Spec.SchedulingGates) == 0 {
		drawLife(t, p, nodes)
	}
	return p
}

// sharedCards is what a node offers whose cards can be shared.
const sharedCards = "cpu=8 memory=6Gi pods=9 volcano.sh/vgpu-number=5 volcano.sh/vgpu-memory=12000 volcano.sh/vgpu-cores=200"

// drawShare makes a pod ask for shares of cards, and perhaps for certain cards.
func drawShare(t *rapid.T, p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests = list("cpu=1 " + one(t, "share", "volcano.sh/vgpu-memory=3000",
		"volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=50 volcano.sh/vgpu-cores=60",
		"volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory=500",
		"volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=10 volcano.sh/vgpu-cores=100", "volcano.sh/vgpu-number=1",
		"volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=10"))
	if key := one(t, "which", "", "", "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"); key != "" {
		p.Annotations[key] = one(t, "type", "a10", "T4,H100")
	}
	p.Annotations["volcano.sh/vgpu-podgroup-policy"] = one(t, "apart", "", "", "spread")
}

// drawPinned makes a pod Guaranteed, so that it gets its own CPUs. The pod may state how these CPUs must lie.
func drawPinned(t *rapid.T, p *corev1.Pod) {
	asked := list(one(t, "pinned", "cpu=1 memory=1Gi", "cpu=2 memory=1Gi", "cpu=3 memory=1Gi", "cpu=1500m memory=1Gi"))
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: asked, Limits: asked}
	p.Annotations[v1beta1.NumaPolicyKey] = one(t, "NUMA policy", "", "none", "best-effort", "restricted", "single-numa-node", "any")
}

// drawNuma draws where the CPUs of a node lie, and which are free. Some pods are listed.
func drawNuma(t *rapid.T, node string) *nodeinfov1alpha1.Numatopology {
	o := &nodeinfov1alpha1.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: node}}
	o.Spec.Policies = map[nodeinfov1alpha1.PolicyName]string{
		nodeinfov1alpha1.CPUManagerPolicy:      one(t, "CPU manager", "static", "static", "static", "none"),
		nodeinfov1alpha1.TopologyManagerPolicy: one(t, "topology manager", "none", "best-effort", "restricted", "single-numa-node"),
	}
	o.Spec.ResReserved = map[string]string{"cpu": one(t, "reserved", "0", "0", "500m")}
	o.Spec.CPUDetail = map[string]nodeinfov1alpha1.CPUInfo{}
	of := one(t, "CPUs of a NUMA node", 2, 4)
	for cpu := range 2 * of {
		o.Spec.CPUDetail[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{NUMANodeID: cpu / of, SocketID: cpu / of, CoreID: cpu / 2}
	}
	free := one(t, "free", fmt.Sprint("0-", 2*of-1), fmt.Sprint("0-", 2*of-1), "0-1,3", "1,3", "")
	o.Spec.NumaResMap = map[string]nodeinfov1alpha1.ResourceInfo{"cpu": {Allocatable: free, Capacity: 2 * of}}
	for range rapid.IntRange(0, 2).Draw(t, "listed") {
		name := fmt.Sprint(one(t, "of group", "g1", "g2"), "-", rapid.IntRange(0, 3).Draw(t, "number"))
		o.Spec.PodAllocations = append(o.Spec.PodAllocations, nodeinfov1alpha1.PodAllocation{
			Namespace: "a", Name: name, // the UID differs in each history
			ContainerAllocations: []nodeinfov1alpha1.ContainerAllocation{{Allocations: map[string]string{"cpu": one(t, "has", "2", "0-1", "2-3")}}},
		})
	}
	return o
}

// drawLife makes some pods run, leave, end, or belong to another scheduler.
func drawLife(t *rapid.T, p *corev1.Pod, nodes int) {
	life := rapid.IntRange(0, 20).Draw(t, "life")
	if life < 7 || life > 14 {
		return
	}
	p.Spec.NodeName, p.Status.Phase = fmt.Sprint("n", rapid.IntRange(1, nodes).Draw(t, "on")), corev1.PodRunning
	switch life {
	case 7, 10:
		p.DeletionTimestamp = new(at(60))
	case 8:
		p.Status.Phase = one(t, "ended", corev1.PodSucceeded, corev1.PodFailed)
	case 9:
		p.Spec.SchedulerName = "default-scheduler"
		delete(p.Annotations, model.GroupAnnotation)
	}
}

// drawMeasure draws the measured load of a node, now or long ago.
func drawMeasure(t *rapid.T, node string) *metricsv1beta1.NodeMetrics {
	return &metricsv1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: at(one(t, "measured", 0, 0, -3600)),
		Usage: list(one(t, "usage", "cpu=1 memory=1Gi", "cpu=1700m memory=1Gi", "cpu=7 memory=5Gi", "cpu=0 memory=0")),
	}
}

// drawAnswer draws an extender's answer about a group's tasks, a group or a queue. The answer is new or old.
func drawAnswer(t *rapid.T, name, group, queue string) *extender.Answer {
	a := &extender.Answer{ObjectMeta: metav1.ObjectMeta{Name: name}, At: at(one(t, "said", 0, 0, 60, -3600))}
	form := one(t, "form", extender.Predicate, extender.Prioritize, extender.JobEnqueueable, extender.JobReady, extender.QueueOverused)
	a.URL = "http://extender/" + form
	switch form {
	case extender.JobEnqueueable:
		a.Of, a.Says = extender.Subject{Kind: extender.Job, Job: "a/" + group}, one(t, "vote", extender.Permit, extender.Reject, extender.Abstain)
	case extender.JobReady:
		a.Of, a.Says = extender.Subject{Kind: extender.Job, Job: "a/" + group}, one(t, "word", extender.Yes, extender.No)
	case extender.QueueOverused:
		a.Of, a.Says = extender.Subject{Kind: extender.Queue, Queue: queue}, one(t, "word", extender.Yes, extender.No)
	default:
		a.Of = extender.Subject{Kind: extender.Task, Job: "a/" + group, Role: one(t, "role", "", "worker")}
		for i := range 3 {
			a.Nodes = append(a.Nodes, extender.NodeAnswer{
				Name: fmt.Sprint("n", i+1), Refused: one(t, "refused", "", "", "no licence"), Score: one(t, "score", 0.0, 3, 50),
				Error: one(t, "failed", "", "", "", "answered 500"),
			})
		}
	}
	if seldom(t, "not asked") {
		a.Error, a.Says = "answered 500", ""
	}
	return a
}

// answered adds the answers of extenders to a world, if the policy asks extenders.
func answered(t *rapid.T, w *world, p *policy.Policy) *world {
	if !slices.ContainsFunc(p.All, func(r *policy.Rule) bool { return r.Table == "extender" }) {
		return w
	}
	drawn := func(i int) *extender.Answer {
		return drawAnswer(t, fmt.Sprint("said", i), one(t, "of group", "g1", "g2", "g3"), one(t, "of queue", "q1", "q2"))
	}
	for i := range one(t, "answers", 2, 6, 20, 40) {
		w.objects = append(w.objects, drawn(i))
	}
	for i := range w.changes {
		for range one(t, "new answers", 0, 1, 3) {
			op := one(t, "answer's", model.Upsert, model.Upsert, model.Delete)
			w.changes[i] = append(w.changes[i], model.Delta{Op: op, Object: drawn(rapid.IntRange(0, 5).Draw(t, "which answer"))})
		}
	}
	return w
}

// drawBudget draws a budget for all pods, for the pods of one role, or for no pods.
func drawBudget(t *rapid.T, name string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
	b.Spec.Selector = one(t, "budget of", &metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}, nil)
	b.Status.DisruptionsAllowed = one(t, "allowed", int32(0), 1, 2)
	if seldom(t, "gone already") {
		b.Status.DisruptedPods = map[string]metav1.Time{"g1-0": at(0)}
	}
	return b
}

func drawWorld(t *rapid.T) *world {
	w := &world{}
	add := func(o metav1.Object) { w.objects = append(w.objects, o) }
	queues, nodes, groups := rapid.IntRange(1, 3).Draw(t, "queues"), rapid.IntRange(1, 4).Draw(t, "nodes"),
		rapid.IntRange(1, 5).Draw(t, "groups")
	add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100})
	add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1})
	for i := range queues {
		add(drawQueue(t, fmt.Sprint("q", i+1)))
	}
	for i := range nodes {
		add(drawNode(t, fmt.Sprint("n", i+1)))
	}
	for i := range groups {
		group := fmt.Sprint("g", i+1)
		add(drawGroup(t, group, queues))
		for k := range rapid.IntRange(1, 5).Draw(t, "pods") {
			add(drawPod(t, fmt.Sprint(group, "-", k), group, nodes))
		}
	}
	if rapid.Bool().Draw(t, "load is measured") {
		for i := range nodes {
			add(drawMeasure(t, fmt.Sprint("n", i+1)))
		}
	}
	if rapid.Bool().Draw(t, "CPUs are told") {
		for i := range nodes {
			add(drawNuma(t, fmt.Sprint("n", i+1)))
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "budgets") {
		add(drawBudget(t, fmt.Sprint("b", i+1)))
	}
	for range rapid.IntRange(0, 2).Draw(t, "rounds") {
		var deltas []model.Delta
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			deltas = append(deltas, drawChange(t, nodes, groups, queues))
		}
		w.changes = append(w.changes, deltas)
	}
	return w
}

// drawChange draws a change between two cycles. Nodes keep their names, so that the node of a pod is known.
func drawChange(t *rapid.T, nodes, groups, queues int) model.Delta {
	group := fmt.Sprint("g", rapid.IntRange(1, groups).Draw(t, "of group"))
	pod := fmt.Sprint(group, "-", rapid.IntRange(0, 6).Draw(t, "number"))
	switch rapid.IntRange(0, 8).Draw(t, "change") {
	case 0:
		return model.Delta{Object: drawNode(t, fmt.Sprint("n", rapid.IntRange(1, nodes).Draw(t, "which")))}
	case 1:
		return model.Delta{Op: model.Delete, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "a"}}}
	case 2:
		return model.Delta{Object: drawGroup(t, group, queues)}
	case 3:
		return model.Delta{Object: drawQueue(t, fmt.Sprint("q", rapid.IntRange(1, queues).Draw(t, "which")))}
	case 6:
		return model.Delta{Op: one(t, "budget's", model.Upsert, model.Upsert, model.Delete), Object: drawBudget(t, one(t, "budget", "b1", "b2"))}
	case 7:
		return model.Delta{Object: drawMeasure(t, fmt.Sprint("n", rapid.IntRange(1, nodes).Draw(t, "which")))}
	case 8:
		return model.Delta{
			Op:     one(t, "Numatopology's", model.Upsert, model.Upsert, model.Delete),
			Object: drawNuma(t, fmt.Sprint("n", rapid.IntRange(1, nodes).Draw(t, "which"))),
		}
	}
	return model.Delta{Object: drawPod(t, pod, group, nodes)}
}

// Log writes the world as YAML, for a scenario.
func (w *world) Log(t *rapid.T) {
	var all []any
	for _, o := range w.objects {
		all = append(all, o)
	}
	for _, c := range w.changes {
		for _, d := range c {
			all = append(all, d)
		}
	}
	for _, o := range all {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("--- # %T\n%s", o, data)
	}
}

// drawSimpleWorld draws a world of alike nodes with room for all pods. Each pod asks for one core.
func drawSimpleWorld(t *rapid.T) (w *world, pods int) {
	w = &world{}
	queues := rapid.IntRange(1, 4).Draw(t, "queues")
	for i := range queues {
		q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("q", i+1)}}
		q.Spec.Weight = int32(rapid.IntRange(1, 50).Draw(t, "weight"))
		w.objects = append(w.objects, q)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
		group := fmt.Sprint("g", i+1)
		members := rapid.IntRange(1, 5).Draw(t, "members")
		g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: group, Namespace: "a"}}
		g.Spec.Queue, g.Status.Phase = fmt.Sprint("q", rapid.IntRange(1, queues).Draw(t, "queue")), v1beta1.PodGroupPending
		g.Spec.MinMember = int32(rapid.IntRange(0, members).Draw(t, "minMember"))
		w.objects = append(w.objects, g)
		for k := range members {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint(group, "-", k), Namespace: "a", UID: types.UID(group),
				Annotations: map[string]string{model.GroupAnnotation: group},
			}}
			p.Spec = corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: list("cpu=1 memory=1Gi")}},
			}}
			w.objects = append(w.objects, p)
			pods++
		}
	}
	perNode := rapid.IntRange(1, 8).Draw(t, "cores of a node")
	for i := range (pods+perNode-1)/perNode + rapid.IntRange(0, 2).Draw(t, "spare nodes") {
		allocatable := list(fmt.Sprintf("cpu=%d memory=%dGi pods=%d", perNode, perNode, perNode))
		w.objects = append(w.objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i+1)},
			Status:     corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
		})
	}
	return w, pods
}
