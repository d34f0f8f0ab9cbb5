package engine_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// scattered is a cluster whose nodes are each half full of pods of one GPU, with jobs that need a whole node. No such job finds a node.
type scattered struct {
	nodes int // of 8 GPUs
	large int // jobs of 8 GPUs that wait
}

func (s scattered) String() string { return fmt.Sprintf("nodes=%d/jobs=%d", s.nodes, s.large) }

func (s scattered) objects() []model.Delta {
	out := []model.Delta{upsert(benchQueue("default"))}
	for i := range s.nodes {
		n := gpuNode(i)
		out = append(out, upsert(n))
		for k := range 4 {
			out = append(out, gpuJob(fmt.Sprintf("small-%05d-%d", i, k), "default", 1, 1, 1, n.Name)...)
		}
	}
	for i := range s.large {
		out = append(out, gpuJob(fmt.Sprintf("large-%05d", i), "default", 1, 1, 8, "")...)
	}
	return inTurn(out)
}

// consolidating returns a policy that moves pods together. It frees as many nodes as there are jobs that need a whole node. It frees the
// emptiest node first, and finishes each node before the next. It stops when the other used nodes have no room.
func consolidating(tb testing.TB) *policy.Policy {
	tb.Helper()
	return compile(tb, "consolidating", []byte(`apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: consolidating}
spec:
  pipeline: [enqueue, shuffle, allocate, backfill]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: conformance}]
  - name: second
    tables:
    - {name: drf}
    - {name: predicates}
    - {name: proportion}
    - {name: binpack, params: {listed: [nvidia.com/gpu], resources: {nvidia.com/gpu: 10}}}
    - name: together
      inline:
        attributes:
        - {on: node, name: moving, private: true, expression: "node.releasing['nvidia.com/gpu']"}
        - {on: node, name: left, private: true, expression: "node.used['nvidia.com/gpu'] - node.moving"}
        - {on: cluster, name: moving, private: true, sum: {over: node, of: node.moving}}
        - {on: cluster, name: emptied, private: true, sum: {over: node, when: node.left == 0.0, of: "1"}}
        - on: cluster
          name: room
          private: true
          sum: {over: node, when: node.left > 0.0 && node.moving == 0.0, of: "node.idle['nvidia.com/gpu']"}
        - on: cluster
          name: large
          private: true
          sum: {over: task, when: "task.status == 'Pending' && task.request['nvidia.com/gpu'] >= 8.0", of: "1"}
        victims:
        - name: moves-together
          when: victim.request['nvidia.com/gpu'] > 0.0
          expression: >-
            victim.preemptable && cluster.emptied < cluster.large
              && (victim.node.moving > 0.0
                || cluster.moving + victim.node.left <= cluster.room - victim.node.idle['nvidia.com/gpu'])
        victimOrder:
        - {name: emptiest-node-first, when: preemptor == null, by: victim.node.left}
        - {name: node-by-node, when: preemptor == null, by: victim.node.name}
`)).policies[0]
}

// again returns the deltas that make the pods of single-pod jobs of one GPU again after they are gone.
func again(gone []model.Delta) (out []model.Delta) {
	for _, d := range gone {
		p := d.Object.(*corev1.Pod)
		job := strings.TrimSuffix(p.Name, "-00000")
		out = append(out, gpuJob(job, "default", 1, 1, 1, "")[1])
	}
	return out
}

// BenchmarkConsolidate measures one cycle from a cold state in which pods move together so that jobs of whole nodes fit.
func BenchmarkConsolidate(b *testing.B) {
	p := consolidating(b)
	for _, s := range []scattered{{100, 41}, {500, 41}, {1000, 41}, {1000, 410}} {
		objects := s.objects()
		b.Run(s.String(), func(b *testing.B) {
			m := &meter{}
			for b.Loop() {
				b.StopTimer()
				x := newScene(b, p, objects)
				m.once(b, x, x.first)
				gone := x.evicted(b)
				if moving, promised := len(gone), len(x.plan.Pipelines); moving != 4*s.large || promised != s.large {
					b.Fatalf("%d move, and %d are promised room; want %d and %d", moving, promised, 4*s.large, s.large)
				}
				x.apply(b, gone)
				x.apply(b, again(gone))
				x.cycle()
				if m.binds = len(x.plan.Binds); m.binds != 5*s.large {
					b.Fatalf("%d are bound in the end, want %d", m.binds, 5*s.large)
				}
				b.StartTimer()
			}
			m.report(b)
			b.ReportMetric(float64(m.evictions), "evictions")
		})
	}
}
