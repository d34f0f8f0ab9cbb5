package engine_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// workload is one scenario. Its nodes have 32 CPU, 256Gi and 110 pods. It has jobs x pods, all pending, of a variant:
//
//   - same: 1 CPU and 2Gi
//   - shapes: 50 different shapes
//   - constrained: like same, but each third pod is bound to zones z0-z2 and tolerates a taint
//   - nofit: pods of 2 CPU on nodes of 1
//   - interleaved: 500 shapes, and jobs that take turns in queues
type workload struct {
	nodes, jobs, pods int
	variant           string
}

// turnQueues is the number of queues that the jobs of the variant interleaved use.
const turnQueues = 20

func (w workload) String() string {
	return fmt.Sprintf("nodes=%d/jobs=%dx%d/pods=%s", w.nodes, w.jobs, w.pods, w.variant)
}

func workloads() []workload {
	var out []workload
	for _, nodes := range []int{1000, 5000, 10000} {
		for _, shape := range [][2]int{{10000, 1}, {500, 20}, {20, 500}, {1, 10000}} {
			out = append(out, workload{nodes, shape[0], shape[1], "constrained"})
		}
	}
	for _, variant := range []string{"same", "shapes", "nofit"} {
		out = append(out, workload{5000, 500, 20, variant})
	}
	return out
}

func upsert(object any) model.Delta { return model.Delta{Op: model.Upsert, Object: object} }

func (w workload) objects() []model.Delta {
	queues := []string{"default"}
	if w.variant == "interleaved" {
		queues = nil
		for i := range turnQueues {
			queues = append(queues, fmt.Sprintf("queue-%02d", i))
		}
	}
	var out []model.Delta
	for _, name := range queues {
		out = append(out, upsert(benchQueue(name)))
	}
	for i := range w.nodes {
		out = append(out, upsert(w.node(i)))
	}
	for j := range w.jobs {
		g := benchGroup(fmt.Sprintf("job-%05d", j), w.pods, time.Unix(int64(j), 0))
		g.Spec.Queue = queues[j%len(queues)]
		if w.variant == "interleaved" {
			g.Spec.MinMember = 1 // it yields after each pod
		}
		out = append(out, upsert(g))
		for p := range w.pods {
			out = append(out, upsert(w.pod(g.Name, j*w.pods+p)))
		}
	}
	return out
}

func (w workload) node(i int) *corev1.Node {
	cpu := "32"
	if w.variant == "nofit" {
		cpu = "1"
	}
	n := benchNode(i, cpu)
	if w.variant == "constrained" && i%10 == 2 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func (w workload) pod(job string, i int) *corev1.Pod {
	cpu, mebibytes := int64(1000), int64(2048)
	switch k := int64(i % 50); w.variant {
	case "shapes":
		cpu, mebibytes = (k%10+1)*100, (k/10+1)*512
	case "interleaved":
		k = int64(i % 500)
		cpu, mebibytes = (k%10+1)*100, (k/10+1)*64
	case "nofit":
		cpu = 2000
	}
	p := benchPod(fmt.Sprintf("pod-%05d", i), job, cpu, mebibytes)
	p.UID, p.CreationTimestamp = "uid-0", metav1.Unix(int64(i), 0)
	if w.variant == "constrained" && i%3 == 0 {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z0", "z1", "z2"}},
				}}},
			},
		}}
		p.Spec.Tolerations = []corev1.Toleration{{
			Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "batch",
			Effect: corev1.TaintEffectNoSchedule,
		}}
	}
	return p
}

// steady is a cluster that runs pods: ten on each node, in gangs of ten. In addition, jobs with this number of pods each are pending. No
// pending pod fits, because each requests 25 CPU, and each node has 22 idle CPU.
type steady struct {
	nodes, jobs, pods int
}

func (w steady) String() string {
	if w.jobs == 0 {
		return fmt.Sprintf("nodes=%d/waiting=none", w.nodes)
	}
	return fmt.Sprintf("nodes=%d/waiting=%dx%d", w.nodes, w.jobs, w.pods)
}

func steadies() []steady {
	return []steady{{nodes: 10000}, {10000, 10000, 1}, {10000, 500, 20}}
}

// benchStart returns the start of the measured cycles: nine in the morning in Paris.
func benchStart() time.Time { return time.Unix(1_800_000_000, 0) }

func (w steady) objects() []model.Delta {
	out := []model.Delta{upsert(benchQueue("default"))}
	for i := range w.nodes {
		out = append(out, upsert(benchNode(i, "32")))
	}
	before := func(seconds int) time.Time { return benchStart().Add(-time.Duration(seconds) * time.Second) }
	for j := range w.nodes {
		g := benchGroup(fmt.Sprintf("running-%05d", j), 10, before(100_000-j))
		g.Status.Phase, g.Status.Running = v1beta1.PodGroupRunning, 10
		out = append(out, upsert(g))
		for k := range 10 {
			p := benchPod(fmt.Sprintf("%s-%d", g.Name, k), g.Name, 1000, 2048)
			p.CreationTimestamp, p.Status.StartTime = g.CreationTimestamp, &g.CreationTimestamp
			p.Spec.NodeName, p.Status.Phase = nodeName((10*j+k)%w.nodes), corev1.PodRunning
			out = append(out, upsert(p))
		}
	}
	for j := range w.jobs {
		out = append(out, gang(fmt.Sprintf("waiting-%05d", j), w.pods, 25_000, before(w.jobs-j))...)
	}
	return out
}

// gang makes a job with its pods. Each pod asks for milli thousandths of a CPU, and 2Gi.
func gang(name string, pods int, milli int64, created time.Time) []model.Delta {
	out := []model.Delta{upsert(benchGroup(name, pods, created))}
	for k := range pods {
		p := benchPod(fmt.Sprintf("%s-%d", name, k), name, milli, 2048)
		p.CreationTimestamp = metav1.NewTime(created)
		out = append(out, upsert(p))
	}
	return out
}

// gone returns the deletion of the objects of the deltas.
func gone(deltas []model.Delta) []model.Delta {
	out := make([]model.Delta, len(deltas))
	for i, d := range deltas {
		out[i] = model.Delta{Op: model.Delete, Object: d.Object}
	}
	return out
}

func benchQueue(name string) *v1beta1.Queue {
	return &v1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.QueueSpec{Weight: 1},
		Status: v1beta1.QueueStatus{State: "Open"},
	}
}

func benchGroup(name string, minMember int, created time.Time) *v1beta1.PodGroup {
	return &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", CreationTimestamp: metav1.NewTime(created)},
		Spec:       v1beta1.PodGroupSpec{MinMember: int32(minMember), Queue: "default"}, Status: v1beta1.PodGroupStatus{Phase: "Pending"},
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func benchNode(i int, cpu string) *corev1.Node {
	list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	name := nodeName(i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%10), "kubernetes.io/os": "linux",
			"kubernetes.io/arch": "amd64",
		}},
		Status: corev1.NodeStatus{Allocatable: list, Capacity: list, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

func benchPod(name, job string, milli, mebibytes int64) *corev1.Pod {
	cpu, memory := *resource.NewMilliQuantity(milli, resource.DecimalSI), *resource.NewQuantity(mebibytes<<20, resource.BinarySI)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Annotations: map[string]string{
			model.GroupAnnotation: job,
		}},
		Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": cpu, "memory": memory}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}
