package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// bubble runs a test with its own clock.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, recorded(t, newRig(t)))
	})
}

func TestGangIsBoundAndWritten(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "2"), testNode("n2", "2"), testQueue("default"), testGroup("g", 3))
		f.put(testPod("a", "g", "1"), testPod("b", "g", "1"))
		r.settle(7)
		if len(f.bindings) != 0 {
			t.Fatalf("bound before the gang was whole: %v", f.bindings)
		}
		g := f.groups["default/g"]
		if c := g.Status.Conditions; g.Status.Phase != "Inqueue" || len(c) != 1 || c[0].Type != "Unschedulable" || c[0].Status != "True" {
			t.Errorf("status of a gang that lacks a pod: %+v", g.Status)
		}
		f.put(testPod("c", "g", "1"))
		f.writes = nil
		r.settle(2)
		slices.Sort(f.bindings)
		if diff := cmp.Diff(3, len(f.bindings)); diff != "" {
			t.Fatalf("bindings %v: %s", f.bindings, diff)
		}
		g = f.groups["default/g"]
		var conditions []string
		for _, c := range g.Status.Conditions {
			conditions = append(conditions, string(c.Type)+"="+string(c.Status))
		}
		if diff := cmp.Diff([]string{"Unschedulable=False", "Scheduled=True"}, conditions); diff != "" || g.Status.Phase != "Running" {
			t.Errorf("conditions of phase %s (-want +got):\n%s", g.Status.Phase, diff)
		}
		if got := f.pods["default/a"].Annotations[PolicyAnnotation]; got != "default@0" {
			t.Errorf("%s = %q", PolicyAnnotation, got)
		}
		if got := f.queues["default"].Status.Allocated.Cpu().String(); got != "3" {
			t.Errorf("queue allocated %s", got)
		}
		f.writes = nil
		r.settle(5)
		if len(f.writes) != 0 {
			t.Errorf("written though nothing changed: %v", f.writes)
		}
	})
}

// While the pods of a gang are created, neither the gang nor its pods get a status. After that, each status is written once.
func TestAGangThatIsBeingMadeIsNotUnschedulable(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "2"), testQueue("default"), testGroup("g", 3))
		come := func(names ...string) {
			for _, name := range names {
				f.put(testPod(name, "g", "1"))
				for range 20 {
					f.deliver(-1)
					r.tick()
					for r.work() {
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
		}
		come("a", "b")
		if diff := cmp.Diff([]string{"group default/g Inqueue"}, f.writes); diff != "" || len(f.events) > 0 {
			t.Errorf("said while pods come: events %v, writes (-want +got):\n%s", f.events, diff)
		}
		f.writes = nil
		come("c")
		r.settle(12)
		slices.Sort(f.writes)
		want := []string{"group default/g Inqueue", "pod default/a", "pod default/b", "pod default/c"}
		if diff := cmp.Diff(want, f.writes); diff != "" {
			t.Errorf("written once they are there, and do not fit (-want +got):\n%s", diff)
		}
		slices.Sort(f.events)
		want = []string{"Pod default/a FailedScheduling", "Pod default/c FailedScheduling", "PodGroup default/g Unschedulable"}
		if diff := cmp.Diff(want, f.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// By default a gang gets one event with its nodes, and pods only get annotations.
func TestAGangIsToldOfOnce(t *testing.T) {
	for of, want := range map[string][]string{
		BindingsOfGangs: {"PodGroup default/g Scheduled"},
		BindingsOfPods: {
			"Pod default/a Scheduled", "Pod default/alone Scheduled", "Pod default/b Scheduled", "Pod default/c Scheduled",
			"PodGroup default/g Scheduled",
		},
		BindingsOfNone: nil,
	} {
		t.Run(of, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.binder.scheduled, r.statuses.bindingEvents = scheduledEvents(r.events, r.metrics, of), of
				f := r.server
				f.put(testNode("n1", "2"), testNode("n2", "2"), testQueue("default"), testGroup("g", 3), testPod("alone", "", "1"))
				f.put(testPod("a", "g", "1"), testPod("b", "g", "1"), testPod("c", "g", "1"))
				r.settle(2)
				slices.Sort(f.events)
				if diff := cmp.Diff(want, f.events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if of == BindingsOfGangs {
					said := f.messages[0]
					if !strings.HasPrefix(said, "3 pod(s) on 2 node(s): n1 (") || !strings.HasSuffix(said, ") by policy default@0") {
						t.Errorf("the event of the gang says %q", said)
					}
				}
				if why := f.pods["default/c"].Annotations[WhyAnnotation]; why != "the only node that fits" {
					t.Errorf("a pod says %q", why)
				}
			})
		})
	}
}

// A PodGroup whose phase changes several times in a short time is written once.
func TestStatusesCoalesce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
		f.deliver(-1)
		r.tick()
		if c, _ := r.peek(); c != outbox.Binding {
			t.Fatalf("class %d is first in line, not the binding", c)
		}
		r.work() // this sends only the binding
		f.deliver(-1)
		r.tick()
		time.Sleep(settleTime) // the clock of the bubble
		r.tick()
		for r.work() {
		}
		if diff := cmp.Diff([]string{"bind default/a n1", "queue default", "group default/g Running"}, f.writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// A controller waits for Inqueue before it creates pods, so Inqueue is written before other statuses.
func TestInqueueGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.server.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1))
		r.server.deliver(-1)
		r.tick()
		if c, ok := r.peek(); !ok || c != outbox.Awaited {
			t.Fatalf("class %d is first in line", c)
		}
		r.work()
		if diff := cmp.Diff([]string{"group default/g Inqueue"}, r.server.writes); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// A field of a PodGroup that no decision honors is reported once, and so is each further field.
func TestUnheededIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		g := testGroup("g", 1)
		g.Spec.SubGroupPolicy = []v1beta1.SubGroupPolicySpec{{Name: "decode"}}
		f.put(testNode("n1", "4"), testQueue("default"), g, testPod("a", "g", "1"))
		told := func(field string) int {
			n := 0
			for _, text := range f.messages {
				if strings.HasPrefix(text, field+": ") {
					n++
				}
			}
			return n
		}
		r.settle(5)
		if event := "PodGroup default/g " + eventNotYetHonoured; !slices.Contains(f.events, event) {
			t.Errorf("no %s in %v", event, f.events)
		}
		g = f.groups["default/g"].DeepCopy()
		g.Spec.NetworkTopology, g.Spec.MinMember = &v1beta1.NetworkTopologySpec{Mode: v1beta1.SoftNetworkTopologyMode}, 2
		f.put(g)
		r.settle(5)
		if s, n := told("spec.subGroupPolicy"), told("spec.networkTopology"); s != 1 || n != 1 {
			t.Errorf("sub-groups are told of %d times, topology %d times: %v", s, n, f.messages)
		}
	})
}

// A binding that was not sent because the lease lapsed is sent after its renewal. It is neither refused nor read back.
func TestALapsedLeaseHoldsBindingsUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		lapsed := time.Now().Add(20 * time.Second)
		f.onBind = func(*corev1.Binding) (before, after error) {
			if time.Now().Before(lapsed) {
				return fmt.Errorf("bind: %w", lease.ErrLapsed), nil
			}
			return nil, nil
		}
		f.onGet = func(name string) error { t.Errorf("pod %s was asked about", name); return nil }
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 2), testPod("a", "g", "1"), testPod("b", "g", "1"))
		r.settle(25)
		slices.Sort(f.bindings)
		if diff := cmp.Diff([]string{"default/a n1", "default/b n1"}, f.bindings); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if slices.ContainsFunc(f.events, func(e string) bool { return strings.Contains(e, eventBindRefused) }) {
			t.Errorf("events: %v", f.events)
		}
	})
}

// An event that is older than our own write does not undo it.
func TestStaleGroup(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		g := testGroup("g", 1)
		f.put(testNode("n1", "4"), testQueue("default"), g)
		f.deliver(-1)
		r.tick()
		label := g.DeepCopy()
		label.Labels = map[string]string{"by": "somebody"}
		f.put(label)
		f.deliver(-1) // still Pending, before our write
		r.tick()
		if got := r.cluster.Jobs["default/g"].Phase; got != "Inqueue" {
			t.Fatalf("an older version made the phase %s", got)
		}
		old := f.groups["default/g"]
		r.work() // sends our write
		f.feed.add(change{op: model.Upsert, object: old}, true)
		r.tick()
		if got := r.cluster.Jobs["default/g"].Phase; got != "Inqueue" {
			t.Fatalf("a version from before our write made the phase %s", got)
		}
		f.deliver(-1)
		back := f.groups["default/g"].DeepCopy()
		back.Status.Phase = v1beta1.PodGroupPending
		f.put(back)
		f.deliver(-1)
		r.tick()
		if diff := cmp.Diff(1, len(r.cluster.Queues["default"].Jobs)); diff != "" {
			t.Error(diff)
		}
		r.settle(1)
		if got := f.groups["default/g"].Status.Phase; got != "Inqueue" {
			t.Errorf("a newer version by another leaves the phase %s", got)
		}
	})
}

func TestRefusedBindingBacksOff(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"conflict", apierrors.NewConflict(podResource, "a", errUnderneath)},
		{"forbidden", apierrors.NewForbidden(podResource, "a", errUnderneath)},
		{"answered with 500 each time", apierrors.NewInternalError(errUnderneath)},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := r.server
				f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
				var at []time.Duration
				start := time.Now()
				f.onBind = func(*corev1.Binding) (before, after error) {
					at = append(at, time.Since(start).Round(100*time.Millisecond))
					return c.err, nil
				}
				r.settle(4)
				if len(at) < 4 {
					t.Fatalf("%d tries", len(at))
				}
				if last, first := at[len(at)-1]-at[len(at)-2], at[1]-at[0]; last <= first {
					t.Errorf("no back-off: tries at %v", at)
				}
				p := f.pods["default/a"]
				if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != report.ReasonSchedulerError ||
					!strings.Contains(p.Status.Conditions[0].Message, "n1 was refused") {
					t.Errorf("conditions %+v", p.Status.Conditions)
				}
				f.onBind = nil
				r.settle(20)
				if diff := cmp.Diff([]string{"default/a n1"}, f.bindings); diff != "" {
					t.Errorf("bindings (-want +got):\n%s", diff)
				}
				if len(r.intake.holds) != 0 || len(r.broken) != 0 {
					t.Errorf("left behind: %v %v", r.intake.holds, r.broken)
				}
			})
		})
	}
}

// A binding with an unknown outcome is read back, and never sent to another node.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after error
		binds         int // requests that reached the server
	}{
		{"it was done", nil, errNoAnswer, 1},
		{"it was not done", errNoAnswer, nil, 1},
		{"it was done, and timed out", nil, context.DeadlineExceeded, 1},
		{"it was done, and the server erred", nil, apierrors.NewInternalError(errUnderneath), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := r.server
				f.put(testNode("n1", "4"), testNode("n2", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
				tries := 0
				f.onBind = func(*corev1.Binding) (before, after error) {
					if tries++; tries == 1 {
						return c.before, c.after
					}
					return nil, nil
				}
				f.onGet = func(string) error { // reading fails at first, too
					if tries == 1 && c.before != nil {
						return errNoAnswer
					}
					return nil
				}
				r.settle(3)
				if diff := cmp.Diff([]string{"default/a n1"}, f.bindings); diff != "" {
					t.Errorf("bindings (-want +got):\n%s", diff)
				}
				reached := 0
				for _, w := range f.writes {
					if strings.HasPrefix(w, "bind") {
						reached++
					}
				}
				if reached != c.binds {
					t.Errorf("%d requests reached the server: %v", reached, f.writes)
				}
				if len(r.intake.holds) != 0 {
					t.Errorf("it counts as refused: %v", r.intake.holds)
				}
			})
		})
	}
}

// A node that is deleted or cordoned between the decision and the binding gets no pod.
func TestNodeChangesBeforeBinding(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fakeServer)
	}{
		{"cordoned", func(f *fakeServer) {
			n := f.nodes["n1"].DeepCopy()
			n.Spec.Unschedulable = true
			f.put(n)
		}},
		{"deleted", func(f *fakeServer) { f.drop(f.nodes["n1"]) }},
		{"not ready", func(f *fakeServer) {
			n := f.nodes["n1"].DeepCopy()
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
			f.put(n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := r.server
				f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
				f.deliver(-1)
				r.tick()
				c.change(f)
				f.put(testNode("n2", "4"))
				f.deliver(-1)
				r.takeIn(time.Now()) // runs before a worker handles the binding
				r.settle(3)
				if diff := cmp.Diff([]string{"default/a n2"}, f.bindings); diff != "" {
					t.Errorf("bindings (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A paused policy stops bindings that were not sent. When it is resumed, the pods are bound.
func TestPausedBeforeBinding(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"), testPod("b", "g", "1"))
		f.deliver(-1)
		r.tick()
		active := r.policy()
		paused := *active
		paused.Mode = "Paused"
		r.policy = func() *policy.Policy { return &paused }
		r.settle(3)
		if len(f.bindings) != 0 {
			t.Errorf("bound while paused: %v", f.bindings)
		}
		if err := r.cluster.Check(); err != nil {
			t.Error(err)
		}
		r.policy = func() *policy.Policy { return active }
		r.settle(3)
		slices.Sort(f.bindings)
		if diff := cmp.Diff([]string{"default/a n1", "default/b n1"}, f.bindings); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	})
}

func TestPodGoesBeforeBinding(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
		f.deliver(-1)
		r.tick()
		f.drop(f.pods["default/a"])
		f.put(testPod("a", "g", "1")) // another pod with the same name
		r.settle(3)
		if diff := cmp.Diff([]string{"default/a n1"}, f.bindings); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	})
}

// gangOfTwo creates a gang with one member that can never be bound.
func gangOfTwo(r *rig) {
	f := r.server
	f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 2), testPod("a", "g", "1"), testPod("b", "g", "1"))
	f.onBind = func(b *corev1.Binding) (before, after error) {
		if b.Name == "b" {
			return apierrors.NewForbidden(podResource, "b", errUnderneath), nil
		}
		return nil, nil
	}
}

func TestHalfBoundGangIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		gangOfTwo(r)
		start := time.Now()
		for f.pods["default/a"] != nil {
			if time.Since(start) > 5*time.Minute {
				t.Fatalf("not released: %v", f.writes)
			}
			r.settle(1)
		}
		if took := time.Since(start); took < time.Minute {
			t.Errorf("released after %s", took)
		}
		c := f.groups["default/g"].Status.Conditions
		if len(c) == 0 || !slices.ContainsFunc(c, func(c v1beta1.PodGroupCondition) bool {
			return c.Type == "Unschedulable" && c.Status == "True" && c.Reason == reasonBindRefused &&
				strings.Contains(c.Message, "refused by the test")
		}) {
			t.Errorf("conditions %+v", c)
		}
		for _, want := range []string{"PodGroup default/g GangReleased", "Pod default/a Evict", "Pod default/b BindRefused"} {
			if !slices.Contains(f.events, want) {
				t.Errorf("no event %q in %v", want, f.events)
			}
		}
		f.onBind = nil
		f.put(testPod("a", "g", "1"))
		r.settle(60)
		if got := f.groups["default/g"].Status.Phase; got != "Running" || len(r.broken) != 0 {
			t.Errorf("phase %s, still broken: %v", got, r.broken)
		}
	})
}

// A gang that was whole once keeps its members, because they would lose work.
func TestGangThatWasWholeIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		gangOfTwo(r)
		refuse := f.onBind
		f.onBind = nil
		r.settle(1)
		for _, key := range []string{"default/a", "default/b"} {
			f.as(key, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		}
		r.settle(2)
		f.drop(f.pods["default/b"])
		f.put(testPod("b", "g", "1"))
		f.onBind = refuse
		for range 5 * 60 {
			r.settle(1)
		}
		if f.pods["default/a"] == nil {
			t.Error("a member that had run was evicted")
		}
		if g := f.groups["default/g"]; g.Status.Phase != "Unknown" {
			t.Errorf("phase %s", g.Status.Phase)
		}
	})
}

// Only changes are written, also after a restart.
func TestRestartWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "2"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"), testGroup("big", 1), testPod("b", "big", "9"))
		r.settle(12) // changed texts are written again only after a while
		fresh := newRigOf(f, r.policy())
		fresh.server.history = nil
		for _, o := range f.nodes {
			f.history = append(f.history, change{op: model.Upsert, object: o})
		}
		for _, o := range f.queues {
			f.history = append(f.history, change{op: model.Upsert, object: o})
		}
		for _, o := range f.groups {
			f.history = append(f.history, change{op: model.Upsert, object: o})
		}
		for _, o := range f.pods {
			f.history = append(f.history, change{op: model.Upsert, object: o})
		}
		f.writes, f.events = nil, nil
		fresh.settle(12)
		if len(f.writes)+len(f.events) != 0 {
			t.Errorf("written though nothing changed: %v %v", f.writes, f.events)
		}
	})
}

// PodGroups of other schedulers are not changed.
func TestOthersGroups(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		foreign := testPod("a", "theirs", "1")
		foreign.Spec.SchedulerName = "another"
		f.put(testNode("n1", "2"), testQueue("default"), testGroup("theirs", 1), foreign, testGroup("ours", 1), testPod("b", "ours", "1"))
		r.settle(2)
		if got := f.groups["default/theirs"].Status; got.Phase != "Pending" || len(got.Conditions) != 0 {
			t.Errorf("theirs: %+v", got)
		}
		if got := f.groups["default/ours"].Status.Phase; got != "Running" {
			t.Errorf("ours: %s", got)
		}
	})
}

// The loop starts a cycle a quarter of a window after a relevant change, or a window after it while more changes come. It starts one at
// once after a bare pod, later after other changes, and at the latest after the period.
func TestTiming(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var at []time.Duration
		start := time.Now()
		inner := r.policy
		r.policy = func() *policy.Policy {
			at = append(at, time.Since(start))
			return inner()
		}
		go func() { defer close(done); r.run(ctx) }()
		time.Sleep(100 * time.Millisecond)
		r.feed.add(change{op: model.Upsert, object: testNode("n1", "1")}, true) // cycle at 105
		time.Sleep(100 * time.Millisecond)
		r.feed.add(change{op: model.Upsert, object: testNode("n2", "1")}, false) // cycle at 400
		time.Sleep(50 * time.Millisecond)
		r.feed.add(change{op: model.Upsert, object: testNode("n3", "1")}, false) // comes in the same cycle
		time.Sleep(time.Second)                                                  // no change: cycle at 1400
		time.Sleep(200 * time.Millisecond)
		for range 8 { // from 1450 to 1471: cycles at 1470, and 5 after the last; one at 1570 that writes statuses
			r.feed.add(change{op: model.Upsert, object: testNode("n4", "1")}, true)
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		r.feed.add(change{op: model.Upsert, object: testNode("n5", "1"), whole: true}, true) // at 1574: a cycle
		time.Sleep(3 * time.Millisecond)
		cancel()
		<-done
		want := []time.Duration{
			0, 105 * time.Millisecond, 400 * time.Millisecond, 1400 * time.Millisecond, 1470 * time.Millisecond,
			1476 * time.Millisecond, 1570 * time.Millisecond, 1574 * time.Millisecond,
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("cycles (-want +got):\n%s", diff)
		}
	})
}

func TestOptions(t *testing.T) {
	o, err := Options{}.complete()
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		SchedulerNames: []string{"celsius", "volcano"}, Policy: "default", Namespace: "celsius-system", Period: time.Second,
		Window: 20 * time.Millisecond, BindWorkers: 64, BindingEvents: BindingsOfGangs, GangTimeout: time.Minute,
		CycleTimeout: time.Minute, VolumeTimeout: 10 * time.Minute, LeaseName: "celsius-scheduler",
		ControllersLeaseName: "celsius-controllers",
		LeaseTimes:           lease.Times{Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, wrong := range []Options{
		{BindingEvents: "jobs"},
		{SchedulerNames: []string{""}},
		{NodeSelector: "a in ("},
		{Period: -1},
		{BindWorkers: -1},
		{NodeMetricsInterval: -1},
		{VerifyEvictions: -1},
		{Prometheus: load.Options{URL: "prometheus:9090"}},
		{Prometheus: load.Options{TokenFile: "token"}},
		{LeaseTimes: lease.Times{RenewDeadline: time.Minute}},
	} {
		if _, err := wrong.complete(); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// A status that a client waits for is written in the cycle that decides it, even if all statuses were just compared. While nothing changes,
// nothing is compared.
func TestToldInTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.server.put(testNode("n1", "2"), testQueue("default"))
		r.settle(5)
		idle := r.statuses.compared
		time.Sleep(20 * time.Second)
		r.tick()
		if !r.statuses.compared.Equal(idle) {
			t.Error("compared though nothing changed")
		}
		r.server.put(testNode("n2", "2"))
		r.server.deliver(-1)
		r.tick()
		if r.statuses.compared.Equal(idle) {
			t.Error("not compared though something changed")
		}
		time.Sleep(compareEvery / 2)
		r.server.put(testGroup("g", 1))
		r.server.deliver(-1)
		r.tick()
		if c, ok := r.peek(); !ok || c != outbox.Awaited {
			t.Errorf("class %d stands in line (%v), want the phase of a job that is let in", c, ok)
		}
	})
}

// If several pods of a group wait for the same reason, only one gets an event. Each has the condition.
func TestOneEventForAGroup(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "2"), testQueue("default"), testGroup("g", 3), testPod("a", "g", "9"), testPod("b", "g", "9"),
			testPod("c", "g", "9"),
			testGroup("h", 1), testPod("d", "h", "9"))
		r.settle(2)
		of := map[string]int{}
		for _, e := range f.events {
			if name, ok := strings.CutSuffix(e, " "+eventFailedScheduling); ok {
				of[map[bool]string{true: "h", false: "g"}[name == "Pod default/d"]]++
			}
		}
		if diff := cmp.Diff(map[string]int{"g": 1, "h": 1}, of); diff != "" {
			t.Errorf("events of pods that wait, by group (-want +got):\n%s", diff)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if saidOf(f.pods["default/"+name]).text == "" {
				t.Errorf("pod %s does not say why it waits", name)
			}
		}
	})
}

// A running pod gets one event, and a group of several pods gets one more.
func TestEventsOfWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "9"), testQueue("default"), testGroup("alone", 1), testPod("a", "alone", "1"),
			testGroup("two", 2), testPod("b", "two", "1"), testPod("c", "two", "1"), testGroup("elastic", 1), testPod("d", "elastic", "1"),
			testPod("e", "elastic", "1"))
		r.settle(2)
		slices.Sort(f.events)
		want := []string{
			"Pod default/a Scheduled", "Pod default/b Scheduled", "Pod default/c Scheduled", "Pod default/d Scheduled", "Pod default/e Scheduled",
			"PodGroup default/elastic Scheduled", "PodGroup default/two Scheduled",
		}
		if diff := cmp.Diff(want, f.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := f.groups["default/alone"].Status.Phase; got != "Running" {
			t.Errorf("the group of one pod is %s", got)
		}
	})
}
