package engine_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// forest is a workload of one pod per job, and the jobs take turns along a tree of queues. All leaves have the same depth, and each has its
// own jobs. There are few nodes, so that the benchmark measures the queues.
type forest struct {
	leaves, depth, pods int
	table               string // the table that orders the queues, as in a policy
}

func (f forest) String() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.table, "name: "), ",")
	return fmt.Sprintf("table=%s/queues=%d/depth=%d", name, f.leaves, f.depth)
}

// forests returns the measured forests: capacity and drf along trees, and proportion, which has no trees.
func forests() []forest {
	out := []forest{}
	for _, leaves := range []int{50, 500} {
		out = append(out, forest{leaves, 1, 5000, "name: proportion"})
		for depth := 2; depth <= 4; depth += 2 {
			out = append(out, forest{leaves, depth, 5000, "name: capacity, params: {hierarchy: true}"},
				forest{leaves, depth, 5000, "name: drf, params: {hierarchy: true}"})
		}
	}
	return out
}

// path returns the path of a leaf: the names of the queues from the top down.
func (f forest) path(leaf int) []string {
	fan := int(math.Ceil(math.Pow(float64(f.leaves), 1/float64(f.depth))))
	var out []string
	for below := f.leaves; len(out) < f.depth-1; {
		below = (below + fan - 1) / fan
		out = append(out, fmt.Sprintf("%d-%04d", len(out), leaf/below))
	}
	return append(out, fmt.Sprintf("leaf-%04d", leaf))
}

func (f forest) queues() []model.Delta {
	out := []model.Delta{upsert(benchQueue("root"))}
	seen := map[string]bool{}
	for i := range f.leaves {
		path := f.path(i)
		for k, name := range path {
			if seen[name] {
				continue
			}
			seen[name] = true
			q := benchQueue(name)
			if f.depth > 1 && k > 0 {
				q.Spec.Parent = path[k-1]
			}
			if k == len(path)-1 {
				q.Annotations = map[string]string{
					"volcano.sh/hierarchy":         "root/" + strings.Join(path, "/"),
					"volcano.sh/hierarchy-weights": strings.Repeat("1/", len(path)) + "1",
				}
			}
			if f.depth > 1 {
				q.Spec.Deserved = corev1.ResourceList{"cpu": resource.MustParse("100"), "memory": resource.MustParse("400Gi")}
			}
			out = append(out, upsert(q))
		}
	}
	return out
}

func (f forest) objects() []model.Delta {
	out := f.queues()
	for i := range 100 {
		out = append(out, upsert(benchNode(i, "128")))
	}
	for i := range f.pods {
		path := f.path(i * 7 % f.leaves)
		g := benchGroup(fmt.Sprintf("job-%05d", i), 1, time.Unix(int64(i), 0))
		g.Spec.Queue, g.Status.Phase = path[len(path)-1], v1beta1.PodGroupInqueue
		cpu, mebibytes := int64(2000), int64(1024)
		if i%3 == 0 {
			cpu, mebibytes = 500, 8192
		}
		out = append(out, upsert(g), upsert(benchPod(g.Name+"-0", g.Name, cpu, mebibytes)))
	}
	return out
}

// waiting returns the queues with two jobs each. The jobs fit on no node, and are larger than what any queue is due.
func (f forest) waiting() []model.Delta {
	out := f.queues()
	for i := range 100 {
		out = append(out, upsert(benchNode(i, "128")))
	}
	for i := range 2 * f.leaves {
		deltas := gang(fmt.Sprintf("waiting-%05d", i), 1, 200_000+int64(i)*10, time.Unix(int64(i), 0))
		out = append(out, f.into(i%f.leaves, deltas)...)
	}
	return out
}

// into puts the groups among the deltas into a leaf.
func (f forest) into(leaf int, deltas []model.Delta) []model.Delta {
	path := f.path(leaf)
	for _, d := range deltas {
		if g, ok := d.Object.(*v1beta1.PodGroup); ok {
			g.Spec.Queue, g.Status.Phase = path[len(path)-1], v1beta1.PodGroupInqueue
		}
	}
	return deltas
}

// policy returns a policy that orders queues by the table alone.
func (f forest) policy(tb testing.TB) *policy.Policy {
	tb.Helper()
	text := fmt.Sprintf(`apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: queues}
spec:
  pipeline: [allocate]
  tiers:
  - name: only
    tables: [{%s}]
`, f.table)
	docs, issues := source.Parse("queues.yaml", []byte(text))
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	return p
}

// BenchmarkQueues measures one cycle in which each placement changes the order of the queues.
func BenchmarkQueues(b *testing.B) {
	for _, f := range forests() {
		b.Run(f.String(), func(b *testing.B) {
			m := cold(b, f.policy(b), f.objects())
			b.ReportMetric(m.used.Seconds()*1e6/float64(b.N)/float64(m.binds), "us/bind")
		})
	}
}

// BenchmarkQueuesArrival measures the arrival of a gang in one of many queues. Jobs wait in all of them.
func BenchmarkQueuesArrival(b *testing.B) {
	for _, leaves := range []int{500, 1000, 5000} {
		for _, f := range []forest{
			{leaves, 1, 0, "name: proportion"},
			{leaves, 2, 0, "name: capacity, params: {hierarchy: true}"},
			{leaves, 2, 0, "name: drf, params: {hierarchy: true}"},
		} {
			b.Run(f.String(), func(b *testing.B) {
				x := newScene(b, f.policy(b), f.waiting())
				x.settle()
				v := &visit{x: x, pods: 10, milli: 100, into: func(gang []model.Delta) { f.into(leaves/2, gang) }}
				v.measure(b)
			})
		}
	}
}

// pools returns a cluster of nodes with GPUs in three pools. One queue uses all GPUs but those of one node, and a gang waits for a pool in
// each other queue.
func pools(nodes, queues int) []model.Delta {
	out := []model.Delta{upsert(benchQueue("busy"))}
	pool := func(i int) map[string]string { return map[string]string{"pool": fmt.Sprintf("pool-%d", i%3)} }
	for i := range nodes {
		n := gpuNode(i)
		maps.Copy(n.Labels, pool(i))
		out = append(out, upsert(n))
		if i > 0 {
			out = append(out, gpuJob(fmt.Sprintf("busy-%05d", i), "busy", 1, 1, 8, n.Name)...)
		}
	}
	for i := range queues {
		q := benchQueue(fmt.Sprintf("queue-%04d", i))
		gang := gpuJob("gang-"+q.Name, q.Name, 2, 2, 8, "")
		for _, d := range gang {
			if p, ok := d.Object.(*corev1.Pod); ok {
				p.Spec.NodeSelector = pool(i)
			}
		}
		out = append(out, append(gang, upsert(q))...)
	}
	return inTurn(out)
}

// BenchmarkPoolsArrival measures the arrival of a gang that requests no GPUs, while gangs wait for GPUs of three pools in all queues.
func BenchmarkPoolsArrival(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 10000} {
		for _, queues := range []int{1, 100} {
			b.Run(fmt.Sprintf("nodes=%d/queues=%d", nodes, queues), func(b *testing.B) {
				x := newScene(b, defaultPolicy(b), pools(nodes, queues))
				x.settle()
				v := &visit{x: x, pods: 10, milli: 100, into: func(gang []model.Delta) {
					for _, d := range gang {
						if g, ok := d.Object.(*v1beta1.PodGroup); ok {
							g.Spec.Queue, g.Status.Phase = "busy", v1beta1.PodGroupInqueue
						}
					}
				}}
				v.measure(b)
			})
		}
	}
}
