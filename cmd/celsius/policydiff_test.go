package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// traffic is a busy cluster. In each cycle, one gang arrives. Its pods run from the cycle after their binding, and end together after lasts
// cycles. More gangs arrive than the cluster has room for.
type traffic struct {
	nodes, gang, lasts int
	pods               map[string]*corev1.Pod
	ends               map[int][]*corev1.Pod // by cycle
}

func (x *traffic) arrive(n int, now time.Time, last *model.Plan) (deltas []model.Delta) {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	add := func(o any) { deltas = append(deltas, model.Delta{Object: o}) }
	if n == 0 {
		x.pods, x.ends = map[string]*corev1.Pod{}, map[int][]*corev1.Pod{}
		for i := range x.nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{"zone": fmt.Sprint(i % 4)}}}
			node.Status.Allocatable = amounts("16", "64Gi")
			node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			add(node)
		}
		for _, q := range []string{"research", "production", "batch"} {
			add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: q}, Spec: v1beta1.QueueSpec{Weight: 1}})
		}
	}
	for _, b := range last.Binds {
		pod := x.pods[b.Task].DeepCopy()
		pod.Spec.NodeName, pod.Status.Phase = b.Node, corev1.PodRunning
		x.pods[b.Task] = pod
		x.ends[n+x.lasts] = append(x.ends[n+x.lasts], pod)
		add(pod)
	}
	for _, pod := range x.ends[n] {
		deltas = append(deltas, model.Delta{Op: model.Delete, Object: pod})
		delete(x.pods, pod.Namespace+"/"+pod.Name)
	}
	delete(x.ends, n)
	name := fmt.Sprintf("gang-%05d", n)
	group := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(now)}}
	group.Spec.MinMember, group.Spec.Queue = int32(x.gang), []string{"research", "production", "batch"}[n%3] //nolint:gosec // a small number
	group.Status.Phase = v1beta1.PodGroupPending
	add(group)
	for i := range x.gang {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i), CreationTimestamp: metav1.NewTime(now),
			Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name},
		}}
		pod.Spec.SchedulerName = "celsius"
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{
			Requests: amounts(fmt.Sprint(1+n%4), "4Gi"),
		}}}
		x.pods[pod.Namespace+"/"+pod.Name] = pod
		add(pod)
	}
	return deltas
}

// BenchmarkPolicyDiff compares another policy with the decisions of 10,000 recorded cycles of a busy cluster. Run it with -benchtime 1x.
func BenchmarkPolicyDiff(b *testing.B) {
	for _, nodes := range []int{20, 200} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			x := &traffic{nodes: nodes, gang: 4, lasts: nodes * 16 / 10}
			folder := recordOf(b, 10_000, x.arrive)
			for b.Loop() {
				code, out, errs := command(b, "policy", "diff", "recorded", "../../samples/policies/launch.yaml", "--recording", folder,
					"--within", "0")
				if code != exitOK {
					b.Fatal(code, errs)
				}
				b.Log(out[:min(len(out), 300)])
			}
		})
	}
}
