package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// heap returns the memory in use after a full garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC() // collects what the finalizers of the first one released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// asInCluster adds to pods what pods of a real cluster have in addition to their request, as far as a scheduler reads it. These are
// labels, an image, the tolerations that admission adds, and the volume with the service account's token.
func asInCluster(deltas []model.Delta) []model.Delta {
	seconds := int64(300)
	for _, d := range deltas {
		p, ok := d.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		p.Labels = map[string]string{
			"app.kubernetes.io/name": "trainer", "app.kubernetes.io/instance": p.Annotations[model.GroupAnnotation],
			"volcano.sh/job-name": p.Annotations[model.GroupAnnotation], "volcano.sh/queue-name": "default",
		}
		p.Annotations["volcano.sh/task-spec"] = "worker"
		p.Spec.Containers[0].Image = "registry.example.com/training/trainer:v1.17.3"
		p.Spec.Tolerations = []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			{
				Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: &seconds,
			},
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{},
		}}}
	}
	return deltas
}

// BenchmarkMemory measures what the engine keeps in memory, in bytes. It measures four things:
//
//   - a node
//   - a running pod with its part of a job of ten
//   - a pending job of one pod
//   - a class, which has an entry for each node
//
// "objects" is the size of the API objects, which the caller has anyway. "model" is what the cluster adds, and "policy" is what three
// cycles add.
func BenchmarkMemory(b *testing.B) {
	const nodes, count = 1000, 20_000
	b.Run("of=node", func(b *testing.B) {
		measureMemory(b, count, nil, func() []model.Delta { return steadyNodes(count) })
	})
	b.Run("of=running-pod", func(b *testing.B) {
		measureMemory(b, count, steadyNodes(count/10), func() []model.Delta {
			return asInCluster(slices.Clone(steady{nodes: count / 10}.objects()[1+count/10:]))
		})
	})
	b.Run("of=pending-job", func(b *testing.B) {
		measureMemory(b, count, steadyNodes(nodes), func() []model.Delta {
			var out []model.Delta
			for i := range count {
				out = append(out, gang(fmt.Sprintf("job-%05d", i), 1, 33_000, benchStart())...)
			}
			return asInCluster(out)
		})
	})
	b.Run("of=class-and-node", func(b *testing.B) {
		const classes = 100
		measureMemory(b, classes*nodes, steadyNodes(nodes), func() []model.Delta {
			var out []model.Delta
			for i := range int64(classes) {
				out = append(out, gang(fmt.Sprintf("job-%05d", i), 1, 33_000+i, benchStart())...)
			}
			return out
		})
	})
}

// steadyNodes returns n nodes, and a queue.
func steadyNodes(n int) []model.Delta {
	out := []model.Delta{upsert(benchQueue("default"))}
	for i := range n {
		out = append(out, upsert(benchNode(i, "32")))
	}
	return out
}

// measureMemory reports the cost of the n things that make returns, in a cluster that has the others.
func measureMemory(b *testing.B, n float64, others []model.Delta, make func() []model.Delta) {
	b.Helper()
	var objects, ofModel, ofPolicy float64
	for b.Loop() {
		x := newScene(b, defaultPolicy(b), others)
		x.settle()
		start := heap()
		deltas := make()
		made := heap()
		x.apply(b, deltas)
		applied := heap()
		x.settle()
		x.plan = nil // it belongs to the caller
		objects, ofModel, ofPolicy = made-start, applied-made, heap()-applied
		runtime.KeepAlive(x)
		runtime.KeepAlive(deltas)
	}
	b.ReportMetric(objects/n, "objects-B")
	b.ReportMetric(ofModel/n, "model-B")
	b.ReportMetric(ofPolicy/n, "policy-B")
}
