package controller

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// TestTally checks for arbitrary changes of PodGroups that the tally equals a full count, and that exactly the queues with changed counts
// are returned.
func TestTally(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kept, groups := newTally(), map[string]*schedulingv1beta1.PodGroup{}
		recount := func() map[string]map[schedulingv1beta1.PodGroupPhase]int32 {
			out := map[string]map[schedulingv1beta1.PodGroupPhase]int32{}
			for _, g := range groups {
				queue, phase := g.Spec.Queue, g.Status.Phase
				if queue == "" {
					queue = "default"
				}
				if phase == "" {
					phase = schedulingv1beta1.PodGroupPending
				}
				if out[queue] == nil {
					out[queue] = map[schedulingv1beta1.PodGroupPhase]int32{}
				}
				out[queue][phase]++
			}
			return out
		}
		before := recount()
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}}
			g.Spec.Queue = rapid.SampledFrom([]string{"", "default", "q"}).Draw(t, "queue")
			g.Status.Phase = rapid.SampledFrom([]schedulingv1beta1.PodGroupPhase{"", "Pending", "Inqueue", "Running"}).Draw(t, "phase")
			var told []string
			if rapid.Bool().Draw(t, "gone") {
				delete(groups, name)
				told = kept.forget(g)
			} else {
				groups[name] = g
				told = kept.see(g)
			}
			after := recount()
			if diff := cmp.Diff(after, kept.queues); diff != "" {
				t.Fatalf("counted anew, kept (-want +got):\n%s", diff)
			}
			var want []string
			for _, queue := range []string{"default", "q"} {
				if !maps.Equal(before[queue], after[queue]) {
					want = append(want, queue)
				}
			}
			slices.Sort(told)
			if diff := cmp.Diff(want, slices.Compact(told)); diff != "" {
				t.Fatalf("queues told (-want +got):\n%s", diff)
			}
			before = after
		}
	})
}
