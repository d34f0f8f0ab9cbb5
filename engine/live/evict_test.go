package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// policyFrom loads a policy from a text.
func policyFrom(t testing.TB, text string) *policy.Policy {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(text))
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	return p
}

// preempting returns a policy by which jobs of higher priority displace pods of lower priority. more contains more parameters of its step.
func preempting(t testing.TB, more string) *policy.Policy {
	t.Helper()
	return policyFrom(t, `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: default}
spec:
  pipeline: [enqueue, allocate, make-room]
  actions:
  - name: make-room
    steps:
    - {verb: displace, jobs: job.starving`+more+`}
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}]
`)
}

// room runs a test in which pod high waits, and pods low-1 to low-N run. Each of them fills its own node.
func room(t *testing.T, more string, lows int, test func(t *testing.T, r *rig)) {
	t.Helper()
	p := preempting(t, more)
	synctest.Test(t, func(t *testing.T) {
		r := recorded(t, newRigOf(newFakeServer(t), p))
		f := r.server
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"))
		for i := range lows {
			low, node := fmt.Sprint("low-", i+1), fmt.Sprint("n", i+1)
			f.put(testNode(node, "2"), testGroup(low, 0), runningOn(testPod(low, low, "2"), node))
		}
		g := testGroup("high", 1)
		g.Spec.PriorityClassName = "high"
		f.put(g, testPod("high", "high", "2"))
		test(t, r)
	})
}

// runningOn sets a pod to Running on a node, with a grace period.
func runningOn(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.TerminationGracePeriodSeconds = new(int64(30))
	return p
}

// ends returns the evictions and deletions that the server accepted.
func (f *fakeServer) ends() []string {
	return slices.DeleteFunc(slices.Clone(f.writes), func(w string) bool {
		return !strings.HasPrefix(w, "evict ") && !strings.HasPrefix(w, "delete ")
	})
}

// told returns the message of the first event of a type.
func (f *fakeServer) told(event string) string {
	if i := slices.Index(f.events, event); i >= 0 {
		return f.messages[i]
	}
	return ""
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			c.LastTransitionTime = metav1.Time{}
			return c
		}
	}
	return corev1.PodCondition{}
}

// budget returns the API server's refusal of an eviction because of a PodDisruptionBudget.
func budget() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	cause := metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget b needs 1 healthy"}
	err.ErrStatus.Details.Causes = []metav1.StatusCause{cause}
	return err
}

const (
	by   = " by priority/strictly-lower (policy default@0)"
	goes = "Pod is evicted, because of make-room: it makes room for default/high" + by
	why  = "make-room: pod low-1 makes room for default/high" + by
	wins = "pod default/low-1 is evicted from node n1 for it, because of make-room," + by
)

func TestEviction(t *testing.T) {
	for _, c := range []struct{ via, end string }{{"", "evict"}, {", via: evict", "evict"}, {", via: delete", "delete"}} {
		t.Run(c.end, func(t *testing.T) {
			room(t, c.via, 1, func(t *testing.T, r *rig) {
				f := r.server
				r.settle(5)
				if diff := cmp.Diff([]string{c.end + " default/low-1"}, f.ends()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				marked := slices.Index(f.writes, "pod default/low-1")
				if ended := slices.Index(f.writes, f.ends()[0]); marked < 0 || (marked < ended) != (c.end == "delete") {
					t.Errorf("the pod says that it goes at the wrong time: %v", f.writes)
				}
				want := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: "True", Reason: "PreemptionByScheduler", Message: goes}
				if diff := cmp.Diff(want, conditionOf(f.pods["default/low-1"], corev1.DisruptionTarget)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				told := []string{f.told("Pod default/low-1 Evict"), f.told("PodGroup default/low-1 Evict"), f.told("Pod default/high RoomMade")}
				if diff := cmp.Diff([]string{goes, why, wins}, told); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				waits := conditionOf(f.pods["default/high"], corev1.PodScheduled)
				node := f.pods["default/high"].Status.NominatedNodeName
				if node != "n1" || !strings.Contains(waits.Message, "being released on node n1") {
					t.Errorf("nominated node %q, %+v", node, waits)
				}
				if n := testutil.ToFloat64(r.metrics.evictions.WithLabelValues("make-room", "priority", "strictly-lower", "evicted")); n != 1 {
					t.Errorf("%g evictions counted", n)
				}
				f.drop(f.pods["default/low-1"])
				r.settle(2)
				if diff := cmp.Diff([]string{"default/high n1"}, f.bindings); diff != "" || len(f.ends()) != 1 || len(r.evicts.leaving) != 0 {
					t.Errorf("bindings (-want +got):\n%s%v", diff, f.ends())
				}
			})
		})
	}
}

// An eviction that a budget forbids is undone: the pod counts as running. Another pod is evicted instead, and the first one is protected
// for a while.
func TestRefusedEvictionMakesRoomElsewhere(t *testing.T) {
	room(t, "", 2, func(t *testing.T, r *rig) {
		f := r.server
		first := ""
		f.onEnd = func(_, key string) error {
			if first == "" {
				first = key
			}
			if key == first {
				return budget()
			}
			return nil
		}
		r.settle(5)
		if len(f.ends()) != 1 || first == "" || strings.Contains(f.ends()[0], first) {
			t.Fatalf("refused was %s, evicted %v", first, f.ends())
		}
		if got := r.cluster.Tasks[first].Status; got != model.Running {
			t.Errorf("the refused pod is %s", got)
		}
		told := f.told("Pod default/high EvictRefused")
		for _, want := range []string{first, "left alone for 10s", "disruption budget: The disruption budget b needs 1 healthy"} {
			if !strings.Contains(told, want) {
				t.Errorf("the event does not say %q: %s", want, told)
			}
		}
		if c := conditionOf(f.pods[first], corev1.DisruptionTarget); c.Status != "" {
			t.Errorf("a pod that stays says that it goes: %+v", c)
		}
		if f.told("Pod "+first+" Evict") != "" {
			t.Errorf("events %v", f.events)
		}
	})
}

// Each refusal doubles the time for which a pod is protected. If no other victim exists, no pod is evicted meanwhile.
func TestRefusedEvictionBacksOff(t *testing.T) {
	room(t, "", 1, func(t *testing.T, r *rig) {
		f := r.server
		var at []time.Duration
		start := time.Now()
		f.onEnd = func(string, string) error {
			at = append(at, time.Since(start).Round(time.Second))
			return budget()
		}
		for time.Since(start) < 20*time.Minute {
			f.deliver(-1)
			r.tick()
			for r.work() {
			}
			time.Sleep(time.Second)
		}
		var apart []time.Duration
		for i := range at[1:] {
			apart = append(apart, (at[i+1] - at[i]).Round(5*time.Second))
		}
		want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, sparedMost, sparedMost}
		if diff := cmp.Diff(want, apart); diff != "" {
			t.Errorf("times between tries (-want +got):\n%s", diff)
		}
		if node := f.pods["default/high"].Status.NominatedNodeName; node != "" {
			t.Errorf("it is promised node %s still", node)
		}
		f.drop(f.pods["default/low-1"])
		f.drop(f.pods["default/high"])
		r.settle(1)
		r.evicts.forget(r.cluster)
		if len(r.evicts.spared)+len(r.evicts.leaving) != 0 {
			t.Errorf("left behind: %v %v", r.evicts.spared, r.evicts.leaving)
		}
	})
}

// A pod whose condition announced its deletion gets a new condition if the deletion is refused.
func TestRefusedDeletion(t *testing.T) {
	room(t, ", via: delete", 1, func(t *testing.T, r *rig) {
		f := r.server
		f.onEnd = func(string, string) error { return apierrors.NewForbidden(podResource, "low-1", errUnderneath) }
		r.settle(2)
		if c := conditionOf(f.pods["default/low-1"], corev1.DisruptionTarget); c.Status != "False" {
			t.Errorf("%+v", c)
		}
		if got := r.cluster.Tasks["default/low-1"].Status; got != model.Running {
			t.Errorf("the pod is %s", got)
		}
	})
}

// An eviction without an answer, or one that was not sent because the lease lapsed, is tried again. It names one pod by its UID.
func TestEvictionIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		often int
	}{
		{"no answer", errNoAnswer, 3},
		{"too many requests at all", apierrors.NewTooManyRequests("later", 1), 3},
		{"the lease has lapsed", fmt.Errorf("evict: %w", lease.ErrLapsed), 2 * unknownTries},
		{"its own writers met", apierrors.NewConflict(podResource, "low-1", errUnderneath), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			room(t, "", 1, func(t *testing.T, r *rig) {
				f := r.server
				tries := 0
				f.onEnd = func(string, string) error {
					if tries++; tries <= c.often {
						if len(f.ends()) != 0 {
							t.Error("evicted though the server was not asked")
						}
						return c.err
					}
					return nil
				}
				r.settle(3 * c.often)
				if diff := cmp.Diff([]string{"evict default/low-1"}, f.ends()); diff != "" || tries != c.often+1 {
					t.Errorf("%d tries (-want +got):\n%s", tries, diff)
				}
				if f.told("Pod default/high EvictRefused") != "" {
					t.Errorf("events %v", f.events)
				}
			})
		})
	}
}

// A victim that is deleted or replaced before its eviction is not a refusal, and its successor is not evicted.
func TestVictimGoesBeforeEviction(t *testing.T) {
	room(t, "", 1, func(t *testing.T, r *rig) {
		f := r.server
		f.deliver(-1)
		r.tick()
		f.drop(f.pods["default/low-1"])
		f.put(testPod("low-1", "low-1", "2"))
		r.work() // runs before the scheduler sees the changes
		r.settle(2)
		if diff := cmp.Diff([]string{"default/high n1"}, f.bindings); diff != "" || len(f.ends()) != 0 || len(r.evicts.leaving) != 0 {
			t.Errorf("bindings (-want +got):\n%s%v", diff, f.ends())
		}
		tries := testutil.CollectAndCount(r.metrics.evictions)
		if n := testutil.ToFloat64(r.metrics.evictions.WithLabelValues("make-room", "priority", "strictly-lower", "gone")); n != 1 || tries != 1 {
			t.Errorf("%g times gone, and %d results", n, tries)
		}
	})
}

// After a restart, the scheduler sees which pods are terminating, and evicts no other pod.
func TestRestartAfterEviction(t *testing.T) {
	room(t, "", 2, func(t *testing.T, r *rig) {
		f := r.server
		r.settle(2)
		before := f.ends()
		fresh := newRigOf(f, r.policy())
		f.history = nil
		for _, o := range []metav1.Object{
			f.nodes["n1"], f.nodes["n2"], f.queues["default"], f.pods["default/low-1"], f.pods["default/low-2"],
			f.pods["default/high"], f.groups["default/low-1"], f.groups["default/low-2"], f.groups["default/high"],
		} {
			f.history = append(f.history, change{op: model.Upsert, object: o})
		}
		fresh.settle(20)
		if diff := cmp.Diff(before, f.ends()); diff != "" || len(before) != 1 {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if len(f.bindings) != 0 {
			t.Errorf("bound to where another still is: %v", f.bindings)
		}
	})
}

// A scheduler that no longer leads evicts no pod.
func TestNoEvictionAfterTheEnd(t *testing.T) {
	room(t, "", 1, func(t *testing.T, r *rig) {
		f := r.server
		f.onEnd = func(string, string) error { return errors.New("evicted after the end") }
		f.deliver(-1)
		r.tick()
		if w := r.outbox.Depths(); w[outbox.Eviction] != 1 {
			t.Fatalf("%d evictions stand in line", w[outbox.Eviction])
		}
		ended, end := context.WithCancel(t.Context())
		end()
		r.outbox.Run(ended)
		if len(f.ends()) != 0 || len(f.events) != 0 {
			t.Errorf("%v, %v", f.ends(), f.events)
		}
	})
}

// Evictions that were not sent are canceled if the preemptor is deleted, or the policy is paused.
func TestEvictionIsRecalled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig)
	}{
		{"the winner goes", func(r *rig) { r.server.drop(r.server.pods["default/high"]) }},
		{"another has its name", func(r *rig) {
			r.server.drop(r.server.pods["default/high"])
			r.server.put(testPod("high", "", "1"))
		}},
		{"paused", func(r *rig) {
			paused := *r.policy()
			paused.Mode = "Paused"
			r.policy = func() *policy.Policy { return &paused }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			room(t, "", 1, func(t *testing.T, r *rig) {
				f := r.server
				f.deliver(-1)
				r.tick()
				if got := r.cluster.Tasks["default/low-1"].Status; got != model.Releasing {
					t.Fatalf("the victim is %s", got)
				}
				c.change(r)
				r.settle(2)
				if got := r.cluster.Tasks["default/low-1"].Status; got != model.Running || len(f.ends()) != 0 || len(r.evicts.leaving) != 0 {
					t.Errorf("the victim is %s: %v", got, f.ends())
				}
			})
		})
	}
}

// An eviction without an answer is not tried again after its preemptor is deleted. If the victim's condition announced the eviction, a new
// condition reports that the pod stays.
func TestEvictionThatIsTriedAgainIsRecalled(t *testing.T) {
	for via, stays := range map[string]corev1.ConditionStatus{"evict": "", "delete": corev1.ConditionFalse} {
		t.Run(via, func(t *testing.T) {
			room(t, ", via: "+via, 1, func(t *testing.T, r *rig) {
				f := r.server
				f.onEnd = func(string, string) error { return errNoAnswer }
				f.deliver(-1)
				r.tick()
				r.work()
				f.drop(f.pods["default/high"])
				f.deliver(-1)
				r.tick()
				f.onEnd = nil
				r.settle(10)
				if got := r.cluster.Tasks["default/low-1"].Status; got != model.Running || len(f.ends()) != 0 || len(r.evicts.leaving) != 0 {
					t.Errorf("the victim is %s: %v", got, f.ends())
				}
				if c := conditionOf(f.pods["default/low-1"], corev1.DisruptionTarget); c.Status != stays {
					t.Errorf("it says %+v", c)
				}
			})
		})
	}
}

// If one of several evictions is refused, the evictions for the same job that were not sent are undone.
func TestNeedIsRolledBackAsAWhole(t *testing.T) {
	p := preempting(t, "")
	synctest.Test(t, func(t *testing.T) {
		r := recorded(t, newRigOf(newFakeServer(t), p))
		f := r.server
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testNode("n1", "3"))
		for _, low := range []string{"low-1", "low-2", "low-3"} {
			f.put(testGroup(low, 0), runningOn(testPod(low, low, "1"), "n1"))
		}
		g := testGroup("high", 1)
		g.Spec.PriorityClassName = "high"
		f.put(g, testPod("high", "high", "3"))
		asked := 0
		f.onEnd = func(string, string) error { asked++; return budget() }
		f.deliver(-1)
		r.tick()
		if n := len(r.evicts.leaving); n != 3 {
			t.Fatalf("%d are to go", n)
		}
		r.work() // the first of them
		r.tick()
		for _, low := range []string{"default/low-1", "default/low-2", "default/low-3"} {
			if got := r.cluster.Tasks[low].Status; got != model.Running {
				t.Errorf("pod %s is %s", low, got)
			}
		}
		r.settle(5)
		if asked != 1 {
			t.Errorf("%d evictions were asked for, though without the first there is no room", asked)
		}
	})
}

// A victim whose binding was not sent yet is not bound, and need not be evicted.
func TestEvictionOfWhatIsNotBoundYet(t *testing.T) {
	p := preempting(t, ", candidates: 'true'")
	synctest.Test(t, func(t *testing.T) {
		r := recorded(t, newRigOf(newFakeServer(t), p))
		f := r.server
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testNode("n1", "2"))
		f.put(testGroup("low", 0), testPod("low", "low", "2"))
		f.deliver(-1)
		r.tick()
		if w := r.outbox.Depths(); w[outbox.Binding] != 1 {
			t.Fatalf("%d bindings stand in line", w[outbox.Binding])
		}
		g := testGroup("high", 1)
		g.Spec.PriorityClassName = "high"
		f.put(g, testPod("high", "high", "2"))
		r.settle(5)
		if diff := cmp.Diff([]string{"default/high n1"}, f.bindings); diff != "" || len(f.ends()) != 0 {
			t.Errorf("bindings (-want +got):\n%s%v", diff, f.ends())
		}
		if got := r.cluster.Tasks["default/low"].Status; got != model.Pending {
			t.Errorf("the other is %s", got)
		}
	})
}

// Bindings of a cycle are sent before its evictions.
func TestEvictionsComeAfterBindings(t *testing.T) {
	room(t, "", 1, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n9", "1"), testGroup("other", 1), testPod("other", "other", "1"))
		f.deliver(-1)
		r.tick()
		r.work()
		if diff := cmp.Diff([]string{"bind default/other n9"}, f.writes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.settle(2)
		if len(f.ends()) != 1 {
			t.Errorf("evicted: %v", f.ends())
		}
	})
}

// An eviction that a budget refuses is sent once, even if the API server tells the client to retry, because the worker has other work. Both
// methods send the pod's UID.
func TestEvictionsAtTheServer(t *testing.T) {
	var refused *apierrors.StatusError
	if !errors.As(budget(), &refused) {
		t.Fatal("a budget refuses with a status")
	}
	forbidden := refused.Status()
	for _, c := range []struct {
		name, method, path string
		end                func(corePods) error
	}{
		{"evict", http.MethodPost, "/api/v1/namespaces/team/pods/a/eviction", func(p corePods) error {
			return p.Evict(t.Context(), "team", "a", "uid-1")
		}},
		{"delete", http.MethodDelete, "/api/v1/namespaces/team/pods/a", func(p corePods) error {
			return p.Delete(t.Context(), "team", "a", "uid-1")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			answer := http.StatusTooManyRequests
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !strings.Contains(string(body), "uid-1") {
					t.Errorf("body %q: %v", body, err)
				}
				asked = append(asked, r.Method+" "+r.URL.Path)
				if c.name == "evict" {
					w.Header().Set("Retry-After", "10")
				}
				answerOf(answer, runtime.ContentTypeJSON, &forbidden)(w, r)
			}))
			defer h.Close()
			err := c.end(testPods(t, &rest.Config{Host: h.URL}, false))
			if want := "The disruption budget b needs 1 healthy"; !strings.Contains(refusal(err), want) {
				t.Errorf("%q does not say %q", refusal(err), want)
			}
			if diff := cmp.Diff([]string{c.method + " " + c.path}, asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
