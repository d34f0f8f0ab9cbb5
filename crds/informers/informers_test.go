package informers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds/informers"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// storedGroup is a PodGroup as the API server has it; what asks for cpu is not looked at.
func storedGroup(name, cpu string, version int) string {
	return fmt.Sprintf(
		`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup",`+
			`"metadata":{"namespace":"default","name":%q,"uid":"uid-%s","resourceVersion":"%d"},`+
			`"spec":{"minMember":1,"minResources":{"cpu":%q}}}`, name, name, version, cpu)
}

// api serves PodGroups, by a stream of initial events or by lists of two items a page.
type api struct {
	lists   bool // it does not know initial events
	mu      sync.Mutex
	version int
	objects map[string]string
	order   []string
	events  []string
	more    chan struct{} // closed at each event
}

func newAPI(t *testing.T, lists bool) (*api, *rest.Config) {
	a := &api{lists: lists, version: 1, objects: map[string]string{}, more: make(chan struct{})}
	server := httptest.NewServer(a)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return a, &rest.Config{Host: server.URL, QPS: -1}
}

// put stores a PodGroup; cpu "" deletes it.
func (a *api) put(name, cpu string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	kind := "MODIFIED"
	switch _, there := a.objects[name]; {
	case cpu == "":
		kind = "DELETED"
	case !there:
		kind, a.order = "ADDED", append(a.order, name)
	}
	if cpu != "" {
		a.objects[name] = storedGroup(name, cpu, a.version)
	}
	a.events = append(a.events, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, a.objects[name]))
	if cpu == "" {
		delete(a.objects, name)
		a.order = slices.DeleteFunc(a.order, func(n string) bool { return n == name })
	}
	close(a.more)
	a.more = make(chan struct{})
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "":
		a.list(w, q.Get("continue"))
	case q.Get("sendInitialEvents") == "true" && a.lists:
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"details":{"causes":[]}}`)
	default:
		a.watch(w, r, q.Get("sendInitialEvents") == "true")
	}
}

func (a *api) list(w http.ResponseWriter, from string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, _ := strconv.Atoi(from)
	last, next := min(first+2, len(a.order)), ""
	if last < len(a.order) {
		next = strconv.Itoa(last)
	}
	var items []string
	for _, name := range a.order[first:last] {
		items = append(items, a.objects[name])
	}
	_, _ = fmt.Fprintf(w,
		`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroupList","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
		a.version, next, strings.Join(items, ","))
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	a.mu.Lock()
	at := len(a.events)
	if initial {
		for _, name := range a.order {
			_, _ = fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", a.objects[name])
		}
		_, _ = fmt.Fprintf(w,
			`{"type":"BOOKMARK","object":{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup",`+
				`"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{}}}`+"\n", a.version)
	}
	for {
		for ; at < len(a.events); at++ {
			_, _ = fmt.Fprintln(w, a.events[at])
		}
		more := a.more
		a.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-more:
			a.mu.Lock()
		}
	}
}

// seen is what one watcher was told.
type seen struct {
	mu     sync.Mutex
	there  map[string]bool
	logged []string
	told   []string
}

func (s *seen) note(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// follow watches PodGroups until the test ends.
func follow(t *testing.T, cfg *rest.Config) (*seen, *informers.Informers, prometheus.Gatherer) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1beta1.GroupVersion})
	mapper.Add(v1beta1.GroupVersion.WithKind("PodGroup"), meta.RESTScopeNamespace)
	s, registry := &seen{there: map[string]bool{}}, prometheus.NewRegistry()
	log := funcr.New(func(_, args string) { s.note(func() { s.logged = append(s.logged, args) }) }, funcr.Options{})
	o := cache.Options{Scheme: scheme, Mapper: mapper}
	i, err := informers.New(cfg, o, log, registry)
	if err != nil {
		t.Fatal(err)
	}
	i.Tell(func(o client.Object, why string) { s.note(func() { s.told = append(s.told, o.GetName()+": "+why) }) })
	c, err := i.Cache(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	informer, err := c.GetInformer(ctx, &v1beta1.PodGroup{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	name := func(o any) string { return o.(*v1beta1.PodGroup).Name }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.note(func() { s.there[name(o)] = true }) },
		UpdateFunc: func(_, o any) { s.note(func() { s.there[name(o)] = true }) },
		DeleteFunc: func(o any) { s.note(func() { delete(s.there, name(o)) }) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); _ = c.Start(ctx) }()
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !c.WaitForCacheSync(within) {
		t.Fatal("the cache did not fill")
	}
	return s, i, registry
}

// await waits until exactly these are there.
func (s *seen) await(t *testing.T, want ...string) {
	t.Helper()
	var diff string
	for range 1000 {
		s.note(func() {
			got := []string{}
			for name := range s.there {
				got = append(got, name)
			}
			slices.Sort(got)
			diff = cmp.Diff(want, got)
		})
		if diff == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("PodGroups that are seen (-want +got):\n%s", diff)
}

// leftOutCount reads the gauge.
func leftOutCount(t *testing.T, g prometheus.Gatherer) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "celsius_undecodable_objects" || len(families[0].Metric) != 1 {
		t.Fatalf("gathered %v, %v", families, err)
	}
	return families[0].Metric[0].GetGauge().GetValue()
}

// TestLeftOut breaks objects before a watch begins and while it goes on, and mends them.
func TestLeftOut(t *testing.T) {
	for _, lists := range []bool{false, true} {
		t.Run(map[bool]string{false: "initial events", true: "pages"}[lists], func(t *testing.T) {
			a, cfg := newAPI(t, lists)
			for i, cpu := range []string{"1", "1e1.5", "2", "1e-99999999", "3"} {
				a.put(string(rune('a'+i)), cpu)
			}
			s, i, registry := follow(t, cfg)
			s.await(t, "a", "c", "e")
			b := &v1beta1.PodGroup{}
			b.Namespace, b.Name = "default", "b"
			if err := i.LeftOut(b); err == nil ||
				!strings.Contains(err.Error(), `spec.minResources[cpu]: Invalid value: "1e1.5": must be a quantity`) {
				t.Errorf("why b is left out: %v", err)
			}

			a.put("a", "banana")
			s.await(t, "c", "e")
			a.put("f", "4")
			s.await(t, "c", "e", "f")
			a.put("a", "1")
			a.put("b", "1")
			s.await(t, "a", "b", "c", "e", "f")
			if err := i.LeftOut(b); err != nil {
				t.Errorf("b was mended, and is left out still: %v", err)
			}
			if got, want := leftOutCount(t, registry), 1.0; got != want {
				t.Errorf("the gauge has %v, want %v", got, want)
			}
			a.put("d", "")
			a.put("c", "")
			s.await(t, "a", "b", "e", "f")
			if got, want := leftOutCount(t, registry), 0.0; got != want {
				t.Errorf("the gauge has %v, want %v", got, want)
			}
			s.note(func() {
				if len(s.logged) != 3 || len(s.told) != 3 {
					t.Errorf("want a log line and an event for each of b, d and a:\n%s\n%s", strings.Join(s.logged, "\n"), strings.Join(s.told, "\n"))
				}
			})
		})
	}
}

// TestEndsAndBeginsAgain has a watch broken off: what is left out then is told of once a version.
func TestEndsAndBeginsAgain(t *testing.T) {
	a, cfg := newAPI(t, true)
	a.put("a", "1")
	a.put("b", "banana")
	s, i, _ := follow(t, cfg)
	s.await(t, "a")
	a.mu.Lock()
	a.events = append(a.events,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	close(a.more)
	a.more = make(chan struct{})
	a.mu.Unlock()
	a.put("c", "1")
	s.await(t, "a", "c")
	s.note(func() {
		if len(s.logged) != 1 {
			t.Errorf("want one log line:\n%s", strings.Join(s.logged, "\n"))
		}
	})
	b := &v1beta1.PodGroup{}
	b.Namespace, b.Name = "default", "b"
	if i.LeftOut(b) == nil {
		t.Error("b is not left out after the second list")
	}
	list := &v1beta1.PodGroupList{}
	if err := i.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("List gives %d items and %v, want a, of a page of a and b", len(list.Items), err)
	}
}

// BenchmarkList is the list of 10,000 PodGroups through a client that decodes the list as a whole, and through ours.
func BenchmarkList(b *testing.B) {
	const n = 10000
	var items []json.RawMessage
	for i := range n {
		items = append(items, json.RawMessage(storedGroup(fmt.Sprintf("group-%05d", i), "1", i)))
	}
	page, err := json.Marshal(map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroupList",
		"metadata": map[string]any{"resourceVersion": "1"}, "items": items,
	})
	if err != nil {
		b.Fatal(err)
	}
	broken := strings.Replace(string(page), `"cpu":"1"`, `"cpu":"x"`, 1)
	serve := func(page string) *rest.Config {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, page)
		}))
		b.Cleanup(server.Close)
		return &rest.Config{Host: server.URL, QPS: -1}
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1beta1.GroupVersion})
	mapper.Add(v1beta1.GroupVersion.WithKind("PodGroup"), meta.RESTScopeNamespace)
	run := func(name string, want int, list func(context.Context, client.ObjectList) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				into := &v1beta1.PodGroupList{}
				if err := list(b.Context(), into); err != nil || len(into.Items) != want {
					b.Fatalf("%d items, %v", len(into.Items), err)
				}
			}
		})
	}
	cfg := serve(string(page))
	plain, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		b.Fatal(err)
	}
	run("whole", n, func(ctx context.Context, l client.ObjectList) error { return plain.List(ctx, l) })
	for name, page := range map[string]string{"ours": string(page), "ours, one broken": broken} {
		cfg := serve(page)
		i, err := informers.New(cfg, cache.Options{Scheme: scheme, Mapper: mapper}, funcr.New(func(string, string) {}, funcr.Options{}),
			prometheus.NewRegistry())
		if err != nil {
			b.Fatal(err)
		}
		run(name, strings.Count(page, `"cpu":"1"`), i.List)
	}
}

// TestNamespace asks for one namespace where one is given, and refuses several.
func TestNamespace(t *testing.T) {
	paths := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case paths <- r.URL.Path:
		default:
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1beta1.GroupVersion})
	mapper.Add(v1beta1.GroupVersion.WithKind("PodGroup"), meta.RESTScopeNamespace)
	o := cache.Options{Scheme: scheme, Mapper: mapper, DefaultNamespaces: map[string]cache.Config{"team": {}}}
	i, err := informers.New(&rest.Config{Host: server.URL}, o, funcr.New(func(string, string) {}, funcr.Options{}), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Cache(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	if _, err := c.GetInformer(ctx, &v1beta1.PodGroup{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ended.Go(func() { _ = c.Start(ctx) })
	if got, want := <-paths, "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups"; got != want {
		t.Errorf("asked is %s, want %s", got, want)
	}
	o.DefaultNamespaces["other"] = cache.Config{}
	if _, err := i.Cache(o); err == nil || !strings.Contains(err.Error(), "give one, or none for all") {
		t.Errorf("two namespaces: %v", err)
	}
}
