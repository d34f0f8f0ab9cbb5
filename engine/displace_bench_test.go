package engine_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// takingShape is a cluster that is full of pods of one GPU each, and a gang that waits.
type takingShape struct {
	nodes int  // of 8 GPUs
	gang  int  // pods of one GPU each that wait, and must start together; 0: single jobs of one pod, as many as run
	big   bool // the running pods are of gangs of 8 that must stay whole
	vain  bool // nobody may go
}

func (s takingShape) String() string {
	return fmt.Sprintf("nodes=%d/gang=%d/whole=%t/vain=%t", s.nodes, s.gang, s.big, s.vain)
}

func (s takingShape) objects() []model.Delta {
	var out []model.Delta
	for _, name := range []string{"lent", "due"} {
		q := benchQueue(name)
		if s.vain && name == "lent" {
			q.Spec.Reclaimable = new(bool)
		}
		out = append(out, upsert(q))
	}
	add := func(name, queue string, pods, min int, phase v1beta1.PodGroupPhase, node func(i int) string) {
		g := benchGroup(name, pods, time.Unix(int64(len(out)), 0))
		g.Spec.Queue, g.Spec.MinMember, g.Status.Phase = queue, int32(min), phase
		out = append(out, upsert(g))
		for i := range pods {
			p := benchPod(fmt.Sprintf("%s-%05d", name, i), name, 1000, 1024)
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
			if n := node(i); n != "" {
				p.Spec.NodeName, p.Status.Phase = n, corev1.PodRunning
			}
			out = append(out, upsert(p))
		}
	}
	for i := range s.nodes {
		n := benchNode(i, "64")
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
		out = append(out, upsert(n))
		on := func(int) string { return n.Name }
		if s.big {
			add(fmt.Sprintf("whole-%05d", i), "lent", 8, 8, v1beta1.PodGroupRunning, on)
			continue
		}
		for k := range 8 {
			add(fmt.Sprintf("one-%05d-%d", i, k), "lent", 1, 0, v1beta1.PodGroupRunning, on)
		}
	}
	none := func(int) string { return "" }
	if s.gang > 0 {
		add("gang", "due", s.gang, s.gang, v1beta1.PodGroupInqueue, none)
		return out
	}
	for i := range 8 * s.nodes {
		add(fmt.Sprintf("wait-%05d", i), "due", 1, 1, v1beta1.PodGroupInqueue, none)
	}
	return out
}

// BenchmarkTakeBack is one cycle in which a queue takes back what is due to it, of a cluster that is full.
func BenchmarkTakeBack(b *testing.B) {
	policies := map[bool]*policy.Policy{}
	for whole, pipeline := range map[bool]string{
		false: "[enqueue, allocate, preempt, reclaim, backfill]",
		true:  "[enqueue, allocate, gangpreempt, gangreclaim, backfill]",
	} {
		policies[whole] = compile(b, "taking", fmt.Appendf(nil, `apiVersion: scheduling.celsius.dev/v1alpha1
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
	for _, s := range []takingShape{
		{nodes: 100, gang: 80},
		{nodes: 500, gang: 80},
		{nodes: 1000, gang: 80},
		{nodes: 5000, gang: 80},
		{nodes: 10000, gang: 80},
		{nodes: 5000, gang: 1000},
		{nodes: 5000, gang: 80, big: true},
		{nodes: 100, gang: 400},
		{nodes: 500, gang: 2000},
		{nodes: 500, gang: 80, vain: true},
		{nodes: 5000, gang: 80, vain: true},
		{nodes: 100},
		{nodes: 500},
	} {
		objects := s.objects()
		b.Run(s.String(), func(b *testing.B) {
			m := cold(b, policies[s.big], objects)
			if m.evictions == 0 != s.vain {
				b.Fatalf("%d are evicted", m.evictions)
			}
			b.ReportMetric(float64(m.evictions), "evictions")
		})
	}
}
