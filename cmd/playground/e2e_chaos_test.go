package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// seeded returns the random numbers of one test. It prints the seed, so that a failure can be repeated. The seed is always the same, so
// that the test is the same.
func seeded(t *testing.T, seed uint64) *rand.Rand {
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is no secret
}

// transport is a function that is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// trouble sends the requests of the scheduler, and no others, through f.
func (w *world) trouble(f func(next http.RoundTripper, r *http.Request) (*http.Response, error)) {
	w.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) { return f(next, r) })
	})
}

var bindingPath = regexp.MustCompile(`/pods/[^/]+/binding$`)

func isBinding(r *http.Request) bool {
	return r.Method == http.MethodPost && bindingPath.MatchString(r.URL.Path)
}

// wait waits, unless the request ends first.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// fault is one way in which a request fails.
type fault struct {
	name   string
	done   bool // the request is carried out, but its answer is lost
	code   int  // 0: the connection breaks
	reason metav1.StatusReason
}

func faults() []fault {
	var all []fault
	for _, done := range []bool{false, true} {
		when := "not done"
		if done {
			when = "done"
		}
		all = append(all,
			fault{"connection lost, " + when, done, 0, ""},
			fault{"conflict, " + when, done, http.StatusConflict, metav1.StatusReasonConflict},
			fault{"internal error, " + when, done, http.StatusInternalServerError, metav1.StatusReasonInternalError},
			fault{"timeout, " + when, done, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		)
	}
	return all
}

func (f fault) strike(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	switch {
	case f.done:
		answer, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
	case r.Body != nil:
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	if f.code == 0 {
		return nil, errors.New("read tcp: connection reset by peer")
	}
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"a fault of the test: %s"}`,
		f.reason, f.code, f.name)
	return &http.Response{
		Status: http.StatusText(f.code), StatusCode: f.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: r,
	}, nil
}

func TestOneBindingInFiveFails(t *testing.T) {
	w := newWorld(t)
	random := seeded(t, 5)
	var mu sync.Mutex
	sent, struck := 0, map[string]int{}
	draw := func() (f fault, strikes bool) {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if random.IntN(5) != 0 {
			return fault{}, false
		}
		kinds := faults()
		f = kinds[random.IntN(len(kinds))]
		struck[f.name]++
		return f, true
	}
	w.trouble(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if isBinding(r) {
			if f, strikes := draw(); strikes {
				return f.strike(next, r)
			}
		}
		return next.RoundTrip(r)
	})

	witness := w.Witness()
	const gangs, members = 40, 10
	w.Nodes(gangs*members/100, "cpu=10") // each pod requests 100m: all nodes will be full
	w.Apply(queueA)
	w.StartScheduler()
	for i := range gangs {
		if err := w.gang(fmt.Sprintf("gang-%d", i), members); err != nil {
			t.Fatal(err)
		}
	}
	witness.AllBound(gangs * members)

	h := witness.Report()
	h.Check(w)
	if full := h.fullest(corev1.ResourceCPU); full != 1 {
		t.Errorf("the fullest node was asked for %v of its CPU; the pods fill all nodes exactly", full)
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d pods, %d requests to bind; faults: %v", gangs*members, sent, struck)
	for _, f := range faults() {
		if struck[f.name] == 0 {
			t.Errorf("no request met the fault %q: give the test more pods", f.name)
		}
	}
}

func TestASlowAPIServerLosesNothing(t *testing.T) {
	w := newWorld(t)
	const delay = 200 * time.Millisecond
	w.trouble(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if err := wait(r.Context(), delay); err != nil {
			return nil, err
		}
		return next.RoundTrip(r)
	})
	witness := w.Witness()
	w.Nodes(3, "cpu=100,pods=1000")
	w.Apply(queueA)
	w.StartScheduler()
	stop := w.arrivals(witness, 50)
	w.Wait("200 pods are bound", func() error {
		if n := witness.Bindings(); n < 200 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	total := stop()
	witness.AllBound(total)
	witness.Report().Check(w)
}

func TestNodesGoWhilePodsAreBound(t *testing.T) {
	w := newWorld(t)
	random := seeded(t, 7)
	// A binding takes 50 ms, so that nodes disappear while some bindings are in progress.
	w.trouble(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if isBinding(r) {
			if err := wait(r.Context(), 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(r)
	})
	witness := w.Witness()
	nodes := w.Nodes(10, "cpu=100,pods=1000")
	w.Apply(queueA)
	w.StartScheduler()
	stop := w.arrivals(witness, 100)

	// Eight of ten nodes are deleted one after the other, each after some more pods were bound.
	random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for i, node := range nodes[:8] {
		more := witness.Bindings() + 20 + random.IntN(30)
		w.Wait(fmt.Sprintf("%d pods are bound, with %d nodes left", more, len(nodes)-i), func() error {
			if n := witness.Bindings(); n < more {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
		var err error
		if i%2 == 0 {
			err = w.Kube.CoreV1().Nodes().Delete(w.Context, node, metav1.DeleteOptions{})
		} else {
			_, err = w.Kube.CoreV1().Nodes().Patch(w.Context, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`),
				metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	last := witness.Bindings() + 300
	w.Wait("pods are bound for long after the last node went", func() error {
		if n := witness.Bindings(); n < last {
			return fmt.Errorf("%d of %d are", n, last)
		}
		return nil
	})
	total := stop()
	witness.AllBound(total)

	h := witness.Report()
	h.Check(w)
	if h.bound() != total {
		t.Errorf("%d pods were created, and the witness saw %d bindings", total, h.bound())
	}
	// No API server refuses a binding to a deleted node, so the few bindings in progress at that time cannot be prevented. The scheduler must
	// not send any once it can know of the deletion.
	late, within := h.boundLate(2*time.Second, 200) // as many as arrive in that time
	for _, text := range late {
		t.Error(text)
	}
	t.Logf("%d pods; %d were bound in the moments after their node was deleted or cordoned", total, within)
}

// chaosJobs describes the jobs of TestKilledAtRandom: the number of each kind, and how each must end.
type chaosJobs struct {
	name   string
	count  int
	tasks  string
	policy string
	// The required final state of each job.
	phase   batchv1alpha1.JobPhase
	retries int32
	alive   int // number of running pods
	pods    int // number of pods that ever existed
	// bound is the minimum number of pods that had a node. A killed scheduler may leave a gang partly bound. If one of its pods then ends the
	// job before the next scheduler starts, the other pods never get a node.
	bound int
}

func allChaosJobs() []chaosJobs {
	return []chaosJobs{
		{
			name: "endless", count: 26, tasks: task("worker", 10, "{}"),
			phase: batchv1alpha1.Running, alive: 10, pods: 10, bound: 10,
		},
		{
			name: "short", count: 70, tasks: task("worker", 10, "{run: 2s}"),
			phase: batchv1alpha1.Completed, pods: 10, bound: 10,
		},
		{ // the launcher ends the job, and the workers are deleted with it
			name: "launched", count: 10, tasks: task("launcher", 1, "{run: 1s}") + task("worker", 9, "{}"),
			policy: "{event: TaskCompleted, action: CompleteJob}",
			phase:  batchv1alpha1.Completed, pods: 10, bound: 1,
		},
		{ // two attempts
			name: "failing", count: 10, tasks: task("steady", 1, "{}") + task("broken", 1, "{run: 500ms, exitCodes: {main: 1}}"),
			policy: "{event: PodFailed, action: RestartJob}",
			phase:  batchv1alpha1.Failed, retries: 2, pods: 4, bound: 2,
		},
	}
}

func task(name string, replicas int, sim string) string {
	return fmt.Sprintf(`
  - name: %s
    replicas: %d
    template:
      metadata: {annotations: {celsius.dev/sim: %q}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]`, name, replicas, sim)
}

func (j chaosJobs) yaml(number int) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s-%d}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  maxRetry: 2
  policies: [%s]
  tasks:%s
`, j.name, number, j.policy, j.tasks)
}

// victim is a part that is killed repeatedly, each time after a random amount of progress.
type victim struct {
	verb     string
	progress func() int
	step     func() int
	process  *process
	target   int
	kills    int
}

func (v *victim) start(w *world) {
	v.process = w.part(v.verb)
	v.target = v.progress() + v.step()
}

// killUntil kills the parts until enough returns true, and then leaves new ones running.
func (w *world) killUntil(enough func() bool, parts ...*victim) {
	w.t.Helper()
	for _, v := range parts {
		v.start(w)
	}
	for !enough() {
		w.Wait("a part gets on so far that it is to be killed", func() error {
			var behind []error
			for _, v := range parts {
				select {
				case <-v.process.Exited():
					return nil
				default:
				}
				if n := v.progress(); n >= v.target {
					return nil
				} else if !enough() {
					behind = append(behind, fmt.Errorf("%s, started %d times: %d of %d", v.verb, v.kills+1, n, v.target))
				}
			}
			return errors.Join(behind...)
		})
		for _, v := range parts {
			select {
			case <-v.process.Exited():
				w.t.Fatalf("celsius %s ended by itself", v.verb)
			default:
			}
			if v.progress() >= v.target {
				v.process.Kill()
				v.kills++
				v.start(w)
			}
		}
	}
}

// part starts a part as a process that begins its work immediately.
func (w *world) part(verb string) *process {
	args := []string{
		"--scheduler-name", "${scheduler}", "--namespace", "${namespace}", "--leader-elect=false", "--metrics-address", "0",
		"--health-address", "0",
	}
	if verb == "scheduler" {
		args = append(args, "--policy", "${policy}", "--node-selector", w.NodeSelector)
	}
	return w.Process(verb, args...)
}

func TestKilledAtRandom(t *testing.T) {
	w := newWorld(t)
	random := seeded(t, 11)
	witness := w.Witness()
	w.Nodes(36, "cpu=10") // the nodes fit 360 pods, and the queue may hold 300: fewer than the jobs request at the same time
	w.Apply(strings.Replace(queueA, "{weight: 1}", "{weight: 1, capability: {cpu: 300}}", 1))
	full := resource.MustParse("300")
	witness.Limit(corev1.ResourceList{corev1.ResourceCPU: full})
	celsiusBinary(t) // build it before the load starts

	all := allChaosJobs()
	var submit []string
	for _, kind := range all {
		for i := range kind.count {
			submit = append(submit, kind.yaml(i))
		}
	}
	random.Shuffle(len(submit), func(i, j int) { submit[i], submit[j] = submit[j], submit[i] })
	submitted := make(chan error, 1)
	go func() { submitted <- w.TryApply(strings.Join(submit, "---\n")) }()

	const bindings = 1000
	scheduler := &victim{verb: "scheduler", progress: witness.Bindings, step: func() int { return 60 + random.IntN(100) }}
	controllers := &victim{verb: "controllers", progress: witness.Sightings, step: func() int { return 300 + random.IntN(500) }}
	w.killUntil(func() bool { return witness.Bindings() >= bindings*9/10 }, scheduler, controllers)
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	t.Logf("the scheduler was killed %d times, the controllers %d times", scheduler.kills, controllers.kills)
	if scheduler.kills < 3 || controllers.kills < 3 {
		t.Error("that is too few times to show anything")
	}

	jobs := &batchv1alpha1.JobList{}
	for _, kind := range all {
		w.Wait(fmt.Sprintf("every job %s is %s", kind.name, kind.phase), func() error {
			if err := w.list(jobs); err != nil {
				return err
			}
			return kind.check(jobs.Items)
		})
	}
	// The endless jobs leave 40 cores free. Five more gangs of 10 fill the queue, and one of them waits.
	last := chaosJobs{name: "last", count: 5, tasks: task("worker", 10, "{}")}
	for i := range last.count {
		w.Apply(last.yaml(i))
	}
	w.Wait("the queue is full", func() error {
		if most, want := witness.Report().most[corev1.ResourceCPU], full.MilliValue(); most < want {
			return fmt.Errorf("its pods held at most %dm of cpu, of %dm", most, want)
		}
		return nil
	})
	h := witness.Report()
	h.Check(w)
	if most := h.most[corev1.ResourceCPU]; most != full.MilliValue() {
		t.Errorf("the pods of the queue held at most %dm of cpu; the jobs request more than the %s that it may hold", most, full.String())
	}
	if n := h.bound(); n < bindings {
		t.Errorf("%d pods were bound; the test wants %d", n, bindings)
	}
	if err := w.list(jobs); err != nil {
		t.Fatal(err)
	}
	for _, kind := range all {
		kind.checkPods(t, h, jobs.Items, witness)
	}
	w.checkOwned(jobs.Items)
	t.Logf("%d pods of %d bound; the fullest node was asked for %v of its CPU", h.bound(), len(h.pods), h.fullest(corev1.ResourceCPU))
}

// check returns nil if all created jobs of the kind exist, and each is in the correct final state.
func (j chaosJobs) check(jobs []batchv1alpha1.Job) error {
	n := 0
	for i := range jobs {
		job := &jobs[i]
		if !strings.HasPrefix(job.Name, j.name+"-") {
			continue
		}
		n++
		s := &job.Status
		switch {
		case s.State.Phase != j.phase:
			return fmt.Errorf("%s is %s (%s: %s), after %d retries", job.Name, s.State.Phase, s.State.Reason, s.State.Message, s.RetryCount)
		case s.RetryCount != j.retries:
			return fmt.Errorf("%s is %s after %d retries; want %d", job.Name, s.State.Phase, s.RetryCount, j.retries)
		case int(s.Running) != j.alive || s.Pending+s.Terminating+s.Unknown != 0:
			return fmt.Errorf("%s is %s and counts %d pods running, %d pending, %d terminating, %d unknown; want %d running", job.Name,
				s.State.Phase, s.Running, s.Pending, s.Terminating, s.Unknown, j.alive)
		}
	}
	if n != j.count {
		return fmt.Errorf("there are %d such jobs, not %d", n, j.count)
	}
	return nil
}

// checkPods checks all pods that each job of the kind ever had.
func (j chaosJobs) checkPods(t *testing.T, h *history, jobs []batchv1alpha1.Job, witness *witness) {
	t.Helper()
	had, alive, bound := map[types.UID]int{}, map[types.UID]int{}, map[types.UID]int{}
	for _, l := range h.pods {
		owner := metav1.GetControllerOf(l.pod)
		if owner == nil {
			t.Errorf("pod %s has no owner", l.pod.Name)
			continue
		}
		had[owner.UID]++
		bound[owner.UID] += l.bound
		if !l.deleted && l.pod.Status.Phase == corev1.PodRunning {
			alive[owner.UID]++
		}
	}
	for i := range jobs {
		job := &jobs[i]
		if !strings.HasPrefix(job.Name, j.name+"-") {
			continue
		}
		if had[job.UID] != j.pods {
			t.Errorf("job %s has had %d pods; want %d: none made twice, none lost%s", job.Name, had[job.UID], j.pods, witness.Of(job.UID))
		}
		if bound[job.UID] < j.bound {
			t.Errorf("job %s has had %d pods with a node; want %d%s", job.Name, bound[job.UID], j.bound, witness.Of(job.UID))
		}
		if alive[job.UID] != j.alive {
			t.Errorf("job %s, %s, has %d pods that run; want %d", job.Name, job.Status.State.Phase, alive[job.UID], j.alive)
		}
	}
}

// list lists the kind in the world's namespace.
func (w *world) list(into client.ObjectList) error {
	return w.Client.List(w.Context, into, client.InNamespace(w.Namespace))
}

// checkOwned fails the test for each PodGroup and pod that belongs to none of these jobs. It also fails for each running job that does not
// have exactly one PodGroup.
func (w *world) checkOwned(jobs []batchv1alpha1.Job) {
	w.t.Helper()
	groups := &schedulingv1beta1.PodGroupList{}
	if err := w.list(groups); err != nil {
		w.t.Fatal(err)
	}
	byUID := map[types.UID]*batchv1alpha1.Job{}
	for i := range jobs {
		byUID[jobs[i].UID] = &jobs[i]
	}
	groupsOf := map[types.UID][]string{}
	names := map[string]bool{}
	for i := range groups.Items {
		g := &groups.Items[i]
		names[g.Name] = true
		if owner := metav1.GetControllerOf(g); owner == nil || byUID[owner.UID] == nil {
			w.t.Errorf("PodGroup %s is an orphan: its controller is %v", g.Name, owner)
		} else {
			groupsOf[owner.UID] = append(groupsOf[owner.UID], g.Name)
		}
	}
	for uid, job := range byUID {
		running := job.Status.State.Phase == batchv1alpha1.Running
		if n := len(groupsOf[uid]); n > 1 || running && n != 1 {
			w.t.Errorf("job %s, %s, has %d PodGroups: %v", job.Name, job.Status.State.Phase, n, groupsOf[uid])
		}
	}
	for _, pod := range w.Pods("") {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil || byUID[owner.UID] == nil {
			w.t.Errorf("pod %s is an orphan: its controller is %v", pod.Name, owner)
			continue
		}
		group := pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
		if pod.Status.Phase == corev1.PodRunning && !names[group] {
			w.t.Errorf("pod %s runs, and its PodGroup %s is not there", pod.Name, group)
		}
	}
}
