package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// shadowed contains a scheduler of pods with the scheduler name volcano, and a shadow. Both get the same changes, each at its own time.
type shadowed struct {
	*rig
	shadow *beside.Shadow
	told   *feed
	late   []change // changes that the shadow has not received yet
}

func newShadowed(t *testing.T, others *policy.Policy, o beside.Options) *shadowed {
	t.Helper()
	s := &shadowed{rig: newRigOf(newFakeServer(t), others), told: newFeed()}
	s.shadow = newShadow(o.WithDefaults(), s.told)
	return s
}

// see delivers all changes to the scheduler, and the next n changes to the shadow; all if n is below 0. Then the shadow runs a cycle.
func (s *shadowed) see(n int) {
	s.late = append(s.late, s.server.history...)
	s.server.deliver(-1)
	if n < 0 || n > len(s.late) {
		n = len(s.late)
	}
	for _, c := range s.late[:n] {
		s.told.add(c, true)
	}
	s.late = s.late[n:]
	for _, err := range s.shadow.Cycle(time.Now()) {
		s.server.t.Fatalf("%v", err)
	}
}

func volcanos(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = volcanoName
	return p
}

// TestBesideItself runs a scheduler and its shadow with the same policy for more than 1,000 cycles each, while jobs are created, run and
// end. The shadow would have made all decisions of the scheduler.
func TestBesideItself(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	synctest.Test(t, func(t *testing.T) {
		r := busyBeside(t, p, p, 1200)
		if r.Cycles < 1000 || r.Decisions < 1000 || r.Agreement != 1 || len(r.Differences) > 0 {
			t.Errorf("they do not agree in all:\n%s", r.Text())
		}
	})
}

// TestBesideAnotherPolicy uses two policies with different placements. The report contains the differences, and no decision is lost.
func TestBesideAnotherPolicy(t *testing.T) {
	const tables = "{name: priority}, {name: gang}, {name: predicates}, {name: proportion}, "
	packs, spreads := tablesOf(t, "enqueue, allocate", tables+"{name: binpack}"), tablesOf(t, "enqueue, allocate", tables+"{name: nodeorder}")
	synctest.Test(t, func(t *testing.T) {
		r := busyBeside(t, packs, spreads, 200)
		elsewhere := 0
		for _, d := range r.Differences {
			if d.Kind == beside.Elsewhere {
				elsewhere++
				if d.Refused == nil && (d.Other.Node == d.Celsius.Node || total(&d.Celsius) < total(&d.Other)) {
					t.Errorf("%s", d.String())
				}
			}
		}
		if r.Agreement > 0.9 || elsewhere < 20 {
			t.Errorf("they agree too well:\n%s", r.Text())
		}
	})
}

func total(s *beside.Side) (sum float64) {
	for _, x := range s.Scores {
		sum += x.Score
	}
	return sum
}

// busyBeside creates, runs and ends jobs while a scheduler places them by one policy and a shadow watches with another. Each of the
// scheduler's bindings is compared.
func busyBeside(t *testing.T, others, p *policy.Policy, steps int) *beside.Report {
	t.Helper()
	s := newShadowed(t, others, beside.Options{Policy: p})
	f, random := s.server, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	f.put(testQueue("default"), testQueue("research"))
	for i := range 6 {
		f.put(testNode(fmt.Sprintf("n%d", i), fmt.Sprint(4+i)))
	}
	s.see(-1)
	for step := range steps {
		if step%4 == 0 && pending(f) < 12 {
			s.come(step, random)
		}
		if step%5 == 0 {
			s.leave(random)
		}
		s.see(-1) // all new objects; bindings are delivered step by step below
		s.tick()
		for s.work() {
			if random.IntN(2) == 0 {
				s.see(random.IntN(len(f.history) + len(s.late) + 1))
			}
		}
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
	}
	s.see(-1)
	r := s.shadow.Report()
	bound := 0
	for i := range r.Queues {
		if c := &r.Queues[i]; c.Verb == beside.Bind {
			bound += c.All() - c.NotYet
		}
	}
	if bound != len(f.bindings) || r.Missed > 0 {
		t.Errorf("%d bindings are compared, and %d missed, of %d", bound, r.Missed, len(f.bindings))
	}
	return r
}

// come creates a gang of one to three pods.
func (s *shadowed) come(step int, random *rand.Rand) {
	name, size := fmt.Sprintf("g%d", step), 1+random.IntN(3)
	g := testGroup(name, int32(size))
	g.Spec.Queue = []string{"default", "research"}[random.IntN(2)]
	s.server.put(g)
	for i := range size {
		s.server.put(volcanos(testPod(fmt.Sprintf("%s-%d", name, i), name, fmt.Sprint(1+random.IntN(3)))))
	}
}

// leave deletes some of the bound pods.
func (s *shadowed) leave(random *rand.Rand) {
	for _, key := range slices.Sorted(maps.Keys(s.server.pods)) {
		if p := s.server.pods[key]; p.Spec.NodeName != "" && random.IntN(3) == 0 {
			s.server.drop(p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.server.groups)) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.server.pods)), func(p *corev1.Pod) bool {
			return p.Annotations[v1beta1.KubeGroupNameAnnotationKey] == s.server.groups[key].Name
		}) {
			s.server.drop(s.server.groups[key])
		}
	}
}

// tablesOf returns a policy with these tables.
func tablesOf(t *testing.T, pipeline, tables string) *policy.Policy {
	t.Helper()
	return loaded(t, `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: volcano}
spec:
  pipeline: [`+pipeline+`]
  tiers:
  - name: first
    tables: [`+tables+`]
`)
}

// TestBesideAnother simulates another scheduler whose decisions differ from those of the policy, and compares the reported texts.
func TestBesideAnother(t *testing.T) {
	p := tablesOf(t, "enqueue, allocate, preempt", "{name: priority}, {name: gang}, {name: predicates}, {name: overcommit}, {name: binpack}")
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := newShadowed(t, p, beside.Options{Policy: p, Tell: func(d *beside.Difference) { told = append(told, d.String()) }})
		f := s.server
		tainted := testNode("n3", "8")
		tainted.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testQueue("research"))
		f.put(testNode("n1", "8"), testNode("n2", "8"), tainted)
		f.put(letIn(testGroup("old", 1)), runningOn(volcanos(testPod("old-0", "old", "2")), "n1"))
		s.see(-1)
		second := func() {
			time.Sleep(time.Second)
			s.see(-1)
		}
		bind := s.binds
		for _, name := range []string{"packed", "spread", "taint", "alike"} {
			f.put(letIn(testGroup(name, 1)), volcanos(testPod(name+"-0", name, "1")))
		}
		second()
		bind("alike-0", "n1")
		second()
		bind("packed-0", "n1")
		bind("spread-0", "n2") // an empty node
		second()
		bind("taint-0", "n3")
		second()

		// The other scheduler binds only a part of the gang.
		f.put(letIn(testGroup("gang", 3)), volcanos(testPod("gang-0", "gang", "1")), volcanos(testPod("gang-1", "gang", "1")))
		second()
		bind("gang-0", "n2")
		second()

		// Two pods for which the other scheduler takes long; it never binds one of them.
		for _, name := range []string{"late", "never"} {
			g := letIn(testGroup(name, 1))
			g.Spec.Queue = "research"
			f.put(g, volcanos(testPod(name+"-0", name, "1")))
			f.as("default/"+name+"-0", func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "queue research is overused",
				}}
			})
		}
		for range 6 {
			second()
		}
		bind("late-0", "n1")
		second()

		// The other scheduler admits a job although the resources that it reserves are not free, and does not admit another job.
		large := testGroup("large", 1)
		large.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}
		f.put(large, testGroup("small", 1))
		second()
		f.put(letIn(large.DeepCopy()))
		for range 5 {
			second()
		}

		for s.shadow.Report().Cycles < 1000 {
			second()
		}
		if diff := cmp.Diff([]string{
			"default/spread-0: bound to n2; Celsius: bound to n1, which scores 62.5 (62.5 binpack/fullest-node); n2 scores 12.5 (12.5 " +
				"binpack/fullest-node)",
			"default/taint-0: bound to n3; Celsius: bound to n1; n3 is refused: predicates/taints: node(s) had untolerated taint {gpu: yes}",
			"default/gang-0: bound to n2; Celsius: waits: gang/enough-pods: Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
			"default/late-0: waits: queue research is overused; Celsius: bound to n1, 4s ago: binpack/fullest-node: score 62.5, next n2 with " +
				"37.5 (62.5 binpack/fullest-node)",
			"default/never-0: waits: queue research is overused; Celsius: bound to n1, 4s ago: binpack/fullest-node: score 75, next n2 with " +
				"37.5 (75 binpack/fullest-node)",
			"default/late-0: bound to n1; Celsius: bound to n1, 6s sooner: binpack/fullest-node: score 62.5, next n2 with 37.5 (62.5 " +
				"binpack/fullest-node)",
			"default/large: admitted; Celsius: waits: overcommit/fits-overcommitted-cluster: 1.2 times the cluster is too little: it lacks cpu " +
				"79.2; this job alone asks for more than that",
			"default/small: not admitted; Celsius: admitted, 4s ago: the job reserves no resources, so no row was evaluated",
		}, told); diff != "" {
			t.Errorf("told as it was found (-want +got):\n%s", diff)
		}
		page, err := os.ReadFile("../../docs/volcano.md")
		if err != nil {
			t.Fatal(err)
		}
		if text := s.shadow.Report().Text(); !strings.Contains(string(page), text) {
			t.Errorf("docs/volcano.md does not show the report:\n%s", text)
		}
	})
}

// TestBesideEvictions lets another scheduler evict pods that the policy would keep, and keep pods that the policy would evict.
func TestBesideEvictions(t *testing.T) {
	p := preempting(t, "")
	synctest.Test(t, func(t *testing.T) {
		s := newShadowed(t, p, beside.Options{Policy: p})
		f := s.server
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"))
		for i := range 3 {
			low, node := fmt.Sprint("low-", i+1), fmt.Sprint("n", i+1)
			f.put(testNode(node, "2"), letIn(testGroup(low, 0)), runningOn(volcanos(testPod(low, low, "2")), node))
		}
		s.see(-1)
		second := func() {
			time.Sleep(time.Second)
			s.see(-1)
		}
		leaves := func(pod string, condition corev1.PodCondition) {
			f.as("default/"+pod, func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, condition)
			})
			f.as("default/"+pod, func(p *corev1.Pod) {
				p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			})
			second()
			f.drop(f.pods["default/"+pod])
			second()
		}
		deleted := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
		evicted := corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Evict", Message: "Pod is evicted, because of reclaim",
		}
		comes := func(name string) {
			g := letIn(testGroup(name, 1))
			g.Spec.PriorityClassName = "high"
			f.put(g, volcanos(testPod(name, name, "2")))
			second()
		}
		comes("high-1") // both evict low-1 for it
		leaves("low-1", evicted)
		s.binds("high-1", "n1")
		second()
		comes("high-2") // the policy would evict low-2 for it
		leaves("low-3", evicted)
		s.binds("high-2", "n3")
		for range 5 {
			second()
		}
		leaves("low-2", deleted) // the user deletes it
		var got []string
		r := s.shadow.Report()
		for _, d := range r.Differences {
			got = append(got, d.String())
		}
		if diff := cmp.Diff([]string{
			"default/low-3: evicted from n3: Pod is evicted, because of reclaim; Celsius: stays",
			"default/low-2: stays; Celsius: evicted from n2, 4s ago: in make-room: for default/high-2, as priority/strictly-lower permits",
		}, got); diff != "" {
			t.Errorf("differences (-want +got):\n%s", diff)
		}
		want := []beside.Counts{
			{Queue: "default", Verb: beside.Bind, Alike: 2}, {Queue: "default", Verb: beside.Evict, Alike: 1, Alone: 1, NotYet: 1},
		}
		if diff := cmp.Diff(want, r.Queues); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
}

// binds creates a Binding of a pod directly.
func (s *shadowed) binds(pod, node string) {
	s.server.t.Helper()
	if err := s.server.bind(&corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod, UID: s.server.pods["default/"+pod].UID},
		Target:     corev1.ObjectReference{Name: node},
	}); err != nil {
		s.server.t.Fatalf("%v", err)
	}
}

// letIn returns a group that a scheduler has admitted.
func letIn(g *v1beta1.PodGroup) *v1beta1.PodGroup {
	g.Status.Phase = v1beta1.PodGroupInqueue
	return g
}
