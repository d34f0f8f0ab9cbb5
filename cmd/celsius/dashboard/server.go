package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/celsius-scheduler/celsius/cmd/celsius/try"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/page"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Path is the non-resource URL that a user must be allowed to get to see a shared dashboard, in the same way as /metrics. All data of the
// cluster is served below it.
const Path = "/dashboard"

// tryPath is the path of the page on which users try policies. The page finds its files relative to the slash at the end.
const tryPath = "/try/"

// cluster sends the requests to an API server that follow from a user's action.
type cluster interface {
	// Events returns the events of the objects with a name in a namespace.
	Events(ctx context.Context, namespace, name string) ([]corev1.Event, error)
	// Raw reads a path of the API server. accept is the media type.
	Raw(ctx context.Context, path, accept string) ([]byte, error)
}

// askWithin is how long the API server may take for a user's action.
const askWithin = 15 * time.Second

// security lets the browser load only the files of the page, run no inline scripts, and show the page in no other page.
func security(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "nothing is changed here: only GET is served", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests from pages of other sites. Browsers send headers that identify the page. Other clients send neither header.
func sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
		own := origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host
		if !own || strings.HasPrefix(r.URL.Path, Path) && site != "" && site != "same-origin" {
			http.Error(w, "a page of another site asks", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onlyHere refuses host names other than this machine's own. Otherwise, a page of another site could point its own name to this machine.
func onlyHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is served on this machine alone: open it as localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// newKey returns a key that only the user who started the dashboard knows.
func newKey() string { return rand.Text() }

// withKey serves only clients that know a key, because other users may work on this machine.
func withKey(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(key)) != 1 {
			http.Error(w, "the key is missing: open the address that celsius dashboard printed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// atPath makes a guard check one path for all paths below it, because one permission covers them.
func atPath(guard func(http.Handler) (http.Handler, error), next http.Handler) (http.Handler, error) {
	type key struct{}
	guarded, err := guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked, ok := r.Context().Value(key{}).(*http.Request); ok {
			next.ServeHTTP(w, asked)
		}
	}))
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as := r.Clone(context.WithValue(r.Context(), key{}, r))
		as.URL.Path, as.URL.RawPath = Path, ""
		guarded.ServeHTTP(w, as)
	}), nil
}

// handler serves the files of the page to everyone, and also the page for trying policies if it is available. It serves data of the cluster
// to clients that guard permits.
func handler(files, trial fs.FS, data http.Handler, guard func(http.Handler) (http.Handler, error)) (http.Handler, error) {
	guarded, err := guard(data)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Path+"/", guarded)
	mux.Handle("/", http.FileServerFS(files))
	for name, text := range map[string]string{"/look.css": page.Style(), "/components.js": page.Components()} {
		mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, name, time.Time{}, strings.NewReader(text))
		})
	}
	if trial != nil {
		mux.Handle(tryPath, http.StripPrefix(strings.TrimSuffix(tryPath, "/"), try.Handler(trial)))
	}
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	return security(sameOrigin(mux)), nil
}

// data serves the data of the cluster.
func data(s *state, p *pictures, c cluster) http.Handler {
	mux, told := http.NewServeMux(), newEvents(c)
	mux.Handle(Path+"/stream", p)
	mux.HandleFunc(Path+"/queue", func(w http.ResponseWriter, r *http.Request) {
		d, ok := s.queueDetail(r.FormValue("name"))
		answer(w, r, d, ok)
	})
	mux.HandleFunc(Path+"/node", func(w http.ResponseWriter, r *http.Request) {
		d, ok := s.nodeDetail(r.FormValue("name"))
		answer(w, r, d, ok)
	})
	mux.HandleFunc(Path+"/search", func(w http.ResponseWriter, r *http.Request) { answer(w, r, s.search(r.FormValue("text")), true) })
	mux.HandleFunc(Path+"/job", func(w http.ResponseWriter, r *http.Request) {
		v, asks, ok := s.story(r.FormValue("namespace"), r.FormValue("name"))
		if ok {
			v.tell(told.of(r.Context(), v.Job.Namespace, asks))
		}
		answer(w, r, v, ok)
	})
	mux.HandleFunc(Path+"/explain", func(w http.ResponseWriter, r *http.Request) { explained(w, r, c) })
	return mux
}

// visibleJSON returns an object as JSON in which control characters are visible, in the same form as in a terminal.
func visibleJSON(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	return source.EscapeJSON(text), err //nolint:wrapcheck // the caller states what it writes
}

// answer writes an object as JSON.
func answer(w http.ResponseWriter, r *http.Request, object any, there bool) {
	if !there {
		http.Error(w, fmt.Sprintf("there is no %s of that name", strings.TrimPrefix(r.URL.Path, Path+"/")), http.StatusNotFound)
		return
	}
	text, err := visibleJSON(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// explained asks the scheduler, in the same way as celsius explain. It refuses names that no object can have, because names become part of
// a path.
func explained(w http.ResponseWriter, r *http.Request, c cluster) {
	kind, namespace, name := r.FormValue("kind"), r.FormValue("namespace"), r.FormValue("name")
	switch {
	case !slices.Contains(explain.Kinds(), kind):
		http.Error(w, "kind is one of "+strings.Join(explain.Kinds(), ", "), http.StatusBadRequest)
		return
	case len(validation.IsDNS1123Subdomain(name)) > 0 || questions.Namespaced(kind) && len(validation.IsDNS1123Label(namespace)) > 0:
		http.Error(w, "that is no name of an object", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	text, err := c.Raw(ctx, questions.Path(kind, namespace, name), "text/plain")
	if err != nil {
		http.Error(w, "the scheduler does not tell: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(text)
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return nil
}
