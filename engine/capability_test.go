package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// limitedPolicies returns policies whose tables limit queues by their capability.
func limitedPolicies(t *testing.T) []compiled {
	t.Helper()
	pipeline := "pipeline: [enqueue, allocate, preempt, reclaim, backfill]"
	around := []string{"name: gang", "name: priority", "name: predicates", "name: nodeorder"}
	return []compiled{
		compile(t, "proportion", policyOf(pipeline, append([]string{"name: overcommit", "name: proportion"}, around...)...)),
		compile(t, "capacity", policyOf(pipeline, append([]string{"name: capacity"}, around...)...)),
		compile(t, "tree", policyOf(pipeline, append([]string{"name: capacity\nparams: {hierarchy: true}"}, around...)...)),
		compile(t, "gangs", policyOf("pipeline: [enqueue, allocate, gangpreempt, gangreclaim, backfill]",
			append([]string{"name: capacity"}, around...)...)),
	}
}

// tenancy is a cluster with more nodes than its queues may use. Its pods end, are deleted gracefully, and are evicted. Some evictions have
// no effect.
type tenancy struct {
	*rand.Rand
	c      *model.Cluster
	d      *engine.Decider
	queues map[string]*v1beta1.Queue
	pods   map[string]*corev1.Pod
	ends   map[string]int // of terminating pods: the cycle in which they are gone
	names  int
	// binds counts bindings. waits counts pods that no idle node takes before other pods are gone. refused counts refused evictions.
	binds, waits, refused int
}

func newTenancy(seed uint64, p *policy.Policy, tree bool) *tenancy {
	w := &tenancy{
		Rand: rand.New(rand.NewPCG(seed, 29)), c: model.NewCluster(model.Options{Volumes: volume.New}),
		queues: map[string]*v1beta1.Queue{}, pods: map[string]*corev1.Pod{}, ends: map[string]int{},
	}
	for name, value := range map[string]int32{"low": 1, "high": 100} {
		w.c.Apply(model.Delta{Object: &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}})
	}
	allocatable := list("cpu=16 memory=64Gi nvidia.com/gpu=4 pods=20")
	for i := range 4 {
		w.c.Apply(model.Delta{Object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Status:     corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
		}})
	}
	queue := func(name, parent, capability string) {
		q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		q.Spec.Weight, q.Spec.Capability, q.Spec.Parent = 1, list(capability), parent
		q.Status.State = v1beta1.QueueStateOpen
		w.queues[name] = q
		w.c.Apply(model.Delta{Object: q})
	}
	parent := ""
	if tree {
		queue("root", "", "")
		queue("lab", "root", pickOf(w, "cpu=10 memory=40Gi", "nvidia.com/gpu=5", "cpu=12"))
		parent = "lab"
	}
	queue("research", parent, pickOf(w, "cpu=8 memory=32Gi", "cpu=8 nvidia.com/gpu=3", "cpu=6 pods=5", "cpu=7"))
	queue("production", parent, pickOf(w, "cpu=8 memory=24Gi", "cpu=10", "nvidia.com/gpu=4 memory=20Gi"))
	w.d = engine.NewDecider(session.New(w.c, p), nil)
	return w
}

func pickOf[T any](w *tenancy, from ...T) T { return from[w.IntN(len(from))] }

// add submits a job: a PodGroup and its pods.
func (w *tenancy) add(now time.Time) {
	w.names++
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("train-", w.names), Namespace: "team", CreationTimestamp: metav1.NewTime(now),
	}}
	size := 1 + w.IntN(4)
	g.Spec.Queue, g.Spec.MinMember = pickOf(w, "research", "production"), int32(1+w.IntN(size))
	g.Spec.PriorityClassName = pickOf(w, "", "low", "high")
	g.Status.Phase = v1beta1.PodGroupInqueue
	w.c.Apply(model.Delta{Object: g})
	requests := list(pickOf(w, "cpu=2 memory=4Gi", "cpu=1500m memory=8Gi", "cpu=1 memory=2Gi nvidia.com/gpu=1", "cpu=3"))
	for i := range size {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint(g.Name, "-worker-", i), Namespace: g.Namespace, UID: types.UID(fmt.Sprint(g.Name, i)),
				CreationTimestamp: g.CreationTimestamp,
				Annotations:       map[string]string{model.GroupAnnotation: g.Name, "volcano.sh/preemptable": "true"},
			},
			Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		}
		w.put(p)
	}
}

func (w *tenancy) put(p *corev1.Pod) {
	w.pods[p.Namespace+"/"+p.Name] = p
	w.c.Apply(model.Delta{Object: p})
}

func (w *tenancy) keys() []string {
	var keys []string
	for key := range w.pods {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// terminate deletes a pod. The pod is gone some cycles later.
func (w *tenancy) terminate(key string, cycle int) {
	if w.pods[key].DeletionTimestamp == nil {
		p := w.pods[key].DeepCopy()
		p.DeletionTimestamp = new(at(60))
		w.ends[key] = cycle + 1 + w.IntN(4)
		w.put(p)
	}
}

// live lets pods vanish, end and be deleted.
func (w *tenancy) live(cycle int) {
	for _, key := range w.keys() {
		p := w.pods[key]
		switch end := w.ends[key]; {
		case end != 0 && end <= cycle:
			delete(w.pods, key)
			delete(w.ends, key)
			w.c.Apply(model.Delta{Op: model.Delete, Object: p})
		case end != 0 || p.Spec.NodeName == "":
		case w.IntN(6) == 0:
			w.terminate(key, cycle)
		case w.IntN(12) == 0:
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodSucceeded
			w.put(p)
		}
	}
}

// carryOut carries out a plan. Some evictions are refused.
func (w *tenancy) carryOut(plan *model.Plan, cycle int) {
	for _, b := range plan.Binds {
		p := w.pods[b.Task].DeepCopy()
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		w.put(p)
	}
	for _, e := range plan.Evicts {
		if w.IntN(2) == 0 {
			w.refused++
			w.c.Tasks[e.Task].Spare(plan.Now.Add(time.Second))
			w.c.Apply(model.Delta{Op: model.Forget, Object: w.pods[e.Task]})
			continue
		}
		w.terminate(e.Task, cycle)
	}
}

// check compares what each queue's pods hold with what the queue and the queues above it may hold. It counts the pods on nodes, the plan's
// bindings and terminating pods.
func (w *tenancy) check(plan *model.Plan) error {
	bound := map[string]bool{}
	for _, b := range plan.Binds {
		bound[b.Task] = true
	}
	held, taken := map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}
	add := func(sums map[string]corev1.ResourceList, queue string, requests corev1.ResourceList) {
		if sums[queue] == nil {
			sums[queue] = corev1.ResourceList{}
		}
		for name, q := range requests {
			sum := sums[queue][name]
			sum.Add(q)
			sums[queue][name] = sum
		}
	}
	for key, p := range w.pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Spec.NodeName == "" && !bound[key] {
			continue
		}
		requests := p.Spec.Containers[0].Resources.Requests.DeepCopy()
		requests[corev1.ResourcePods] = list("pods=1")[corev1.ResourcePods]
		for q := w.c.Tasks[key].Job.QueueName; q != ""; q = w.queues[q].Spec.Parent {
			add(held, q, requests)
			if bound[key] {
				add(taken, q, requests)
			}
		}
	}
	for name, q := range w.queues {
		for of, most := range q.Spec.Capability {
			now, more := held[name][of], taken[name][of]
			if !more.IsZero() && now.Cmp(most) > 0 {
				return fmt.Errorf("queue %s may hold %s %s; with %s of new bindings its pods hold %s", name, of, &most, &more, &now)
			}
		}
	}
	return nil
}

// play runs some cycles, and stops at the first that takes a queue above its capability.
func (w *tenancy) play(cycles int) error {
	now := time.Unix(1_700_000_100, 0).UTC()
	for cycle := range cycles {
		for range w.IntN(3) {
			w.add(now)
		}
		plan := w.d.Cycle(now)
		if err := w.check(plan); err != nil {
			return fmt.Errorf("cycle %d: %w", cycle, err)
		}
		for i := range plan.Waits {
			if plan.Waits[i].Reason.Site == policy.Bindable {
				w.waits++
			}
		}
		w.binds += len(plan.Binds)
		w.carryOut(plan, cycle)
		w.live(cycle)
		now = now.Add(3 * time.Second)
	}
	return nil
}

// TestNoBindingExceedsACapability checks every cycle of random worlds: no binding takes a queue above its capability. A terminating pod
// counts until it is gone. An evicted pod counts too, because its eviction may still be refused.
func TestNoBindingExceedsACapability(t *testing.T) {
	t.Parallel()
	const worlds, cycles = 500, 8
	for _, p := range limitedPolicies(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var binds, waits, refused int
			for seed := range uint64(worlds) {
				w := newTenancy(seed, p.policies[0], p.name == "tree")
				if err := w.play(cycles); err != nil {
					t.Fatalf("world %d: %v", seed, err)
				}
				binds, waits, refused = binds+w.binds, waits+w.waits, refused+w.refused
			}
			t.Logf("%d bindings, %d pods that waited for terminating ones, %d refused evictions", binds, waits, refused)
			if binds < 5*worlds || waits < worlds || refused < worlds/25 {
				t.Error("the worlds do not put the limit to the test")
			}
		})
	}
}

// TestWithoutBindableACapabilityIsExceeded shows that the same worlds exceed capabilities without the rows of bindable, as Volcano does.
func TestWithoutBindableACapabilityIsExceeded(t *testing.T) {
	t.Parallel()
	p := compile(t, "as Volcano", policyOf("pipeline: [enqueue, allocate, backfill]", "name: gang", "name: predicates", "name: nodeorder",
		"name: proportion\nwithout: [bindable]")).policies[0]
	exceeded := 0
	for seed := range uint64(20) {
		if newTenancy(seed, p, false).play(8) != nil {
			exceeded++
		}
	}
	if exceeded < 10 {
		t.Errorf("%d of 20 worlds exceed a capability, want 10 at least", exceeded)
	}
}
