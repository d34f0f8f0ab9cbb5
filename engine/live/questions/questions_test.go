package questions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// cycleOf returns a cycle of a small cluster: jobs a/one and b/two wait in queue q for more than its only node has.
func cycleOf(t *testing.T) *explain.Cycle {
	t.Helper()
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	c := model.NewCluster(model.Options{Volumes: volume.New, SchedulerNames: []string{"celsius"}})
	amounts := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	objects := []any{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: corev1.NodeStatus{
				Allocatable: amounts, Capacity: amounts, Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}},
			},
		},
		&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1beta1.QueueSpec{Weight: 1}},
	}
	for namespace, name := range map[string]string{"a": "one", "b": "two"} {
		created := metav1.NewTime(now.Add(-time.Duration(len(namespace+name)) * time.Minute))
		objects = append(objects, &v1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: created},
			Spec:       v1beta1.PodGroupSpec{MinMember: 1, Queue: "q"},
			Status:     v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupInqueue},
		}, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name + "-0", UID: "uid", CreationTimestamp: created,
				Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4")}},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		})
	}
	for _, o := range objects {
		if errs := c.Apply(model.Delta{Op: model.Upsert, Object: o}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	var d engine.Decider
	plan := d.Decide(c, p, now)
	if len(plan.Waits) == 0 {
		t.Fatal("nobody waits")
	}
	return explain.New(d.Session(), plan)
}

// known authenticates by the header X-Remote-User. A user may get, and for questions create, the listed resources, as RESOURCE or
// NAMESPACE/RESOURCE.
type known map[string][]string

func (known) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	name := r.Header.Get("X-Remote-User")
	return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
}

func (k known) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	want := "get"
	if strings.HasSuffix(a.GetResource(), WhatIfs) {
		want = "create"
	}
	if a.GetVerb() != want || a.GetAPIGroup() != Group {
		return authorizer.DecisionNoOpinion, "", errors.New("it asks for something else")
	}
	rights := k[a.GetUser().GetName()]
	if slices.Contains(rights, a.GetResource()) || slices.Contains(rights, a.GetNamespace()+"/"+a.GetResource()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// TestAnswers asks as users with different rights, and checks what the answers contain and omit.
func TestAnswers(t *testing.T) {
	x := cycleOf(t)
	s := &Server{Ask: func(_ context.Context, look func(*explain.Cycle)) error {
		x.Sees = nil
		look(x)
		return nil
	}, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`"celsius_cycles_total 1"`)) })}
	users := known{"admin": {"jobs", "pods", "queues", "nodes", "metrics"}, "ann": {"a/jobs", "a/pods", "queues"}}
	h := s.handler(&gate{users, users})
	for _, test := range []struct {
		name, user, path string
		code             int
		says, hides      string
	}{
		{"one's own job", "ann", Path("job", "a", "one"), 200, "it asks for cpu 4 and can never fit", "two"},
		{"one's own pod", "ann", Path("pod", "a", "one-0"), 200, "queue.deserved {cpu 2", "two"},
		{"another's job", "ann", Path("job", "b", "two"), 403, "must be allowed to get jobs.explain.celsius.dev", "cpu"},
		{"a queue of which one sees a part", "ann", Path("queue", "", "q"), 200, "and 1 job of other namespaces", "two"},
		{"a queue of which one sees all", "admin", Path("queue", "", "q"), 200, "b/two", "other namespaces"},
		{"a node", "admin", Path("node", "", "n1"), 200, "a/one and b/two", ""},
		{"a node that one may not see", "ann", Path("node", "", "n1"), 403, "nodes.explain.celsius.dev", ""},
		{"nobody", "", Path("job", "a", "one"), 401, "it is not known who asks", "cpu"},
		{"no such job", "ann", Path("job", "a", "ones"), 404, "there is no job a/ones; did you mean a/one?", ""},
		{"a name of another namespace is no hint", "ann", Path("job", "a", "two"), 404, "there is no job a/two", "b/two"},
		{"no such resource", "admin", "/apis/explain.celsius.dev/v1alpha1/services/x", 404, "there are jobs and pods in namespaces", ""},
		{"a queue is in no namespace", "admin", "/apis/explain.celsius.dev/v1alpha1/namespaces/a/queues/q", 404, "queues and nodes", ""},
		{"what is counted", "admin", MetricsPath, 200, "celsius_cycles_total", ""},
		{"what is counted, for somebody else", "ann", MetricsPath, 403, "must be allowed to get metrics.explain.celsius.dev", "celsius_cycles"},
		{"what is counted, for nobody", "", MetricsPath, 401, "it is not known who asks", "celsius_cycles"},
		{"discovery", "", "/apis/explain.celsius.dev/v1alpha1", 200, `"name":"jobs","singularName":"job","namespaced":true`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil)
			r.Header.Set("X-Remote-User", test.user)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != test.code || !strings.Contains(body, test.says) || test.hides != "" && strings.Contains(body, test.hides) {
				t.Errorf("%s answers %d\n%s\nwant %d, %q and not %q", test.path, w.Code, body, test.code, test.says, test.hides)
			}
			if !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s is no JSON", body)
			}
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path("job", "a", "one"), nil)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered with %d", w.Code)
	}
	r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path("job", "a", "one"), nil)
	r.Header.Set("X-Remote-User", "ann")
	r.Header.Set("Accept", "text/plain")
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.HasPrefix(w.Body.String(), "job a/one\n  cause  the pod requests cpu 4, but the largest node has 2: ") {
		t.Errorf("as text it is\n%s", w.Body)
	}
}

// TestWhatIf asks what-if questions as users with different rights.
func TestWhatIf(t *testing.T) {
	x := cycleOf(t)
	s := &Server{Ask: func(_ context.Context, look func(*explain.Cycle)) error {
		x.Sees = nil
		look(x)
		return nil
	}}
	users := known{"admin": {"jobs", ClusterWhatIfs}, "ann": {"a/" + WhatIfs}}
	h := s.handler(&gate{users, users})
	job := func(namespace, cpu string) string {
		return `{"add":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"` + namespace + `","name":"new"},` +
			`"spec":{"queue":"q","tasks":[{"name":"w","replicas":1,"template":{"spec":{"schedulerName":"celsius","containers":[` +
			`{"name":"c","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}}]}}]}`
	}
	for _, test := range []struct {
		name, user, path, body string
		code                   int
		says, hides            string
	}{
		{"a job that would start", "ann", WhatIfPath("a"), job("a", "1"), 200, "would start now: 1 pod of 1\n  NODE  PODS\n  n1 ", "two"},
		{"a job that never could", "ann", WhatIfPath("a"), job("a", "9"), 200, "job a/new could never start", "b/two"},
		{"a job would be gone", "ann", WhatIfPath("a"), `{"delete":["one"]}`, 200, "nothing else would be decided otherwise", "two"},
		{"more nodes", "admin", WhatIfPath(""), `{"copies":[{"count":1,"like":"n1"}]}`, 200, "nothing else would be decided otherwise", ""},
		{"nobody", "", WhatIfPath("a"), job("a", "1"), 401, "it is not known who asks", "n1"},
		{"in another namespace", "ann", WhatIfPath("b"), job("b", "1"), 403, "must be allowed to create whatifs.explain.celsius.dev", "n1"},
		{"about the cluster", "ann", WhatIfPath(""), `{"copies":[{"count":1,"like":"n1"}]}`, 403, "create clusterwhatifs", "n1"},
		{"nodes within a namespace", "ann", WhatIfPath("a"), `{"copies":[{"count":1,"like":"n1"}]}`, 400, "are the cluster's", ""},
		{"a job of another namespace", "ann", WhatIfPath("a"), job("b", "1"), 400, `is of namespace \"b\", and the question of a`, ""},
		{"a node within a namespace", "ann", WhatIfPath("a"), `{"add":[{"apiVersion":"v1","kind":"Node"}]}`, 400, "not about v1 Node", ""},
		{"a job that is there", "ann", WhatIfPath("a"), `{"add":[{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup",` +
			`"metadata":{"namespace":"a","name":"one"}}]}`, 200, "job a/one would wait", ""},
		{"a name of another namespace is no hint", "ann", WhatIfPath("a"), `{"delete":["two"]}`, 404, "there is no job a/two", "b/two"},
		{"no such node", "admin", WhatIfPath(""), `{"copies":[{"count":1,"like":"n2"}]}`, 404, "did you mean n1?", ""},
		{"too many nodes", "admin", WhatIfPath(""), `{"copies":[{"count":99999,"like":"n1"}]}`, 400, "write a number from 1 to 10000", ""},
		{"too many pods", "ann", WhatIfPath("a"), strings.Replace(job("a", "1"), `"replicas":1`, `"replicas":200000`, 1), 400, "20000 pods", ""},
		{"a policy that is wrong", "admin", WhatIfPath(""), `{"policy":{"apiVersion":"scheduling.celsius.dev/v1alpha1",` +
			`"kind":"SchedulingPolicy","metadata":{"name":"p"},"spec":{"pipeline":["alocate"]}}}`, 400, "did you mean", ""},
		{"no JSON", "ann", WhatIfPath("a"), `{`, 400, "read the question", ""},
		{"too long", "ann", WhatIfPath("a"), strings.Repeat(" ", mostQuestion+1), 413, "has at most", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.path, strings.NewReader(test.body))
			r.Header.Set("X-Remote-User", test.user)
			if test.code == http.StatusOK {
				r.Header.Set("Accept", "text/plain")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != test.code || !strings.Contains(body, test.says) || test.hides != "" && strings.Contains(body, test.hides) {
				t.Errorf("%s answers %d\n%s\nwant %d, %q and not %q", test.path, w.Code, body, test.code, test.says, test.hides)
			}
			if wrong := x.Session.Cluster().Check(); wrong != nil {
				t.Errorf("the cluster afterwards: %v", wrong)
			}
		})
	}
	if n := len(x.Session.Cluster().Tasks); n != 2 {
		t.Errorf("the cluster has %d pods afterwards, want 2", n)
	}
}

func TestOptionsCheck(t *testing.T) {
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{Address: "0"}, ""},
		{Options{Address: ":8443", Host: "10.0.0.1"}, ""},
		{Options{Address: ":8443"}, "without an explain host"},
		{Options{Address: "8443", Host: "x"}, "write it as host:port"},
	} {
		err := test.o.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
}

// TestCheckAddress corrects addresses as the messages state.
func TestCheckAddress(t *testing.T) {
	for _, c := range []struct {
		o      Options
		remedy string
		fixed  []Options
	}{
		{Options{Address: "8443", Host: "10.0.0.1"}, "write it as host:port, or :8443", []Options{
			{Address: "localhost:8443", Host: "10.0.0.1"}, {Address: ":8443", Host: "10.0.0.1"},
		}},
		{Options{Address: ":8443"}, "give the IP, or the name, by which the API server reaches this scheduler", []Options{
			{Address: ":8443", Host: "10.0.0.1"}, {Address: ":8443", Host: "celsius-scheduler.celsius-system.svc"},
		}},
	} {
		if err := c.o.Check(); err == nil || !strings.HasSuffix(err.Error(), c.remedy) {
			t.Errorf("%+v: %v, want the remedy %q", c.o, err, c.remedy)
		}
		for _, fixed := range c.fixed {
			if err := fixed.Check(); err != nil {
				t.Errorf("after the remedy %q: %v", c.remedy, err)
			}
		}
	}
}

// TestQuestionsOfTheCluster asks about nodes and policies in a namespace, and then as the message states.
func TestQuestionsOfTheCluster(t *testing.T) {
	for _, question := range []string{`{"copies":[{"of":"n1","count":1}]}`, `{"policy":{"metadata":{"name":"p"}}}`} {
		const remedy = "ask " + ClusterWhatIfs + " about them"
		if _, err := changeOf([]byte(question), "team"); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v, want the remedy %q", question, err, remedy)
		}
		if _, err := changeOf([]byte(question), ""); err != nil && strings.Contains(err.Error(), remedy) {
			t.Errorf("%s, asked about the cluster: %v", question, err)
		}
	}
}
