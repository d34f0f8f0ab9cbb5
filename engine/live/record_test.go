package live

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Owners of bound pods change their annotations. This changes no decision in this scheduler or in the next one, and their PodGroups stay
// served.
func TestOwnersChangeNothingThatWasDecided(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		n := testNode("n1", "8")
		n.Annotations = map[string]string{model.NodeGPUsAnnotation: "1"}
		far := testGroup("far", 1)
		far.Spec.Queue = "elsewhere"
		f.put(n, testQueue("default"), testQueue("elsewhere"), testGroup("g", 1), testGroup("h", 1), far)
		wants := func(name, group, milli string) *corev1.Pod {
			p := testPod(name, group, "1")
			p.Annotations[model.GPUMilliAnnotation] = milli
			return p
		}
		f.put(wants("whole", "g", "1000"))
		r.settle(2)
		f.as("default/whole", func(p *corev1.Pod) {
			p.Annotations = maps.Clone(p.Annotations)
			p.Annotations[model.GPUMilliAnnotation], p.Annotations[model.GroupAnnotation], p.Annotations[model.PreemptableKey] = "100", "far",
				"false"
		})
		f.put(wants("more", "h", "900"))
		r.settle(3)
		held := func(r *rig) {
			t.Helper()
			task := r.cluster.Tasks["default/whole"]
			if g := r.cluster.Nodes.GPUs[0][0]; g.Free != 0 || task.Job.Key != "default/g" || !task.Preemptable || task.Job.Queue.Name != "default" {
				t.Errorf("the device has %d left; the task is in %s, preemptable %t", g.Free, task.Job.Key, task.Preemptable)
			}
			if a := r.cluster.Queues["elsewhere"].Allocated; !a.IsEmpty() {
				t.Errorf("the other queue is charged with %v", a)
			}
			if !r.intake.groups["default/g"].served {
				t.Error("the group of the bound pod is served no more")
			}
		}
		held(r)
		next := newRigOf(f, r.policy())
		for _, o := range f.nodes {
			next.feed.add(change{op: model.Upsert, object: o}, true)
		}
		for _, o := range f.queues {
			next.feed.add(change{op: model.Upsert, object: o}, true)
		}
		for _, o := range f.groups {
			next.feed.add(change{op: model.Upsert, object: o}, true)
		}
		for _, o := range f.pods {
			next.feed.add(change{op: model.Upsert, object: o}, true)
		}
		next.tick()
		next.settle(3)
		held(next)
		if want := []string{"default/whole n1"}; !slices.Equal(f.bindings, want) {
			t.Errorf("bound was %v, want %v", f.bindings, want)
		}
	})
}
