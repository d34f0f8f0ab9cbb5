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
	// podsPerNode is more than the longest trace has pods: the published runs have no such limit.
	podsPerNode = 100_000
)

// start is when the first pod arrives; the others follow a second apart. Nothing depends on the date.
func start() time.Time { return time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC) }

// copyName is the name of the n-th copy of a pod.
func copyName(name string, n int) string { return name + "-copy-" + strconv.Itoa(n) }

// taskName is the pod's name in the trace of a task's key.
func taskName(key string) string { return strings.TrimPrefix(key, namespace+"/") }

// cluster is the state before the first arrival, with all arrivals waiting.
func (t *Trace) cluster(run replay, seed int64) (*model.Cluster, error) {
	c := model.NewCluster(model.Options{Seed: seed, SchedulerNames: []string{schedulerName}, Workload: t.shapes()})
	deltas := make([]model.Delta, 0, 1+len(t.Nodes)+2*len(run.pods))
	add := func(object any) { deltas = append(deltas, model.Delta{Op: model.Upsert, Object: object}) }
	add(&v1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: queueName, CreationTimestamp: metav1.Time{Time: start()}},
		Spec:       v1beta1.QueueSpec{Weight: 1},
		Status:     v1beta1.QueueStatus{State: v1beta1.QueueStateOpen},
	})
	ranks := make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		add(n.object())
		ranks[n.Name] = run.rank[i]
	}
	for i, p := range run.pods {
		arrival := metav1.Time{Time: start().Add(time.Duration(i) * time.Second)}
		add(p.group(arrival))
		add(p.object(arrival))
	}
	if err := errors.Join(c.Apply(deltas...)...); err != nil {
		return nil, err
	}
	c.SetNodeOrder(ranks)
	return c, nil
}

// shapes is the pod list as recorded, for policies that ask what pods of the workload are like.
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
