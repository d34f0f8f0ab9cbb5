package live

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// waits returns why a group waits, from its condition; "": it has none.
func (f *fakeServer) waits(group string) string {
	for _, c := range f.groups["default/"+group].Status.Conditions {
		if c.Type == v1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// Conditions and events name the row of the reason, in the words of a simulation. The event of a binding contains the reason for the node.
func TestWordsNameTheRow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testNode("n2", "4"), testQueue("default"), testGroup("wide", 2), testPod("b", "wide", "5"),
			testPod("c", "wide", "1"))
		r.settle(2)
		const never = "builtin/fit: 0/2 nodes are available: 2 Insufficient cpu (it asks for cpu 5 and can never fit: the largest node has 4)"
		got := []string{saidOf(f.pods["default/b"]).text, saidOf(f.pods["default/c"]).text, f.waits("wide")}
		want := []string{
			never, "not tried, as its job's turn had ended: gang/all-or-nothing: 0 of the 2 pods that must start together can start",
			"the pod requests cpu 5, but the largest node has 4: it can never start; request less, or add a larger node | " +
				"2/2 tasks in gang unschedulable: " + never,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what waits says (-want +got):\n%s", diff)
		}
		f.put(testGroup("any", 1), testPod("d", "any", "1"))
		r.settle(2)
		f.put(testGroup("fits", 1), testPod("a", "fits", "4"))
		r.settle(2)
		for _, want := range []string{
			"Successfully assigned default/d to n1 by policy default@0: score ", ", as n2 has; first in the order of nodes (",
			" nodeorder/least-requested, ",
			"Successfully assigned default/a to n2 by policy default@0: the only node that fits", never,
		} {
			if !slices.ContainsFunc(f.messages, func(m string) bool { return strings.Contains(m, want) }) {
				t.Errorf("no event says %q: %q", want, f.messages)
			}
		}
	})
}

// The status of each waiting pod of a gang contains its own result. One event represents all pods that share the job's reason.
func TestEachPodOfAGangHasItsReason(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		nowhere := testPod("c", "g", "1")
		nowhere.Spec.NodeSelector = map[string]string{"nowhere": ""}
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 4), testPod("a", "g", "1"), testPod("b", "g", "1"), nowhere,
			testPod("d", "g", "1"))
		r.settle(2)
		const gang = "gang/all-or-nothing: 2 of the 4 pods that must start together can start; 2 found a node, rolled back"
		var got []string
		for _, name := range []string{"a", "b", "c", "d"} {
			text, _, _ := strings.Cut(saidOf(f.pods["default/"+name]).text, "0/1 nodes")
			got = append(got, text)
		}
		want := []string{
			"found node n1, rolled back: " + gang, "found node n1, rolled back: " + gang,
			"predicates/node-affinity: ", "not tried, as its job's turn had ended: " + gang,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what waits says (-want +got):\n%s", diff)
		}
		told := slices.DeleteFunc(slices.Clone(f.messages), func(m string) bool { return !strings.Contains(m, ": "+gang) })
		if len(told) != 1 {
			t.Errorf("%d events say what a job says: %q", len(told), told)
		}
	})
}

// A paused policy, and a policy without actions, are reported on everything that waits, with or without pods.
func TestIdlePoliciesSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // this is not recorded, because no object contains these policies
		r := newRig(t)
		f, active := r.server, r.policy()
		paused, empty := *active, *active
		paused.Mode, empty.Actions = "Paused", nil
		for _, c := range []struct {
			policy *policy.Policy
			want   string
		}{
			{&paused, "builtin/paused: policy default is paused: nothing is decided until its mode is Active"},
			{&empty, "builtin/pipeline: the pipeline of policy default is empty: it names no action that could let jobs in or place pods"},
		} {
			r.policy = func() *policy.Policy { return c.policy }
			f.messages = nil
			f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"), testGroup("h", 1))
			r.settle(3)
			got := []string{saidOf(f.pods["default/a"]).text, f.waits("g"), f.waits("h")}
			want := []string{c.want, "1/1 tasks in gang unschedulable: " + c.want, "not let into queue default: " + c.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what waits says (-want +got):\n%s", diff)
			}
			if !slices.Contains(f.messages, c.want) {
				t.Errorf("no event says %q: %q", c.want, f.messages)
			}
		}
		r.policy = func() *policy.Policy { return active }
		r.settle(1)
		if got := f.waits("g") + f.waits("h"); got != "" {
			t.Errorf("a job that was let in still says %q", got)
		}
	})
}

// An admitted job no longer reports why it was not admitted. A job that waits for another reason no longer reports the old one.
func TestNoStaleReason(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		reserving := testGroup("g", 2)
		reserving.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		f.put(testNode("n1", "4"), testQueue("default"), reserving)
		r.settle(2)
		if got := f.waits("g"); !strings.Contains(got, "overcommit/") {
			t.Fatalf("a job that reserves too much says %q", got)
		}
		f.put(testNode("n2", "4"))
		f.deliver(-1)
		began := time.Now()
		for r.tick(); f.waits("g") != "" && time.Since(began) < 20*time.Second; r.tick() {
			for r.work() {
			}
			f.deliver(-1)
			time.Sleep(50 * time.Millisecond)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("a job that was let in says for %s why it was not", took)
		}
		f.put(testPod("a", "g", "1"), testPod("b", "g", "5"))
		r.settle(1)
		if got := f.waits("g"); !strings.Contains(got, "builtin/fit") {
			t.Errorf("a job whose pod fits nowhere says %q", got)
		}
		wide := f.pods["default/b"].DeepCopy()
		wide.Spec.NodeSelector = map[string]string{"nowhere": ""}
		f.put(wide)
		began = time.Now()
		for ; !strings.Contains(f.waits("g"), "predicates/node-affinity") &&
			time.Since(began) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
			f.deliver(-1)
			r.tick()
			for r.work() {
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s went by until a job said what it waits for now: %q", took, f.waits("g"))
		}
	})
}
