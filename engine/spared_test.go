package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestRefusedVictimsAreSpared checks that a pod is left alone after its eviction was refused. It can go later although nothing else has
// changed. The engine and the reference agree on this.
func TestRefusedVictimsAreSpared(t *testing.T) {
	t.Parallel()
	p := compile(t, "policy.yaml", []byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: own}
spec:
  pipeline: [enqueue, allocate, preempt, reclaim]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang, params: {protect: tier}}, {name: conformance}, {name: predicates}]
`)).policies[0]
	var again atomic.Int64 // worlds that evict a pod whose eviction was refused before
	rapid.Check(t, func(t *rapid.T) {
		for range 8 { // few worlds evict anybody
			w := drawFullWorld(t)
			r := run{world: w, policies: []*policy.Policy{p}, noErrors: true}
			plans := byReference(t, r, new(seenWorlds))
			if diff := gocmp.Diff(plans, r.plans(t)); diff != "" {
				w.Log(t)
				t.Fatalf("-reference +engine:\n%s", diff)
			}
			if evictedTwice(plans) {
				again.Add(1)
			}
		}
	})
	t.Logf("in %d worlds somebody is evicted who was refused before", again.Load())
	if again.Load() == 0 {
		t.Error("in no world somebody is evicted who was refused before")
	}
}

// evictedTwice reports whether two plans evict the same pod.
func evictedTwice(plans []string) bool {
	seen := map[string]bool{}
	for _, plan := range plans {
		_, evicts, _ := strings.Cut(plan, `"evicts": [`)
		evicts, _, _ = strings.Cut(evicts, "\n  ]")
		for line := range strings.Lines(evicts) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, `"task": `) {
				continue
			}
			if seen[line] {
				return true
			}
			seen[line] = true
		}
	}
	return false
}
