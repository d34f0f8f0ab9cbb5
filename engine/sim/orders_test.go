package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// TestEvictionsDoNotDependOnOrder creates the PodGroup and the pods of an elastic gang in random order and with random delays. The cluster
// is full of pods with lower priority. The number of evictions is what the minimum of the gang needs, regardless of the order.
func TestEvictionsDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	p := takerPolicyOf(t, "[enqueue, allocate, preempt, backfill]", []string{
		"{name: priority}, {name: gang}, {name: conformance}, {name: predicates}",
	})
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 4).Draw(t, "minimum")
		replicas := least + rapid.IntRange(0, 4).Draw(t, "elastic")
		grace := rapid.IntRange(0, 45).Draw(t, "grace period")
		world := NewWorld(Options{Volumes: volume.New, Decide: new(engine.Decider).Decide})
		world.Policy = p
		evicted := 0
		after := func(d time.Duration, objects string) {
			if err := world.Advance(d); err != nil {
				t.Fatal(err)
			}
			if objects != "" {
				if _, issues := world.Load(manifest.Source{Name: "events.yaml", Data: []byte(objects)}); issues.Err() != nil {
					t.Fatalf("%s\n%v", objects, issues)
				}
			}
			plan, err := world.Cycle()
			if err != nil {
				t.Fatal(err)
			}
			evicted += len(plan.Evicts)
		}
		running := "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{name: n1, cpu: 8}]\npriorityClasses: {high: 100, low: 10}\n" +
			"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: sweep, namespace: ml}\n" +
			"spec: {minMember: 1, queue: default, priorityClassName: low}\nstatus: {phase: Running}\n"
		for i := range 8 {
			running += podOf("sweep", i, 10, fmt.Sprintf("nodeName: n1, terminationGracePeriodSeconds: %d, ", grace), "Running")
		}
		after(0, running)
		events := []string{"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: train, namespace: ml}\n" +
			fmt.Sprintf("spec: {minMember: %d, queue: default, priorityClassName: high}\n", least)}
		for i := range replicas {
			events = append(events, podOf("train", i, 100, "", "Pending"))
		}
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			after(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds"))*time.Second, e)
		}
		for range 5 {
			after(time.Minute, "")
		}
		if evicted != least {
			t.Errorf("%d pods were evicted for a gang of %d to %d pods, want %d", evicted, least, replicas, least)
		}
		if ready := world.Cluster().Jobs["ml/train"].Ready(); ready < int64(least) {
			t.Errorf("%d pods of the gang started, want %d", ready, least)
		}
	})
}

// podOf returns a pod of a PodGroup in the namespace ml.
func podOf(group string, i int, priority int, fields, phase string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\n"+
		"metadata: {name: %s-%d, namespace: ml, annotations: {scheduling.k8s.io/group-name: %s}}\n"+
		"spec: {schedulerName: volcano, priority: %d, %scontainers: [{name: c, image: i, resources: {requests: {cpu: \"1\"}}}]}\n"+
		"status: {phase: %s}\n", group, i, group, priority, fields, phase)
}
