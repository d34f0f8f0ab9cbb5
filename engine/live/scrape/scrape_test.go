package scrape

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// apiServer is an API server that knows two users by their tokens. Only reader may get /metrics.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		if token := review.Spec.Token; token == "reader" || token == "other" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: token}}
		}
		answer(w, review)
	})
	mux.HandleFunc("/apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		a := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && a != nil && a.Path == "/metrics" && a.Verb == "get"
		answer(w, review)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func serving(t *testing.T, config *rest.Config) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "secret_total"}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := &Server{Config: config, From: registry, Log: logr.Discard()}
	go func() { ended <- s.serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func read(t *testing.T, url, token string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the server made its certificate at its start: nobody has signed it
	t.Cleanup(client.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestWhoMayRead checks that only authorized users can read metrics.
func TestWhoMayRead(t *testing.T) {
	address := serving(t, apiServer(t))
	// For an unknown token, Kubernetes' own filter returns an error.
	for token, want := range map[string]int{
		"": http.StatusUnauthorized, "stranger": http.StatusInternalServerError,
		"other": http.StatusForbidden, "reader": http.StatusOK,
	} {
		code, body := read(t, "https://"+address+"/metrics", token)
		if code != want || strings.Contains(body, "secret_total") != (want == http.StatusOK) {
			t.Errorf("token %q: %d %s, want %d", token, code, body, want)
		}
	}
	if code, body := read(t, "http://"+address+"/metrics", "reader"); code != http.StatusBadRequest {
		t.Errorf("without TLS: %d %s", code, body)
	}
}

// TestOpen reads metrics without TLS and authorization.
func TestOpen(t *testing.T) {
	if code, body := read(t, "http://"+serving(t, nil)+"/metrics", ""); code != http.StatusOK || !strings.Contains(body, "secret_total 0") {
		t.Errorf("%d %s", code, body)
	}
}
