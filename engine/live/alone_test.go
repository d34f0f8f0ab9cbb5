package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// A bare pod is bound before its PodGroup exists, and gets the PodGroup's name with the binding. The PodGroup is created once, with its
// status at that time. If another client has created it meanwhile, it gets the phase that the pod has reached.
func TestAPodAloneIsBoundAtOnce(t *testing.T) {
	for _, by := range []string{"scheduler", "another"} {
		t.Run(by, func(t *testing.T) { bubble(t, func(t *testing.T, r *rig) { aloneIsBound(t, r, by == "another") }) })
	}
}

func aloneIsBound(t *testing.T, r *rig, another bool) {
	f := r.server
	pod := testPod("a", "", "1")
	pod.Annotations = map[string]string{v1beta1.VolcanoGroupMinMemberAnnotationKey: "many"}
	f.put(testNode("n1", "4"), testQueue("default"), pod)
	f.deliver(-1)
	r.tick()
	for r.work() {
	}
	if diff := cmp.Diff([]string{"default/a n1"}, f.bindings); diff != "" {
		t.Fatalf("bindings (-want +got):\n%s", diff)
	}
	name := objects.BareGroupName(f.pods["default/a"])
	if got := f.pods["default/a"].Annotations[model.GroupAnnotation]; got != name {
		t.Errorf("the pod is told %q, and its PodGroup will be %s", got, name)
	}
	f.writes = nil
	ofGroups := func() []string {
		return slices.DeleteFunc(slices.Clone(f.writes), func(w string) bool { return w == "queue default" })
	}
	want := []string{"made group default/" + name + " Running"}
	if another {
		group, _ := objects.BareGroup(f.pods["default/a"], name, nil)
		group.Spec.Queue = "default"
		f.put(group)
		want = []string{"group default/" + name + " Running"}
	}
	r.settle(4)
	if diff := cmp.Diff(want, ofGroups()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	group := f.groups["default/"+name]
	if got := group.Spec.Queue; got != "default" || group.Status.Phase != v1beta1.PodGroupRunning || group.Spec.MinMember != 1 {
		t.Errorf("the PodGroup is %+v", group)
	}
	if told := slices.Contains(f.events, "Pod default/a PodGroupError"); told == another {
		t.Errorf("what is wrong with the pod's annotation is told: %v, of a PodGroup that another made: %v", told, another)
	}
	if got := r.cluster.Queues["default"].Phases; got[model.PhaseRunning] != 1 || r.cluster.Tasks["default/a"].Job.Orphan {
		t.Errorf("the queue counts %v", got)
	}
	f.as("default/a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	f.writes = nil
	r.settle(2)
	if diff := cmp.Diff([]string{"group default/" + name + " Completed"}, ofGroups()); diff != "" {
		t.Errorf("written when the pod has ended (-want +got):\n%s", diff)
	}
	f.drop(f.pods["default/a"])
	r.settle(1)
	if len(r.intake.groups)+len(r.intake.member)+len(r.cluster.Jobs) != 0 {
		t.Errorf("left behind: %v, %v, %v", r.intake.groups, r.intake.member, r.cluster.Jobs)
	}
}

// A PodGroup in the outbox is created with the status at the time of its write, and not written again.
func TestAGroupIsMadeAsItStandsThen(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testPod("a", "", "9"))
		ticks := func() {
			for range 30 {
				f.deliver(-1)
				r.tick()
				time.Sleep(100 * time.Millisecond)
			}
		}
		ticks()
		if r.outbox.Depths()[outbox.Status] == 0 {
			t.Fatal("its PodGroup is not to be made")
		}
		f.put(testNode("n2", "16"))
		f.deliver(-1)
		r.tick()
		for len(f.bindings) == 0 && r.work() {
		}
		ticks()
		f.writes = nil
		r.settle(4)
		name := objects.BareGroupName(f.pods["default/a"])
		made := slices.DeleteFunc(f.writes, func(w string) bool { return !strings.Contains(w, "group") })
		if diff := cmp.Diff([]string{"made group default/" + name + " Running"}, made); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}

// The PodGroup of a bare pod is deleted with the pod, even if it was never created. It is in the queue of its namespace, regardless of
// which of the two the scheduler sees first.
func TestAPodAloneStandsInTheQueueOfItsNamespace(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testQueue("team"), testPod("a", "", "9"))
		f.deliver(-1)
		r.tick()
		in := func() (queues []string) {
			for _, j := range r.cluster.Jobs {
				queues = append(queues, j.QueueName)
			}
			return queues
		}
		if diff := cmp.Diff([]string{"default"}, in()); diff != "" {
			t.Errorf("queues before the namespace is seen (-want +got):\n%s", diff)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "default", Annotations: map[string]string{v1beta1.QueueNameAnnotationKey: "team"},
		}}
		f.feed.add(change{object: namespace}, true)
		r.tick()
		if diff := cmp.Diff([]string{"team"}, in()); diff != "" {
			t.Errorf("queues once it is seen (-want +got):\n%s", diff)
		}
		f.feed.add(change{op: model.Delete, object: namespace}, true)
		f.drop(f.pods["default/a"])
		f.deliver(-1)
		r.tick()
		if len(r.intake.groups)+len(r.intake.queues)+len(r.cluster.Jobs) != 0 {
			t.Errorf("left behind: %v, %v, %v", r.intake.groups, r.intake.queues, r.cluster.Jobs)
		}
	})
}

// A bare pod that waits gets a condition. It keeps its place in the order if it gets the name of its PodGroup without a binding.
func TestAPodAloneWaits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testPod("a", "", "9"))
		r.settle(2)
		if c := f.pods["default/a"].Status.Conditions; len(c) != 1 || c[0].Reason != corev1.PodReasonUnschedulable {
			t.Errorf("conditions of a pod that waits: %+v", c)
		}
		name := objects.BareGroupName(f.pods["default/a"])
		r.settle(3)
		group := f.groups["default/"+name]
		if group == nil || len(group.Status.Conditions) != 1 || group.Status.Conditions[0].Type != v1beta1.PodGroupUnschedulableType {
			t.Fatalf("the PodGroup of a pod that waits: %+v", group)
		}
		if !slices.Contains(f.events, "PodGroup default/"+name+" Unschedulable") {
			t.Errorf("events: %v", f.events)
		}
		f.as("default/a", func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GroupAnnotation, name) })
		r.settle(2)
		if m := r.intake.member["default/a"]; m.assumed || r.cluster.Tasks["default/a"].Job.Key != "default/"+name {
			t.Errorf("the pod is %+v, of job %s", m, r.cluster.Tasks["default/a"].Job.Key)
		}
		f.put(testNode("n2", "16"))
		f.deliver(-1)
		r.tick()
		for r.work() {
		}
		if !slices.Contains(f.bindings, "default/a n2") {
			t.Errorf("bindings: %v", f.bindings)
		}
		time.Sleep(time.Second)
		r.settle(2)
		if got := f.groups["default/"+name].Status.Phase; got != v1beta1.PodGroupRunning {
			t.Errorf("its PodGroup is %s", got)
		}
	})
}

// Another client creates a PodGroup with the name of an assumed one in another queue. It is not admitted because of the assumed one.
func TestAnotherGroupThanTheAssumedOneIsNotLetIn(t *testing.T) {
	for queue, want := range map[string]string{"default": model.PhaseInqueue, "other": model.PhasePending} {
		t.Run(queue, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := r.server
				other := testQueue("other")
				other.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
				f.put(testNode("n1", "16"), testQueue("default"), other, testPod("a", "", "9"))
				f.as("default/a", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"nowhere": ""} })
				r.settle(1)
				name := objects.BareGroupName(f.pods["default/a"])
				if got := r.cluster.Jobs["default/"+name].Phase; got != model.PhaseInqueue {
					t.Fatalf("the assumed PodGroup is %s", got)
				}
				group, _ := objects.BareGroup(f.pods["default/a"], name, nil)
				group.Spec.Queue = queue
				f.put(group)
				f.deliver(-1)
				r.takeIn(time.Now())
				if got := r.cluster.Jobs["default/"+name].Phase; got != want {
					t.Errorf("in queue %s it is %s, want %s", queue, got, want)
				}
			})
		})
	}
}
