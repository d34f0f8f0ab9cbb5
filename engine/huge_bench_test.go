package engine_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

var withHuge = flag.Bool("huge", false, "run BenchmarkHuge too, which takes minutes and some 5 GiB")

// hugeObjects returns nodes, and ten running pods of a gang for each node. The pods of a gang share the equal parts of their objects. So
// the benchmark measures the engine's memory, and not that of the objects.
func hugeObjects(nodes int) []model.Delta {
	out := steadyNodes(nodes)
	spec := benchPod("", "", 1000, 2048).Spec
	since := metav1.NewTime(benchStart().Add(-time.Hour))
	for j := range nodes {
		g := benchGroup(fmt.Sprintf("running-%06d", j), 10, since.Time)
		g.Status = v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupRunning, Running: 10}
		out = append(out, upsert(g))
		annotations := map[string]string{model.GroupAnnotation: g.Name}
		for k := range 10 {
			p := &corev1.Pod{Spec: spec, Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &since}}
			p.Name, p.Namespace, p.Annotations, p.CreationTimestamp = fmt.Sprintf("%s-%d", g.Name, k), "default", annotations, since
			p.Spec.NodeName = nodeName((10*j + k) % nodes)
			out = append(out, upsert(p))
		}
	}
	return out
}

// BenchmarkHuge measures a cluster of 100,000 nodes and a million running pods. It measures the intake of the objects, the first cycle, and
// the memory beside the API objects. It measures a cycle in which nothing has changed. It also measures arriving gangs of a thousand pods,
// of a known shape and of a new one. All figures except the memory are process CPU.
func BenchmarkHuge(b *testing.B) {
	if !*withHuge {
		b.Skip("takes minutes: -bench BenchmarkHuge -huge")
	}
	p := defaultPolicy(b)
	timed := func(f func()) float64 {
		start := cpu(b)
		f()
		return (cpu(b) - start).Seconds() * 1e3
	}
	const nodes = 100_000
	for b.Loop() {
		objects := hugeObjects(nodes)
		before := heap()
		var x *scene
		b.ReportMetric(timed(func() { x = newScene(b, p, objects) })/1e3, "apply-cpu-s")
		applied := heap()
		b.ReportMetric((applied-before)/1e6, "model-MB")
		b.ReportMetric(timed(x.cycle), "first-cycle-cpu-ms")
		b.ReportMetric((heap()-applied)/1e6, "policy-MB")
		b.ReportMetric(timed(x.cycle), "second-cycle-cpu-ms")
		const idle = 20
		b.ReportMetric(timed(func() {
			for range idle {
				x.cycle()
			}
		})/idle, "idle-cpu-ms")
		v := &visit{x: x, pods: 1000, milli: 1000, step: 1}
		for _, shape := range []string{"new", "known"} {
			next := v.prepare(b)
			evaluated := x.evaluations()
			b.ReportMetric(timed(func() { v.arrive(b, next) }), shape+"-gang-cpu-ms")
			b.ReportMetric(float64(x.evaluations()-evaluated), shape+"-gang-evaluations")
			if got := len(x.plan.Binds); got != v.pods {
				b.Fatalf("%d pods of the gang are bound", got)
			}
			v.step = 0
		}
		b.ReportMetric((heap()-before)/1e6, "all-MB")
		runtime.KeepAlive(objects)
		runtime.KeepAlive(x)
	}
}
