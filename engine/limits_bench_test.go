package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// atTheLimits is 1,000 nodes, and pods that all have as many terms, tolerations and annotations as a pod may have. 16 pods make a PodGroup,
// whose terms all differ.
func atTheLimits(pods int) []model.Delta {
	var out []model.Delta
	add := func(o any) { out = append(out, model.Delta{Object: o}) }
	add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.QueueSpec{Weight: 1}})
	for i := range 1000 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-node-%04d", i)}}
		n.Labels = map[string]string{corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: fmt.Sprint("zone-", i%5)}
		n.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		add(n)
	}
	limits := model.DefaultLimits()
	for i := range pods {
		group := fmt.Sprint("training-", i/16)
		if i%16 == 0 {
			add(&v1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: group, Namespace: "team-a"}, Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: "default"},
				Status: v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupInqueue},
			})
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(group, "-", i%16), Namespace: "team-a", UID: types.UID(fmt.Sprint(i)),
			Labels:      map[string]string{"pod": fmt.Sprint("p", i)},
			Annotations: map[string]string{model.GroupAnnotation: group, "example.com/notes": strings.Repeat("x", limits.Metadata-200)},
		}}
		p.Spec.SchedulerName = "celsius"
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "img", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
		}}}
		for k := range limits.Tolerations {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: fmt.Sprintf("pool-%d-%d", i, k), Operator: corev1.TolerationOpExists,
			})
		}
		termsAtTheLimit(p, i, limits.PodTerms)
		add(p)
	}
	return out
}

func termsAtTheLimit(p *corev1.Pod, i, terms int) {
	anti := &corev1.PodAntiAffinity{}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: anti}
	keys := []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	modes := []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	for k := range terms {
		own := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "pod", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint("p", i)}},
			{Key: "without", Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint(k)}},
		}}
		if k%4 == 3 {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution,
				corev1.PodAffinityTerm{TopologyKey: keys[k%2], LabelSelector: own})
			continue
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: keys[k/2%2], WhenUnsatisfiable: modes[k%2], LabelSelector: own,
		})
	}
}

// hostile is what pods at the limits take: memory of all that is kept, and the first cycle.
func hostile(tb testing.TB, pods int) (memory uint64, cycle time.Duration) {
	tb.Helper()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	x := newScene(tb, defaultPolicy(tb), atTheLimits(pods))
	began := cpu(tb)
	x.cycle()
	cycle = cpu(tb) - began
	if len(x.plan.Binds) != pods {
		tb.Fatalf("%d of %d pods are bound", len(x.plan.Binds), pods)
	}
	memory = heap() - before
	runtime.KeepAlive(x)
	return memory, cycle
}

// TestPodsAtTheLimits holds what pods at the limits take to their number. A measurement that another process disturbed is repeated.
func TestPodsAtTheLimits(t *testing.T) {
	const most = 2.2
	for attempt := 1; ; attempt++ {
		less, lessTime := hostile(t, 500)
		memory, cycle := hostile(t, 1000)
		t.Logf("500 pods: %d MiB, %s; 1000 pods: %d MiB, %s", less>>20, lessTime, memory>>20, cycle)
		if memory > 1<<30 {
			t.Fatalf("1000 pods at the limits take %d MiB", memory>>20)
		}
		space, time := float64(memory)/float64(less), float64(cycle)/float64(lessTime)
		if space <= most && time <= most && cycle.Seconds() <= 5 {
			return
		}
		if attempt == 3 {
			t.Fatalf("a cycle takes %s; twice as many pods take %.2f times the memory and %.2f times the time", cycle, space, time)
		}
	}
}
