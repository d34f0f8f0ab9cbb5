package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// patience is the time limit of an answer.
const patience = 20 * time.Second

// kindOf returns the type of object that a resource of the API explains; "": no such resource exists.
func kindOf(resource string) string {
	kind, plural := strings.CutSuffix(resource, "s")
	if !plural || !slices.Contains(explain.Kinds(), kind) {
		return ""
	}
	return kind
}

// Namespaced reports whether objects of this type have a namespace.
func Namespaced(kind string) bool { return kind == explain.Job || kind == explain.Pod }

// Path returns the path of an object's explanation.
func Path(kind, namespace, name string) string {
	at := "/apis/" + Group + "/" + Version
	if Namespaced(kind) {
		at += "/namespaces/" + namespace
	}
	return at + "/" + kind + "s/" + name
}

// Answer is an object of the API.
type Answer struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Metadata             `json:"metadata"`
	Explanation     *explain.Explanation `json:"explanation"`
}

// Metadata names the explained object.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// Metrics is the resource with the scheduler's metrics in Prometheus format, for clients of the API server that cannot reach the pod.
const Metrics = "metrics"

// MetricsPath is the path of this resource. It has a name, because the API server would treat a path without one as a list.
const MetricsPath = "/apis/" + Group + "/" + Version + "/" + Metrics + "/scheduler"

// question identifies one object.
type question struct{ resource, kind, namespace, name string }

// questionOf parses the path of a question; false: it is not one.
func questionOf(path string) (q question, ok bool) {
	rest, ok := strings.CutPrefix(path, "/apis/"+Group+"/"+Version+"/")
	if !ok {
		return q, false
	}
	parts := strings.Split(rest, "/")
	if len(parts) == 4 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 2 || parts[1] == "" {
		return q, false
	}
	q.resource, q.kind, q.name = parts[0], kindOf(parts[0]), parts[1]
	return q, q.kind != "" && Namespaced(q.kind) == (q.namespace != "")
}

// handler serves discovery and questions.
func (s *Server) handler(g *gate) http.Handler {
	mux := http.NewServeMux()
	for path, object := range discovery() {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, object) })
	}
	x := &turns{turn: make(chan struct{}, 1)}
	mux.HandleFunc("POST "+WhatIfPath(""), func(w http.ResponseWriter, r *http.Request) { s.askWhatIf(w, r, g, x, "") })
	mux.HandleFunc("POST "+WhatIfPath("{namespace}"), func(w http.ResponseWriter, r *http.Request) {
		s.askWhatIf(w, r, g, x, r.PathValue("namespace"))
	})
	mux.HandleFunc("GET "+MetricsPath, func(w http.ResponseWriter, r *http.Request) { s.tellMetrics(w, r, g) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		q, ok := questionOf(r.URL.Path)
		switch {
		case !ok:
			refuse(w, notThere(schema.GroupResource{Group: Group}, "", "there are jobs and pods in namespaces, queues and nodes"))
			return
		case r.Method != http.MethodGet:
			refuse(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: Group, Resource: q.resource}, strings.ToLower(r.Method)))
			return
		}
		u := g.who(r)
		if u == nil {
			refuse(w, apierrors.NewUnauthorized("it is not known who asks"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		answer, err := s.answer(ctx, g, u, q, x)
		switch {
		case err != nil:
			refuse(w, statusOf(err))
		case wantsText(r):
			writeText(w, answer.Text)
		default:
			write(w, http.StatusOK, &Answer{
				metav1.TypeMeta{Kind: "Explanation", APIVersion: Group + "/" + Version}, Metadata{q.name, q.namespace}, answer,
			})
		}
	})
	return mux
}

// tellMetrics serves the scheduler's metrics.
func (s *Server) tellMetrics(w http.ResponseWriter, r *http.Request, g *gate) {
	resource := schema.GroupResource{Group: Group, Resource: Metrics}
	u := g.who(r)
	if u == nil {
		refuse(w, apierrors.NewUnauthorized("it is not known who asks"))
		return
	}
	switch ok, err := g.may(r.Context(), u, "get", Metrics, "", ""); {
	case err != nil:
		refuse(w, apierrors.NewInternalError(fmt.Errorf("ask what user %s may: %w", u.GetName(), err)))
	case !ok:
		refuse(w, apierrors.NewForbidden(resource, "", fmt.Errorf("user %s must be allowed to get %s", u.GetName(), resource)))
	default:
		s.Metrics.ServeHTTP(w, r)
	}
}

// turns answers one question at a time, and keeps computed data for what-if questions.
type turns struct {
	turn chan struct{}
	kept kept
}

// answer answers a question. It names only objects that the user may see.
func (s *Server) answer(ctx context.Context, g *gate, u user.Info, q question, x *turns) (*explain.Explanation, error) {
	resource := schema.GroupResource{Group: Group, Resource: q.resource}
	switch ok, err := g.may(ctx, u, "get", q.resource, q.namespace, q.name); {
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("ask what user %s may: %w", u.GetName(), err))
	case !ok:
		return nil, apierrors.NewForbidden(resource, q.name, fmt.Errorf("user %s must be allowed to get %s", u.GetName(), resource))
	}
	var out *explain.Explanation
	var failed error
	err := s.asSeen(ctx, g, u, x, q.namespace, func(c *explain.Cycle) { out, failed = c.Object(q.kind, q.namespace, q.name) })
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, notFound(failed, resource)
	}
	return out, nil
}

// asSeen examines the last cycle with the rights of a user who may see the given namespace; "": the question applies to the cluster. It
// computes the answer on a copy of the model. So it can wait until the API server states which other namespaces the user may see.
func (s *Server) asSeen(ctx context.Context, g *gate, u user.Info, x *turns, namespace string, do func(*explain.Cycle)) error {
	everywhere, err := g.may(ctx, u, "get", "jobs", "", "")
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	known := map[string]bool{}
	if namespace != "" {
		known[namespace] = true
	}
	var unknown error
	sees := func(namespace string) bool {
		ok, asked := known[namespace]
		if !asked && unknown == nil {
			ok, unknown = g.may(ctx, u, "get", "jobs", namespace, "")
			known[namespace] = ok
		}
		return ok
	}
	err = s.look(ctx, x.turn, func(c *explain.Cycle) {
		if !everywhere {
			c.Sees = sees
		}
		do(c)
	})
	if unknown != nil {
		return apierrors.NewInternalError(unknown)
	}
	return err
}

// look answers one question at a time, with a rest after each.
func (s *Server) look(ctx context.Context, turn chan struct{}, do func(*explain.Cycle)) error {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return apierrors.NewTooManyRequests("many ask at once", 1)
	}
	began := time.Now()
	err := s.Ask(ctx, do)
	rest := min(time.Since(began), mostRest)
	go func() {
		time.Sleep(rest)
		<-turn
	}()
	return err
}

func notFound(err error, resource schema.GroupResource) error {
	unknown, ok := errors.AsType[*explain.UnknownError](err)
	if !ok {
		return err
	}
	_, name, namespaced := strings.Cut(unknown.Name, "/")
	if !namespaced {
		name = unknown.Name
	}
	return notThere(resource, name, "the last cycle knew none: "+unknown.Error())
}

func notThere(resource schema.GroupResource, name, message string) *apierrors.StatusError {
	out := apierrors.NewNotFound(resource, name)
	out.ErrStatus.Message = message
	return out
}

// statusOf converts an error to a status of the API.
func statusOf(err error) *apierrors.StatusError {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status
	}
	return apierrors.NewServiceUnavailable(err.Error())
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	write(w, int(status.Code), &status)
}

func write(w http.ResponseWriter, code int, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// wantsText reports whether the client requests plain text.
func wantsText(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Accept"), "text/plain") }

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text))
}

// discovery returns the discovery objects of the API, by path.
func discovery() map[string]any {
	version := metav1.GroupVersionForDiscovery{GroupVersion: Group + "/" + Version, Version: Version}
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: Group,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: Group + "/" + Version}
	for _, kind := range explain.Kinds() {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: kind + "s", SingularName: kind, Namespaced: Namespaced(kind), Kind: "Explanation", Verbs: metav1.Verbs{"get"},
		})
	}
	for _, resource := range []string{WhatIfs, ClusterWhatIfs} {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource, SingularName: strings.TrimSuffix(resource, "s"), Namespaced: resource == WhatIfs, Kind: "WhatIf",
			Verbs: metav1.Verbs{"create"},
		})
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{
		Name: Metrics, SingularName: Metrics, Kind: "Metrics", Verbs: metav1.Verbs{"get"},
	})
	info := map[string]string{"title": Group, "version": Version}
	return map[string]any{
		"/apis": &metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group},
		},
		"/apis/" + Group:                 &group,
		"/apis/" + Group + "/" + Version: list,
		"/openapi/v2":                    map[string]any{"swagger": "2.0", "info": info, "paths": map[string]any{}},
		"/openapi/v3":                    map[string]any{"paths": map[string]any{}},
		"/healthz":                       map[string]string{"status": "ok"},
	}
}
