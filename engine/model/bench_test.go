package model

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// bigWorld is 5000 nodes, 500 jobs of 20 pods each, and every second pod runs.
func bigWorld() []Delta {
	objects := []any{queue("q")}
	for i := range 500 {
		objects = append(objects, group(fmt.Sprintf("g%03d", i), "q"))
	}
	for i := range 10000 {
		p := pod(fmt.Sprintf("p%05d-%d", i, i%20), "cpu=1 memory=2Gi", annotated(GroupAnnotation, fmt.Sprintf("g%03d", i/20)), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}}
		})
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
}

// BenchmarkUpdate applies one pod's change to that cluster.
func BenchmarkUpdate(b *testing.B) {
	c := NewCluster(Options{})
	c.Apply(bigWorld()...)
	change := upserts(pod("p00000-0", "cpu=1 memory=2Gi", annotated(GroupAnnotation, "g000"), on("n0000")))
	b.ReportAllocs()
	for b.Loop() {
		c.Apply(change...)
	}
}

// BenchmarkTxn allocates a task and takes it back.
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
