package openb

import (
	"errors"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	schedulerName = "celsius"
	namespace     = "openb"
	queueName     = "default"
	// podsPerNode is more than the number of pods in the longest trace, because the published runs have no such limit.
	podsPerNode = 100_000
)

// start returns when the first pod arrives. The others follow one second apart. Nothing depends on the date.
func start() time.Time { return time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC) }

// copyName returns the name of the n-th copy of a pod.
func copyName(name string, n int) string { return name + "-copy-" + strconv.Itoa(n) }

// taskName returns the pod's name in the trace for a task's key.
func taskName(key string) string { return strings.TrimPrefix(key, namespace+"/") }

// opening contains the objects of the state before the first arrival of a run, when all arrivals wait. It is created once, so that policies
// are compared on the same state. The clusters that are created from it share its objects.
type opening struct {
	trace    *Trace
	seed     int64
	replay   replay
	workload []model.Shape
	deltas   []model.Delta
	ranks    map[string]int // the ranks of the nodes
}

// opening draws the run of a seed.
func (t *Trace) opening(seed int64) *opening {
	o := &opening{trace: t, seed: seed, replay: t.replay(seed), workload: t.shapes(), ranks: make(map[string]int, len(t.Nodes))}
	o.deltas = make([]model.Delta, 0, 1+len(t.Nodes)+2*len(o.replay.pods))
	add := func(object any) { o.deltas = append(o.deltas, model.Delta{Op: model.Upsert, Object: object}) }
	add(&v1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: queueName, CreationTimestamp: metav1.Time{Time: start()}},
		Spec:       v1beta1.QueueSpec{Weight: 1},
		Status:     v1beta1.QueueStatus{State: v1beta1.QueueStateOpen},
	})
	for i, n := range t.Nodes {
		add(n.object())
		o.ranks[n.Name] = o.replay.rank[i]
	}
	for i, p := range o.replay.pods {
		arrival := metav1.Time{Time: start().Add(time.Duration(i) * time.Second)}
		add(p.group(arrival))
		add(p.object(arrival))
	}
	return o
}

// end returns the time when all pods have arrived.
func (o *opening) end() time.Time {
	return start().Add(time.Duration(len(o.replay.pods)) * time.Second)
}

// cluster returns a new cluster in this state.
func (o *opening) cluster() (*model.Cluster, error) {
	c := model.NewCluster(model.Options{Seed: o.seed, SchedulerNames: []string{schedulerName}, Workload: o.workload})
	if err := errors.Join(c.Apply(o.deltas...)...); err != nil {
		return nil, err
	}
	c.SetNodeOrder(o.ranks)
	return c, nil
}

// shapes returns the recorded pod list, for policies that read the typical pods of the workload.
func (t *Trace) shapes() []model.Shape {
	out := make([]model.Shape, 0, len(t.Pods))
	for _, p := range t.Pods {
		s := model.Shape{CPU: float64(p.CPUMilli), GPUCount: p.GPUs, GPUMilli: p.GPUMilli, Tasks: 1}
		if p.Models != "" {
			s.GPUModels = strings.Split(p.Models, "|")
		}
		out = append(out, s)
	}
	return out
}

func (n Node) object() *corev1.Node {
	size := amounts(n.CPUMilli, n.MemoryMiB)
	size[corev1.ResourcePods] = *resource.NewQuantity(podsPerNode, resource.DecimalSI)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: map[string]string{
			model.NodeGPUsAnnotation: strconv.Itoa(n.GPUs),
			model.GPUModelAnnotation: n.Model,
		}},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
}

func (p Pod) group(arrival metav1.Time) *v1beta1.PodGroup {
	return &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, CreationTimestamp: arrival},
		Spec:       v1beta1.PodGroupSpec{MinMember: 1, Queue: queueName},
		Status:     v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupInqueue},
	}
}

func (p Pod) object(arrival metav1.Time) *corev1.Pod {
	annotations := map[string]string{model.GroupAnnotation: p.Name}
	if p.GPUs > 0 {
		annotations[model.GPUCountAnnotation] = strconv.FormatInt(p.GPUs, 10)
		annotations[model.GPUMilliAnnotation] = strconv.FormatInt(p.GPUMilli, 10)
	}
	if p.Models != "" {
		annotations[model.GPUModelsAnnotation] = p.Models
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: namespace, UID: types.UID(p.Name), CreationTimestamp: arrival, Annotations: annotations,
		},
		Spec: corev1.PodSpec{
			SchedulerName: schedulerName,
			Containers:    []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts(p.CPUMilli, p.MemoryMiB)}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func amounts(cpuMilli, memoryMiB int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
	}
}
