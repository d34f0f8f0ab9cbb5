package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// asked is a request as the API server received it.
type asked struct {
	Path, Query, Type, Accept, Agent, Authorization string
	Binding                                         *corev1.Binding
}

// bindServer answers each request with its next answer, and repeats the last one.
type bindServer struct {
	t       *testing.T
	answers []http.HandlerFunc
	asked   []asked
}

func (s *bindServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	o, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		s.t.Errorf("the body of a request: %v", err)
	}
	b, _ := o.(*corev1.Binding)
	h := r.Header
	s.asked = append(s.asked, asked{
		r.URL.Path, r.URL.RawQuery, h.Get("Content-Type"), h.Get("Accept"), h.Get("User-Agent"),
		h.Get("Authorization"), b,
	})
	s.answers[min(len(s.asked), len(s.answers))-1](w, r)
}

func answerOf(code int, mediaType string, o runtime.Object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		info, _ := runtime.SerializerInfoForMediaType(clientscheme.Codecs.SupportedMediaTypes(), mediaType)
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(code)
		_ = clientscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(o, w)
	}
}

func text(code int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func testOrder() *order {
	o := &order{policy: "default@3", namespace: "team", name: "a"}
	o.Bind = model.Bind{Task: "team/a", UID: "uid-1", Node: "n1", GPUs: []int{0, 2}}
	return o
}

// testPods returns a pod client for a config, with a lease of 15 s or without one.
func testPods(t testing.TB, cfg *rest.Config, led bool) corePods {
	t.Helper()
	var l *lease.Lease
	if led {
		times, err := lease.Times{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		if l, err = lease.New(cfg, "system", "scheduler", times); err != nil {
			t.Fatal(err)
		}
	}
	w, err := newWrites(cfg, l)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newCorePods(w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The sent requests, and the results for each response, are those of client-go.
func TestPostsAsClientGo(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods/binding"), "a", errUnderneath).Status()
	missing := apierrors.NewNotFound(corev1.Resource("pods"), "a").Status()
	timeout := apierrors.NewTimeoutError("it took too long", 0).Status()
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
	}{
		{"bound", []http.HandlerFunc{answerOf(201, runtime.ContentTypeProtobuf, &metav1.Status{Status: metav1.StatusSuccess, Code: 201})}},
		{"bound, in JSON", []http.HandlerFunc{answerOf(201, runtime.ContentTypeJSON, &metav1.Status{Status: metav1.StatusSuccess, Code: 201})}},
		{"conflict", []http.HandlerFunc{answerOf(409, runtime.ContentTypeProtobuf, &conflict)}},
		{"conflict, in JSON", []http.HandlerFunc{answerOf(409, runtime.ContentTypeJSON, &conflict)}},
		{"gone", []http.HandlerFunc{answerOf(404, runtime.ContentTypeProtobuf, &missing)}},
		{"timeout", []http.HandlerFunc{answerOf(504, runtime.ContentTypeProtobuf, &timeout)}},
		{"no status", []http.HandlerFunc{text(500, "", "it broke")}},
		{"a proxy's page", []http.HandlerFunc{text(503, "", "<html>no upstream</html>")}},
		{"forbidden without a status", []http.HandlerFunc{text(403, "", "")}},
		{"too many, and then bound", []http.HandlerFunc{
			text(429, "0", "later"), text(429, "0", "later"),
			answerOf(201, runtime.ContentTypeProtobuf, &metav1.Status{Status: metav1.StatusSuccess}),
		}},
		{"too many without a time", []http.HandlerFunc{text(429, "", "later")}},
		{"too many for ever", []http.HandlerFunc{text(429, "0", "later")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			type outcome struct {
				Asked  []asked
				Reason metav1.StatusReason
				Code   int32
				OK     bool
			}
			try := func(led bool, bind func(corePods) error) outcome {
				server := &bindServer{t: t, answers: c.answers}
				http := httptest.NewServer(server)
				defer http.Close()
				cfg := &rest.Config{Host: http.URL, BearerToken: "secret", UserAgent: "celsius/test"}
				err := bind(testPods(t, cfg, led))
				out := outcome{Asked: server.asked, Reason: apierrors.ReasonForError(err), OK: err == nil}
				var status apierrors.APIStatus
				if errors.As(err, &status) {
					out.Code = status.Status().Code
				}
				return out
			}
			for _, led := range []bool{false, true} {
				want := try(led, func(p corePods) error {
					return p.client.Pods("team").Bind(t.Context(), testOrder().binding(), metav1.CreateOptions{FieldManager: FieldManager})
				})
				got := try(led, func(p corePods) error { return p.Bind(t.Context(), testOrder().binding()) })
				if len(want.Asked) == 0 || want.Asked[0].Binding == nil || want.Asked[0].Authorization == "" {
					t.Fatalf("the server saw nothing: %+v", want)
				}
				if led != strings.Contains(want.Asked[0].Query, "timeout=5s") {
					t.Errorf("with a lease of 15 s: %t; the query is %s", led, want.Asked[0].Query)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("with a lease: %t (-client-go +ours):\n%s", led, diff)
				}
			}
		})
	}
}

func TestPostEnds(t *testing.T) {
	server := &bindServer{t: t, answers: []http.HandlerFunc{text(429, fmt.Sprint(int(time.Hour.Seconds())), "in an hour")}}
	h := httptest.NewServer(server)
	p := testPods(t, &rest.Config{Host: h.URL}, false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Bind(ctx, testOrder().binding()); !apierrors.IsTooManyRequests(err) {
		t.Errorf("%v, want what the server said", err)
	}
	h.Close()
	var status apierrors.APIStatus
	if err := p.Bind(t.Context(), testOrder().binding()); err == nil || errors.As(err, &status) {
		t.Errorf("without a server: %v", err)
	}
}

// BenchmarkBind measures a Binding from its order to the end of its response, including the work of a server that does nothing.
func BenchmarkBind(b *testing.B) {
	status := answerOf(http.StatusCreated, runtime.ContentTypeProtobuf, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		status(w, r)
	}))
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	cfg := &rest.Config{Host: h.URL, BearerToken: "secret", QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	p, led := testPods(b, cfg, false), testPods(b, cfg, true)
	for _, by := range []struct {
		name string
		bind func() error
	}{
		{"post, with a lease", func() error { return led.Bind(b.Context(), testOrder().binding()) }},
		{"client-go", func() error {
			return p.client.Pods("team").Bind(b.Context(), testOrder().binding(), metav1.CreateOptions{FieldManager: FieldManager})
		}},
		{"post", func() error { return p.Bind(b.Context(), testOrder().binding()) }},
	} {
		b.Run(by.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := by.bind(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
