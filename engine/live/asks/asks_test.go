package asks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// rig is an asker with a cluster of two nodes, a queue, and a job with one pod.
type rig struct {
	*Asker
	t      *testing.T
	c      *model.Cluster
	told   chan *extender.Answer
	mu     sync.Mutex
	logged []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, Options{}, nil)
}

func newRigOf(t *testing.T, o Options, m Meter) *rig {
	t.Helper()
	r := &rig{t: t, c: model.NewCluster(model.Options{}), told: make(chan *extender.Answer, 1000)}
	log := funcr.New(func(_, args string) {
		r.mu.Lock()
		r.logged = append(r.logged, args)
		r.mu.Unlock()
	}, funcr.Options{})
	r.Asker = New(o, func(op model.Op, a *extender.Answer) {
		if op == model.Upsert {
			r.told <- a
		}
	}, m, log)
	list := corev1.ResourceList{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "example.com/fpga": resource.MustParse("1"),
	}
	var deltas []model.Delta
	for _, name := range []string{"n1", "n2"} {
		deltas = append(deltas, model.Delta{Object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}, Status: corev1.NodeStatus{Allocatable: list},
		}})
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a", UID: "u", Annotations: map[string]string{
			model.GroupAnnotation: "g", corev1.LastAppliedConfigAnnotation: "hidden",
		}},
		Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{
			Name: "main", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hidden"}}, Args: []string{"hidden"},
			Resources: corev1.ResourceRequirements{Requests: list},
		}}},
	}
	group := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "a"}}
	group.Spec.Queue = "q"
	deltas = append(deltas, model.Delta{Object: &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}}}, model.Delta{Object: group},
		model.Delta{Object: pod})
	if errs := r.c.Apply(deltas...); errs != nil {
		t.Fatal(errs)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	return r
}

// about returns an ask of a form for an address.
func about(url, as string) extender.Ask {
	out := extender.Ask{URL: url, As: as, Timeout: 2 * time.Second, All: true, Of: extender.Subject{Kind: extender.Job, Job: "a/g"}}
	switch as {
	case extender.Predicate, extender.Prioritize:
		out.Of = extender.Subject{Kind: extender.Task, Job: "a/g", Role: "r", Like: "x"}
		out.Task, out.Nodes = "a/p", []string{"n1", "n2"}
	case extender.QueueOverused:
		out.Of = extender.Subject{Kind: extender.Queue, Queue: "q"}
	}
	return out
}

// one asks one question, adds the answer to the model, and returns it.
func (r *rig) one(ask extender.Ask) *extender.Answer {
	r.t.Helper()
	r.Ask(r.c, []extender.Ask{ask}, time.Now())
	select {
	case a := <-r.told:
		if errs := r.c.Apply(model.Delta{Object: a}); errs != nil {
			r.t.Fatalf("the model does not take the answer: %v", errs)
		}
		return a
	case <-time.After(20 * time.Second):
		r.t.Fatal("no answer was told")
		return nil
	}
}

// reply200 writes a response; the client may have disconnected.
func reply200(w http.ResponseWriter, text string) { _, _ = io.WriteString(w, text) }

// said returns an answer as text.
func said(a *extender.Answer) string {
	out := fmt.Sprint(a.Says, a.Error)
	for _, n := range a.Nodes {
		out += fmt.Sprintf(" %s@%s:%s%s%v", n.Name, n.Version, n.Refused, n.Error, n.Score)
	}
	return strings.TrimSpace(out)
}

// Each form is sent with the objects that Volcano's extenders expect, and their responses are read in the same way.
func TestForms(t *testing.T) {
	var bodies sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies.Store(r.URL.Path, string(body))
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
		answer := map[string]string{
			"/filter": `{}`, "/rate": `{"nodeScore": {"n1": 3.5, "elsewhere": 9}}`, "/permit": `{"status": 1}`, "/reject": `{"status": -1}`,
			"/abstain": `{"status": 0}`, "/ready": `{"status": true}`, "/overused": `{"overused": true}`,
		}[r.URL.Path]
		if r.URL.Path == "/filter" && strings.Contains(string(body), `"Name":"n1"`) {
			answer = `{"status": "no licence", "code": 2}`
		}
		reply200(w, answer)
	}))
	defer server.Close()
	r := newRig(t)
	for _, c := range []struct{ path, as, want string }{
		{"/filter", extender.Predicate, "n1@7:no licence0 n2@7:0"},
		{"/rate", extender.Prioritize, "n1@7:3.5 n2@7:0"},
		{"/permit", extender.JobEnqueueable, "permit"},
		{"/reject", extender.JobEnqueueable, "reject"},
		{"/abstain", extender.JobEnqueueable, "abstain"},
		{"/ready", extender.JobReady, "yes"},
		{"/overused", extender.QueueOverused, "yes"},
	} {
		if got := said(r.one(about(server.URL+c.path, c.as))); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
	bodies.Range(func(path, body any) bool {
		var read map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body.(string)), &read); err != nil || strings.Contains(body.(string), "hidden") {
			t.Errorf("%s was sent %s: %v", path, body, err)
		}
		return true
	})
	body, _ := bodies.Load("/rate")
	for _, part := range []string{`"task":{"UID":"u","Job":"a/g"`, `"MilliCPU":2000`, `"example.com/fpga":1000`, `"nodes":[{"Name":"n1"`} {
		if !strings.Contains(body.(string), part) {
			t.Errorf("%s lacks %s", body, part)
		}
	}
}

// The answer contains the failure: a server that is missing, too slow, too long, unreadable, or redirects.
func TestFailures(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fails":
			w.WriteHeader(http.StatusInternalServerError)
		case "/slow":
			<-done
		case "/long":
			_, _ = w.Write([]byte(`{"status": "` + strings.Repeat("x", mostBytes) + `"}`))
		case "/garbled":
			reply200(w, `{"status": tru`)
		case "/elsewhere":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/rate":
			reply200(w, `{"errorMessage": "no idea"}`)
		}
	}))
	defer server.Close()
	defer close(done)
	r := newRig(t)
	for _, c := range []struct{ url, as, want string }{
		{server.URL + "/fails", extender.JobReady, "answered 500 Internal Server Error, not 200"},
		{server.URL + "/fails", extender.Predicate, "n1@7:answered 500 Internal Server Error, not 2000 n2@7:answered 500"},
		{server.URL + "/slow", extender.Predicate, "did not answer within 100ms"},
		{server.URL + "/long", extender.JobEnqueueable, "answered with more than 1 MiB"},
		{server.URL + "/garbled", extender.JobReady, "answered what cannot be read: "},
		{server.URL + "/elsewhere", extender.JobReady, "answered 307 Temporary Redirect, not 200"},
		{server.URL + "/rate", extender.Prioritize, "n1@7:answered: no idea0 n2"},
		{"http://127.0.0.1:1/x", extender.JobReady, "could not be reached: "},
		{"file:///etc/passwd", extender.JobReady, `"file:///etc/passwd" is no address: `},
		{"x/y", extender.JobReady, `"x/y" is no address: `},
	} {
		ask := about(c.url, c.as)
		if strings.HasSuffix(c.url, "/slow") {
			ask.Timeout = 100 * time.Millisecond
		}
		if got := said(r.one(ask)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.url, got, c.want)
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// If only changed nodes are asked about, earlier answers remain for the others. A recovery is logged once, and so is a failure.
func TestAgain(t *testing.T) {
	var asked atomic.Int32
	var fails atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if fails.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		reply200(w, fmt.Sprintf(`{"status": "no %d"}`, asked.Load()))
	}))
	defer server.Close()
	r := newRig(t)
	ask := about(server.URL, extender.Predicate)
	first := r.one(ask)
	ask.All, ask.Nodes = false, []string{"n2"}
	second := r.one(ask)
	if asked.Load() != 3 || len(second.Nodes) != 2 || second.Nodes[0] != first.Nodes[0] || second.Nodes[1].Refused != "no 3" ||
		!second.At.Equal(&first.At) {
		t.Errorf("after %d requests %s at %s, first %s at %s", asked.Load(), said(second), second.At, said(first), first.At)
	}
	fails.Store(true)
	r.one(ask)
	r.one(ask)
	fails.Store(false)
	r.one(ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.logged) != 2 || !strings.Contains(r.logged[0], "502") || !strings.Contains(r.logged[1], "answers again") {
		t.Errorf("logged %q, want that it failed, and that it answers again", r.logged)
	}
}

// A question that is being asked is not asked twice. A question without capacity is dropped. Its subject may be gone.
func TestBounds(t *testing.T) {
	done := make(chan struct{})
	var under, most atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := under.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-done
		under.Add(-1)
		reply200(w, `{"status": true}`)
	}))
	defer server.Close()
	r := newRig(t)
	var asks []extender.Ask
	for i := range 1000 {
		ask := about(fmt.Sprint(server.URL, "/", i), extender.JobReady)
		ask.Timeout = time.Minute
		asks = append(asks, ask, ask)
	}
	gone := about(server.URL, extender.JobReady)
	gone.Of.Job = "a/gone"
	r.Ask(r.c, append([]extender.Ask{gone}, asks...), time.Now())
	for under.Load() < mostRequests {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	close(done)
	names := map[string]bool{}
	for range mostQuestions {
		select {
		case a := <-r.told:
			if names[a.Name] {
				t.Errorf("%s was asked twice", a.URL)
			}
			names[a.Name] = true
		case <-time.After(20 * time.Second):
			t.Fatal("no answer was told")
		}
	}
	if most.Load() > mostRequests {
		t.Errorf("%d requests at once", most.Load())
	}
}

// Answers that were not needed for long, or whose subject is gone or no longer waits, are forgotten.
func TestForgets(t *testing.T) {
	r := newRig(t)
	var told []string
	r.tell = func(op model.Op, x *extender.Answer) { told = append(told, fmt.Sprint(op, x.Name)) }
	now := time.Unix(1_700_000_000, 0)
	put := func(name string, age time.Duration, of extender.Subject) {
		x := &extender.Answer{ObjectMeta: metav1.ObjectMeta{Name: name}, At: metav1.NewTime(now.Add(-age)), Of: of}
		r.known[key{url: name, of: of}] = &known{Answer: x}
	}
	job, tasks := extender.Subject{Kind: extender.Job, Job: "a/g"}, extender.Subject{Kind: extender.Task, Job: "a/g"}
	put("job", 0, job)
	put("old", forgetAfter+time.Second, job)
	put("tasks", 0, tasks)
	put("queue", 0, extender.Subject{Kind: extender.Queue, Queue: "q"})
	put("gone", 0, extender.Subject{Kind: extender.Job, Job: "a/gone"})
	put("gone queue", 0, extender.Subject{Kind: extender.Queue, Queue: "gone"})
	r.Ask(r.c, nil, now)
	slices.Sort(told)
	want := []string{fmt.Sprint(model.Delete, "gone"), fmt.Sprint(model.Delete, "gone queue"), fmt.Sprint(model.Delete, "old")}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	told = nil
	pod := r.c.Tasks["a/p"].Object
	if errs := r.c.Apply(model.Delta{Op: model.Delete, Object: pod}); errs != nil {
		t.Fatal(errs)
	}
	r.Ask(r.c, nil, now.Add(sweepEvery))
	if want := []string{fmt.Sprint(model.Delete, "tasks")}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q: nobody waits", told, want)
	}
}
