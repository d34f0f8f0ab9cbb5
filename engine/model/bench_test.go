package model

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// usual adds what typical pods have in addition to their request: an image, labels, and the default tolerations of admission.
func usual(p *corev1.Pod) {
	p.Labels = map[string]string{"app.kubernetes.io/name": "trainer", "volcano.sh/job-name": "trainer", "volcano.sh/queue-name": "q"}
	p.Annotations[RoleAnnotation] = "worker"
	p.Spec.Containers[0].Image = "registry.example.com/training/trainer:v1.17.3"
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations,
			corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(300)),
			})
	}
}

// bigWorld returns 5000 nodes and 500 jobs of 20 pods each. Every second pod runs.
func bigWorld() []Delta {
	objects := []any{queue("q")}
	for i := range 500 {
		objects = append(objects, group(fmt.Sprintf("g%03d", i), "q"))
	}
	for i := range 10000 {
		p := pod(fmt.Sprintf("p%05d-%d", i, i%20), "cpu=1 memory=2Gi", annotated(GroupAnnotation, fmt.Sprintf("g%03d", i/20)), usual)
		if i%2 == 0 {
			on(fmt.Sprintf("n%04d", i/2))(p)
		}
		objects = append(objects, p)
	}
	for i := range 5000 {
		objects = append(objects, node(fmt.Sprintf("n%04d", i), "cpu=64 memory=256Gi pods=110"))
	}
	return upserts(objects...)
}

// BenchmarkApply builds a cluster of 5000 nodes and 10000 pods from its objects.
func BenchmarkApply(b *testing.B) {
	deltas := bigWorld()
	b.ReportAllocs()
	for b.Loop() {
		if errs := NewCluster(Options{}).Apply(deltas...); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(deltas)), "ns/object")
}

// BenchmarkUpdate applies one event to that cluster:
//
//   - an update of a running pod without a change
//   - a pod that is bound, and is pending again
//   - a pod that is deleted and created again
//   - an update of a node
func BenchmarkUpdate(b *testing.B) {
	c := NewCluster(Options{})
	c.Apply(bigWorld()...)
	p := func(name, group string, edits ...func(*corev1.Pod)) any {
		return pod(name, "cpu=1 memory=2Gi", append(edits, annotated(GroupAnnotation, group), usual)...)
	}
	gone := p("p00003-3", "g000")
	for _, event := range []struct {
		name   string
		deltas []Delta
	}{
		{"pod=unchanged", upserts(p("p00000-0", "g000", on("n0000")))},
		{"pod=bound-and-back", upserts(p("p00001-1", "g000", on("n0017")), p("p00001-1", "g000"))},
		{"pod=deleted-and-back", []Delta{{Op: Delete, Object: gone}, {Object: gone}}},
		{"node=unchanged", upserts(node("n0000", "cpu=64 memory=256Gi pods=110"))},
	} {
		b.Run(event.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range event.deltas {
					c.Apply(event.deltas[i])
				}
			}
		})
	}
}

// BenchmarkTxn allocates a task and undoes it.
func BenchmarkTxn(b *testing.B) {
	c := NewCluster(Options{})
	c.Apply(bigWorld()...)
	t, x := c.Tasks["a/p00001-1"], c.Begin()
	b.ReportAllocs()
	for b.Loop() {
		x.Allocate(t, 17, nil)
		x.Rollback(0)
	}
}
