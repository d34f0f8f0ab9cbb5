package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// workload is one scenario: nodes of 32 CPU, 256Gi, 110 pods; jobs x pods, all pending, of a variant:
// same (1 CPU, 2Gi), shapes (50 of them), constrained (as same, each third bound to zones z0-z2 and
// tolerating a taint), nofit (pods of 2 CPU on nodes of 1).
type workload struct {
	nodes, jobs, pods int
	variant           string
}

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

func (w workload) objects() []model.Delta {
	var out []model.Delta
	add := func(object any) { out = append(out, model.Delta{Op: model.Upsert, Object: object}) }
	add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.QueueSpec{Weight: 1}, Status: v1beta1.QueueStatus{State: "Open"}})
	for i := range w.nodes {
		add(w.node(i))
	}
	for j := range w.jobs {
		name := fmt.Sprintf("job-%05d", j)
		add(&v1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", CreationTimestamp: metav1.Unix(int64(j), 0)},
			Spec:       v1beta1.PodGroupSpec{MinMember: int32(w.pods), Queue: "default"}, Status: v1beta1.PodGroupStatus{Phase: "Pending"},
		})
		for p := range w.pods {
			add(w.pod(name, j*w.pods+p))
		}
	}
	return out
}

func (w workload) node(i int) *corev1.Node {
	cpu := "32"
	if w.variant == "nofit" {
		cpu = "1"
	}
	list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	name := fmt.Sprintf("node-%05d", i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%10), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		Status: corev1.NodeStatus{Allocatable: list, Capacity: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if w.variant == "constrained" && i%10 == 2 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func (w workload) pod(job string, i int) *corev1.Pod {
	cpu, memory := resource.MustParse("1"), resource.MustParse("2Gi")
	switch k := i % 50; w.variant {
	case "shapes":
		cpu, memory = *resource.NewMilliQuantity(int64(k%10+1)*100, resource.DecimalSI), *resource.NewQuantity(int64(k/10+1)*512<<20, resource.BinarySI)
	case "nofit":
		cpu = resource.MustParse("2")
	}
	name := fmt.Sprintf("pod-%05d", i)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid-" + "0", CreationTimestamp: metav1.Unix(int64(i), 0), Annotations: map[string]string{"scheduling.k8s.io/group-name": job}},
		Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": cpu, "memory": memory}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if w.variant == "constrained" && i%3 == 0 {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z0", "z1", "z2"}},
			}}},
		}}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	}
	return p
}

// cpu is the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecide is one cycle from a cold state under the default policy. Beside the usual figures it reports
// process CPU, pods bound, evaluations of predicate and score rows, and a hash of the plan, so that
// two runs can be seen to have done the same work.
func BenchmarkDecide(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.String(), func(b *testing.B) {
			p, issues := policy.Default()
			if issues.Err() != nil {
				b.Fatal(issues)
			}
			deltas := w.objects()
			var used time.Duration
			var plan *model.Plan
			var s *policy.Session
			for b.Loop() {
				b.StopTimer()
				c := model.NewCluster(model.Options{})
				if errs := c.Apply(deltas...); len(errs) > 0 {
					b.Fatal(errs[0])
				}
				b.StartTimer()
				start := cpu(b)
				s = policy.NewSession(c, p)
				plan = engine.Cycle(s, time.Unix(1_800_000_000, 0))
				used += cpu(b) - start
			}
			perRun := used / time.Duration(b.N)
			b.ReportMetric(float64(perRun.Milliseconds()), "cpu-ms/op")
			b.ReportMetric(float64(len(plan.Binds)), "binds")
			b.ReportMetric(float64(w.jobs*w.pods)/perRun.Seconds(), "pods/cpu-s")
			evaluations := uint64(0)
			for _, site := range policy.Sites() {
				for _, r := range s.Policy().Rules(site.Name) {
					evaluations += s.Evaluated(r)
				}
			}
			b.ReportMetric(float64(evaluations), "evaluations")
			b.ReportMetric(float64(planHash(b, plan)), "plan-hash")
			b.ReportAllocs()
		})
	}
}

func planHash(b *testing.B, plan *model.Plan) uint32 {
	b.Helper()
	data, err := json.Marshal(plan)
	if err != nil {
		b.Fatal(err)
	}
	h := fnv.New32a()
	_, _ = h.Write(data)
	return h.Sum32()
}
