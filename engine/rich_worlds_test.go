package engine_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// drawRichWorld draws a world with more features. Some pods state which pods must be near them. Queues may be below other queues. Jobs may
// have pods that do not exist yet, and pods may have volumes.
func drawRichWorld(t *rapid.T) *world {
	w := drawWorld(t)
	if rapid.Bool().Draw(t, "crowded") {
		settle(t, w)
	}
	if !rapid.Bool().Draw(t, "plain") {
		enrichWorld(t, w)
	}
	return w
}

// drawFullWorld draws a world in which pods fill most nodes, and others wait.
func drawFullWorld(t *rapid.T) *world {
	w := &world{}
	add := func(o metav1.Object) { w.objects = append(w.objects, o) }
	add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100})
	add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1})
	add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1beta1.QueueSpec{Weight: 1}})
	queues, nodes := rapid.IntRange(1, 3).Draw(t, "queues"), rapid.IntRange(1, 3).Draw(t, "nodes")
	groups := rapid.IntRange(2, 5).Draw(t, "groups")
	for i := range queues {
		q := drawQueue(t, fmt.Sprint("q", i+1))
		q.Spec.Parent = one(t, "parent", "", "", "q1")
		if q.Spec.Parent == q.Name {
			q.Spec.Parent = ""
		}
		q.Spec.Deserved = list(one(t, "deserved", "", "cpu=1", "cpu=3 memory=2Gi"))
		if seldomer(t, "not reclaimable", 6) {
			q.Spec.Reclaimable = new(bool)
		}
		add(q)
	}
	for i := range nodes {
		n := drawNode(t, fmt.Sprint("n", i+1))
		n.Spec.Taints, n.Spec.Unschedulable = nil, false
		add(n)
	}
	if rapid.Bool().Draw(t, "CPUs are told") {
		for i := range nodes {
			add(drawNuma(t, fmt.Sprint("n", i+1)))
		}
	}
	for i := range groups {
		group := fmt.Sprint("g", i+1)
		add(drawGroup(t, group, queues))
		for k := range rapid.IntRange(1, 4).Draw(t, "pods") {
			add(drawPod(t, fmt.Sprint(group, "-", k), group, nodes))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "rounds") {
		w.changes = append(w.changes, []model.Delta{drawChange(t, nodes, groups, queues)})
	}
	settle(t, w)
	if rapid.Bool().Draw(t, "rich") {
		enrichWorld(t, w)
	}
	return w
}

func enrichWorld(t *rapid.T, w *world) {
	var more []metav1.Object
	for _, o := range w.objects {
		if g, ok := o.(*v1beta1.PodGroup); ok && seldomer(t, "of a Job", 4) {
			more = append(more, ownedByAJob(t, g))
		}
		enrich(t, o)
	}
	w.objects = append(more, w.objects...)
	for _, deltas := range w.changes {
		for _, d := range deltas {
			if d.Op == model.Upsert {
				enrich(t, d.Object.(metav1.Object))
			}
		}
	}
	if rapid.Bool().Draw(t, "volumes") {
		withVolumes(t, w)
	}
}

// settle makes the pods of some groups run, as many as there is room for. The pods of the other groups come later.
func settle(t *rapid.T, w *world) {
	var nodes []*corev1.Node
	for _, o := range w.objects {
		switch o := o.(type) {
		case *corev1.Node:
			nodes = append(nodes, o)
		case *v1beta1.PodGroup:
			o.Spec.MinMember = one(t, "fewer", int32(1), 1, 2)
			o.Spec.PriorityClassName = one(t, "class of those who wait", "high", "high", "low", "")
			o.Status.Phase, o.Spec.MinTaskMember = v1beta1.PodGroupInqueue, nil
			if resident(o.Name) {
				o.Spec.MinMember, o.Spec.PriorityClassName = one(t, "least", int32(0), 0, 1), one(t, "class of residents", "", "low")
				o.Status.Phase = v1beta1.PodGroupRunning
			}
		}
	}
	left := map[string]int64{}
	for _, n := range nodes {
		left[n.Name] = n.Status.Allocatable.Cpu().MilliValue()
	}
	for _, o := range w.objects {
		p, ok := o.(*corev1.Pod)
		if !ok || !resident(p.Annotations[model.GroupAnnotation]) || p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 {
			continue
		}
		asks := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		for _, n := range nodes {
			if asks <= left[n.Name] {
				left[n.Name] -= asks
				p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
				break
			}
		}
	}
	for _, n := range nodes { // most nodes are full then
		spare := one(t, "spare", int64(0), 0, 500, 1000)
		room := n.Status.Allocatable.DeepCopy()
		room[corev1.ResourceCPU] = *resource.NewMilliQuantity(room.Cpu().MilliValue()-max(left[n.Name]-spare, 0), resource.DecimalSI)
		n.Status.Allocatable, n.Status.Capacity = room, room
	}
}

// resident reports whether the pods of a group exist before the others.
func resident(group string) bool { return len(group) > 1 && group[1]%2 == 1 }

// seldomer is true once in n times.
func seldomer(t *rapid.T, label string, n int) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

// ownedByAJob makes a Job the owner of a group. The Job has pods that do not exist yet.
func ownedByAJob(t *rapid.T, g *v1beta1.PodGroup) *batchv1alpha1.Job {
	j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-" + g.Name, Namespace: g.Namespace, UID: types.UID("uid-job-" + g.Name)}}
	for _, role := range []string{"worker", "ps"} {
		task := batchv1alpha1.TaskSpec{Name: role, Replicas: int32(rapid.IntRange(0, 4).Draw(t, role))}
		task.Template.Spec.Containers = []corev1.Container{
			{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(one(t, "requests of "+role, "cpu=1 memory=1Gi", "cpu=2"))}},
		}
		j.Spec.Tasks = append(j.Spec.Tasks, task)
	}
	g.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: j.Name, UID: j.UID,
		Controller: new(true),
	}}
	return j
}

func enrich(t *rapid.T, o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		o.Labels[corev1.LabelHostname] = o.Name
	case *v1beta1.Queue:
		o.Spec.Parent = one(t, "parent", "", "", "", "q1", "q3", "nowhere")
		if o.Spec.Parent == o.Name {
			o.Spec.Parent = "root"
		}
		o.Spec.Deserved = list(one(t, "deserved", "", "cpu=1", "cpu=3 memory=2Gi"))
		o.Spec.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
	case *v1beta1.PodGroup:
		o.Labels = map[string]string{"zone": one(t, "zone", "east", "west")}
	case *corev1.Pod:
		o.Labels = map[string]string{"app": one(t, "app", "a", "a", "b")}
		if seldomer(t, "terms", 3) {
			o.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
			enrichTerms(t, o)
		}
	}
}

func enrichTerms(t *rapid.T, p *corev1.Pod) {
	term := func() corev1.PodAffinityTerm {
		who := &metav1.LabelSelector{MatchLabels: map[string]string{"app": one(t, "who", "a", "b")}}
		return corev1.PodAffinityTerm{TopologyKey: one(t, "topology", "zone", corev1.LabelHostname), LabelSelector: who}
	}
	near, apart := p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity
	switch term := term(); rapid.IntRange(0, 5).Draw(t, "term") {
	case 0:
		near.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	case 1:
		apart.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	case 2:
		near.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: term}}
	case 3:
		apart.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: term}}
	default:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, LabelSelector: term.LabelSelector,
			WhenUnsatisfiable: one(t, "unsatisfiable", corev1.DoNotSchedule, corev1.ScheduleAnyway),
		}}
	}
}
