package engine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// sparingShape is a full cluster. Half of the nodes hold eight pods of one GPU each, and the other half hold one pod of eight GPUs. Small
// jobs first take the places of pods of one GPU. Large jobs then take the places of pods of eight GPUs, and leave room for all small jobs.
// So no pod is evicted for the small jobs.
type sparingShape struct {
	nodes int // of 8 GPUs
	large int // waiting jobs of five GPUs, each after three jobs of one GPU
}

func (s sparingShape) String() string {
	return fmt.Sprintf("nodes=%d/promises=%d", s.nodes, 4*s.large)
}

func (s sparingShape) objects() []model.Delta {
	lent := benchQueue("lent")
	lent.Spec.Capability = corev1.ResourceList{}
	benchGPUs(lent.Spec.Capability, int64(4*s.nodes)) // it holds too much, however many pods go
	out := []model.Delta{upsert(lent), upsert(benchQueue("due"))}
	for i := range s.nodes {
		n := gpuNode(i)
		out = append(out, upsert(n))
		if i >= s.nodes/2 {
			n.Labels["pods"] = "large"
			out = append(out, gpuJob(fmt.Sprintf("eight-%05d", i), "lent", 1, 0, 8, n.Name)...)
			continue
		}
		for k := range 8 {
			out = append(out, gpuJob(fmt.Sprintf("one-%05d-%d", i, k), "lent", 1, 0, 1, n.Name)...)
		}
	}
	for i := range 3 * s.large {
		out = append(out, gpuJob(fmt.Sprintf("small-%05d", i), "due", 1, 1, 1, "")...)
	}
	for i := range s.large {
		large := gpuJob(fmt.Sprintf("large-%05d", i), "due", 1, 1, 5, "")
		large[1].Object.(*corev1.Pod).Spec.NodeSelector = map[string]string{"pods": "large"}
		out = append(out, large...)
	}
	return inTurn(out)
}

// BenchmarkTakeBackSparing measures one cycle from a cold state. Of each four promises, three move to the room that is left beside the
// fourth.
func BenchmarkTakeBackSparing(b *testing.B) {
	p := takingPolicy(b, takePods)
	for _, s := range []sparingShape{
		{1000, 125}, {1000, 250}, {5000, 250}, {10000, 250}, {5000, 500},
	} {
		objects := s.objects()
		b.Run(s.String(), func(b *testing.B) {
			m := &meter{}
			for b.Loop() {
				b.StopTimer()
				x := newScene(b, p, objects)
				m.once(b, x, x.first)
				gone := x.evicted(b)
				if goes, promised := len(gone), len(x.plan.Pipelines); goes != s.large || promised != 4*s.large {
					b.Fatalf("%d go, and %d are promised room; want %d and %d", goes, promised, s.large, 4*s.large)
				}
				x.apply(b, gone)
				x.cycle()
				if m.binds = len(x.plan.Binds); m.binds != 4*s.large {
					b.Fatalf("%d are bound in the end, want %d", m.binds, 4*s.large)
				}
				b.StartTimer()
			}
			m.report(b)
			b.ReportMetric(float64(m.evictions), "evictions")
		})
	}
}
