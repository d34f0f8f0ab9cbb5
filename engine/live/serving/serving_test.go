package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/crds"
	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// Specs of policies: correct, with a mistake, and with a warning.
const (
	rightSpec  = `{"mode":"Active","pipeline":["enqueue","allocate"],"tiers":[{"name":"first","tables":[{"name":"gang"}]}]}`
	pausedSpec = `{"mode":"Paused","pipeline":["enqueue","allocate"],"tiers":[{"name":"first","tables":[{"name":"gang"}]}]}`
	brokenSpec = `{"mode":"Active","pipeline":["enqueue","allocat"],"tiers":[]}`
	stopSpec   = `{"mode":"Paused","pipeline":["enqueue","allocat"],"tiers":[]}`
	warnedSpec = `{"pipeline":["allocate"],"tiers":[{"name":"t","tables":[{"name":"own",` +
		`"inline":{"jobReady":[{"name":"r","expression":"true"}]}}]}]}`
)

// policyWorld is an API server without a network, and records what happened.
type policyWorld struct {
	t        *testing.T
	api      client.Client
	informer *controllertest.FakeInformer
	metrics  *prometheus.Registry
	uids     int

	mu     sync.Mutex // protects the fields below: several schedulers run, and sleeping goroutines wake up
	events []string
	// statuses is the number of written statuses.
	statuses int
	// instead is the reason why another policy than the stored one serves.
	instead string
	// refuse, if set, may fail a write or a list.
	refuse func(what string) error
}

func newPolicyWorld(t *testing.T) *policyWorld {
	w := &policyWorld{t: t, informer: controllertest.NewFakeInformer(controllertest.Synced), metrics: prometheus.NewRegistry()}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	asked := func(what string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refuse == nil {
			return nil
		}
		return w.refuse(what)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithTypeConverters(policySchema(t),
		managedfields.NewDeducedTypeConverter()).WithStatusSubresource(newObject()).Build()
	w.api = interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := asked(fmt.Sprintf("create %T", o)); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := asked(fmt.Sprintf("update %T", o)); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := asked(fmt.Sprintf("list %T", l)); err != nil {
				return err
			}
			return c.List(ctx, l, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, a runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			if err := asked("apply " + sub); err != nil {
				return err
			}
			w.mu.Lock()
			w.statuses++
			w.mu.Unlock()
			err := c.SubResource(sub).Apply(ctx, a, opts...)
			w.informer.Update(nil, nil)
			return err
		},
	})
	return w
}

// policySchema contains the merge keys of the policy's lists, as in the API server.
func policySchema(t *testing.T) managedfields.TypeConverter {
	t.Helper()
	manifest, err := crds.Manifests.ReadFile("manifests/scheduling.celsius.dev_schedulingpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(manifest, &crd); err != nil {
		t.Fatal(err)
	}
	s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	delete(s.Properties, "metadata")
	s.Extensions = spec.Extensions{"x-kubernetes-group-version-kind": []any{
		map[string]any{"group": v1alpha1.GroupName, "version": "v1alpha1", "kind": "SchedulingPolicy"},
	}}
	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"SchedulingPolicy": s}, true)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

// GetInformer implements Cache.
func (w *policyWorld) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return w.informer, nil
}

func (w *policyWorld) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return w.api.List(ctx, l, opts...)
}

// Eventf implements EventSink.
func (w *policyWorld) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	var name string
	switch o := o.(type) {
	case *corev1.ObjectReference:
		name = o.Name
	case *unstructured.Unstructured:
		name = o.GetName()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", kind, reason, name, fmt.Sprintf(format, args...)))
}

// start runs the policies of one scheduler until the end of the test, or until stop is called.
func (w *policyWorld) start(name, scheduler string) (p *Policies, stop func()) {
	p = New(Options{
		Name: name, Scheduler: scheduler, Cache: w, Reader: w.api, Client: w.api, Events: w,
		Wake: func() {}, Log: testr.New(w.t), Metrics: w.metrics,
		Instead: func(reason string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.instead = reason
		},
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	synctest.Wait()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// put stores the next generation of a policy, and waits until all schedulers are idle.
func (w *policyWorld) put(name, spec string) {
	w.t.Helper()
	u, err := w.get(name)
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		w.t.Fatal(err)
	}
	u.Object["spec"] = content
	u.SetGeneration(u.GetGeneration() + 1)
	if err != nil {
		w.uids++
		u.SetName(name)
		u.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
		err = w.api.Create(w.t.Context(), u)
	} else {
		err = w.api.Update(w.t.Context(), u)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *policyWorld) delete(name string) {
	w.t.Helper()
	u, err := w.get(name)
	if err == nil {
		err = w.api.Delete(w.t.Context(), u)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *policyWorld) get(name string) (*unstructured.Unstructured, error) {
	u := newObject()
	return u, w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, u)
}

func (w *policyWorld) settle() {
	w.informer.Update(nil, nil)
	synctest.Wait()
}

// status returns the status of a policy as lines.
func (w *policyWorld) status(name string) string {
	w.t.Helper()
	u, err := w.get(name)
	if err != nil {
		w.t.Fatal(err)
	}
	var s v1alpha1.SchedulingPolicyStatus
	if content, ok := u.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s); err != nil {
			w.t.Fatal(err)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "observed %d rules %d warnings %d\n", s.ObservedGeneration, s.RuleCount, s.WarningCount)
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	if s.TypeChecking != nil {
		for _, x := range s.TypeChecking.ExpressionWarnings {
			fmt.Fprintf(&b, "%s: %s\n", x.FieldRef, x.Warning)
		}
	}
	for _, x := range s.Schedulers {
		fmt.Fprintf(&b, "%s serves %d\n", x.Name, x.Generation)
		for _, r := range x.RuleErrors {
			fmt.Fprintf(&b, "  %s/%s (%s) erred %d times, %d over budget, last for %s: %s\n", r.Table, r.Rule, r.Site, r.Count, r.OverBudget,
				r.LastObject, r.LastError)
		}
	}
	for _, x := range s.Shadows {
		fmt.Fprintf(&b, "%s shadows %d beside %s: %d of %d cycles otherwise\n", x.Name, x.Generation, x.Beside, x.Cycles.Otherwise,
			x.Cycles.Decided)
	}
	return b.String()
}

// revisions returns the stored policies, newest first.
func (w *policyWorld) revisions() []string {
	w.t.Helper()
	r := revisions{reader: w.api, namespace: "celsius-system", scheduler: "celsius"}
	if err := r.load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, rev := range r.newest {
		out = append(out, fmt.Sprintf("%s %s", rev.Name, fromRevision(rev)))
	}
	return out
}

// newServedWorld returns a world in which a scheduler served these generations of the policy default, until it was killed.
func newServedWorld(t *testing.T, generations ...string) *policyWorld {
	w := newPolicyWorld(t)
	_, kill := w.start("default", "celsius")
	for _, spec := range generations {
		w.put("default", spec)
	}
	kill()
	return w
}

// refusing sets a function that may fail writes and lists; nil: none.
func (w *policyWorld) refusing(by func(what string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = by
}

// written returns the number of written statuses.
func (w *policyWorld) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses
}

// take returns the events since the last call.
func (w *policyWorld) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

func serving(p *Policies) string {
	c := p.Current()
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s@%d %s", c.Name, c.Generation, c.Mode)
}

func (w *policyWorld) check(what string, got, want any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestPolicyLife follows one policy through all events.
func TestPolicyLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.check("nothing stored", serving(p), "default@0 Active")
		w.check("nothing is wrong then", w.take(), []string(nil))

		w.put("default", rightSpec)
		w.check("first", serving(p), "default@1 Active")
		w.check("first", w.take(), []string{"Normal PolicyActivated default: scheduler celsius serves default@1 (11 rules)"})
		w.check("first", w.status("default"),
			"observed 1 rules 11 warnings 0\nCompiled=True Compiled: 11 rules\nActive=True Serving: serving default@1\ncelsius serves 1\n")

		w.put("default", brokenSpec)
		mistake := `spec.pipeline[1]: unknown action "allocat"; did you mean "allocate"? (known: allocate, backfill, ` +
			`elasticpreempt, elasticreclaim, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle); or define it under spec.actions`
		broken := "serving default@1, because generation 2 does not compile: " + mistake
		w.check("broken", serving(p), "default@1 Active")
		w.check("broken", w.take(), []string{"Warning PolicyRejected default: " + broken})
		w.check("broken", w.status("default"), "observed 2 rules 0 warnings 0\nCompiled=False DoesNotCompile: "+mistake+
			"\nActive=False DoesNotCompile: "+broken+"\ncelsius serves 1\n")

		stop()
		p, stop = w.start("default", "celsius")
		w.check("restarted", serving(p), "default@1 Active")
		w.check("restarted", w.take(), []string{"Warning PolicyFallback default: " + broken})

		w.put("default", stopSpec)
		w.check("paused while broken", serving(p), "default@1 Paused")
		w.check("paused while broken", strings.Contains(w.status("default"), "serving default@1, paused, because generation 3 does not compile"),
			true)
		w.take()

		w.put("default", pausedSpec)
		w.check("paused", serving(p), "default@4 Paused")
		w.check("paused", w.take(),
			[]string{"Normal PolicyActivated default: scheduler celsius serves default@4 (11 rules); it is paused: nothing is bound or evicted"})
		w.check("paused", w.status("default"), "observed 4 rules 11 warnings 0\nCompiled=True Compiled: 11 rules\nActive=False Paused: serving "+
			"default@4, paused: nothing is bound or evicted until spec.mode is Active\ncelsius serves 4\n")

		w.put("default", warnedSpec)
		w.check("warned", serving(p), "default@5 Active")
		w.check("warned", w.status("default"),
			"observed 5 rules 1 warnings 1\nCompiled=True Compiled: 1 rule, 1 warning\nActive=True Serving: serving default@5\n"+
				"spec.tiers: there are rows of jobReady, but none of jobPipelined: a job that is not ready holds its places until the cycle ends; "+
				"add a row of jobPipelined that says when a job may keep places it cannot use yet\ncelsius serves 5\n")
		w.take()

		w.delete("default")
		w.check("deleted", serving(p), "default@0 Active")
		w.check("deleted", w.take(), []string{`Warning PolicyFallback default: SchedulingPolicy "default" is deleted: scheduler celsius serves ` +
			`the embedded default in place of default@5`})
		stop()
		p, stop = w.start("default", "celsius")
		w.check("restarted without", serving(p), "default@0 Active")
		w.check("restarted without", w.take(), []string(nil))

		w.put("default", brokenSpec)
		w.check("made anew, broken", serving(p), "default@0 Active")
		w.check("made anew, broken", w.revisions(), []string{
			"celsius-policy-5 the embedded default", "celsius-policy-4 default@5", "celsius-policy-3 default@4", "celsius-policy-2 default@1",
			"celsius-policy-1 the embedded default",
		})
		stop()
	})
}

// TestPolicyMissing checks that a missing policy is reported, unless it has the default name.
func TestPolicyMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("house", "celsius")
		w.check("serving", serving(p), "default@0 Active")
		w.check("events", w.take(), []string{`Warning PolicyFallback house: there is no SchedulingPolicy "house": scheduler celsius serves the ` +
			`embedded default until one is created`})
		stop()
	})
}

// TestPolicyKeptNoLonger checks that a stored policy that no longer compiles is skipped for the next older one.
func TestPolicyKeptNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec, pausedSpec)
		var rev appsv1.ControllerRevision
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "celsius-system", Name: "celsius-policy-3"}, &rev); err != nil {
			t.Fatal(err)
		}
		rev.Data.Raw = []byte(strings.ReplaceAll(string(rev.Data.Raw), "enqueue", "enqueued"))
		if err := w.api.Update(t.Context(), &rev); err != nil {
			t.Fatal(err)
		}
		w.put("default", brokenSpec)
		w.take()
		p, stop := w.start("default", "celsius")
		w.check("serving", serving(p), "default@1 Active")
		says := "serving default@1, because generation 3 does not compile, and nor does default@2, which served before, under this version of " +
			"celsius: "
		w.check("events", strings.Contains(strings.Join(w.take(), "\n"), "Warning PolicyFallback default: "+says), true)
		w.settle()
		w.check("active", strings.Contains(w.status("default"), "Active=False DoesNotCompile: "+says), true)
		w.check("schedulers", strings.Contains(w.status("default"), "celsius serves 1\n"), true)
		stop()
	})
}

// TestPolicyKeepsTen checks that at most ten generations are stored, and that a serving one is not stored twice.
func TestPolicyKeepsTen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, slices.Repeat([]string{rightSpec}, 14)...)
		_, stop := w.start("default", "celsius")
		got := w.revisions()
		w.check("kept", []string{fmt.Sprint(len(got)), got[0], got[9]}, []string{
			"10", "celsius-policy-15 default@14",
			"celsius-policy-6 default@5",
		})
		stop()
	})
}

// TestPolicyRetries checks that a failed request is tried again with growing waits, and stops nothing else.
func TestPolicyRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		began := time.Now()
		var at []time.Duration
		w.refusing(func(what string) error {
			if what == "create *v1.ControllerRevision" && len(at) < 4 {
				at = append(at, time.Since(began))
				return errors.New("no space left")
			}
			return nil
		})
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		w.check("serving", serving(p), "default@1 Active")
		w.check("status", strings.Contains(w.status("default"), "Active=True"), true)
		time.Sleep(time.Minute)
		w.check("kept", w.revisions(), []string{"celsius-policy-1 default@1"})
		if at[3]-at[2] < 2*time.Second {
			t.Errorf("tried again at %v", at)
		}
		stop()
	})
}

// TestPolicyNamespace checks that a missing namespace is created.
func TestPolicyNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		made := false
		w.refusing(func(what string) error {
			made = made || what == "create *v1.Namespace"
			if what == "create *v1.ControllerRevision" && !made {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "celsius-system")
			}
			return nil
		})
		_, stop := w.start("default", "celsius")
		w.check("kept", w.revisions(), []string{"celsius-policy-1 the embedded default"})
		stop()
	})
}

// TestPolicyWaitsForKept checks that the default does not replace a broken policy before the stored policies are loaded. The channel Ready
// is not closed before that, either.
func TestPolicyWaitsForKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec, brokenSpec)
		w.refusing(func(what string) error {
			if what == "list *v1.ControllerRevisionList" {
				return errors.New("the server is overloaded")
			}
			return nil
		})
		p, stop := w.start("default", "celsius")
		select {
		case <-p.Ready():
			t.Error("ready")
		default:
		}
		w.check("serving", serving(p), "nothing")
		w.refusing(nil)
		time.Sleep(retryFirst)
		synctest.Wait()
		<-p.Ready()
		w.check("serving", serving(p), "default@1 Active")
		stop()
	})
}

// TestPolicyNotSelected checks that schedulers that serve different policies report on their own ones, leave the others unchanged, and
// become idle.
func TestPolicyNotSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		_, stopA := w.start("a", "celsius")
		_, stopB := w.start("b", "volcano")
		for _, name := range []string{"c", "b", "a"} {
			w.put(name, rightSpec)
		}
		a := "observed 1 rules 11 warnings 0\nCompiled=True Compiled: 11 rules\nActive=True Serving: serving a@1\ncelsius serves 1\n"
		w.check("a", w.status("a"), a)
		w.check("b", w.status("b"), strings.NewReplacer("a@1", "b@1", "celsius", "volcano").Replace(a))
		w.check("c", strings.Contains(w.status("c"), `Active=False NotSelected: scheduler`), true)

		writes := w.written()
		for range 20 {
			w.settle()
		}
		w.check("writes at rest", w.written(), writes)

		stopA()
		_, stopA = w.start("b", "celsius")
		w.check("given up", strings.Contains(w.status("a"), "NotSelected"), true)
		w.check("given up", strings.Contains(w.status("a"), "celsius serves 1"), false)
		w.check("both", strings.Contains(w.status("b"), "celsius serves 1\nvolcano serves 1\n") ||
			strings.Contains(w.status("b"), "volcano serves 1\ncelsius serves 1\n"), true)
		writes = w.written()
		for range 20 {
			w.settle()
		}
		w.check("writes at rest", w.written(), writes)
		stopA()
		stopB()
	})
}

// TestPolicyDisagree checks that two versions of the program with different results for the same policy become idle, too.
func TestPolicyDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		a, stopA := w.start("default", "celsius")
		_, stopB := w.start("default", "volcano")
		w.put("default", rightSpec)
		writes := w.written()
		// One of them finds another result, as a newer version could.
		for _, c := range a.compiled {
			c.policy = nil
		}
		for range 20 {
			w.settle()
		}
		if n := w.written() - writes; n == 0 || n > 3 {
			t.Errorf("%d writes", n)
		}
		stopA()
		stopB()
	})
}

// TestPolicyStatusRepaired checks that a foreign change in the status of a policy of one scheduler is corrected. The transition time does
// not change while the condition does not.
func TestPolicyStatusRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		_, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		want := w.status("default")
		transition := func() any {
			u, _ := w.get("default")
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			return conditions[0].(map[string]any)["lastTransitionTime"]
		}
		first := transition()
		time.Sleep(time.Hour)
		u, _ := w.get("default")
		for _, path := range []string{"ruleCount", "observedGeneration"} {
			if err := unstructured.SetNestedField(u.Object, int64(77), "status", path); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.api.Status().Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.check("status", w.status("default"), want)
		w.check("transition", transition(), first)
		if !slices.Equal(w.take(), []string{"Normal PolicyActivated default: scheduler celsius serves default@1 (11 rules)"}) {
			t.Error("told again")
		}
		stop()
	})
}
