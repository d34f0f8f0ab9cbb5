package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
)

// zonePolicy returns a policy that places pods only on nodes of one zone. Otherwise it is like the default policy.
func zonePolicy(expression string) string {
	return `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "${policy}"}
spec:
  mode: Active
  pipeline: [enqueue, allocate, backfill]
  tiers:
  - name: first
    tables:
    - {name: gang}
    - {name: predicates}
    - name: house
      inline:
        predicates:
        - name: zone
          expression: ` + strconv.Quote(expression) + `
          message: "node {{node.name}} is in another zone"
`
}

// inZone returns an expression for zonePolicy.
func inZone(zone string) string { return fmt.Sprintf("node.labels['zone'] == '%s'", zone) }

// gang creates a PodGroup with that name and its pods, NAME-0 and so on. Each pod requests 100m CPU.
func (w *world) gang(name string, members int, change ...func(*corev1.Pod)) error {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	group.Spec.MinMember = int32(members)
	group.Spec.Queue = w.Queue("a")
	var pods []*corev1.Pod
	for i := range members {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: fmt.Sprintf("%s-%d", name, i),
			Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name},
		}}
		pod.Spec.SchedulerName = w.SchedulerName
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		}}}
		for _, f := range change {
			f(pod)
		}
		pods = append(pods, pod)
		group.Spec.PriorityClassName = pod.Spec.PriorityClassName
	}
	if err := w.Client.Create(w.Context, group); err != nil {
		return fmt.Errorf("PodGroup %s: %w", name, err)
	}
	for _, pod := range pods {
		if _, err := w.Kube.CoreV1().Pods(w.Namespace).Create(w.Context, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// queueA is the queue of the gangs.
const queueA = `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: "${queue.a}"}
spec: {weight: 1}
`

// arrivals creates gangs of ten pods at a rate of pods per second, until stop is called. stop returns the number of pods. If the machine is
// too slow, pods arrive as fast as it can create them: at most the pods of three seconds wait at a time.
func (w *world) arrivals(witness *witness, podsASecond int) (stop func() int) {
	const members = 10
	most := 3 * podsASecond
	ctx, cancel := context.WithCancel(w.Context)
	var gangs sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	started, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second * members / time.Duration(podsASecond))
		defer tick.Stop()
		for ; ; started++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if started*members-witness.Bindings() >= most {
				started--
				continue
			}
			name := fmt.Sprintf("gang-%d", started)
			gangs.Go(func() {
				if err := w.gang(name, members); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, err)
				}
			})
		}
	}()
	return func() int {
		w.t.Helper()
		cancel()
		<-ended
		gangs.Wait()
		if err := errors.Join(failed...); err != nil {
			w.t.Fatalf("pods could not be created: %v", err)
		}
		return started * members
	}
}

// stampOf returns the policy that placed a pod, and its generation.
func stampOf(p *corev1.Pod) (name string, generation int) {
	name, text, _ := strings.Cut(p.Annotations[live.PolicyAnnotation], "@")
	generation, _ = strconv.Atoi(text) // without an annotation it is 0, which is not a generation
	return name, generation
}

func TestAPolicyChangedUnderLoadChangesTheNextDecision(t *testing.T) {
	w := newWorld(t)
	witness := w.Witness()
	zoneOf := map[string]string{}
	for _, zone := range []string{"a", "b"} {
		for _, node := range w.Nodes(3, "cpu=200,memory=1Ti,pods=2000,label:zone="+zone) {
			zoneOf[node] = zone
		}
	}
	w.Apply(queueA)
	w.TryKubectlOK(zonePolicy(inZone("a")), "apply", "-f", "-")
	w.StartScheduler()
	started := time.Now()
	stop := w.arrivals(witness, 200)

	// Each generation serves while pods arrive, until it has placed some.
	zones := []string{1: "a", 2: "b", 3: "a", 4: "b"}
	for generation := 1; generation < len(zones); generation++ {
		if generation > 1 {
			w.TryKubectlOK(zonePolicy(inZone(zones[generation])), "apply", "-f", "-")
		}
		w.Wait(fmt.Sprintf("generation %d has placed 100 pods", generation), func() error {
			n := witness.Count(func(p *corev1.Pod) bool {
				_, by := stampOf(p)
				return by == generation
			})
			if n < 100 {
				return fmt.Errorf("it placed %d; %v", n, w.activeCondition())
			}
			return nil
		})
	}
	arriving := time.Since(started)
	total := stop()
	rate := float64(total) / arriving.Seconds()
	witness.AllBound(total)

	h := witness.Report()
	h.Check(w)
	if h.bound() != total {
		t.Errorf("%d pods were created, and the witness saw %d bindings", total, h.bound())
	}
	by := map[int]int{}
	for _, l := range h.pods {
		name, generation := stampOf(l.pod)
		if name != w.Policy || generation < 1 || generation >= len(zones) {
			t.Errorf("pod %s was placed by %q", l.pod.Name, l.pod.Annotations[live.PolicyAnnotation])
			continue
		}
		by[generation]++
		if zone := zoneOf[l.node]; zone != zones[generation] {
			t.Errorf("pod %s was placed by generation %d, which wants zone %s, on node %s of zone %s", l.pod.Name, generation,
				zones[generation], l.node, zone)
		}
	}
	t.Logf("%d pods, %.0f a second; placed by generation: %v", total, rate, by)
}

// activeCondition returns the Active condition of the world's policy.
func (w *world) activeCondition() string {
	p := &policyv1alpha1.SchedulingPolicy{}
	if err := w.Get(w.Policy, p); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionActive); c != nil {
		return fmt.Sprintf("generation %d: Active=%s, %s: %s", c.ObservedGeneration, c.Status, c.Reason, c.Message)
	}
	return "no condition Active"
}

// TryKubectlOK is TryKubectl, and fails the test after an error.
func (w *world) TryKubectlOK(stdin string, args ...string) {
	w.t.Helper()
	if r := w.TryKubectl(stdin, args...); r.Code != 0 {
		w.t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
}

func TestABrokenPolicyIsRefusedWithAllItsMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := strings.Replace(zonePolicy("node.lables['zone'] == 'a' &&\n node.idle.cpu > task"), "{name: gang}", "{name: gagn}", 1)
	for _, args := range [][]string{{"apply", "-f", "-"}, {"apply", "--dry-run=server", "-f", "-"}} {
		r := w.TryKubectl(broken, args...)
		if r.Code == 0 {
			t.Fatalf("kubectl %v took a broken policy:\n%s", args, r.Out)
		}
		for _, want := range []string{
			"spec.tiers[0].tables[0]", "gagn", "gang", // the misspelled table
			"spec.tiers[0].tables[2].inline.predicates[0].expression", "lables", // the misspelled field
			"line 2, column ", // the second mistake of the expression is in its second line
		} {
			if !strings.Contains(r.Err, want) {
				t.Errorf("kubectl %v does not say %q:\n%s", args, want, r.Err)
			}
		}
	}
	if err := w.gone(w.Policy, &policyv1alpha1.SchedulingPolicy{}); err != nil {
		t.Errorf("the refused policy is stored: %v", err)
	}
	if r := w.TryKubectl(zonePolicy(inZone("a")), "apply", "--dry-run=server", "-f", "-"); r.Code != 0 {
		t.Errorf("the policy without mistakes is refused: %s", r.Err)
	}
}

// TestTwoManagersMixNoPolicy applies a policy server-side as two field managers. The API server would merge tiers and tables by name into a
// policy that neither manager wrote. Admission refuses that, and the remedies in its message work.
func TestTwoManagersMixNoPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gitops, other := zonePolicy(inZone("a")), strings.ReplaceAll(zonePolicy(inZone("b")), "house", "lab-rules")
	apply := func(manager, policy string) ran {
		return w.TryKubectl(policy, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "-f", "-")
	}
	if r := apply("argocd-controller", gitops); r.Code != 0 {
		t.Fatal(r.Err)
	}
	tables := func() (names []string) {
		t.Helper()
		policy := &policyv1alpha1.SchedulingPolicy{}
		if err := w.Get(w.Policy, policy); err != nil {
			t.Fatal(err)
		}
		for _, tier := range policy.Spec.Tiers {
			for _, table := range tier.Tables {
				names = append(names, table.Name)
			}
		}
		return names
	}
	r := apply("kubectl", other)
	for _, want := range []string{
		"spec.tiers[0].tables[2]", "only field manager argocd-controller", "--field-manager=argocd-controller",
		"kubectl replace -f",
	} {
		if r.Code == 0 || !strings.Contains(r.Err, want) {
			t.Errorf("exit code %d, and not %q: %s", r.Code, want, r.Err)
		}
	}
	if got := tables(); slices.Contains(got, "lab-rules") {
		t.Fatalf("the policy is a mixture: %v", got)
	}
	if r := apply("argocd-controller", other); r.Code != 0 || slices.Contains(tables(), "house") {
		t.Errorf("as the same manager: exit code %d, tables %v: %s", r.Code, tables(), r.Err)
	}
	if r := w.TryKubectl(gitops, "replace", "-f", "-"); r.Code != 0 || slices.Contains(tables(), "lab-rules") {
		t.Errorf("by replace: exit code %d, tables %v: %s", r.Code, tables(), r.Err)
	}
}

// exempt restricts the validating webhook of a resource to requests for which a condition is true. It adds one more match condition with
// its own field manager, as an administrator could.
func (w *world) exempt(resource, condition string) {
	w.t.Helper()
	validating := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	owner := metav1.ApplyOptions{FieldManager: "e2e-" + w.Name, Force: true}
	config, err := validating.Get(w.Context, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	name := ""
	for i := range config.Webhooks {
		if asksAbout(&config.Webhooks[i], resource) {
			name = config.Webhooks[i].Name
		}
	}
	if name == "" {
		w.t.Fatalf("ValidatingWebhookConfiguration %s has no webhook for %s", webhookConfiguration, resource)
	}
	exempt := applyv1.ValidatingWebhookConfiguration(webhookConfiguration).WithWebhooks(applyv1.ValidatingWebhook().WithName(name).
		WithMatchConditions(applyv1.MatchCondition().WithName("not-" + w.Name).WithExpression(condition)))
	if _, err := validating.Apply(w.Context, exempt, owner); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		nothing := applyv1.ValidatingWebhookConfiguration(webhookConfiguration)
		if _, err := validating.Apply(context.Background(), nothing, owner); err != nil {
			w.t.Errorf("put the webhook back: %v", err)
		}
	})
}

func asksAbout(webhook *admissionregistrationv1.ValidatingWebhook, resource string) bool {
	for _, rule := range webhook.Rules {
		if slices.Contains(rule.Resources, resource) {
			return true
		}
	}
	return false
}

// tellsOfTheFirst returns nil if the policy's status states that its first generation serves, and why.
func (w *world) tellsOfTheFirst() error {
	p := &policyv1alpha1.SchedulingPolicy{}
	if err := w.Get(w.Policy, p); err != nil {
		return err
	}
	compiled := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionCompiled)
	active := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionActive)
	serving := fmt.Sprintf("serving %s@1, because generation 2 does not compile", w.Policy)
	switch {
	case p.Generation != 2 || p.Status.ObservedGeneration != 2:
		return fmt.Errorf("generation %d, observed %d; want 2", p.Generation, p.Status.ObservedGeneration)
	case compiled == nil || compiled.Status != metav1.ConditionFalse || !strings.Contains(compiled.Message, "lables"):
		return fmt.Errorf("condition Compiled is %+v; want False, because of lables", compiled)
	case active == nil || active.Status != metav1.ConditionFalse || !strings.Contains(active.Message, serving):
		return fmt.Errorf("condition Active is %+v; want False, %q", active, serving)
	case len(p.Status.Schedulers) != 1 || p.Status.Schedulers[0].Name != w.SchedulerName || p.Status.Schedulers[0].Generation != 1:
		return fmt.Errorf("schedulers are %+v; want %s at generation 1", p.Status.Schedulers, w.SchedulerName)
	}
	return nil
}

// tellsOfTheError returns nil if status and events report that the row house/zone of generation 4 fails for the pod fifth-0.
func (w *world) tellsOfTheError() error {
	p := &policyv1alpha1.SchedulingPolicy{}
	if err := w.Client.Get(w.Context, client.ObjectKey{Name: w.Policy}, p); err != nil {
		return err
	}
	if len(p.Status.Schedulers) != 1 || p.Status.Schedulers[0].Generation != 4 || len(p.Status.Schedulers[0].RuleErrors) != 1 {
		return fmt.Errorf("schedulers are %+v; want %s at generation 4, and an error of a row", p.Status.Schedulers, w.SchedulerName)
	}
	if e := p.Status.Schedulers[0].RuleErrors[0]; e.Table != "house" || e.Rule != "zone" || e.Count < 1 ||
		!strings.Contains(e.LastObject, "fifth-0") || !strings.Contains(e.LastError, "no such key: fifth-0") {
		return fmt.Errorf("the error is %+v", e)
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, policyv1alpha1.ConditionErring) {
		return fmt.Errorf("conditions are %+v", p.Status.Conditions)
	}
	events := &corev1.EventList{}
	if err := w.Client.List(w.Context, events, client.InNamespace("default")); err != nil {
		return err
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.Name == w.Policy && e.Reason == "RowErred" }) {
		return errors.New("no event tells of it")
	}
	return nil
}

func TestTheLastGoodPolicyServesOnWhenTheLeaderIsKilled(t *testing.T) {
	w := newWorld(t)
	witness := w.Witness()
	nodes := map[string]string{}
	for _, zone := range []string{"a", "b"} {
		nodes[w.Nodes(1, "cpu=8,label:zone="+zone)[0]] = zone
	}
	w.Apply(queueA)
	w.TryKubectlOK(zonePolicy(inZone("a")), "apply", "-f", "-")
	replica := func() *process {
		return w.Process("scheduler", "--scheduler-name", "${scheduler}", "--policy", "${policy}", "--node-selector", w.NodeSelector,
			"--namespace", "${namespace}", "--lease-name", "${world}", "--metrics-address", "0", "--health-address", "0", "-v", "2")
	}
	// placed creates a pod, and returns its zone and the generation that placed it.
	placed := func(name string) (zone string, generation int) {
		t.Helper()
		if err := w.gang(name, 1); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		w.Wait("pod "+name+" is bound", func() error {
			if err := w.Get(name+"-0", pod); err != nil || pod.Spec.NodeName != "" {
				return err
			}
			return fmt.Errorf("it waits: %s; the policy: %s", waitsFor(pod), w.activeCondition())
		})
		_, generation = stampOf(pod)
		return nodes[pod.Spec.NodeName], generation
	}
	expect := func(name, zone string, generation int) {
		t.Helper()
		if z, g := placed(name); z != zone || g != generation {
			t.Fatalf("pod %s was placed in zone %s by generation %d; want zone %s by generation %d", name, z, g, zone, generation)
		}
	}

	leader := replica()
	expect("first", "a", 1)
	second := replica() // it must wait, because the leader holds the lease

	// The webhook refuses a broken policy. Without the webhook, the policy is stored.
	broken := zonePolicy("node.lables['zone'] == 'b'")
	if r := w.TryKubectl(broken, "apply", "-f", "-"); r.Code == 0 {
		t.Fatalf("the broken policy was taken: %s", r.Out)
	}
	w.exempt("schedulingpolicies", fmt.Sprintf("request.name != %q", w.Policy))
	w.Wait("the API server no longer asks about this policy", func() error { return w.TryApply(broken) })
	tells := w.tellsOfTheFirst
	w.Wait("the status tells what serves", tells)
	expect("second", "a", 1)

	// The other replica has never seen the good policy, because it was not leading.
	select {
	case <-second.Exited():
		t.Fatalf("the second replica ended by itself:\n%s", second.Log())
	default:
	}
	leader.Kill()
	expect("third", "a", 1)
	w.Wait("the status tells what serves after the change of leader, too", tells)

	// The corrected policy is used.
	w.TryKubectlOK(zonePolicy(inZone("b")), "apply", "--server-side", "--force-conflicts", "-f", "-")
	serves := func(generation int) func() error {
		return func() error {
			if text := w.activeCondition(); !strings.Contains(text, fmt.Sprintf("generation %d: Active=True", generation)) {
				return errors.New(text)
			}
			return nil
		}
	}
	w.Wait("the mended policy serves", serves(3))
	expect("fourth", "b", 3)

	// A failing row is reported in the status with its count and its last error, by a condition, and by an event.
	w.TryKubectlOK(zonePolicy(inZone("b")+" && node.labels[task.name] == ''")+"          onError: allow\n", "apply", "--server-side",
		"--force-conflicts", "-f", "-")
	w.Wait("the policy with that row serves", serves(4))
	if err := w.gang("fifth", 1); err != nil {
		t.Fatal(err)
	}
	w.Wait("the status tells of the row that errs", w.tellsOfTheError)
	witness.Report().Check(w)
}
