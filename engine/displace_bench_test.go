package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// mayGo says which running pods may go for waiting ones.
type mayGo string

const (
	pods   mayGo = "pods"   // each pod by itself
	gangs  mayGo = "gangs"  // pods of gangs of 8, which go as a whole
	lower  mayGo = "lower"  // pods of gangs of 8 of the same queue, of lower priority
	nobody mayGo = "nobody" // no pod
	tooFew mayGo = "tooFew" // one pod less than is needed, spread over all nodes
	anyOne mayGo = "anyOne" // any one pod, but never two: all are of one gang, and each waiting pod asks for two GPUs
)

// takingShape is a cluster that is full of pods of one GPU each, and a gang that waits.
type takingShape struct {
	nodes int // of 8 GPUs
	gang  int // waiting pods of one GPU each that must start together; 0: single jobs of one pod, as many as run
	may   mayGo
}

func (s takingShape) String() string {
	return fmt.Sprintf("nodes=%d/gang=%d/may=%s", s.nodes, s.gang, s.may)
}

// due returns how many waiting pods get room: at most half of the cluster, and all of a gang or nothing.
func (s takingShape) due() int {
	switch {
	case s.may == nobody || s.may == tooFew || s.may == anyOne:
		return 0
	case s.gang == 0:
		return 4 * s.nodes
	}
	return s.gang
}

// benchGPUs sets an object's amount of GPUs.
func benchGPUs(list corev1.ResourceList, count int64) {
	list["nvidia.com/gpu"] = *resource.NewQuantity(count, resource.DecimalSI)
}

// gpuNode makes a node of 8 GPUs.
func gpuNode(i int) *corev1.Node {
	n := benchNode(i, "64")
	benchGPUs(n.Status.Allocatable, 8)
	return n
}

// gpuJob makes a job of pods with GPUs. The pods run on a node; "": they wait.
func gpuJob(name, queue string, count, min int, gpus int64, node string) []model.Delta {
	g := benchGroup(name, min, time.Unix(0, 0))
	g.Spec.Queue, g.Status.Phase = queue, v1beta1.PodGroupInqueue
	if node != "" {
		g.Status.Phase = v1beta1.PodGroupRunning
	}
	out := []model.Delta{upsert(g)}
	for i := range count {
		p := benchPod(fmt.Sprintf("%s-%05d", name, i), name, 1000, 1024)
		benchGPUs(p.Spec.Containers[0].Resources.Requests, gpus)
		if node != "" {
			p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		}
		out = append(out, upsert(p))
	}
	return out
}

// inTurn sets the creation times of jobs: each job is created one second after the one before.
func inTurn(deltas []model.Delta) []model.Delta {
	for i, d := range deltas {
		if g, ok := d.Object.(*v1beta1.PodGroup); ok {
			g.CreationTimestamp.Time = time.Unix(int64(i), 0)
		}
	}
	return deltas
}

// objects returns the cluster, and then the waiting pods.
func (s takingShape) objects() (cluster, waiting []model.Delta) {
	lent, due := benchQueue("lent"), benchQueue("due")
	if s.may == nobody {
		lent.Spec.Reclaimable = new(bool)
	}
	cluster = append(cluster, upsert(lent), upsert(due))
	if s.may == anyOne {
		cluster = append(cluster, s.wide()...)
	}
	for i := range s.nodes {
		n := gpuNode(i)
		cluster = append(cluster, upsert(n))
		if s.may == anyOne {
			continue
		}
		if s.may == gangs || s.may == lower {
			cluster = append(cluster, gpuJob(fmt.Sprintf("whole-%05d", i), "lent", 8, 8, 1, n.Name)...)
			continue
		}
		for k := range 8 {
			one := gpuJob(fmt.Sprintf("one-%05d-%d", i, k), "lent", 1, 0, 1, n.Name)
			if s.may == tooFew && !s.first(8*i+k) {
				one[1].Object.(*corev1.Pod).Annotations["volcano.sh/preemptable"] = "false"
			}
			cluster = append(cluster, one...)
		}
	}
	waiting = s.waiting()
	if s.may == lower {
		group := waiting[0].Object.(*v1beta1.PodGroup)
		group.Spec.Queue, group.Spec.PriorityClassName = "lent", "high"
		cluster = append(cluster, upsert(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}))
	}
	all := inTurn(append(cluster, waiting...))
	return all[:len(cluster)], all[len(cluster):]
}

// wide makes one gang on all GPUs that can lose one pod.
func (s takingShape) wide() []model.Delta {
	pods := 8 * s.nodes
	out := gpuJob("wide", "lent", pods, pods-1, 1, "node")
	for i := range pods {
		out[len(out)-1-i].Object.(*corev1.Pod).Spec.NodeName = gpuNode(i / 8).Name
	}
	return out
}

// waiting makes the waiting jobs.
func (s takingShape) waiting() (out []model.Delta) {
	switch {
	case s.may == anyOne:
		for i := range s.gang { // no two are alike
			one := gpuJob(fmt.Sprintf("wait-%05d", i), "due", 1, 1, 2, "")
			asks := one[1].Object.(*corev1.Pod).Spec.Containers[0].Resources.Requests
			asks["memory"] = *resource.NewQuantity(int64(i+1)<<20, resource.BinarySI)
			out = append(out, one...)
		}
	case s.gang > 0:
		return gpuJob("gang", "due", s.gang, s.gang, 1, "")
	default:
		for i := range 8 * s.nodes {
			out = append(out, gpuJob(fmt.Sprintf("wait-%05d", i), "due", 1, 1, 1, "")...)
		}
	}
	return out
}

// first reports whether a running pod is the first of its part. The running pods form as many parts as the gang has pods, minus one.
func (s takingShape) first(pod int) bool {
	part := func(pod int) int { return pod * (s.gang - 1) / (8 * s.nodes) }
	return pod == 0 || part(pod) != part(pod-1)
}

// takingPolicy makes a policy of Volcano's plugins with a pipeline.
func takingPolicy(tb testing.TB, pipeline string) *policy.Policy {
	tb.Helper()
	return compile(tb, "taking", fmt.Appendf(nil, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: taking}
spec:
  pipeline: %s
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: conformance}]
  - name: second
    tables: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`, pipeline)).policies[0]
}

// Two pipelines that take room back, and one that does not.
const (
	takePods  = "[enqueue, allocate, preempt, reclaim, backfill]"
	takeGangs = "[enqueue, allocate, gangpreempt, gangreclaim, backfill]"
	takeNone  = "[enqueue, allocate, backfill]"
)

// cold returns a cluster of which nothing is known yet, and its first cycle.
func (s takingShape) cold(b testing.TB, p *policy.Policy) (x *scene, cycle func()) {
	cluster, waiting := s.objects()
	x = newScene(b, p, append(cluster, waiting...))
	return x, x.first
}

// atWork returns a cluster that was at rest when the waiting pods came, and its next cycle.
func (s takingShape) atWork(b testing.TB, p *policy.Policy) (x *scene, cycle func()) {
	cluster, waiting := s.objects()
	x = newScene(b, p, cluster)
	x.settle()
	x.apply(b, waiting)
	return x, x.cycle
}

// first runs a cycle in a new session.
func (x *scene) first() {
	s := x.d.Session()
	x.begin(s.Cluster(), s.Policy())
	x.cycle()
}

// take measures a cycle that takes room back, and checks the result. The right number of pods is evicted for the same number of waiting
// pods. These are bound when the evicted pods are gone.
func (s takingShape) take(b *testing.B, p *policy.Policy, begin func(testing.TB, *policy.Policy) (*scene, func())) {
	m := &meter{}
	for b.Loop() {
		b.StopTimer()
		x, cycle := begin(b, p)
		m.once(b, x, cycle)
		gone := x.evicted(b)
		if may, promised := len(gone), len(x.plan.Pipelines); may != s.due() || promised != s.due() {
			b.Fatalf("%d go, and %d are promised room; want %d", may, promised, s.due())
		}
		x.apply(b, gone)
		x.cycle()
		if m.binds = len(x.plan.Binds); m.binds != s.due() {
			b.Fatalf("%d are bound in the end, want %d", m.binds, s.due())
		}
		b.StartTimer()
	}
	m.report(b)
	b.ReportMetric(float64(m.evictions), "evictions")
}

// once measures a cycle while the timer is otherwise stopped. It collects garbage before, so that the cost of making the world is not
// counted.
func (m *meter) once(b *testing.B, x *scene, cycle func()) {
	b.Helper()
	runtime.GC()
	before := x.evaluations()
	b.StartTimer()
	start := cpu(b)
	cycle()
	m.used += cpu(b) - start
	b.StopTimer()
	m.evaluations += x.evaluations() - before
	m.plan, m.evictions = digestsOf(b, x.plan), len(x.plan.Evicts)
}

// evicted returns the deletion of the pods that the last plan evicts.
func (x *scene) evicted(tb testing.TB) (out []model.Delta) {
	tb.Helper()
	for _, e := range x.plan.Evicts {
		out = append(out, model.Delta{Op: model.Delete, Object: benchPod(strings.TrimPrefix(e.Task, "default/"), "", 0, 0)})
	}
	return out
}

// BenchmarkTakeBack measures one cycle from a cold state in which a queue of a full cluster takes back what is due to it.
func BenchmarkTakeBack(b *testing.B) {
	one, whole := takingPolicy(b, takePods), takingPolicy(b, takeGangs)
	for _, s := range []takingShape{
		{10, 40, pods},
		{50, 80, pods},
		{100, 80, pods},
		{200, 80, pods},
		{500, 80, pods},
		{1000, 80, pods},
		{5000, 80, pods},
		{10000, 80, pods},
		{5000, 1000, pods},
		{5000, 80, gangs},
		{500, 80, lower},
		{5000, 80, lower},
		{5000, 1000, lower},
		{100, 400, pods},
		{500, 2000, pods},
		{500, 80, nobody},
		{5000, 80, nobody},
		{500, 80, tooFew},
		{5000, 80, tooFew},
		{500, 80, anyOne},
		{5000, 80, anyOne},
		{100, 0, pods},
		{500, 0, pods},
	} {
		p := one
		if s.may == gangs || s.may == lower {
			p = whole
		}
		b.Run(s.String(), func(b *testing.B) { s.take(b, p, s.cold) })
	}
}

// BenchmarkTakeBackAtWork measures a gang that comes to a full cluster at rest.
func BenchmarkTakeBackAtWork(b *testing.B) {
	p := takingPolicy(b, takePods)
	for _, s := range []takingShape{
		{500, 80, pods},
		{5000, 80, pods},
		{500, 80, nobody},
		{5000, 80, nobody},
		{500, 80, tooFew},
		{5000, 80, tooFew},
	} {
		b.Run(s.String(), func(b *testing.B) { s.take(b, p, s.atWork) })
	}
}

// BenchmarkTakeBackFromNobody measures a cycle in which nothing starves, with and without steps that take back. The cluster is full of pods
// with GPUs. In one case nothing has changed. In the other case a gang of ten pods without GPUs comes and has room.
func BenchmarkTakeBackFromNobody(b *testing.B) {
	cluster, _ := takingShape{5000, 80, pods}.objects()
	for _, of := range []struct{ steps, pipeline string }{{"none", takeNone}, {"pods", takePods}, {"gangs", takeGangs}} {
		x := newScene(b, takingPolicy(b, of.pipeline), cluster)
		x.settle()
		b.Run("steps="+of.steps+"/changed=nothing", func(b *testing.B) {
			m := &meter{}
			start := cpu(b)
			for b.Loop() {
				x.cycle()
			}
			m.used = cpu(b) - start
			m.report(b)
		})
		b.Run("steps="+of.steps+"/changed=gang", func(b *testing.B) {
			v := &visit{x: x, pods: 10, milli: 1000, into: func(gang []model.Delta) {
				gang[0].Object.(*v1beta1.PodGroup).Spec.Queue = "due"
			}}
			v.measure(b)
		})
	}
}
