package live

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// listed is an API server that only supports lists and watches, and counts requests.
type listed struct {
	forbid string // a resource that must not be listed

	mu      sync.Mutex
	asked   map[string]int                        // requests by verb and resource
	objects map[string]map[string]json.RawMessage // by resource and key
	events  map[string][]json.RawMessage          // the events, by resource
	news    chan struct{}                         // closed when there is a new event
}

// kindsListed contains its kinds, by group and version.
var kindsListed = map[string]map[string]string{
	"v1": {
		"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "resourcequotas": "ResourceQuota", "persistentvolumes": "PersistentVolume",
		"persistentvolumeclaims": "PersistentVolumeClaim",
	},
	"scheduling.volcano.sh/v1beta1": {"podgroups": "PodGroup", "queues": "Queue"},
	"batch.volcano.sh/v1alpha1":     {"jobs": "Job"},
	"scheduling.k8s.io/v1":          {"priorityclasses": "PriorityClass"},
	"policy/v1":                     {"poddisruptionbudgets": "PodDisruptionBudget"},
	"storage.k8s.io/v1": {
		"storageclasses": "StorageClass", "csinodes": "CSINode", "csidrivers": "CSIDriver", "csistoragecapacities": "CSIStorageCapacity",
		"volumeattachments": "VolumeAttachment",
	},
}

func newListed(t *testing.T) (*listed, *rest.Config) {
	t.Helper()
	l := &listed{
		asked: map[string]int{}, objects: map[string]map[string]json.RawMessage{}, events: map[string][]json.RawMessage{},
		news: make(chan struct{}),
	}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return l, &rest.Config{Host: server.URL, QPS: -1}
}

// put creates or changes an object.
func (l *listed) put(t *testing.T, resource string, o metav1.Object) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[resource] == nil {
		l.objects[resource] = map[string]json.RawMessage{}
	}
	key := model.Key(o.GetNamespace(), o.GetName())
	kind := "ADDED"
	if l.objects[resource][key] != nil {
		kind = "MODIFIED"
	}
	o.SetUID(types.UID("uid-" + key))
	o.SetResourceVersion(strconv.Itoa(len(l.events[resource]) + 1))
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for version, kinds := range kindsListed {
		if k := kinds[resource]; k != "" {
			text = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s`, version, k, text[1:])
		}
	}
	l.objects[resource][key] = text
	l.events[resource] = append(l.events[resource], fmt.Appendf(nil, `{"type":%q,"object":%s}`, kind, text))
	close(l.news)
	l.news = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (l *listed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, resource, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"), "/")
	if kindsListed[version] == nil {
		var more string
		more, resource, _ = strings.Cut(resource, "/")
		version += "/" + more
	}
	verb := r.Method
	watch := r.URL.Query().Has("watch")
	if watch {
		verb = "watch"
	}
	l.mu.Lock()
	l.asked[verb+" "+resource]++
	l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case r.URL.Path == "/apis":
		l.groups(w)
	case resource == "":
		l.resources(w, version)
	case resource == l.forbid:
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"%s is forbidden"}`, resource)
	case watch && r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case watch:
		l.watch(w, r, resource)
	default:
		l.list(w, version, resource)
	}
}

func (l *listed) groups(w io.Writer) {
	var out []string
	for version := range kindsListed {
		if group, v, ok := strings.Cut(version, "/"); ok {
			of := fmt.Sprintf(`{"groupVersion":%q,"version":%q}`, version, v)
			out = append(out, fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, group, of, of))
		}
	}
	_, _ = fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, strings.Join(out, ","))
}

func (l *listed) resources(w io.Writer, version string) {
	var out []string
	for name, kind := range kindsListed[version] {
		out = append(out, fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":false,"verbs":["list","watch"]}`, name, kind))
	}
	_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`, version, strings.Join(out, ","))
}

func (l *listed) list(w io.Writer, version, resource string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var items []string
	for _, text := range l.objects[resource] {
		items = append(items, string(text))
	}
	_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, kindsListed[version][resource],
		version, len(l.events[resource]), strings.Join(items, ","))
}

func (l *listed) watch(w http.ResponseWriter, r *http.Request, resource string) {
	at, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for {
		l.mu.Lock()
		events, news := l.events[resource][at:], l.news
		l.mu.Unlock()
		for _, e := range events {
			_, _ = w.Write(e)
		}
		at += len(events)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		}
	}
}

// TestBesideOnlyReads runs a shadow for 1,000 cycles while another scheduler binds pods. The shadow only sends lists and watches.
func TestBesideOnlyReads(t *testing.T) {
	t.Parallel()
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	l, cfg := newListed(t)
	l.put(t, "queues", testQueue("default"))
	for _, name := range []string{"n1", "n2"} {
		l.put(t, "nodes", testNode(name, "64"))
	}
	var bound int
	o := beside.Options{Policy: p, Cycles: 1000, Period: time.Millisecond, Grace: time.Hour, Cycled: func(x *beside.Shadow) {
		if r := x.Report(); r.Cycles%50 != 0 || r.Cycles == 1000 {
			return
		}
		name := fmt.Sprint("p", bound)
		bound++
		g, pod := testGroup(name, 1), volcanos(testPod(name, name, "1"))
		g.Status.Phase = "Pending"
		l.put(t, "podgroups", g)
		l.put(t, "pods", pod)
		pod = pod.DeepCopy()
		pod.Spec.NodeName = "n1"
		l.put(t, "pods", pod)
	}}
	r, err := Beside(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cycles < 1000 || r.Decisions != bound || r.Missed > 0 || bound < 10 {
		t.Errorf("%d cycles, %d decisions and %d missed of %d pods", r.Cycles, r.Decisions, r.Missed, bound)
	}
	if _, err := kubernetes.NewForConfigOrDie(beside.OnlyReads(cfg)).CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
	}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "a shadow writes nothing") {
		t.Errorf("a client that only reads may create a pod: %v", err)
	}
	l.checkAsked(t)
}

// checkAsked checks that all requests were lists, watches and discovery, for all kinds.
func (l *listed) checkAsked(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	lists, watches := 0, 0
	for _, what := range slices.Sorted(maps.Keys(l.asked)) {
		switch verb, resource, _ := strings.Cut(what, " "); {
		case verb == "watch":
			watches++
		case verb == http.MethodGet && resource != "":
			lists++
		case verb != http.MethodGet:
			t.Errorf("it was asked for %s %d times", what, l.asked[what])
		}
	}
	if lists < 15 || watches < 15 {
		t.Errorf("%d lists and %d watches: it does not look at all kinds", lists, watches)
	}
}

// A missing permission is reported at once, and not retried forever.
func TestBesideForbidden(t *testing.T) {
	t.Parallel()
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	l, cfg := newListed(t)
	l.forbid = "persistentvolumes"
	_, err := Beside(t.Context(), cfg, beside.Options{Policy: p, Cycles: 1})
	if err == nil || !strings.Contains(err.Error(), "persistentvolumes is forbidden") {
		t.Errorf("error %v", err)
	}
}
