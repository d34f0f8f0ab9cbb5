package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	sigsyaml "sigs.k8s.io/yaml"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// testServer returns a server with a fake API server.
func testServer(t testing.TB, o Options, c client.Client) *server {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s := &server{
		options: o.withDefaults(), log: ctrl.Log, client: c, cache: &informertest.FakeInformers{Scheme: newScheme(t)},
		metrics: newMetrics(),
	}
	s.listNow = func(ctx context.Context, into client.ObjectList) error { return c.List(ctx, into) }
	s.certs = newCertSource(s.options, c)
	var err error
	if s.endpoints, err = newEndpoints(s.options, s.cluster(), s.metrics); err != nil {
		t.Fatal(err)
	}
	return s
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme, err := knownKinds()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func fakeClient(t testing.TB, funcs interceptor.Funcs) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithInterceptorFuncs(funcs).Build()
}

// start runs a server until the test ends or until stop is called. stop waits until the server has ended.
func start(t *testing.T, s *server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	wait(t, "the server to be ready", s.ready.Load)
	return func() error {
		cancel()
		return <-ended
	}
}

// wait polls until done returns true. It fails the test after a deadline.
func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func configurations(t *testing.T, c client.Client, name string) (*admissionregistrationv1.MutatingWebhookConfiguration,
	*admissionregistrationv1.ValidatingWebhookConfiguration,
) {
	t.Helper()
	m, v := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, o := range []client.Object{m, v} {
		if err := c.Get(t.Context(), types.NamespacedName{Name: name}, o); err != nil {
			t.Fatal(err)
		}
	}
	return m, v
}

// TestRun follows a request from start to end: the configuration tells where to call and which authority to trust. There, a Job is refused.
func TestRun(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{})
	s := testServer(t, Options{URLHost: "127.0.0.1", ConfigurationName: "tested", UnregisterOnExit: true}, c)
	stop := start(t, s)
	_, validating := configurations(t, c, "tested")
	hook := validating.Webhooks[0]
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(hook.ClientConfig.CABundle) {
		t.Fatal("the configuration has no CA")
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	job := merged(t, "spec: {queue: nowhere}")
	answer := post(t, web, *hook.ClientConfig.URL, review(t, "CREATE", job))
	if answer.Allowed || !strings.Contains(answer.Result.Message, "spec.queue: there is no queue nowhere") {
		t.Errorf("answer %+v", answer)
	}
	// The cache contains no queue, as if it were not up to date. The server must find the new queue nevertheless.
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := c.Create(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if answer := post(t, web, *hook.ClientConfig.URL, review(t, "CREATE", merged(t, "{}"))); !answer.Allowed {
		t.Errorf("refused: %+v", answer)
	}
	if err := stop(); err != nil {
		t.Errorf("the end: %v", err)
	}
	err := c.Get(t.Context(), types.NamespacedName{Name: "tested"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the configuration is left behind: %v", err)
	}
}

func review(t testing.TB, operation string, job map[string]any) []byte {
	t.Helper()
	object, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := job["kind"].(string)
	if kind == "" {
		kind = jobKind
	}
	return fmt.Appendf(nil, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": %q,
		"kind": {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": %q}, "name": "train", "object": %s}}`, operation, kind, object)
}

func post(t *testing.T, web *http.Client, url string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(data, &answer); err != nil || answer.Response == nil {
		t.Fatalf("no AdmissionReview: %v: %s", err, data)
	}
	return answer.Response
}

// TestBadRequests checks that a request that cannot be read is refused with a message.
func TestBadRequests(t *testing.T) {
	s := testServer(t, Options{}, fakeClient(t, interceptor.Funcs{}))
	h := s.handler()
	for _, c := range []struct{ name, path, body, want string }{
		{"empty", "/jobs/validate", "", `the operation is ""`},
		{"no JSON", "/jobs/validate", "{", "couldn't get version/kind"},
		{"no object", "/jobs/validate", string(review(t, "CREATE", nil)), "the Job cannot be read: there is none in the request"},
		{
			"an operation that is not ours", "/jobs/validate", string(review(t, "DELETE", merged(t, "{}"))),
			`the operation is "DELETE", and only CREATE and UPDATE are looked at here`,
		},
		{
			"an update without the state before", "/jobs/validate", string(review(t, "UPDATE", merged(t, "{}"))),
			"the Job before the update cannot be read: there is none in the request",
		},
		{
			"another kind", "/jobs/mutate", strings.Replace(string(review(t, "CREATE", merged(t, "{}"))), `"kind": "Job"}`, `"kind": "Pod"}`, 1),
			"the object is a Pod, and only a Job is looked at here",
		},
		{
			"a list for an object", "/jobs/mutate", strings.Replace(string(review(t, "CREATE", nil)), `"object": null`, `"object": [1]`, 1),
			"the Job cannot be read: it is not the JSON of an object",
		},
		{
			"the wrong types", "/jobs/mutate", string(review(t, "CREATE", map[string]any{"spec": map[string]any{"tasks": "many"}})),
			`spec.tasks: is the string "many", must be a list`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			var answer admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
				t.Fatalf("no AdmissionReview: %v: %s", err, w.Body)
			}
			if got := answer.Response; got.Allowed || !strings.Contains(got.Result.Message, c.want) {
				t.Errorf("allowed %t: %s; want %s", got.Allowed, got.Result.Message, c.want)
			}
		})
	}
}

// TestRefusal checks the status that clients receive. kubectl writes one line for each cause.
func TestRefusal(t *testing.T) {
	h := handlerFor(t)
	object, err := json.Marshal(merged(t, "spec: {minAvailable: 9, maxRetry: -1, schedulerName: volcano, queue: nowhere}"))
	if err != nil {
		t.Fatal(err)
	}
	req := requestFor(admissionv1.Create, object, nil)
	req.Name = "train"
	got := h.validate(t.Context(), req).Result
	want := &metav1.Status{
		Status: "Failure", Code: 422, Reason: "Invalid",
		Message: "3 mistakes:\n" +
			"* spec.minAvailable: is 9, but the tasks have 3 replicas together; it may be at most that\n" +
			"* spec.maxRetry: is -1; write how often the job may be restarted, 1 or more, or leave it out for 3\n" +
			"* spec.queue: there is no queue nowhere; name one of those that `kubectl get queues` lists, or make it",
		Details: &metav1.StatusDetails{Group: "batch.volcano.sh", Kind: "Job", Name: "train", Causes: []metav1.StatusCause{
			{Type: "FieldValueInvalid", Field: "spec.minAvailable", Message: "is 9, but the tasks have 3 replicas together; it may be at most that"},
			{
				Type: "FieldValueInvalid", Field: "spec.maxRetry",
				Message: "is -1; write how often the job may be restarted, 1 or more, or leave it out for 3",
			},
			{
				Type: "FieldValueInvalid", Field: "spec.queue",
				Message: "there is no queue nowhere; name one of those that `kubectl get queues` lists, or make it",
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyMistakes checks an object with very many mistakes. The answer contains the first ones and the number of all mistakes.
func TestManyMistakes(t *testing.T) {
	h := handlerFor(t)
	tasks := make([]any, 300)
	for i := range tasks {
		tasks[i] = map[string]any{"name": "same", "replicas": -1}
	}
	object, err := json.Marshal(map[string]any{"spec": map[string]any{"schedulerName": "volcano", "tasks": tasks}})
	if err != nil {
		t.Fatal(err)
	}
	got := h.validate(t.Context(), requestFor(admissionv1.Create, object, nil)).Result
	told := strings.Count(got.Message, "\n* spec.")
	if !strings.Contains(got.Message, " mistakes:\n") || told != mostCauses || len(got.Details.Causes) != mostCauses+1 ||
		!strings.Contains(got.Message, "\n* and ") {
		t.Errorf("%d mistakes are told, and %d causes: %.300s", told, len(got.Details.Causes), got.Message)
	}
}

// TestJobFlowServed checks which JobTemplates are read for a JobFlow. They are read from its own namespace, each once, and not more than
// one request may hold. A queue that is not in the cache is requested from the API server.
func TestJobFlowServed(t *testing.T) {
	read := 0
	var namespaces []string
	c := fakeClient(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
		opts ...client.GetOption,
	) error {
		read++
		namespaces = append(namespaces, key.Namespace)
		return c.Get(ctx, key, into, opts...)
	}})
	for name, queue := range map[string]string{"load": "fresh", "large": strings.Repeat("x", mostBytes), "more": ""} {
		template := &unstructured.Unstructured{Object: mergedOver(t, plainJobTemplate, "metadata: {namespace: team, name: "+name+"}")}
		if err := unstructured.SetNestedField(template.Object, queue, "spec", "queue"); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), template); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Create(t.Context(), &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}); err != nil {
		t.Fatal(err)
	}
	s := testServer(t, Options{}, c)
	for _, x := range []struct {
		flows, want string
		read        int
	}{
		{"[{name: load, patch: {jobSpec: {maxRetry: 2}}}, {name: load}, {name: not-there}]", `"allowed":true`, 2},
		{"[{name: large}, {name: more}]", "more than three megabytes together", 1},
	} {
		read = 0
		flow := mergedOver(t, plainJobFlow, "metadata: {namespace: team}\nspec: {flows: "+x.flows+"}")
		body := strings.Replace(string(review(t, "CREATE", flow)), `"name": "train"`, `"name": "train", "namespace": "team"`, 1)
		if got := ask(t, s.handler(), "/jobflows/validate", body); !strings.Contains(got, x.want) || read != x.read || namespaces[0] != "team" {
			t.Errorf("%s: %d are read of %v: %s", x.flows, read, namespaces, got)
		}
	}
}

// TestQueuesThatCannotBeListed checks that an internal error accepts no object, and that the message says that the error is internal.
func TestQueuesThatCannotBeListed(t *testing.T) {
	h := handlerFor(t)
	h.queues = failingLister
	object, err := json.Marshal(merged(t, "spec: {schedulerName: volcano}"))
	if err != nil {
		t.Fatal(err)
	}
	got := h.validate(t.Context(), requestFor(admissionv1.Create, object, nil))
	if got.Allowed || got.Result.Code != http.StatusInternalServerError || !strings.Contains(got.Result.Message,
		"says nothing of the object: rule queue-exists: the cache is gone") {
		t.Errorf("allowed %t: %+v", got.Allowed, got.Result)
	}
}

// TestQueueMadeJustNow checks that the webhook asks the API server before it refuses a job because of its queue, and only then.
func TestQueueMadeJustNow(t *testing.T) {
	object, err := json.Marshal(merged(t, "spec: {schedulerName: volcano, queue: fresh}"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Status: schedulingv1beta1.QueueStatus{
		State: schedulingv1beta1.QueueStateOpen,
	}}
	for name, tt := range map[string]struct {
		cached, stored []schedulingv1beta1.Queue
		allowed        bool
		asked          int
	}{
		"the cache knows it":       {cached: []schedulingv1beta1.Queue{fresh}, allowed: true},
		"only the API server does": {stored: []schedulingv1beta1.Queue{fresh}, allowed: true, asked: 1},
		"nobody does":              {asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			h := handlerFor(t, tt.cached...)
			h.queuesNow = func(context.Context) ([]schedulingv1beta1.Queue, error) {
				asked++
				return tt.stored, nil
			}
			got := h.validate(t.Context(), requestFor(admissionv1.Create, object, nil))
			if got.Allowed != tt.allowed || asked != tt.asked {
				t.Errorf("allowed %t, the API server was asked %d times; want %t, %d: %+v", got.Allowed, asked, tt.allowed, tt.asked, got.Result)
			}
		})
	}
}

func failingLister(context.Context) ([]schedulingv1beta1.Queue, error) {
	return nil, errors.New("the cache is gone")
}

// TestRegistered checks the configurations that the webhook registers at the API server.
func TestRegistered(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{})
	s := testServer(t, Options{SchedulerNames: []string{"celsius", "it's"}, Namespace: "ours"}, c)
	if err := s.register(t.Context(), []byte("a bundle")); err != nil {
		t.Fatal(err)
	}
	mutating, validating := configurations(t, c, "celsius")
	var names []string
	for _, w := range mutating.Webhooks {
		names = append(names, w.Name)
	}
	for _, w := range validating.Webhooks {
		names = append(names, w.Name)
	}
	all := []string{
		"mutate-jobs.celsius.dev", "mutate-podgroups.celsius.dev", "mutate-queues.celsius.dev", "validate-jobs.celsius.dev",
		"warn-other-jobs.celsius.dev",
		"validate-podgroups.celsius.dev", "validate-queues.celsius.dev", "validate-pods.celsius.dev", "validate-commands.celsius.dev",
		"validate-cronjobs.celsius.dev", "validate-jobflows.celsius.dev", "validate-jobtemplates.celsius.dev", "validate-policies.celsius.dev",
	}
	if diff := cmp.Diff(all, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	path, port := "/jobs/mutate", int32(443)
	fail, equivalent, none, ifNeeded, scope, seconds := admissionregistrationv1.Fail, (*admissionregistrationv1.MatchPolicyType)(nil),
		admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.IfNeededReinvocationPolicy,
		admissionregistrationv1.AllScopes, int32(10)
	want := []admissionregistrationv1.MutatingWebhook{{
		Name: "mutate-jobs.celsius.dev",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: []byte("a bundle"),
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "ours", Name: "celsius-webhook", Path: &path, Port: &port},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"batch.volcano.sh"}, APIVersions: []string{"v1alpha1"},
				Resources: []string{"jobs"}, Scope: &scope,
			},
		}},
		FailurePolicy: &fail, MatchPolicy: equivalent, SideEffects: &none, TimeoutSeconds: &seconds, ReinvocationPolicy: &ifNeeded,
		AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: "NotIn", Values: []string{"ours", "kube-system", "kube-public", "kube-node-lease"},
		}}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "our-scheduler",
			Expression: `object.?spec.schedulerName.orValue('') in ['', 'celsius', 'it\'s'] || oldObject != null && ` +
				`oldObject.?spec.schedulerName.orValue('') in ['', 'celsius', 'it\'s']`,
		}, {
			Name:       "spec-changed",
			Expression: "oldObject == null || object.spec != oldObject.spec",
		}},
	}}
	if diff := cmp.Diff(want, mutating.Webhooks[:1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	s.options.URLHost, s.port = "::1", 8443
	if err := s.register(t.Context(), []byte("another")); err != nil {
		t.Fatal(err)
	}
	mutating, _ = configurations(t, c, "celsius")
	got := mutating.Webhooks[0].ClientConfig
	if got.URL == nil || *got.URL != "https://[::1]:8443/jobs/mutate" || got.Service != nil || string(got.CABundle) != "another" {
		t.Errorf("after the second time: %+v", got)
	}
}

// TestReachedByURL starts with the shipped configurations, which name the Service. Then the webhook registers a URL instead.
func TestReachedByURL(t *testing.T) {
	data, err := os.ReadFile("../deploy/webhook/configurations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// An apply does not remove fields of another manager. The API server refuses a webhook with both a service and a URL.
	c := fakeClient(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
		opts ...client.ApplyOption,
	) error {
		mutating, validating := configurations(t, c, "celsius")
		text, err := json.Marshal(o)
		of := mutating.Webhooks[0].ClientConfig
		if bytes.Contains(text, []byte("ValidatingWebhookConfiguration")) {
			of = validating.Webhooks[0].ClientConfig
		}
		if err == nil && of.Service != nil && bytes.Contains(text, []byte(`"url":`)) {
			return apierrors.NewInvalid(admissionregistrationv1.SchemeGroupVersion.WithKind("WebhookConfiguration").GroupKind(), "celsius", nil)
		}
		return errors.Join(err, c.Apply(ctx, o, opts...))
	}})
	first, second, _ := strings.Cut(string(data), "\n---\n")
	for text, object := range map[string]client.Object{
		first:  &admissionregistrationv1.MutatingWebhookConfiguration{},
		second: &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		if err := sigsyaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), object, client.FieldOwner("kubectl")); err != nil {
			t.Fatal(err)
		}
	}
	s := testServer(t, Options{URLHost: "127.0.0.1:8443"}, c)
	for range 2 {
		if err := s.register(t.Context(), []byte("a bundle")); err != nil {
			t.Fatal(err)
		}
	}
	mutating, validating := configurations(t, c, "celsius")
	if len(mutating.Webhooks) != 3 || len(validating.Webhooks) != 10 ||
		*validating.Webhooks[0].ClientConfig.URL != "https://127.0.0.1:8443/jobs/validate" {
		t.Errorf("%d and %d webhooks: %+v", len(mutating.Webhooks), len(validating.Webhooks), validating.Webhooks[0].ClientConfig)
	}
}

// TestTrustedBeforeServed checks that the server uses a new certificate only after the API server trusts it.
func TestTrustedBeforeServed(t *testing.T) {
	refused := true
	c := fakeClient(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
		opts ...client.ApplyOption,
	) error {
		if refused {
			return errors.New("not now")
		}
		return c.Apply(ctx, o, opts...)
	}})
	s := testServer(t, Options{}, c)
	if _, err := s.loadCertificate(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := s.serving.Load()
	if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "celsius-system", Name: secretName}}); err != nil {
		t.Fatal(err)
	}
	if err := s.refresh(t.Context()); err == nil || s.serving.Load() != first {
		t.Errorf("the certificate was changed, though its CA could not be told: %v", err)
	}
	refused = false
	if err := s.refresh(t.Context()); err != nil || s.serving.Load() == first {
		t.Errorf("the certificate was not changed: %v", err)
	}
}

// TestReplicasShare starts two replicas at the same time. The slower one must use the certificate of the faster one.
func TestReplicasShare(t *testing.T) {
	var faster func()
	c := fakeClient(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
		opts ...client.CreateOption,
	) error {
		if do := faster; do != nil {
			faster = nil
			do()
		}
		return c.Create(ctx, o, opts...)
	}})
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var others []byte
	faster = func() {
		_, bundle, err := (&certSecret{client: c, namespace: "ns"}).load(t.Context(), now, []string{"a.svc"})
		if err != nil {
			t.Error(err)
		}
		others = bundle
	}
	_, bundle, err := (&certSecret{client: c, namespace: "ns"}).load(t.Context(), now, []string{"a.svc"})
	if err != nil || !bytes.Equal(bundle, others) || len(bundle) == 0 {
		t.Errorf("the slower has made an authority of its own: %v", err)
	}
}

// TestNobodySignsAnother checks that no process can sign another certificate with the stored data: neither the replicas, nor readers
// of the Secrets.
func TestNobodySignsAnother(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{})
	if _, _, err := (&certSecret{client: c, namespace: "ns"}).load(t.Context(), time.Now(), []string{"a.svc"}); err != nil {
		t.Fatal(err)
	}
	var secrets corev1.SecretList
	if err := c.List(t.Context(), &secrets); err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d Secrets, %v", len(secrets.Items), err)
	}
	held := secrets.Items[0].Data
	if diff := cmp.Diff([]string{"ca.crt", "tls.crt", "tls.key"}, sorted(held)); diff != "" {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
	if _, err := tls.X509KeyPair(held["ca.crt"], held["tls.key"]); err == nil {
		t.Error("the key is the authority's")
	}
	if pair, err := tls.X509KeyPair(held["tls.crt"], held["tls.key"]); err != nil || pair.Leaf.IsCA ||
		pair.Leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Errorf("what is served with may sign (%v)", err)
	}
}

// TestShippedConfigurations compares the registration in deploy with the one that the webhook writes, without the authority. The webhook
// may patch the shipped objects and may create nothing. -update writes the file again.
func TestShippedConfigurations(t *testing.T) {
	const file = "../deploy/webhook/configurations.yaml"
	c := fakeClient(t, interceptor.Funcs{})
	if err := testServer(t, Options{}, c).register(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	mutating, validating := configurations(t, c, "celsius")
	got := "# Whom the API server asks before it stores. Written by go test ./webhook -update. The webhook writes caBundle, by which it is\n" +
		"# known, when it comes; until then, and whenever nobody answers, what is asked about is not taken.\n"
	for _, o := range []client.Object{mutating, validating} {
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		gvk, err := c.GroupVersionKindFor(o)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		text, err := sigsyaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		got += "---\n" + string(text)
	}
	got = strings.Replace(got, "\n---\n", "\n", 1)
	if updating() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the webhook writes: go test ./webhook -update (-file +written)\n%s", file, diff)
	}
}

func TestCertDir(t *testing.T) {
	dir := t.TempDir()
	made, err := certificates{}.renew(time.Now(), []string{"a.svc"})
	if err != nil {
		t.Fatal(err)
	}
	source := newCertSource(Options{CertDir: dir}, nil)
	if _, _, err := source.load(t.Context(), time.Now(), nil); err == nil {
		t.Error("an empty folder was taken")
	}
	for name, data := range map[string][]byte{"tls.crt": made.cert, "tls.key": made.key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, bundle, err := source.load(t.Context(), time.Now(), nil)
	if err != nil || pair == nil || bundle != nil || source.shared() {
		t.Errorf("without ca.crt: %v, bundle %q", err, bundle)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), made.bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, bundle, err = source.load(t.Context(), time.Now(), nil); err != nil || !bytes.Equal(bundle, made.bundle) {
		t.Errorf("with ca.crt: %v", err)
	}
}
