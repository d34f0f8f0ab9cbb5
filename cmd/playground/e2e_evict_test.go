package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
)

// evictions is a world for evictions. Its pods request 1 CPU, or the amount in their crew.
type evictions struct {
	*world
	admin *rest.Config
	mu    sync.Mutex
	asked []string // evictions that the scheduler in this process requested, in the order of the answers: pod and code
}

var evictionPath = regexp.MustCompile(`/pods/([^/]+)/eviction$`)

// newEvictions creates queues a and b with equal weight, the classes low (10), mid (50) and high (100), and a policy with these tables.
func newEvictions(t *testing.T, pipeline string, tables ...string) *evictions {
	t.Helper()
	e := &evictions{world: newWorld(t)}
	e.admin = rest.CopyConfig(e.Config)
	e.trouble(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		if answer.StatusCode == http.StatusForbidden {
			t.Errorf("the role that ships does not let the scheduler %s %s", r.Method, r.URL.Path)
		}
		if of := evictionPath.FindStringSubmatch(r.URL.Path); of != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.asked = append(e.asked, fmt.Sprintf("%s %d", of[1], answer.StatusCode))
		}
		return answer, nil
	})
	e.asShipped()
	e.Apply(queueA + "---" + strings.ReplaceAll(queueA, "${queue.a}", "${queue.b}"))
	for class, value := range map[string]int{"low": 10, "mid": 50, "high": 100} {
		e.Apply(fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: "${world}-%s", labels: {%s: "${world}"}}
value: %d
`, class, worldLabel, value))
	}
	e.forgetLater(func(ctx context.Context) error {
		return e.Client.DeleteAllOf(ctx, &schedulingv1.PriorityClass{}, client.MatchingLabels{worldLabel: e.Name})
	})
	if pipeline != "" {
		e.Apply(fmt.Sprintf(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "${policy}"}
spec:
  mode: Active
  pipeline: [%s]
  tiers:
  - name: first
    tables: [%s]
`, pipeline, strings.Join(tables, ", ")))
	}
	return e
}

// asShipped makes the scheduler in this process a user with the permissions of the role in deploy.
func (e *evictions) asShipped() {
	e.t.Helper()
	text, err := os.ReadFile("../../deploy/scheduler/rbac.yaml")
	if err != nil {
		e.t.Fatal(err)
	}
	e.Apply(strings.NewReplacer(
		"{kind: ServiceAccount, name: celsius-scheduler, namespace: celsius-system}",
		`{kind: User, name: "${scheduler}", apiGroup: rbac.authorization.k8s.io}`,
		"name: celsius-scheduler", `name: "${world}"`,
	).Replace(string(text)))
	e.forgetLater(func(ctx context.Context) error {
		rbac := e.Kube.RbacV1()
		return errors.Join(rbac.ClusterRoles().Delete(ctx, e.Name, metav1.DeleteOptions{}),
			rbac.ClusterRoleBindings().Delete(ctx, e.Name, metav1.DeleteOptions{}))
	})
	e.Config.Impersonate.UserName = e.SchedulerName
}

// start runs the scheduler with ten cycles a second. At the end each cycle is decided again.
func (e *evictions) start() {
	e.StartScheduler(func(o *live.Options) {
		o.Period, o.Namespace = 100*time.Millisecond, e.Namespace
		replayedLater(e.t, o, 1, 0)
	})
}

// StartControllers runs the controllers as the administrator, as everything except the scheduler.
func (e *evictions) StartControllers() {
	e.t.Helper()
	w := *e.world
	w.Config = e.admin
	w.StartControllers()
}

// crew is a PodGroup with its pods, NAME-0 and so on.
type crew struct {
	name   string
	queue  string // "": a
	class  string // "": none
	least  int    // number of pods that must start together
	pods   int
	cpu    int                   // 0: 1
	on     func(pod int) string  // the required node of a pod; nil: any
	change func(pod *corev1.Pod) // nil: none
}

// come creates the PodGroup and its pods.
func (e *evictions) come(c crew) {
	e.t.Helper()
	queue, class := c.queue, ""
	if queue == "" {
		queue = "a"
	}
	if c.class != "" {
		class = e.Name + "-" + c.class
	}
	e.Apply(fmt.Sprintf(`
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: %s}
spec: {queue: "${queue.%s}", minMember: %d, priorityClassName: %q}
`, c.name, queue, c.least, class))
	for i := range c.pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: fmt.Sprintf("%s-%d", c.name, i), Labels: map[string]string{"crew": c.name},
			Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: c.name},
		}}
		pod.Spec.SchedulerName, pod.Spec.PriorityClassName = e.SchedulerName, class
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		cpu := *resource.NewQuantity(int64(max(c.cpu, 1)), resource.DecimalSI)
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: cpu},
		}}}
		if c.on != nil {
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: c.on(i)}
		}
		if c.change != nil {
			c.change(pod)
		}
		if _, err := e.Kube.CoreV1().Pods(e.Namespace).Create(e.Context, pod, metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// runs creates a crew, and waits until all its pods run.
func (e *evictions) runs(c crew) {
	e.t.Helper()
	e.come(c)
	e.allRun(c.name, c.pods)
}

// allRun waits until all pods of a crew run.
func (e *evictions) allRun(crew string, pods int) {
	e.t.Helper()
	want := map[string]string{}
	for i := range pods {
		want[fmt.Sprintf("%s-%d", crew, i)] = "runs"
	}
	e.are(want)
}

// now returns for each pod whether it runs, is terminating, or waits.
func (e *evictions) now() (map[string]string, error) {
	pods, err := e.Kube.CoreV1().Pods(e.Namespace).List(e.Context, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range pods.Items {
		switch p := &pods.Items[i]; {
		case p.DeletionTimestamp != nil:
			out[p.Name] = "goes"
		case p.Status.Phase == corev1.PodRunning:
			out[p.Name] = "runs"
		default:
			out[p.Name] = "waits"
		}
	}
	return out, nil
}

// are waits until these pods have these states; "" means deleted. Other pods are not checked.
func (e *evictions) are(want map[string]string) {
	e.t.Helper()
	e.Wait("pods are as they should be", func() error {
		got, err := e.now()
		if err != nil {
			return err
		}
		var wrong []error
		for name, state := range want {
			if got[name] != state {
				wrong = append(wrong, fmt.Errorf("%s %q, want %q", name, got[name], state))
			}
		}
		slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return errors.Join(wrong...)
	})
}

// still fails the test if any pod changes within 20 cycles, or an eviction is accepted.
func (e *evictions) still() {
	e.t.Helper()
	before, err := e.now()
	taken := e.taken()
	time.Sleep(2 * time.Second)
	after, err2 := e.now()
	if diff := cmp.Diff(before, after); diff != "" || err != nil || err2 != nil {
		e.t.Errorf("something moves still (-before +after) %v %v:\n%s", err, err2, diff)
	}
	if diff := cmp.Diff(taken, e.taken()); diff != "" {
		e.t.Errorf("evictions go on (-before +after):\n%s", diff)
	}
}

// taken returns the evictions that the API server accepted.
func (e *evictions) taken() []string {
	return slices.DeleteFunc(e.requests(), func(a string) bool { return !strings.HasSuffix(a, " 201") })
}

func (e *evictions) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// released ends all terminating pods, as if their grace periods had passed.
func (e *evictions) released() {
	e.t.Helper()
	for _, p := range e.Pods("") {
		if p.DeletionTimestamp == nil {
			continue
		}
		uid := metav1.NewUIDPreconditions(string(p.UID))
		at0 := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: uid}
		if err := e.Kube.CoreV1().Pods(e.Namespace).Delete(e.Context, p.Name, at0); err != nil {
			e.t.Fatal(err)
		}
	}
}

// lingers makes a pod take an hour to terminate.
func lingers(p *corev1.Pod) {
	p.Annotations[simAnnotation] = "{terminate: 1h}"
	p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
}

// tells waits for an event on an object with the reason and all the words.
func (e *evictions) tells(kind, name, reason string, words ...string) {
	e.t.Helper()
	e.Wait(fmt.Sprintf("an event %s of %s %s", reason, kind, name), func() error {
		events, err := e.Kube.CoreV1().Events(e.Namespace).List(e.Context, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var said []string
		for _, event := range events.Items {
			if o := event.InvolvedObject; o.Kind != kind || o.Name != name || event.Reason != reason {
				continue
			}
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(event.Message, w) }) {
				return nil
			}
			said = append(said, event.Message)
		}
		return fmt.Errorf("%q, want one with %q", said, words)
	})
}

// TestE2EEvictAGangMakesRoom creates a gang of high priority, of which each pod needs its own node, when the nodes are full. Each node has
// an important and an unimportant pod of the gang's queue. The scheduler evicts only unimportant pods, only as many as the gang needs, and
// none of the other queue.
func TestE2EEvictAGangMakesRoom(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "enqueue, allocate, backfill, preempt", "{name: priority}", "{name: gang}", "{name: predicates}")
	nodes := e.Nodes(5, "cpu=4")
	on := func(pod int) string { return nodes[pod] }
	e.start()
	e.runs(crew{name: "other", queue: "b", pods: 1, cpu: 4, on: func(int) string { return nodes[4] }})
	e.runs(crew{name: "cheap", class: "low", pods: 4, cpu: 2, on: on, change: lingers})
	e.runs(crew{name: "dear", class: "mid", pods: 4, cpu: 2, on: on, change: lingers})
	e.come(crew{name: "hero", class: "high", least: 3, pods: 3, cpu: 2, change: func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}})

	var gone []string
	room := map[string]bool{} // nodes
	e.Wait("three pods go", func() error {
		gone, room = nil, map[string]bool{}
		for _, p := range e.Pods("") {
			if p.DeletionTimestamp != nil {
				gone, room[p.Spec.NodeName] = append(gone, p.Name), true
			}
		}
		if len(gone) < 3 || len(room) < 3 {
			return fmt.Errorf("%v do", gone)
		}
		return nil
	})
	e.promised("hero", 3, room)
	e.still()
	const by = "by priority/strictly-lower (policy "
	stamp := e.Policy + "@1)"
	for _, name := range gone {
		if !strings.HasPrefix(name, "cheap-") {
			t.Errorf("pod %s goes", name)
		}
		e.Wait("pod "+name+" says why it goes", func() error { return e.goesFor(name, "preempt", "hero-", by+stamp) })
		e.tells("Pod", name, "Evict", "Pod is evicted, because of preempt: it makes room for "+e.Namespace+"/hero-", by+stamp)
		e.tells("PodGroup", "cheap", "Evict", "preempt: pod "+name+" makes room for "+e.Namespace+"/hero-", by+stamp)
	}
	for i := range 3 {
		e.tells("Pod", fmt.Sprintf("hero-%d", i), "RoomMade", "pod "+e.Namespace+"/cheap-", "because of preempt, "+by+stamp)
	}

	e.released()
	e.allRun("hero", 3)
	e.still()
	if asked := e.requests(); len(asked) != 3 || slices.ContainsFunc(asked, func(a string) bool { return !strings.HasSuffix(a, " 201") }) {
		t.Errorf("evictions asked for: %v", asked)
	}
	if n := len(e.Pods("")); n != 1+4+4+3-3 {
		t.Errorf("%d pods are there", n)
	}
}

// promised waits until the pods of a gang are promised different ones of these nodes.
func (e *evictions) promised(gang string, pods int, rooms map[string]bool) {
	e.t.Helper()
	e.Wait("the gang is promised the rooms", func() error {
		promised := map[string]bool{}
		for i := range pods {
			p := &corev1.Pod{}
			if err := e.Get(fmt.Sprintf("%s-%d", gang, i), p); err != nil {
				return err
			}
			node := p.Status.NominatedNodeName
			if !rooms[node] || !strings.Contains(waitsFor(p), "being released on node "+node) {
				return fmt.Errorf("%s is promised node %q; it waits: %s", p.Name, node, waitsFor(p))
			}
			promised[node] = true
		}
		if len(promised) < pods {
			return fmt.Errorf("nodes %v are promised", promised)
		}
		return nil
	})
}

// TestE2EEvictAQueueReclaimsItsDue lets queue b claim its half of a cluster that queue a uses. A Job in queue a creates every evicted pod
// again. Two gangs reach the deserved share. The third gang would exceed it, and waits as a whole.
func TestE2EEvictAQueueReclaimsItsDue(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "enqueue, allocate, backfill, reclaim", "{name: priority}", "{name: gang}", "{name: predicates}",
		"{name: proportion}")
	e.Nodes(2, "cpu=4")
	e.start()
	e.StartControllers()
	e.Apply(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lent}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  minAvailable: 1
  tasks:` + task("worker", 8, "{}"))
	shares := func() (string, error) {
		now, err := e.now()
		counts := map[string]int{}
		for name, state := range now {
			crew, _, _ := strings.Cut(name, "-")
			counts[crew+" "+state]++
		}
		return fmt.Sprint(counts), err
	}
	is := func(what, want string) {
		t.Helper()
		e.Wait(what, func() error {
			got, err := shares()
			if err == nil && got != want {
				err = fmt.Errorf("%s; want %s", got, want)
			}
			return err
		})
	}
	is("the Job has all", "map[lent runs:8]")
	for i := range 3 {
		e.come(crew{name: fmt.Sprintf("due%d", i+1), queue: "b", least: 2, pods: 2})
	}
	is("each has its due", "map[due1 runs:2 due2 runs:2 due3 waits:2 lent runs:4 lent waits:4]")
	e.still()
	if asked := e.requests(); len(asked) != 4 {
		t.Errorf("evictions asked for: %v; want four", asked)
	}
}

// kept runs a pod, kept-0, that a budget protects from every eviction.
func (e *evictions) kept() {
	e.t.Helper()
	e.Apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}
`)
	e.runs(crew{name: "kept", class: "low", pods: 1, change: func(p *corev1.Pod) {
		lingers(p)
		p.Labels["app"] = "kept"
	}})
	e.Wait("the budget knows of the pod", func() error {
		b := &policyv1.PodDisruptionBudget{}
		if err := e.Get("keep", b); err != nil || b.Status.CurrentHealthy == 1 && b.Status.ObservedGeneration == b.Generation {
			return err
		}
		return fmt.Errorf("%+v", b.Status)
	})
}

// goesFor returns nil if a pod's condition states that it is evicted for another pod.
func (e *evictions) goesFor(name, action, winner, rows string) error {
	p := &corev1.Pod{}
	if err := e.Get(name, p); err != nil {
		return err
	}
	text := fmt.Sprintf("Pod is evicted, because of %s: it makes room for %s/%s", action, e.Namespace, winner)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler &&
			strings.HasPrefix(c.Message, text) && strings.HasSuffix(c.Message, rows) {
			return nil
		}
	}
	return fmt.Errorf("%+v", p.Status.Conditions)
}

// TestE2EEvictByDeletion has a step in which the policy overrides budgets.
func TestE2EEvictByDeletion(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "")
	e.Apply(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "${policy}"}
spec:
  mode: Active
  pipeline: [enqueue, allocate, make-room]
  actions:
  - name: make-room
    steps:
    - {verb: displace, jobs: job.starving, via: delete}
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}]
`)
	e.Nodes(1, "cpu=1")
	e.start()
	e.kept()
	e.come(crew{name: "hero", class: "high", least: 1, pods: 1})
	e.are(map[string]string{"kept-0": "goes", "hero-0": "waits"})
	if err := e.goesFor("kept-0", "make-room", "hero-0", "priority/strictly-lower (policy "+e.Policy+"@1)"); err != nil {
		t.Errorf("the pod does not say why it goes: %v", err) // the pod must contain the cause before it is deleted
	}
	e.released()
	e.are(map[string]string{"hero-0": "runs"})
	if asked := e.requests(); len(asked) > 0 {
		t.Errorf("evictions asked for: %v", asked)
	}
}

// TestE2EEvictABudgetHolds protects the first candidate with a budget. Without the table pdb the API server refuses its eviction, and
// another pod is evicted. With the table, its eviction is not requested.
func TestE2EEvictABudgetHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tables []string
		want   []string // requested evictions, sorted; a refused eviction is requested again after some time
	}{
		"refused":   {nil, []string{"free-0 201", "kept-0 429"}},
		"not asked": {[]string{"{name: pdb}"}, []string{"free-0 201"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tables := append([]string{"{name: priority}", "{name: gang}", "{name: predicates}"}, c.tables...)
			e := newEvictions(t, "enqueue, allocate, backfill, preempt", tables...)
			e.Nodes(1, "cpu=2")
			e.start()
			e.kept()
			e.runs(crew{name: "free", class: "mid", pods: 1})
			e.come(crew{name: "first", class: "high", least: 1, pods: 1})
			e.are(map[string]string{"first-0": "runs", "kept-0": "runs", "free-0": ""})
			e.come(crew{name: "second", class: "high", least: 1, pods: 1})
			e.still()
			e.are(map[string]string{"first-0": "runs", "kept-0": "runs", "second-0": "waits"})
			if diff := cmp.Diff(c.want, slices.Compact(slices.Sorted(slices.Values(e.requests())))); diff != "" {
				t.Errorf("evictions asked for (-want +got):\n%s", diff)
			}
			if c.tables == nil {
				e.tells("Pod", "first-0", "EvictRefused", "pod "+e.Namespace+"/kept-0 on node", "because of preempt", "left alone for 10s",
					"The disruption budget keep needs 1 healthy pods")
			}
			p := &corev1.Pod{}
			if err := e.Get("kept-0", p); err != nil || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
			}) {
				t.Errorf("the pod that stays says that it goes: %v %+v", err, p.Status.Conditions)
			}
		})
	}
}

// TestE2EEvictTheYoungAreSpared has a row of a user that protects the user's pods in their first 5 seconds, and only time makes them older.
// The table cdp protects a pod for the hour in its annotation.
func TestE2EEvictTheYoungAreSpared(t *testing.T) {
	t.Parallel()
	const youth = 5 * time.Second
	e := newEvictions(t, "enqueue, allocate, backfill, preempt", "{name: priority}", "{name: gang}", "{name: predicates}", "{name: cdp}",
		`{name: house, inline: {preemptable: [{name: of-age, veto: true,
      expression: "victim.startedAt != null && victim.startedAt + duration('5s') <= now"}]}}`)
	e.Nodes(1, "cpu=2")
	e.start()
	e.runs(crew{name: "cooling", class: "low", pods: 1, change: func(p *corev1.Pod) { p.Annotations["volcano.sh/cooldown-time"] = "1h" }})
	e.runs(crew{name: "young", class: "mid", pods: 1, change: lingers})
	e.come(crew{name: "hero", class: "high", least: 1, pods: 1})
	e.are(map[string]string{"young-0": "goes", "cooling-0": "runs"})
	p := &corev1.Pod{}
	if err := e.Get("young-0", p); err != nil {
		t.Fatal(err)
	}
	deleted := p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	if age := deleted.Sub(p.Status.StartTime.Time); age < youth-time.Second || age > time.Minute { // both times are in whole seconds
		t.Errorf("it went at the age of %s", age)
	}
	e.tells("Pod", "young-0", "Evict", "priority/strictly-lower")
	e.released()
	e.are(map[string]string{"hero-0": "runs", "cooling-0": "runs"})
	e.still()
	if diff := cmp.Diff([]string{"young-0 201"}, e.requests()); diff != "" {
		t.Errorf("evictions asked for (-want +got):\n%s", diff)
	}
}

// TestE2EEvictKilledInBetween kills a scheduler while it evicts 24 pods for a gang. The next scheduler evicts the rest, whether the evicted
// pods are still terminating or deleted. If the gang was deleted meanwhile, it evicts no more pods.
func TestE2EEvictKilledInBetween(t *testing.T) {
	t.Parallel()
	const lows, heroes = 40, 24
	for name, c := range map[string]struct{ heroGoes, lowsGone bool }{
		"the gang stays":           {},
		"the gang stays, room too": {lowsGone: true},
		"the gang goes":            {heroGoes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEvictions(t, "enqueue, allocate, backfill, preempt", "{name: priority}", "{name: gang}", "{name: predicates}")
			e.Nodes(2, "cpu=20")
			first := e.slowScheduler()
			e.runs(crew{name: "low", class: "low", pods: lows, change: lingers})
			e.come(crew{name: "hero", class: "high", least: heroes, pods: heroes})
			e.leave("low", lows-3)
			first.Kill()
			time.Sleep(time.Second) // wait for requests in progress
			killed, want := lows-e.left("low"), heroes
			if killed >= heroes {
				t.Fatalf("%d pods go already: it was killed too late", killed)
			}
			if c.lowsGone {
				e.released()
			}
			if c.heroGoes {
				want = killed
				at0, of := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: "crew=hero"}
				if err := e.Kube.CoreV1().Pods(e.Namespace).DeleteCollection(e.Context, at0, of); err != nil {
					t.Fatal(err)
				}
				e.come(crew{name: "sign", queue: "b", pods: 1}) // the next scheduler promises it the released resources
			}
			e.slowScheduler()
			e.leave("low", lows-want)
			if c.heroGoes {
				e.Wait("the next scheduler has decided", func() error {
					p := &corev1.Pod{}
					err := e.Get("sign-0", p)
					if says := waitsFor(p); err == nil && !strings.Contains(says, "being released on node") {
						err = errors.New(says)
					}
					return err
				})
			}
			e.still()
			if n := lows - e.left("low"); n != want {
				t.Errorf("%d pods go, %d of which went when the scheduler was killed; want %d", n, killed, want)
			}
			if !c.heroGoes {
				e.released()
				e.allRun("hero", heroes)
				if n := lows - e.left("low"); n != want {
					t.Errorf("%d pods are gone in the end; want %d", n, want)
				}
			}
			t.Logf("%d of %d pods went when the scheduler was killed", killed, want)
		})
	}
}

// slowScheduler starts a scheduler that can be killed and sends few requests a second.
func (e *evictions) slowScheduler() *process {
	e.t.Helper()
	return e.Process("scheduler", "--scheduler-name", "${scheduler}", "--namespace", "${namespace}", "--leader-elect=false",
		"--metrics-address", "0", "--health-address", "0", "--policy", "${policy}", "--node-selector", e.NodeSelector,
		"--kube-api-qps", "10", "--kube-api-burst", "10")
}

// leave waits until at most the given number of pods of a crew stays.
func (e *evictions) leave(crew string, most int) {
	e.t.Helper()
	e.Wait("pods go", func() error {
		if n := e.left(crew); n > most {
			return fmt.Errorf("%d pods of %s stay; want %d", n, crew, most)
		}
		return nil
	})
}

// left returns how many pods of a crew exist and are not terminating.
func (e *evictions) left(crew string) int {
	e.t.Helper()
	n := 0
	for _, p := range e.Pods("crew=" + crew) {
		if p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// TestE2EEvictAfterVolcano converts a configuration of Volcano with preempt and reclaim, and checks that both work.
func TestE2EEvictAfterVolcano(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "")
	conf := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	if err := os.WriteFile(conf, []byte(`actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCommand(t, exec.Command(celsiusBinary(t), "policy", "convert", "--name", e.Policy, conf))
	// In the first tier, gang decides reclaim, so proportion in the second tier protects nothing. The converter warns; Volcano does not.
	if r.Code != 0 || strings.Count(r.Err, "warning: ") != 1 || !strings.Contains(r.Err, "proportion/queue-over-deserved protect no pod") {
		t.Fatalf("policy convert: exit code %d\n%s", r.Code, r.Err)
	}
	e.Apply(r.Out)
	e.Nodes(1, "cpu=4")
	e.start()
	e.runs(crew{name: "low", class: "low", pods: 4})
	e.runs(crew{name: "high", class: "high", least: 2, pods: 2})
	e.still()
	e.tells("PodGroup", "low", "Evict", "preempt: pod low-", "for "+e.Namespace+"/high-", "by priority/strictly-lower")
	e.runs(crew{name: "due", queue: "b", least: 2, pods: 2})
	e.still()
	e.tells("PodGroup", "low", "Evict", "reclaim: pod low-", "for "+e.Namespace+"/due-")
	want := map[string]string{"high-0": "runs", "high-1": "runs", "due-0": "runs", "due-1": "runs"}
	if got, err := e.now(); err != nil || !cmp.Equal(want, got) {
		t.Errorf("in the end %v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	if asked := e.requests(); len(asked) != 4 {
		t.Errorf("evictions asked for: %v; want four", asked)
	}
}
