package dashboard

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// here serves a state in the same way as celsius dashboard on the machine of its user.
func here(t testing.TB, s *state, c cluster) (h http.Handler, p *pictures) {
	t.Helper()
	o := Options{Key: "secret", Cluster: "test", Try: aTrial()}
	p = newPictures(s, o.about())
	h, _, err := o.guarded(nil, data(s, p, c))
	if err != nil {
		t.Fatal(err)
	}
	return h, p
}

// aTrial is the folder of the page on which users try policies.
func aTrial() fs.FS {
	return fstest.MapFS{"index.html": {Data: []byte("<title>try it</title>")}, "celsius.wasm.br": {Data: []byte("small")}}
}

func get(h http.Handler, url string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Authorization", "Bearer secret")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestWhoIsServed checks access to the page on the user's own machine. Every request needs a host name of this machine, and a request for
// data also needs the key. Pages of other sites may not request data.
func TestWhoIsServed(t *testing.T) {
	h, _ := here(t, aCluster(t), asked{})
	const node = "http://127.0.0.1:8088/dashboard/node?name=gpu-1"
	for _, x := range []struct {
		name, url string
		header    []string
		want      int
	}{
		{"its own page", node, []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8088"}, 200},
		{"a program", node, nil, 200},
		{"by localhost", strings.Replace(node, "127.0.0.1", "localhost", 1), nil, 200},
		{"by IPv6", strings.Replace(node, "127.0.0.1", "[::1]", 1), nil, 200},
		{"without the key", node, []string{"Authorization", ""}, 401},
		{"with another key", node, []string{"Authorization", "Bearer guessed"}, 401},
		{"by a name of another site that leads here", strings.Replace(node, "127.0.0.1", "evil.example", 1), nil, 421},
		{"by a name that begins like ours", strings.Replace(node, "127.0.0.1", "localhost.evil.example", 1), nil, 421},
		{"a page of another site", node, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port of this machine", node, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:9999"}, 403},
		{"a browser that tells the origin alone", node, []string{"Origin", "https://evil.example"}, 403},
		{"the page, by a link from elsewhere", "http://127.0.0.1:8088/", []string{"Authorization", "", "Sec-Fetch-Site", "cross-site"}, 200},
		{"the page, by another name", "http://evil.example/", nil, 421},
	} {
		if w := get(h, x.url, x.header...); w.Code != x.want {
			t.Errorf("%s: %d %s, want %d", x.name, w.Code, w.Body, x.want)
		}
	}
	for _, url := range []string{node, "http://127.0.0.1:8088/", "http://127.0.0.1:8088/none"} {
		policy := get(h, url).Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", url, policy)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, node, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestTry checks the page on which users try policies. It is served if its folder is there. Requests need no key, but a host name of this
// machine, and may not come from pages of other sites. The dashboard page learns whether this page is served.
func TestTry(t *testing.T) {
	s := aCluster(t)
	h, _ := here(t, s, asked{})
	const page = "http://127.0.0.1:8088/try/"
	for _, x := range []struct {
		name, url string
		header    []string
		want      int
		says      string
	}{
		{"by the link, which brings no key", page, []string{"Authorization", "", "Sec-Fetch-Site", "same-origin"}, 200, "try it"},
		{"its program", page + "celsius.wasm", []string{"Accept-Encoding", "br"}, 200, "small"},
		{"without the slash", strings.TrimSuffix(page, "/"), nil, 307, "/try/"},
		{"a file that is not there", page + "none.js", nil, 404, ""},
		{"what is beside the folder", page + "../dashboard/node?name=gpu-1", []string{"Authorization", ""}, 307, "/dashboard/node"},
		{"what tells of the cluster, below it", page + "dashboard/node?name=gpu-1", nil, 404, ""},
		{"by a name of another site that leads here", strings.Replace(page, "127.0.0.1", "evil.example", 1), nil, 421, ""},
		{"a page of another site", page + "celsius.wasm", []string{"Origin", "https://evil.example"}, 403, ""},
	} {
		if w := get(h, x.url, x.header...); w.Code != x.want || !strings.Contains(w.Body.String(), x.says) {
			t.Errorf("%s: %d %q, want %d and %q", x.name, w.Code, w.Body, x.want, x.says)
		}
	}
	headers := get(h, page).Header()
	got := headers.Get("Content-Security-Policy")
	if !strings.Contains(got, "'wasm-unsafe-eval'") || !strings.Contains(got, "worker-src 'self'") {
		t.Errorf("with the policy %q no browser runs the program", got)
	}
	if got := headers.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
		t.Errorf("pages of other sites may load it: %q", got)
	}
	if got := get(h, "http://127.0.0.1:8088/").Header().Get("Content-Security-Policy"); strings.Contains(got, "unsafe") {
		t.Errorf("the dashboard itself has the policy %q", got)
	}
	for _, folder := range []fs.FS{nil, aTrial()} {
		o := Options{Key: "secret", Try: folder}
		h, _, err := o.guarded(nil, data(s, newPictures(s, o.about()), asked{}))
		if err != nil {
			t.Fatal(err)
		}
		if served := get(h, page).Code == http.StatusOK; served != (folder != nil) {
			t.Errorf("of the folder %v the page is served: %v", folder, served)
		}
		s.changed = true
		top := string(s.draw(&picture{}, o.about(), noon()).parts[0].data)
		if told := strings.Contains(top, `"try":true`); told != (folder != nil) {
			t.Errorf("of the folder %v the page is told %s", folder, top)
		}
	}
}

// TestAnswersOfDetails requests objects that exist, objects that do not exist, and invalid names.
func TestAnswersOfDetails(t *testing.T) {
	h, _ := here(t, aCluster(t), asked{raw: map[string]string{
		"/apis/explain.celsius.dev/v1alpha1/namespaces/team/jobs/sweep": "job team/sweep waits",
		"/apis/explain.celsius.dev/v1alpha1/queues/research":            "queue research",
	}})
	for _, x := range []struct {
		url  string
		want int
		says string
	}{
		{"job?namespace=team&name=sweep", 200, `"name":"sweep"`},
		{"job?namespace=team&name=none", 404, "there is no job of that name"},
		{"queue?name=research", 200, `"line":{`},
		{"queue?name=", 404, "there is no queue"},
		{"node?name=none", 404, "there is no node"},
		{"search?text=gpu", 200, `"kind":"node","name":"gpu-1"`},
		{"explain?kind=job&namespace=team&name=sweep", 200, "job team/sweep waits"},
		{"explain?kind=queue&name=research", 200, "queue research"},
		{"explain?kind=job&namespace=team&name=other", 502, "the scheduler does not tell"},
		{"explain?kind=secret&namespace=team&name=x", 400, "kind is one of job, pod, queue, node"},
		{"explain?kind=job&namespace=team&name=" + "..%2F..%2Fsecrets", 400, "that is no name"},
		{"explain?kind=job&namespace=a%2Fb&name=x", 400, "that is no name"},
		{"secrets", 404, ""},
	} {
		w := get(h, "http://localhost/dashboard/"+x.url)
		if w.Code != x.want || !strings.Contains(w.Body.String(), x.says) {
			t.Errorf("%s: %d %s, want %d and %q", x.url, w.Code, w.Body, x.want, x.says)
		}
		if w.Code == 200 && !json.Valid(w.Body.Bytes()) && !strings.HasPrefix(x.url, "explain") {
			t.Errorf("%s: %s is not JSON", x.url, w.Body)
		}
	}
}

// reader passes on everything that is written to it.
type reader struct {
	io.Writer
	header http.Header
}

func (r reader) Header() http.Header              { return r.header }
func (r reader) WriteHeader(int)                  {}
func (r reader) Flush()                           {}
func (r reader) SetWriteDeadline(time.Time) error { return nil }

// TestStream checks what a page receives. First it receives everything, then the changes at most once a second, and then signs that the
// connection is alive.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aCluster(t)
		p := newPictures(s, overview{Cluster: "test"})
		ctx, stop := context.WithCancel(t.Context())
		from, to := io.Pipe()
		go p.run(ctx)
		ended := make(chan bool)
		go func() {
			p.ServeHTTP(reader{to, http.Header{}}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/dashboard/stream", nil))
			close(ended)
		}()
		lines := bufio.NewReader(from)
		next := func() (event string, after time.Duration) {
			began := time.Now()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if name, ok := strings.CutPrefix(line, "event: "); ok {
					return strings.TrimSpace(name), time.Since(began)
				}
				if strings.HasPrefix(line, ":") {
					return "comment", time.Since(began)
				}
			}
		}
		for _, want := range []string{"overview", "queues", "line", "policies", "nodes"} {
			if got, after := next(); got != want || after > 0 {
				t.Errorf("sent is %s after %s, want %s at once", got, after, want)
			}
		}
		_, _ = lines.ReadString('\n')
		for range 3 { // within one second, these are one event
			fill(t, s, aQueue("batch", "", "", "cpu=7"))
		}
		if got, after := next(); got != "queues" || after > drawEvery {
			t.Errorf("sent is %s after %s", got, after)
		}
		if got, after := next(); got != "comment" || after > quietFor {
			t.Errorf("sent is %s after %s", got, after)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		defer func() { _ = to.Close() }()
		began := time.Now()
		<-ended
		if took := time.Since(began); took > streamFor {
			t.Errorf("a stream lasts %s", took)
		}
		stop()
		synctest.Wait()
	})
}

// TestMostStreams refuses one page too many. After one page is closed, it serves again.
func TestMostStreams(t *testing.T) {
	h, p := here(t, aCluster(t), asked{})
	p.streams.Store(mostStreams)
	if w := get(h, "http://localhost/dashboard/stream"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d", w.Code)
	}
	if p.streams.Load() != mostStreams {
		t.Errorf("%d pages look", p.streams.Load())
	}
}

// apiServer knows two users by their tokens. Only viewer may get /dashboard.
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
		if token := review.Spec.Token; token == "viewer" || token == "other" {
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
		review.Status.Allowed = review.Spec.User == "viewer" && a != nil && a.Path == Path && a.Verb == "get"
		answer(w, review)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// TestShared checks a shared dashboard. It is served by TLS. Everybody gets its files, but the API server decides who may see the cluster.
func TestShared(t *testing.T) {
	s := aCluster(t)
	o := Options{Address: "127.0.0.1:0", Shared: true, Log: logr.Discard()}
	h, url, err := o.guarded(apiServer(t), data(s, newPictures(s, overview{}), asked{}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	if server.Listener, err = o.encrypted(server.Listener); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	unsigned := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nobody has signed its certificate
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: unsigned}}
	t.Cleanup(client.CloseIdleConnections)
	for _, x := range []struct {
		path, token string
		want        int
	}{
		{"", "", 200},
		{"healthz", "", 200},
		{"dashboard/node?name=gpu-1", "", 401},
		{"dashboard/node?name=gpu-1", "stranger", 500}, // Kubernetes' own filter reports an unknown token as an error
		{"dashboard/node?name=gpu-1", "other", 403},
		{"dashboard/node?name=gpu-1", "viewer", 200},
		{"dashboard/search?text=gpu", "viewer", 200},
		{"dashboard//node?name=gpu-1", "", 401},
		{"dashboard", "", 401},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url(server.Listener.Addr().String())+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.token != "" {
			request.Header.Set("Authorization", "Bearer "+x.token)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != x.want {
			t.Errorf("%s as %q: %d %s, want %d", x.path, x.token, response.StatusCode, text, x.want)
		}
		if x.want == 200 && strings.HasPrefix(x.path, "dashboard") && !strings.Contains(string(text), "gpu-1") {
			t.Errorf("%s as %q is told %s", x.path, x.token, text)
		}
	}
}

// TestOptions refuses options that would show other users what only this user may see. It also refuses certificates that cannot be read.
func TestOptions(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{Address: "127.0.0.1:8088"}, ""},
		{Options{Address: "localhost:0"}, ""},
		{Options{Address: "[::1]:0"}, ""},
		{Options{Address: ":8443", Shared: true}, ""},
		{Options{Address: ":8088"}, "without --shared"},
		{Options{Address: "0.0.0.0:8088"}, "without --shared"},
		{Options{Address: "10.0.0.1:8088"}, "without --shared"},
		{Options{Address: "8088"}, "write it as host:port"},
		{Options{Address: "127.0.0.1:0", Namespace: "team"}, ""},
		{Options{Address: ":8443", Namespace: "team", Shared: true}, "-n is for a dashboard of one's own"},
		{Options{Address: "127.0.0.1:0", CertDir: "x"}, "certificates are for a dashboard that is shared"},
	} {
		err := x.o.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.o, err, x.want)
		}
	}
	o := Options{Shared: true, CertDir: t.TempDir()}
	if _, err := o.encrypted(nil); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("a folder without certificates: %v", err)
	}
}
